//! The client, and what it does in one poll: reach the server, open the streams that the session asks
//! for, then let the test do its part.

use core::mem;
use core::net::SocketAddr;

use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::greeting;
use linerate_core::session::{self, Action, ClientConfig, Event, Phase, Session, StreamEvent};
use linerate_core::test::{Protocol, StreamId};
use linerate_core::time::{Duration, Instant};

use crate::connections::Connections;
use crate::net::{self, Net, Path, TcpState, most_datagram_bytes};
use crate::observer::{NotBegun, NotReached, Observer, Progress};
use crate::stream::{Link, Stream};
use crate::test::{End, Test};

/// An iperf3 client with room for tests of `N` streams, both directions together, one test at a time.
///
/// It works with sockets of a [`Net`]: of TCP `N` for streams and then one for the control connection,
/// of UDP `N`.
#[derive(Debug)]
pub struct Client<'a, const N: usize> {
    mtu_bytes: usize,
    connections: Connections<N, 1>,
    state: State<'a, N>,
    is_interrupted: bool,
}

/// A test to run.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// Where the server listens.
    pub server: SocketAddr,
    /// What to measure.
    pub config: ClientConfig<'a>,
    /// Names the test. Two at the same server must not have the same, so it is made of random bytes.
    pub cookie: Cookie,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "no allocation; a client has one")]
enum State<'a, const N: usize> {
    Idle,
    /// The server is to answer until then.
    Connecting(Order<'a>, Instant),
    Running(Running<'a, N>),
}

/// The test that runs.
#[derive(Debug)]
struct Running<'a, const N: usize> {
    test: Test<Exchange<'a, N>, N>,
    opening: Opening<N>,
}

/// How its streams are opened. They are known by the numbers of their sockets, in the order of their
/// opening.
#[derive(Debug)]
struct Opening<const N: usize> {
    server: SocketAddr,
    cookie: Cookie,
    /// Which streams the session knows to be connected.
    is_known: [bool; N],
}

type Exchange<'a, const N: usize> = session::Client<'a, N>;
type ClientSession<'a, const N: usize> = Session<Exchange<'a, N>, N>;

impl<'a, const N: usize> Client<'a, N> {
    /// TCP sockets that it works with.
    pub const TCP_SOCKETS: usize = N + 1;

    const CONTROL: usize = Connections::<N, 1>::DOOR;

    /// It does nothing until it [starts](Self::start) a test. `mtu_bytes` is the longest IP packet that
    /// the interface takes; 1500 on Ethernet.
    pub const fn new(mtu_bytes: usize) -> Self {
        let connections = Connections::new(0);
        Self { mtu_bytes, connections, state: State::Idle, is_interrupted: false }
    }

    /// Begins a test; what comes of it is told at the next polls.
    ///
    /// # Errors
    /// If it cannot begin: another runs, or this one is more than the client has room for.
    pub fn start(
        &mut self,
        now: Instant,
        net: &mut impl Net,
        order: Order<'a>,
    ) -> Result<(), NotBegun> {
        if self.is_busy() {
            return Err(NotBegun::Busy);
        }
        let settings = &order.config.settings;
        if settings.stream_count() > N {
            return Err(NotBegun::TooManyStreams { most: N });
        }
        match settings.protocol {
            Protocol::Tcp => {}
            Protocol::Udp => {
                let most = most_datagram_bytes(net, 0, order.server.ip(), self.mtu_bytes);
                if settings.block_bytes as usize > most {
                    return Err(NotBegun::DatagramTooLong { most });
                }
            }
            Protocol::Sctp => return Err(NotBegun::NoSctp),
        }
        if !net.connect(Self::CONTROL, order.server) {
            return Err(NotBegun::NoRoute);
        }
        net.set_no_delay(Self::CONTROL, true);
        self.connections.take(Self::CONTROL);
        self.state = State::Connecting(order, now + CONNECT_TIMEOUT);
        Ok(())
    }

    /// Does everything that can be done at `now`, and returns when there is more to do even if nothing
    /// comes.
    pub fn poll(
        &mut self,
        now: Instant,
        net: &mut impl Net,
        observer: &mut dyn Observer<N>,
    ) -> Option<Instant> {
        let Self { connections, state, is_interrupted, .. } = self;
        let mut next = None;
        if let State::Connecting(order, until) = state {
            let why = match net.state(Self::CONTROL) {
                TcpState::Open => None,
                TcpState::Closed => Some(NotReached::Refused),
                TcpState::Opening if now >= *until => Some(NotReached::TimedOut),
                TcpState::Opening if mem::take(is_interrupted) => Some(NotReached::Interrupted),
                TcpState::Listening | TcpState::Opening => return Some(*until),
            };
            let order = *order;
            match why {
                None => {
                    observer.test_began(order.server, order.cookie);
                    begin(state, now, order);
                }
                Some(why) => {
                    net.abort(Self::CONTROL);
                    connections.leave(now, net, Self::CONTROL);
                    observer.not_reached(order.server, why);
                    *state = State::Idle;
                }
            }
        }
        if let State::Running(Running { test, opening }) = state {
            let mut stage = Stage { now, net, connections, opening, observer };
            test.hear(&mut stage);
            if mem::take(is_interrupted) {
                test.interrupt(&mut stage);
            }
            stage.open_streams(test);
            next = test.work(&mut stage);
            if test.is_over(&mut stage) {
                stage.leave(Self::CONTROL);
                *state = State::Idle;
            }
        }
        connections.tidy(now, net);
        [next, connections.deadline()].into_iter().flatten().min()
    }

