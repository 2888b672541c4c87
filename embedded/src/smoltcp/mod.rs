//! The server and the client on smoltcp. They are polled: they own no device, no clock and no memory but
//! their own state, and fit into the loop that polls the interface anyway.
//!
//! ```
//! use linerate_embedded::smoltcp::Server;
//! use linerate_embedded::{Config, ServerStorage};
//! # use smoltcp::iface::{Interface, SocketSet, SocketStorage};
//! # use smoltcp::socket::udp::PacketMetadata;
//!
//! // Room for one stream a test. Bytes each way: 512 for a control connection, 4096 for the TCP
//! // stream, 4096 for datagrams.
//! let mut storage = ServerStorage::<1, 512, 4096, 4096>::new();
//! let mut metadata = [[PacketMetadata::EMPTY; 16]; 2];
//! let mut places = [SocketStorage::EMPTY; Server::<1>::SOCKETS];
//! let mut sockets = SocketSet::new(&mut places[..]);
//! let mut server = Server::new(Config::default(), &mut sockets, storage.buffers(&mut metadata));
//! # let mut device = smoltcp::phy::Loopback::new(smoltcp::phy::Medium::Ip);
//! # let config = smoltcp::iface::Config::new(smoltcp::wire::HardwareAddress::Ip);
//! # let clock = || smoltcp::time::Instant::from_millis(5);
//! # let mut interface = Interface::new(config, &mut device, clock());
//!
//! // The superloop, once around:
//! let now = clock();
//! interface.poll(now, &mut device, &mut sockets);
//! let server_next = server.poll(now, &mut sockets, &mut ());
//! let stack_next = interface.poll_at(now, &sockets);
//! let next = server_next.into_iter().chain(stack_next).min();
//! // Sleep until `next`, a frame or another event, whichever comes first.
//! # let _ = next;
//! ```
//!
//! # What to know
//!
//! - **Accuracy.** A loop that takes one frame at a time (`poll_ingress_single`) between two polls of the
//!   server loses no datagram to a full buffer and measures jitter by the microsecond;
//!   [`Interface::poll`] takes all that wait.
//! - **Time.** What smoltcp's `poll_at` says is due at once has a time long past, and the difference of
//!   two of its instants has no sign: compare before you subtract.

mod sockets;
mod time;

use linerate_core::protocol::cookie::Cookie;
use linerate_core::session::{ClientConfig, Phase};
use smoltcp::iface::{Interface, SocketSet};
use smoltcp::socket::udp::PacketMetadata;
use smoltcp::time::Instant;
use smoltcp::wire::IpEndpoint;

use self::sockets::{Dialer, Handles, Sockets};
use self::time::{Next, engine_time};
use crate::client::Order;
use crate::observer::{NotBegun, Observer};
use crate::server::{Config, DOORS};

/// What is lent to a server.
pub type ServerBuffers<'a, const N: usize> = crate::ServerBuffers<'a, PacketMetadata, N>;
/// What is lent to a client.
pub type ClientBuffers<'a, const N: usize> = crate::ClientBuffers<'a, PacketMetadata, N>;

/// An iperf3 server with room for tests of `N` streams, both directions together, TCP and UDP, one test
/// at a time.
#[derive(Debug)]
pub struct Server<const N: usize> {
    server: crate::Server<N>,
    handles: Handles<N, DOORS, 1>,
    next: Next,
}

/// An iperf3 client with room for tests of `N` streams, both directions together, TCP and UDP, one test
/// at a time.
#[derive(Debug)]
pub struct Client<'a, const N: usize> {
    client: crate::Client<'a, N>,
    handles: Handles<N, 1, N>,
    next: Next,
    /// The next TCP port of this end.
    port: u16,
}

impl<const N: usize> Server<N> {
    /// Places that the server's sockets take in the set.
    pub const SOCKETS: usize = N + DOORS + 1;

