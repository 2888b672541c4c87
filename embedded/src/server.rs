//! The server, and what it does in one poll: bring connections where they belong, then let the running
//! test do its part.

use core::mem;
use core::net::SocketAddr;

use linerate_core::accept::{self, Greeting, Known};
use linerate_core::protocol::code::{ControlCode, ServerError, error_number};
use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::greeting;
use linerate_core::session::{self, Action, Admission, Event, Phase, ServerConfig, Session};
use linerate_core::test::Protocol;
use linerate_core::time::Instant;

use crate::connections::{Connections, Visit};
use crate::net::{self, Net, most_datagram_bytes};
use crate::observer::{Observer, Progress, TurnedAway};
use crate::stream::{Link, Stream, receive_datagrams};
use crate::test::{End, Test};

/// How a server is set up.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The port, TCP and UDP, not zero; iperf3's own is 5201.
    pub port: u16,
    /// The longest IP packet that the interface takes; 1500 on Ethernet. A test whose datagrams do
    /// not fit is refused.
    pub mtu_bytes: usize,
    /// How clients are treated.
    pub session: ServerConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self { port: 5201, mtu_bytes: 1500, session: ServerConfig::default() }
    }
}

/// An iperf3 server with room for tests of `N` streams, both directions together, one test at a time.
/// It goes on after whatever a client does.
///
/// It works with sockets of a [`Net`]: of TCP `N` for streams and then [`DOORS`] for control
/// connections, and one of UDP.
#[derive(Debug)]
pub struct Server<const N: usize> {
    config: Config,
    connections: Connections<N, DOORS>,
    test: Option<Running<N>>,
    is_bound: bool,
    is_interrupted: bool,
}

/// TCP sockets of a server that listen whether or not a test runs.
pub const DOORS: usize = 2;

/// The test of a client.
#[derive(Debug)]
struct Running<const N: usize> {
    test: Test<Exchange<N>, N>,
    cookie: Cookie,
    peer: SocketAddr,
}

/// Texts of clients are of no use to a chip: none is kept.
type Exchange<const N: usize> = session::Server<N, 0>;
type ServerSession<const N: usize> = Session<Exchange<N>, N>;

impl<const N: usize> Server<N> {
    /// TCP sockets that it works with.
    pub const TCP_SOCKETS: usize = N + DOORS;

    /// It listens from its first poll on.
    pub const fn new(config: Config) -> Self {
        let connections = Connections::new(config.port);
        Self { config, connections, test: None, is_bound: false, is_interrupted: false }
    }

    /// Does everything that can be done at `now`, and returns when there is more to do even if nothing
    /// comes.
    pub fn poll(
        &mut self,
        now: Instant,
        net: &mut impl Net,
        observer: &mut dyn Observer<N>,
    ) -> Option<Instant> {
        if !mem::replace(&mut self.is_bound, true) {
            net.bind(UDP, self.config.port);
        }
        let (connections, config) = (&mut self.connections, &self.config);
        let mut stage =
            Stage { now, config, net, connections, observer, admission: None, owes_output: false };
        let test = &mut self.test;
        if let Some(Running { test, .. }) = test {
            test.hear(&mut stage);
            if mem::take(&mut self.is_interrupted) {
                test.interrupt(&mut stage);
            }
        }
        stage.receive_visitors(test);
        stage.receive_datagrams(test);
        let next = test.as_mut().and_then(|running| running.test.work(&mut stage));
        let over = test.as_ref().filter(|running| running.test.is_over(&mut stage));
        let over = over.map(|running| running.test.control());
        if let Some(control) = over {
            *test = None;
            stage.connections.part(now, control);
        }
        stage.connections.tidy(now, stage.net);
        // Whoever waits for the end of a test is served at once.
        let again = over.map(|_| now);
        [next, again, stage.connections.deadline()].into_iter().flatten().min()
    }

    /// Whether a test runs or is being set up.
    pub const fn is_busy(&self) -> bool {
        self.test.is_some()
    }

    /// Ends the running test at the next poll, with what was measured until then, and tells its
    /// client.
    pub const fn interrupt(&mut self) {
        self.is_interrupted = self.test.is_some();
    }
}

/// What every part of a poll works with.
struct Stage<'p, S, const N: usize> {
    now: Instant,
    config: &'p Config,
    net: &'p mut S,
    connections: &'p mut Connections<N, DOORS>,
    observer: &'p mut dyn Observer<N>,
    /// Answers that the session waits for.
    admission: Option<Admission>,
    owes_output: bool,
}

