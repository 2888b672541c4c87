//! The server and the client on embassy-net, each as a future that a task awaits. It is woken by its
//! sockets and by embassy-time's clock, and does at each time all that can be done.
//!
//! ```
//! use embassy_net::Stack;
//! use embassy_net::udp::PacketMetadata;
//! use linerate_embedded::embassy::Server;
//! use linerate_embedded::{Config, ServerStorage};
//!
//! async fn serve(stack: Stack<'_>) -> ! {
//!     // Room for one stream a test. Bytes each way: 512 for a control connection, 4096 for the TCP
//!     // stream, 4096 for datagrams. On a chip these are statics, so that no future has their size.
//!     let mut storage = ServerStorage::<1, 512, 4096, 4096>::new();
//!     let mut metadata = [[PacketMetadata::EMPTY; 16]; 2];
//!     let buffers = storage.buffers(&mut metadata);
//!     Server::new(Config::default(), stack, buffers).run(&mut ()).await
//! }
//! ```
//!
//! The stack's resources need [`Server::SOCKETS`] or [`Client::SOCKETS`] places for sockets, and one
//! more where DHCP or DNS is used.
//!
//! # What to know
//!
//! - **Accuracy.** Datagrams that the stack's runner took from the driver together have one time of
//!   arrival: that at which the task was woken.
//! - **Stopping.** `run` may be dropped, as `select` does with it, and called again: nothing is lost.

mod sockets;

use core::future::{Future, poll_fn};
use core::net::SocketAddr;
use core::pin::pin;
use core::task::{Context, Poll};

use embassy_net::Stack;
use embassy_net::udp::PacketMetadata;
use embassy_time::Timer;
use linerate_core::protocol::cookie::Cookie;
use linerate_core::session::{ClientConfig, Phase};
use linerate_core::time::Instant;

use self::sockets::Sockets;
use crate::client::Order;
use crate::observer::{NotBegun, Observer};
use crate::server::{Config, DOORS};

/// What is lent to a server.
pub type ServerBuffers<'a, const N: usize> = crate::ServerBuffers<'a, PacketMetadata, N>;
/// What is lent to a client.
pub type ClientBuffers<'a, const N: usize> = crate::ClientBuffers<'a, PacketMetadata, N>;

/// An iperf3 server with room for tests of `N` streams, both directions together, TCP and UDP, one test
/// at a time.
pub struct Server<'d, const N: usize> {
    server: crate::Server<N>,
    sockets: Sockets<'d, N, DOORS, 1>,
}

/// An iperf3 client with room for tests of `N` streams, both directions together, TCP and UDP, one test
/// at a time.
pub struct Client<'d, 'c, const N: usize> {
    client: crate::Client<'c, N>,
    sockets: Sockets<'d, N, 1, N>,
}

impl<'d, const N: usize> Server<'d, N> {
    /// Places that the server's sockets take in the stack.
    pub const SOCKETS: usize = N + DOORS + 1;

    /// Makes the server's sockets. It listens as soon as it runs.
    ///
    /// # Panics
    /// If the stack has fewer than [`SOCKETS`](Self::SOCKETS) places left.
    pub fn new(config: Config, stack: Stack<'d>, buffers: ServerBuffers<'d, N>) -> Self {
        let crate::ServerBuffers { control, streams, udp } = buffers;
        let sockets = Sockets::new(stack, streams, control, [udp]);
        Self { server: crate::Server::new(config), sockets }
    }

    /// Serves one client after the other.
    ///
    /// # Panics
    /// If the port is zero.
    pub async fn run(&mut self, observer: &mut dyn Observer<N>) -> ! {
        let Self { server, sockets } = self;
        drive(sockets, |now, sockets| (server.poll(now, sockets, observer), None)).await
    }

    /// Whether a test runs or is being set up.
    pub const fn is_busy(&self) -> bool {
        self.server.is_busy()
    }