    /// Whether a test runs, or leaves its connections.
    pub fn is_busy(&self) -> bool {
        !matches!(self.state, State::Idle) || !self.connections.are_free()
    }

    /// Where the running test is.
    pub const fn phase(&self) -> Option<Phase> {
        match &self.state {
            State::Idle | State::Connecting(..) => None,
            State::Running(running) => Some(running.test.session.phase()),
        }
    }

    /// Ends the running test at the next poll, with what was measured until then, and tells its
    /// server.
    pub const fn interrupt(&mut self) {
        self.is_interrupted = !matches!(self.state, State::Idle);
    }
}

/// Begins the session with a server that is reached. Out of line, for a stack that is small: what makes a
/// value as large as a session holds it once more, and is gone before the session has anything to do.
#[inline(never)]
fn begin<'a, const N: usize>(state: &mut State<'a, N>, now: Instant, order: Order<'a>) {
    let Order { server, config, cookie } = order;
    let session = ClientSession::new(now, config, cookie);
    let session = session.expect("there is room for its streams, as its start saw");
    *state = State::Running(Running {
        test: Test::new(session, Client::<N>::CONTROL),
        opening: Opening { server, cookie, is_known: [false; N] },
    });
}

/// What every part of a poll works with.
struct Stage<'p, S, const N: usize> {
    now: Instant,
    net: &'p mut S,
    connections: &'p mut Connections<N, 1>,
    opening: &'p mut Opening<N>,
    observer: &'p mut dyn Observer<N>,
}

impl<S: Net, const N: usize> Stage<'_, S, N> {
    /// Takes the datagrams of UDP streams, and tells the session of streams that came to stand or fail.
    fn open_streams(&mut self, test: &mut Test<Exchange<'_, N>, N>) {
        // Those that the session opens meanwhile have their turn at the next poll.
        for index in 0..test.streams.len() {
            // An event may end the test, and the streams with it.
            let Some(stream) = test.streams.get_mut(index) else { return };
            let socket = stream.link.socket();
            let is_known = self.opening.is_known[socket];
            let event = match stream.link {
                Link::Udp(..) => {
                    let is_answered = stream.take_datagrams(self.now, self.net);
                    is_answered.then_some(StreamEvent::Connected)
                }
                Link::Tcp(_) if is_known => None,
                Link::Tcp(_) => match self.net.state(socket) {
                    TcpState::Listening | TcpState::Opening => None,
                    TcpState::Closed => Some(StreamEvent::Failed { code: 0 }),
                    TcpState::Open => {
                        // The buffer is empty, and holds more than a cookie.
                        net::send_bytes(self.net, socket, self.opening.cookie.as_bytes());
                        Some(StreamEvent::Connected)
                    }
                },
            };
            if let Some(event) = event.filter(|_| !is_known) {
                self.opening.is_known[socket] = true;
                // Until the test starts, streams stand in the order of their opening.
                test.session.handle_stream(self.now, StreamId::from_index(index), event);
                test.settle(self);
            }
        }
    }

    fn greet(&mut self, socket: usize) {
        let path = Path { peer: self.opening.server, local: None };
        let hello = greeting::HELLO;
        // One that cannot be sent now is as one that is lost.
        let _ = self.net.send_datagram(socket, path, hello.len(), |room| {
            room.copy_from_slice(&hello);
        });
    }

    fn leave(&mut self, socket: usize) {
        self.connections.leave(self.now, self.net, socket);
    }
}

impl<'a, S: Net, const N: usize> End<Exchange<'a, N>, N> for Stage<'_, S, N> {
    type Net = S;

    fn now(&self) -> Instant {
        self.now
    }

    fn net(&mut self) -> &mut S {
        self.net
    }

    fn perform(&mut self, test: &mut Test<Exchange<'a, N>, N>, action: Action) {
        match action {
            Action::OpenStream(id, _) => {
                let socket = id.index();
                let settings = test.session.settings();
                let link = if settings.protocol == Protocol::Udp {
                    self.net.bind(socket, 0);
                    self.greet(socket);
                    Link::Udp(socket, Path { peer: self.opening.server, local: None })
                } else {
                    // One that cannot begin is found closed.
                    self.net.connect(socket, self.opening.server);
                    self.net.set_no_delay(socket, settings.no_delay);
                    self.connections.take(socket);
                    Link::Tcp(socket)
                };
                test.streams.push(Stream::new(link)).expect("no more than the client has room for");
            }
            Action::Greet(id) => self.greet(id.index()),
            // The server numbers UDP streams in the order in which their greetings arrived.
            Action::StartStreams => {
                for place in 0..test.streams.len() {
                    let socket = test.session.opened_as(StreamId::from_index(place)).index();
                    let is_it = |stream: &Stream| stream.link.socket() == socket;
                    if let Some(at) = test.streams.iter().position(is_it) {
                        test.streams.swap(place, at);
                    }
                }
            }
            Action::StopStreams => {
                for stream in &mut test.streams {
                    stream.take_datagrams(self.now, self.net);
                }
            }
            // The others are a server's, or both ends'.
            _ => {}
        }
    }

    fn answer(&mut self, _session: &mut ClientSession<'a, N>) -> bool {
        false
    }

    fn tell(&mut self, event: Event, session: &ClientSession<'a, N>) {
        let progress = Progress { settings: session.settings(), accounts: session.accounts() };
        self.observer.test_event(event, progress);
    }

    fn release(&mut self, stream: Stream) {
        match stream.link {
            Link::Tcp(socket) => self.leave(socket),
            Link::Udp(socket, _) => self.net.unbind(socket),
        }
    }
}

/// How long a server may take to answer at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