impl<S: Net, const N: usize> Stage<'_, S, N> {
    /// Finds out what each connection is that belongs to nobody, in the order they came in.
    fn receive_visitors(&mut self, test: &mut Option<Running<N>>) {
        // Streams are numbered in the order in which they were connected.
        let mut has_earlier = false;
        for socket in Connections::<N, DOORS>::ALL {
            let why = match self.connections.visit(self.now, self.net, socket) {
                Visit::Waiting => continue,
                Visit::Greeting(Greeting::Incomplete) => {
                    let peer = self.net.peer(socket);
                    has_earlier |= test.as_ref().is_some_and(|test| test.may_be_stream(peer));
                    continue;
                }
                Visit::Greeting(Greeting::Cookie(_)) if has_earlier => continue,
                Visit::Greeting(Greeting::Cookie(cookie)) => {
                    match self.admit(test, socket, cookie) {
                        Ok(()) => continue,
                        Err(why) => why,
                    }
                }
                Visit::Greeting(Greeting::Foreign(foreign)) => TurnedAway::Foreign(foreign),
                Visit::Gone => TurnedAway::Gone,
                Visit::Silent => TurnedAway::Silent,
            };
            self.turn_away(socket, why);
        }
    }

    fn admit(
        &mut self,
        test: &mut Option<Running<N>>,
        socket: usize,
        cookie: Cookie,
    ) -> Result<(), TurnedAway> {
        match accept::Admission::of(test.as_ref().and_then(|test| test.known(&cookie))) {
            accept::Admission::Late => Err(TurnedAway::Late),
            accept::Admission::Stream => {
                let test = test.as_mut().expect("a test that is known");
                if self.accept_tcp(test, socket) { Ok(()) } else { Err(TurnedAway::Late) }
            }
            accept::Admission::Control => match test {
                // It stays where it is for the moment that the last test takes to close.
                Some(test) if test.is_closing() => Ok(()),
                Some(_) => Err(TurnedAway::Busy),
                None => {
                    let peer = self.net.peer(socket).ok_or(TurnedAway::Gone)?;
                    self.connections.take(socket);
                    self.observer.test_began(peer, cookie);
                    begin(test, self.now, self.config, Visitor { socket, cookie, peer });
                    Ok(())
                }
            },
        }
    }

    /// Closes a connection; one that speaks iperf3 is told why in the word that stock clients know.
    fn turn_away(&mut self, socket: usize, why: TurnedAway) {
        let peer = self.net.peer(socket);
        if matches!(why, TurnedAway::Busy | TurnedAway::Late) {
            // A peer that is gone needs no answer.
            let _ = net::send_bytes(self.net, socket, &[ControlCode::AccessDenied.byte()]);
        }
        self.connections.part(self.now, socket);
        self.observer.turned_away(peer, why);
    }

    /// Takes a TCP connection as the next stream; `false` if it is one too many.
    fn accept_tcp(&mut self, running: &mut Running<N>, socket: usize) -> bool {
        self.net.set_no_delay(socket, running.test.session.settings().no_delay);
        self.connections.take(socket);
        running.accept(self, Link::Tcp(socket))
    }

    /// Counts the datagrams of the streams, and makes one of each that greets. Others are dropped.
    fn receive_datagrams(&mut self, test: &mut Option<Running<N>>) {
        let Some(running) = test else {
            receive_datagrams(self.now, self.net, UDP, &mut [], |_, _| false);
            return;
        };
        loop {
            let awaits = running.awaited() == Some(Protocol::Udp);
            let client = running.peer.ip();
            let streams = &mut running.test.streams;
            let greeted = receive_datagrams(self.now, self.net, UDP, streams, |datagram, path| {
                awaits && path.peer.ip() == client && greeting::is_hello(datagram)
            });
            let Some(path) = greeted else { return };
            let reply = greeting::REPLY;
            // Without an answer there is no stream; the client will give up.
            let answered = self.net.send_datagram(UDP, path, reply.len(), |room| {
                room.copy_from_slice(&reply);
            });
            if answered.is_ok() {
                running.accept(self, Link::Udp(UDP, path));
            }
        }
    }

    /// Gets ready for the client's streams: sockets must listen before it is told to connect.
    fn prepare(&mut self, test: &Test<Exchange<N>, N>) -> Admission {
        let settings = test.session.settings();
        match settings.protocol {
            Protocol::Tcp => self.connections.await_streams(self.net, settings.stream_count()),
            Protocol::Udp => {
                let mtu_bytes = self.config.mtu_bytes;
                let peer = self.net.peer(test.control()).map(|peer| peer.ip());
                let most = peer.map(|peer| most_datagram_bytes(self.net, UDP, peer, mtu_bytes));
                if most.is_none_or(|most| settings.block_bytes as usize > most) {
                    return Admission::Deny(ServerError::new(error_number::UDP_BLOCK_SIZE));
                }
            }
            Protocol::Sctp => return Admission::Deny(ServerError::new(error_number::NO_SCTP)),
        }
        Admission::Accept
    }
}

