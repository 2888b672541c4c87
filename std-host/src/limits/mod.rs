//! What a server lets its clients have: each test, each address, and all of them together. What a
//! single test may do is decided by `linerate_core::session::Policy`; what only the whole server can
//! see is counted in `server::table`.

mod network;

use std::sync::Arc;
use std::time::Duration;

use linerate_core::test::MAX_PARALLEL;
use linerate_core::units::BitsPerSec;
use tokio::sync::watch;

pub(crate) use network::subscriber;
pub use network::{Network, Networks};

/// What a server lets its clients have. Rates and bytes count payload, all streams and both ways
/// together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Most bits per second of a test; none sets no limit (`--server-bitrate-limit`).
    pub bitrate: Option<BitsPerSec>,
    /// The time over which rates are averaged; zero takes the whole test so far.
    pub bitrate_span: Duration,
    /// Longest test, its omitted start included; none sets no limit (`--server-max-duration`).
    pub duration: Option<Duration>,
    /// Most bytes of a test, its omitted start included; none sets no limit (`--max-test-bytes`).
    pub bytes: Option<u64>,
    /// Most streams of a test each way, 1 to 128 (`--max-streams`).
    pub streams: u16,
    /// Tests by UDP are allowed.
    pub udp: bool,
    /// Most bits per second of all tests together; none sets no limit (`--max-bitrate`).
    pub server_bitrate: Option<BitsPerSec>,
    /// Most streams of all tests together, those of both ways.
    pub streams_in_all: u32,
    /// Most tests at once (`--max-tests`); one for `--exclusive`.
    pub tests: u32,
    /// Most tests at once of one address (`--max-tests-per-address`); none sets no limit. Of IPv6, 64
    /// bits are one address.
    pub tests_per_address: Option<u32>,
    /// Most tests of one address in the hour that begins with its first; none sets no limit.
    pub tests_per_hour: Option<u32>,
    /// Most clients that wait for a place (`--queue`); zero refuses whoever finds none.
    pub queue: u32,
    /// How long each of them waits at most.
    pub queue_time: Duration,
    /// Who may have a test.
    pub networks: Networks,
    /// Without a login nobody gets a test: a server that has no keys and users does not begin.
    pub require_login: bool,
}

impl ServerLimits {
    /// What holds where nobody says otherwise.
    pub const DEFAULT: Self = Self {
        bitrate: None,
        bitrate_span: DEFAULT_BITRATE_SPAN,
        duration: None,
        bytes: None,
        streams: MAX_PARALLEL,
        udp: true,
        server_bitrate: None,
        streams_in_all: 1024,
        tests: 256,
        tests_per_address: None,
        tests_per_hour: None,
        queue: 0,
        queue_time: DEFAULT_QUEUE_TIME,
        networks: Networks::ALL,
        require_login: false,
    };
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The time over which a server's limit of the rate is averaged when nobody says; iperf3 since 3.9.
pub const DEFAULT_BITRATE_SPAN: Duration = Duration::from_secs(5);
/// How long a client waits in the queue when nobody says.
pub const DEFAULT_QUEUE_TIME: Duration = Duration::from_secs(600);

/// The limits of a running server, which can be replaced: tests that run keep what they began with.
/// Clones are the same limits.
#[derive(Debug, Clone)]
pub struct LiveLimits(watch::Sender<Arc<ServerLimits>>);

impl LiveLimits {
    /// These to begin with.
    pub fn new(limits: ServerLimits) -> Self {
        Self(watch::Sender::new(Arc::new(limits)))
    }

    /// What holds for whoever comes.
    pub fn get(&self) -> Arc<ServerLimits> {
        self.0.borrow().clone()
    }

    /// Replaces them for whoever comes from here on, or waits for a place that there is by them.
    pub fn set(&self, limits: ServerLimits) {
        self.0.send_replace(Arc::new(limits));
    }

    /// Tells when they are replaced.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<ServerLimits>> {
        self.0.subscribe()
    }
}
