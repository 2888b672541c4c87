//! The server as the application sees it, and what it does in one poll: bring connections where they
//! belong, then let the running test do its part.

use linerate_core::accept::{Admission, Greeting};
use linerate_core::protocol::code::ControlCode;
use linerate_core::protocol::cookie::Cookie;
use linerate_core::session::ServerConfig;
use linerate_core::time::Instant;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::{tcp, udp};
use smoltcp::wire::IpEndpoint;

use super::connections::{Connections, DOORS, Visit};
use super::observer::{Observer, TurnedAway};
use super::storage::Buffers;
use super::test::Test;
use super::time::{engine_time, stack_time};

/// How a server is set up.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The port, TCP and UDP; iperf3's own is 5201.
    pub port: u16,
    /// The longest IP packet that the interface takes; 1500 on Ethernet. A test whose datagrams do
    /// not fit is refused.
    pub mtu_bytes: u32,
    /// How clients are treated.
    pub session: ServerConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self { port: 5201, mtu_bytes: 1500, session: ServerConfig::default() }
    }
}

/// An iperf3 server with room for tests of `N` streams, both directions together, and for `T` bytes
/// of the texts that a client sends along.
#[derive(Debug)]
pub struct Server<const N: usize, const T: usize> {
    config: Config,
    connections: Connections<N>,
    udp: SocketHandle,
    test: Option<Test<N, T>>,
    is_interrupted: bool,
}

/// What every part of a poll works with.
pub(super) struct Stage<'p, 's, const N: usize, const T: usize> {
    pub(super) now: Instant,
    pub(super) config: &'p Config,
    pub(super) sockets: &'p mut SocketSet<'s>,
    pub(super) connections: &'p mut Connections<N>,
    pub(super) udp: SocketHandle,
    pub(super) observer: &'p mut dyn Observer<N, T>,
}

impl<const N: usize, const T: usize> Server<N, T> {
    /// Places that the server's sockets take in the set.
    pub const SOCKETS: usize = N + DOORS + 1;

    /// Puts the server's sockets into the set. It listens from its first poll on.
    ///
    /// # Panics
    /// If the set has fewer than [`SOCKETS`](Self::SOCKETS) places left, or if the port is zero.
    pub fn new<'a>(config: Config, sockets: &mut SocketSet<'a>, buffers: Buffers<'a, N>) -> Self {
        let Buffers { control, streams, udp } = buffers;
        let connections = Connections::new(config.port, sockets, streams, control);
        let mut udp = udp.into_socket();
        udp.bind(config.port).expect("the port is not zero, and the socket is fresh");
        let udp = sockets.add(udp);
        Self { config, connections, udp, test: None, is_interrupted: false }
    }

    /// Does everything that can be done at `now`. To be called after each poll of the interface, and
    /// when the time comes that the last call returned; if that was `None`, only the interface can
    /// bring something to do. After a call the interface may have something to send.
    ///
    /// # Panics
    /// If `sockets` is not the set that the server was made with, or lacks its sockets.
    pub fn poll(
        &mut self,
        now: smoltcp::time::Instant,
        sockets: &mut SocketSet<'_>,
        observer: &mut dyn Observer<N, T>,
    ) -> Option<smoltcp::time::Instant> {
        let Self { config, connections, udp, test, is_interrupted } = self;
        let now = engine_time(now);
        let mut stage = Stage { now, config, sockets, connections, udp: *udp, observer };
        if let Some(test) = test {
            test.hear(&mut stage);
            if core::mem::take(is_interrupted) {
                test.interrupt(&mut stage);
            }
        }
        stage.receive_visitors(test);
        let next = match test {
            Some(test) => test.work(&mut stage),
            None => stage.drop_datagrams(),
        };
        let is_over = test.as_ref().is_some_and(|test| test.close_if_over(&mut stage));
        if is_over {
            *test = None;
        }
        stage.connections.tidy(now, stage.sockets);
        // Whoever waits for the end of a test is served at once.
        let again = is_over.then_some(now);
        let next = [next, again, stage.connections.deadline()].into_iter().flatten().min();
        next.map(stack_time)
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

impl<const N: usize, const T: usize> Stage<'_, '_, N, T> {
    /// Finds out what each connection is that belongs to nobody, in the order they came in.
    fn receive_visitors(&mut self, test: &mut Option<Test<N, T>>) {
        for handle in self.connections.handles() {
            let why = match self.connections.visit(self.now, self.sockets, handle) {
                Visit::Waiting => continue,
                Visit::Greeting(Greeting::Incomplete) => {
                    let peer = self.peer(handle);
                    if test.as_ref().is_some_and(|test| test.may_be_stream(peer)) {
                        // Streams are numbered in the order in which they were connected.
                        return;
                    }
                    continue;
                }
                Visit::Greeting(Greeting::Cookie(cookie)) => {
                    match self.admit(test, handle, cookie) {
                        Ok(()) => continue,
                        Err(why) => why,
                    }
                }
                Visit::Greeting(Greeting::Foreign(foreign)) => TurnedAway::Foreign(foreign),
                Visit::Gone => TurnedAway::Gone,
                Visit::Silent => TurnedAway::Silent,
            };
            self.turn_away(handle, why);
        }
    }

    fn admit(
        &mut self,
        test: &mut Option<Test<N, T>>,
        handle: SocketHandle,
        cookie: Cookie,
    ) -> Result<(), TurnedAway> {
        match Admission::of(test.as_ref().and_then(|test| test.known(&cookie))) {
            Admission::Late => Err(TurnedAway::Late),
            Admission::Stream => {
                let test = test.as_mut().expect("a test that is known");
                if test.accept_tcp(self, handle) { Ok(()) } else { Err(TurnedAway::Late) }
            }
            Admission::Control => match test {
                // It stays where it is for the moment that the last test takes to close.
                Some(test) if test.is_closing() => Ok(()),
                Some(_) => Err(TurnedAway::Busy),
                None => {
                    let Some(peer) = self.peer(handle) else { return Err(TurnedAway::Gone) };
                    self.connections.take(handle);
                    self.observer.test_began(peer, cookie);
                    *test = Some(Test::new(self.now, &self.config.session, handle, peer, cookie));
                    Ok(())
                }
            },
        }
    }

    /// Closes a connection; one that speaks iperf3 is told why in the word that stock clients know.
    fn turn_away(&mut self, handle: SocketHandle, why: TurnedAway) {
        let peer = self.peer(handle);
        if matches!(why, TurnedAway::Busy | TurnedAway::Late) {
            let socket = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
            // A peer that is gone needs no answer.
            let _ = socket.send_slice(&[ControlCode::AccessDenied.byte()]);
        }
        self.connections.leave(self.now, self.sockets, handle);
        self.observer.turned_away(peer, why);
    }

    /// Nobody awaits any.
    fn drop_datagrams(&mut self) -> Option<Instant> {
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(self.udp);
        while socket.recv().is_ok() {}
        None
    }

    fn peer(&self, handle: SocketHandle) -> Option<IpEndpoint> {
        self.sockets.get::<tcp::Socket<'_>>(handle).remote_endpoint()
    }
}
