//! What to run: everything a client or a server needs to know before it opens its first socket. The
//! command fills these in from its options; a program that uses the library fills them in itself.
//! Ranges are the command line's business: a run refuses what it cannot do with an
//! [`Error`](crate::error::Error).

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::test::{Protocol, TestSettings};
use linerate_core::units::PacketsPerSec;

pub use crate::limits::{DEFAULT_BITRATE_SPAN, Network, Networks, ServerLimits};

/// Port of the control connection when nobody says (`-p`); iperf3 since 3.0.
pub const DEFAULT_PORT: u16 = 5201;
/// Length of a report interval when nobody says (`-i`); iperf3 since 3.1.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
/// How long a client waits for the server's first word when nobody says: as long as a server of ours
/// lets it wait in a queue.
pub const DEFAULT_ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// How far clocks may differ at a login when nobody says; iperf3 since 3.10.
pub const DEFAULT_TIME_SKEW: Duration = Duration::from_secs(10);

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
    /// Network device that all connections use (`--bind-dev`).
    pub bind_device: Option<String>,
    /// Local port of the first data stream; the others follow it (`--cport`).
    pub client_port: Option<u16>,
    /// Addresses to use where a name has several; none takes them as the resolver orders them.
    pub family: Option<Family>,
    /// How long to wait for the control connection; none waits as long as the system does.
    pub connect_timeout: Option<Duration>,
    /// How long the server may say nothing at first, as one with a queue does (`--answer-timeout`);
    /// none waits as long as the connection lives.
    pub answer_timeout: Option<Duration>,
    /// How long no data may come before the test is given up (`--rcv-timeout`).
    pub receive_timeout: Option<Duration>,
    /// How long sent data may stay unacknowledged before a connection is given up
    /// (`--snd-timeout`); none leaves it to the system.
    pub send_timeout: Option<Duration>,
    /// When the server is asked for a sign of life on a silent control connection.
    pub control_keep_alive: KeepAlive,
    /// CPU that the data streams of this end run on (`-A`).
    pub affinity: Option<u16>,
    /// File to send, or to receive into (`-F`).
    pub file: Option<PathBuf>,
    /// Nobody chose `settings.limits`: a file to send replaces them by its end.
    pub end_is_default: bool,
    /// Who logs in, where the server asks for it.
    pub credentials: Option<Credentials>,
    /// What only SCTP has.
    pub sctp: SctpOptions,
    /// What is measured. What the server takes from it is in the parameters document.
    pub settings: TestSettings,
    /// Target rate of each stream in blocks, datagrams for UDP; replaces `settings.bitrate`.
    pub packet_rate: Option<PacketsPerSec>,
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
            bind_device: None,
            client_port: None,
            family: None,
            connect_timeout: None,
            answer_timeout: Some(DEFAULT_ANSWER_TIMEOUT),
            receive_timeout: None,
            send_timeout: None,
            control_keep_alive: KeepAlive::PROMPT,
            affinity: None,
            file: None,
            end_is_default: true,
            credentials: None,
            sctp: SctpOptions::default(),
            settings: TestSettings::new(protocol),
            packet_rate: None,
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
    /// Network device to listen on; none listens on all (`--bind-dev`).
    pub bind_device: Option<String>,
    /// Addresses to listen on; none listens on both families where the system can.
    pub family: Option<Family>,
    /// Length of the report intervals; none reports once, at the end.
    pub interval: Option<Duration>,
    /// End after one test (`-1`).
    pub one_off: bool,
    /// How long to wait for a client before waiting anew, or ending with `one_off`
    /// (`--idle-timeout`); none waits for ever.
    pub idle_timeout: Option<Duration>,
    /// How long a test may bring no data before it is given up (`--rcv-timeout`).
    pub receive_timeout: Option<Duration>,
    /// How long sent data may stay unacknowledged before a connection is given up
    /// (`--snd-timeout`); none leaves it to the system.
    pub send_timeout: Option<Duration>,
    /// When clients are asked for a sign of life on a silent control connection.
    pub control_keep_alive: KeepAlive,
    /// CPU that all data streams run on (`-A`); a client may choose another for its test.
    pub affinity: Option<u16>,
    /// File to send, or to receive into (`-F`).
    pub file: Option<PathBuf>,
    /// What clients may have.
    pub limits: ServerLimits,
    /// Who is let in; none lets everybody in.
    pub login: Option<LoginConfig>,
    /// Further addresses of this machine for SCTP (`-X`).
    pub sctp_bind: Vec<String>,
    /// Let the UDP streams of linerate clients come from other addresses than their control
    /// connection, and send datagrams there (`--udp-anywhere`).
    pub udp_anywhere: bool,
}

impl ServerConfig {
    /// A server on every address of this machine, for any number of tests.
    pub const fn new() -> Self {
        Self {
            port: DEFAULT_PORT,
            bind: None,
            bind_device: None,
            family: None,
            interval: Some(DEFAULT_INTERVAL),
            one_off: false,
            idle_timeout: None,
            receive_timeout: None,
            send_timeout: None,
            control_keep_alive: KeepAlive::PROMPT,
            affinity: None,
            file: None,
            limits: ServerLimits::DEFAULT,
            login: None,
            sctp_bind: Vec::new(),
            udp_anywhere: false,
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

/// When the peer of a silent connection is asked for a sign of life; what is absent is the system's
/// choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeepAlive {
    /// Silence before the first question.
    pub idle: Option<Duration>,
    /// Time between questions.
    pub interval: Option<Duration>,
    /// Unanswered questions before the connection fails.
    pub count: Option<u32>,
}

impl KeepAlive {
    /// Notices within 20 seconds that a peer is gone.
    pub const PROMPT: Self = Self {
        idle: Some(Duration::from_secs(5)),
        interval: Some(Duration::from_secs(5)),
        count: Some(3),
    };
}

/// Who logs in at a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name.
    pub username: String,
    /// The user's password.
    pub password: String,
    /// File with the server's public key, PEM.
    pub public_key: PathBuf,
    /// How the key encrypts.
    pub padding: Padding,
}

/// Without the password.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { username, public_key, padding, .. } = self;
        write!(f, "Credentials({username:?}, {}, {padding:?})", public_key.display())
    }
}

/// Who may log in at this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginConfig {
    /// File with the private key that logins are encrypted for, PEM.
    pub private_key: PathBuf,
    /// File with the users and the hashes of their passwords.
    pub users: PathBuf,
    /// How far the client's clock may be off.
    pub time_skew: Duration,
    /// How the key encrypts.
    pub padding: Padding,
}

/// How an RSA key encrypts a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Padding {
    /// OAEP, iperf3 since 3.17.
    Oaep,
    /// PKCS#1 v1.5, iperf3 before that.
    Pkcs1,
}

/// What a client can ask of SCTP alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SctpOptions {
    /// Addresses of this machine that associations use (`-X`).
    pub bind: Vec<String>,
    /// Streams within each association (`--nstreams`); none leaves it to the system.
    pub streams: Option<u16>,
}

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4 (`-4`).
    V4,
    /// IPv6 (`-6`).
    V6,
}
