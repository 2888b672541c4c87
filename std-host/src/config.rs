//! What to run: everything a client or a server needs to know before it opens its first socket. The
//! command fills these in from its options; a program that uses the library fills them in itself.
//! Ranges are the command line's business: a run refuses what it cannot do with an
//! [`Error`](crate::error::Error).

use std::time::Duration;

use linerate_core::test::{Protocol, TestSettings};

/// Port of the control connection when nobody says (`-p`); iperf3 since 3.0.
pub const DEFAULT_PORT: u16 = 5201;
/// Length of a report interval when nobody says (`-i`); iperf3 since 3.1.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);

/// One test against a server.
///
/// ```
/// use linerate::config::ClientConfig;
/// use linerate_core::test::{Direction, Protocol};
///
/// let mut config = ClientConfig::new("192.0.2.1", Protocol::Tcp);
/// config.settings.direction = Direction::Reverse;
/// config.settings.limits.seconds = Some(3);
/// assert_eq!(config.port, 5201);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Name or address of this machine that all connections start from; none leaves the choice to
    /// the system.
    pub bind: Option<String>,
    /// Addresses to use where a name has several; none takes them as the resolver orders them.
    pub family: Option<Family>,
    /// How long to wait for the control connection; none waits as long as the system does.
    pub connect_timeout: Option<Duration>,
    /// What is measured. What the server takes from it is in the parameters document.
    pub settings: TestSettings,
    /// UDP: the control connection's segment size replaces `settings.block_bytes`, so that a
    /// datagram fits one packet of the path.
    pub block_from_path: bool,
    /// UDP: nobody chose `settings.bitrate`, which deserves a warning.
    pub rate_is_default: bool,
    /// Length of the report intervals; none reports once, at the end.
    pub interval: Option<Duration>,
    /// Name of the test, told to the server (`-T`).
    pub title: Option<String>,
    /// Anything else to keep with the results, told to the server (`--extra-data`).
    pub extra_data: Option<String>,
    /// TCP congestion control of the data sockets at both ends; none leaves it to each system.
    pub congestion: Option<String>,
    /// Offer the server linerate's extension. A server that does not know it ignores the offer.
    pub extension: bool,
}

impl ClientConfig {
    /// One stream to `host` for ten seconds, as iperf3 does it.
    pub fn new(host: impl Into<String>, protocol: Protocol) -> Self {
        Self {
            host: host.into(),
            port: DEFAULT_PORT,
            bind: None,
            family: None,
            connect_timeout: None,
            settings: TestSettings::new(protocol),
            block_from_path: protocol == Protocol::Udp,
            rate_is_default: protocol == Protocol::Udp,
            interval: Some(DEFAULT_INTERVAL),
            title: None,
            extra_data: None,
            congestion: None,
            extension: true,
        }
    }
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Port to listen on.
    pub port: u16,
    /// Name or address of this machine to listen on; none listens on all.
    pub bind: Option<String>,
    /// Addresses to listen on; none listens on both families where the system can.
    pub family: Option<Family>,
    /// Length of the report intervals; none reports once, at the end.
    pub interval: Option<Duration>,
    /// End after one test (`-1`).
    pub one_off: bool,
}

impl ServerConfig {
    /// A server on every address of this machine, for any number of tests.
    pub const fn new() -> Self {
        Self {
            port: DEFAULT_PORT,
            bind: None,
            family: None,
            interval: Some(DEFAULT_INTERVAL),
            one_off: false,
        }
    }
}

impl ServerConfig {
    /// A server for this machine only, on a port that the system chooses.
    pub fn loopback() -> Self {
        Self { port: 0, bind: Some("127.0.0.1".into()), ..Self::new() }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4 (`-4`).
    V4,
    /// IPv6 (`-6`).
    V6,
}