    /// Ends the running test as soon as the server runs on, with what was measured until then, and tells
    /// its client.
    pub const fn interrupt(&mut self) {
        self.server.interrupt();
    }
}

impl<'d, 'c, const N: usize> Client<'d, 'c, N> {
    /// Places that the client's sockets take in the stack.
    pub const SOCKETS: usize = N + 1 + N;

    /// Makes the client's sockets. `mtu_bytes` is the longest IP packet that the interface takes; 1500
    /// on Ethernet.
    ///
    /// # Panics
    /// If the stack has fewer than [`SOCKETS`](Self::SOCKETS) places left.
    pub fn new(mtu_bytes: usize, stack: Stack<'d>, buffers: ClientBuffers<'d, N>) -> Self {
        let crate::ClientBuffers { control, streams, udp } = buffers;
        let sockets = Sockets::new(stack, streams, [control], udp);
        Self { client: crate::Client::new(mtu_bytes), sockets }
    }

    /// Begins a test with the server at this address, which goes on while the client runs. The cookie is
    /// made of random bytes.
    ///
    /// # Errors
    /// If it cannot begin.
    pub fn start(
        &mut self,
        server: SocketAddr,
        config: ClientConfig<'c>,
        cookie: Cookie,
    ) -> Result<(), NotBegun> {
        self.client.start(now(), &mut self.sockets, Order { server, config, cookie })
    }

    /// Runs the test that was started, to the close of its connections. The observer hears how it ended.
    pub async fn run(&mut self, observer: &mut dyn Observer<N>) {
        let Self { client, sockets } = self;
        drive(sockets, |now, sockets| {
            let next = client.poll(now, sockets, observer);
            (next, (!client.is_busy()).then_some(()))
        })
        .await
    }

    /// Whether a test runs, or leaves its connections.
    pub fn is_busy(&self) -> bool {
        self.client.is_busy()
    }

    /// Where the running test is.
    pub const fn phase(&self) -> Option<Phase> {
        self.client.phase()
    }

    /// Ends the running test as soon as the client runs on, with what was measured until then, and tells
    /// its server.
    pub const fn interrupt(&mut self) {
        self.client.interrupt();
    }
}

/// Polls an endpoint whenever its sockets or its next time wake the task, until it has a result.
async fn drive<'d, const N: usize, const D: usize, const U: usize, R>(
    sockets: &mut Sockets<'d, N, D, U>,
    mut poll: impl FnMut(Instant, &mut Sockets<'d, N, D, U>) -> (Option<Instant>, Option<R>),
) -> R {
    poll_fn(|cx: &mut Context<'_>| {
        let (next, result) = poll(now(), sockets);
        if let Some(result) = result {
            return Poll::Ready(result);
        }
        sockets.wake(cx);
        if let Some(next) = next {
            // The first poll of a timer always waits, and the clock's driver remembers the task when the
            // timer is gone.
            let _ = pin!(Timer::at(clock_time(next))).poll(cx);
        }
        Poll::Pending
    })
    .await
}

/// The engine's name for this moment.
fn now() -> Instant {
    let micros = embassy_time::Instant::now().as_micros();
    Instant::from_nanos(micros.saturating_mul(NANOS_PER_MICRO))
}

/// The first moment of the clock that is not before `at`: a poll then finds due what is due at `at`.
fn clock_time(at: Instant) -> embassy_time::Instant {
    let micros = at.as_nanos().div_ceil(NANOS_PER_MICRO);
    let tick = embassy_time::Instant::try_from_micros(micros);
    // Ticks may be longer than microseconds, and the last that has begun is before its end.
    let missing = u64::from(tick.is_some_and(|tick| tick.as_micros() < micros));
    let tick = tick.map_or(u64::MAX, |tick| tick.as_ticks().saturating_add(missing));
    embassy_time::Instant::from_ticks(tick)
}

const NANOS_PER_MICRO: u64 = 1000;