impl<S: Net, const N: usize> End<Exchange<N>, N> for Stage<'_, S, N> {
    type Net = S;

    fn now(&self) -> Instant {
        self.now
    }

    fn net(&mut self) -> &mut S {
        self.net
    }

    fn perform(&mut self, test: &mut Test<Exchange<N>, N>, action: Action) {
        match action {
            Action::Prepare => self.admission = Some(self.prepare(test)),
            Action::CollectOutput => self.owes_output = true,
            Action::StartStreams | Action::CloseStreams => {
                self.connections.await_no_streams(self.net);
            }
            Action::StopStreams => {
                receive_datagrams(self.now, self.net, UDP, &mut test.streams, |_, _| false);
            }
            // Its only test is all that it moves; what else there is belongs to clients or to both.
            _ => {}
        }
    }

    fn answer(&mut self, session: &mut ServerSession<N>) -> bool {
        if let Some(admission) = self.admission.take() {
            session.handle_prepared(self.now, admission);
        } else if mem::take(&mut self.owes_output) {
            session.handle_server_output(self.now, None);
        } else {
            return false;
        }
        true
    }

    fn tell(&mut self, event: Event, session: &ServerSession<N>) {
        let progress = Progress { settings: session.settings(), accounts: session.accounts() };
        self.observer.test_event(event, progress);
    }

    fn release(&mut self, stream: Stream) {
        if let Link::Tcp(socket) = stream.link {
            self.connections.leave(self.now, self.net, socket);
        }
    }
}

impl<const N: usize> Running<N> {
    /// What is known of a test of this name.
    fn known(&self, cookie: &Cookie) -> Option<Known> {
        (self.cookie == *cookie).then(|| match self.awaited() {
            Some(Protocol::Tcp) => Known::AwaitingStreams,
            Some(Protocol::Udp | Protocol::Sctp) | None => Known::Running,
        })
    }

    /// Whether a connection of this peer may become a stream.
    fn may_be_stream(&self, peer: Option<SocketAddr>) -> bool {
        self.awaited() == Some(Protocol::Tcp) && peer.is_some_and(|it| it.ip() == self.peer.ip())
    }

    /// The client has all it wants; what remains is to close.
    fn is_closing(&self) -> bool {
        matches!(self.test.session.phase(), Phase::Done | Phase::Over)
    }

    /// The transport of the streams that the client is to open now.
    fn awaited(&self) -> Option<Protocol> {
        let session = &self.test.session;
        (session.phase() == Phase::Streams).then(|| session.settings().protocol)
    }

    fn accept(&mut self, stage: &mut Stage<'_, impl Net, N>, link: Link) -> bool {
        let test = &mut self.test;
        // The stream is there before the session hears of it, because it may start all of them.
        if test.streams.push(Stream::new(link)).is_err() {
            return false;
        }
        let is_accepted = test.session.handle_stream_accepted(stage.now).is_some();
        if !is_accepted {
            test.streams.pop();
        }
        test.settle(stage);
        is_accepted
    }
}

/// Whoever said a cookie.
struct Visitor {
    socket: usize,
    cookie: Cookie,
    peer: SocketAddr,
}

/// Makes a test of a visitor. Out of line, for a stack that is small: what makes a value as large as a
/// session holds it once more, and is gone before the session has anything to do.
#[inline(never)]
fn begin<const N: usize>(
    test: &mut Option<Running<N>>,
    now: Instant,
    config: &Config,
    Visitor { socket, cookie, peer }: Visitor,
) {
    *test = Some(Running {
        test: Test::new(ServerSession::new(now, config.session), socket),
        cookie,
        peer,
    });
}

/// The only socket for datagrams.
const UDP: usize = 0;