    /// Puts the server's sockets into the set. It listens from its first poll on.
    ///
    /// # Panics
    /// If the set has fewer than [`SOCKETS`](Self::SOCKETS) places left.
    pub fn new<'a>(
        config: Config,
        sockets: &mut SocketSet<'a>,
        buffers: ServerBuffers<'a, N>,
    ) -> Self {
        let crate::ServerBuffers { control, streams, udp } = buffers;
        let handles = Handles::new(sockets, streams, control, [udp]);
        Self { server: crate::Server::new(config), handles, next: Next::default() }
    }

    /// Does everything that can be done at `now`. To be called after each poll of the interface, and
    /// when the time comes that the last call returned; if that was `None`, only the interface can
    /// bring something to do. After a call the interface may have something to send.
    ///
    /// # Panics
    /// If `sockets` is not the set that the server was made with, or lacks its sockets; at the first
    /// call also if the port is zero.
    pub fn poll(
        &mut self,
        now: Instant,
        sockets: &mut SocketSet<'_>,
        observer: &mut dyn Observer<N>,
    ) -> Option<Instant> {
        let mut net = Sockets::new(sockets, &self.handles, None);
        let next = self.server.poll(engine_time(now), &mut net, observer)?;
        Some(self.next.stack_time(next))
    }

    /// Whether a test runs or is being set up.
    pub const fn is_busy(&self) -> bool {
        self.server.is_busy()
    }

    /// Ends the running test at the next poll, with what was measured until then, and tells its
    /// client.
    pub const fn interrupt(&mut self) {
        self.server.interrupt();
    }
}

impl<'c, const N: usize> Client<'c, N> {
    /// Places that the client's sockets take in the set.
    pub const SOCKETS: usize = N + 1 + N;

    /// Puts the client's sockets into the set. `mtu_bytes` is the longest IP packet that the interface
    /// takes; 1500 on Ethernet.
    ///
    /// # Panics
    /// If the set has fewer than [`SOCKETS`](Self::SOCKETS) places left.
    pub fn new<'a>(
        mtu_bytes: usize,
        sockets: &mut SocketSet<'a>,
        buffers: ClientBuffers<'a, N>,
    ) -> Self {
        let crate::ClientBuffers { control, streams, udp } = buffers;
        let handles = Handles::new(sockets, streams, [control], udp);
        Self {
            client: crate::Client::new(mtu_bytes),
            handles,
            next: Next::default(),
            port: FIRST_PORT,
        }
    }

    /// Begins a test with the server at this address; what comes of it is told at the next polls. The
    /// cookie is made of random bytes, which also choose the ports of this end.
    ///
    /// # Errors
    /// If it cannot begin.
    pub fn start(
        &mut self,
        now: Instant,
        interface: &mut Interface,
        sockets: &mut SocketSet<'_>,
        server: IpEndpoint,
        config: ClientConfig<'c>,
        cookie: Cookie,
    ) -> Result<(), NotBegun> {
        if !self.is_busy() {
            // Ports that a test before this one had are closed here, but maybe not yet there.
            let random = cookie
                .as_bytes()
                .iter()
                .fold(0, |sum: u16, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            self.port = FIRST_PORT | random;
        }
        let dialer = Dialer { context: interface.context(), port: &mut self.port };
        let mut net = Sockets::new(sockets, &self.handles, Some(dialer));
        let order = Order { server: sockets::address(server), config, cookie };
        self.client.start(engine_time(now), &mut net, order)
    }

    /// Does everything that can be done at `now`. To be called after each poll of the interface, and
    /// when the time comes that the last call returned; if that was `None`, only the interface can
    /// bring something to do. After a call the interface may have something to send.
    ///
    /// # Panics
    /// If `sockets` is not the set that the client was made with, or lacks its sockets.
    pub fn poll(
        &mut self,
        now: Instant,
        interface: &mut Interface,
        sockets: &mut SocketSet<'_>,
        observer: &mut dyn Observer<N>,
    ) -> Option<Instant> {
        let dialer = Dialer { context: interface.context(), port: &mut self.port };
        let mut net = Sockets::new(sockets, &self.handles, Some(dialer));
        let next = self.client.poll(engine_time(now), &mut net, observer)?;
        Some(self.next.stack_time(next))
    }

    /// Whether a test runs, or leaves its connections.
    pub fn is_busy(&self) -> bool {
        self.client.is_busy()
    }

    /// Where the running test is.
    pub const fn phase(&self) -> Option<Phase> {
        self.client.phase()
    }

    /// Ends the running test at the next poll, with what was measured until then, and tells its server.
    pub const fn interrupt(&mut self) {
        self.client.interrupt();
    }
}

/// The dynamic ports are those from here on (RFC 6335).
const FIRST_PORT: u16 = 49_152;
