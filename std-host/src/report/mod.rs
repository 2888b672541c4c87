//! What a test tells whoever runs it, as typed records: the start, each interval, the end. The
//! command's writers ([`text`], [`json`]) make iperf3's output from nothing else, so a program that
//! uses this library sees all that a reader of the output sees.

mod date;
mod engine;
pub mod json;
pub mod log;
mod message;
mod quantity;
mod stamp;
pub mod text;
mod verdict;
mod view;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use linerate_core::report::{
    CpuUse, Datagrams, Evidence, Hint, Jitter3550, Limit, LossBursts, Percentiles, Reordering,
    SenderWaits, SideSummary, Span, StreamDetail, StreamInterval, StreamSummary, TcpStats,
    TcpSummary, ThreadUse, Verdict,
};
use linerate_core::test::{End, Role, StreamId, TestSettings};

use crate::error::Error;

pub use engine::Engine;
pub use message::{error_line, warning_text};
pub use quantity::{UnitFormat, UnknownFormat, rate};
pub use stamp::Stamps;

/// One thing that happened in a test, in this order: `Connected`, `Started`, any number of
/// `Interval` and `OmitEnded`, and `Ended` exactly once, last. A test that fails early leaves out
/// what it did not reach.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The control connection stands; on a server, a client was accepted.
    Connected(Arc<Connection>),
    /// The settings are agreed, all streams are there, the clock runs.
    Started(Arc<TestStart>),
    /// An interval is over.
    Interval(Arc<Interval>),
    /// The omitted start is over.
    OmitEnded,
    /// This end's measurement is complete; the peer's results may still follow with `Ended`.
    Measured(Arc<TestEnd>),
    /// The test is over.
    Ended(Arc<TestEnd>),
    /// Something a person should know, such as a clamped socket buffer.
    Warning(Warning),
}

/// The control connection of a test.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Which end this is.
    pub end: End,
    /// This end's number of the test, counted from one.
    pub test_number: u64,
    /// The other end as it was named (client) or as it connected (server).
    pub peer_host: String,
    /// The port dialled (client) or the client's port (server).
    pub peer_port: u16,
    /// The cookie that names the test.
    pub cookie: String,
    /// Segment size of the control connection, where the system tells.
    pub control_mss: Option<u32>,
    /// UDP client: bytes of a datagram, where they were chosen to fit the path of this connection.
    pub path_block_bytes: Option<u32>,
    /// Wall clock when the test began.
    pub time: SystemTime,
    /// The title that the client gave (`-T`).
    pub title: Option<String>,
    /// The client's extra data.
    pub extra_data: Option<String>,
    /// What is known of the settings: all on a client, nothing yet on a server.
    pub settings: Option<TestSettings>,
}

/// The settings of a test and the streams that carry it.
#[derive(Debug, Clone)]
pub struct TestStart {
    /// The control connection; on a server its title and extra data are known only here.
    pub connection: Connection,
    /// What both ends agreed.
    pub settings: TestSettings,
    /// Length of this end's report intervals; none means a single one.
    pub interval: Option<Duration>,
    /// The data streams in order of creation.
    pub streams: Vec<StreamStart>,
    /// Buffer sizes of the first stream's socket.
    pub buffers: SocketBuffers,
}

/// One data stream's socket.
#[derive(Debug, Clone)]
pub struct StreamStart {
    /// Its number in the results.
    pub id: StreamId,
    /// What this end does on it.
    pub role: Role,
    /// The system's number of the socket, which iperf3 prints as the stream's ID.
    pub socket: i32,
    /// This end's address.
    pub local: SocketAddr,
    /// The other end's address.
    pub remote: SocketAddr,
}

/// Socket buffer sizes, bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct SocketBuffers {
    /// Asked for (`-w`); zero if the system chooses.
    pub requested: u32,
    /// Send buffer as the system reports it.
    pub send: u32,
    /// Receive buffer as the system reports it.
    pub receive: u32,
}

/// All streams over one interval.
#[derive(Debug, Clone)]
pub struct Interval {
    /// When, from the start of its phase.
    pub span: Span,
    /// It lies in the omitted start.
    pub omitted: bool,
    /// Each stream's part, in order of creation.
    pub streams: Vec<StreamInterval>,
    /// What this end knows of each beyond that, in the same order; up to 40 ms late.
    pub details: Vec<StreamDetail>,
    /// Other tests that ran on this server during it.
    pub concurrent_tests: u32,
}

/// The whole test, as far as it came.
#[derive(Debug, Clone)]
pub struct TestEnd {
    /// Each stream's totals, in order of creation; empty if nothing was measured.
    pub streams: Vec<StreamSummary>,
    /// What both ends know of each beyond that, in the same order.
    pub details: Vec<StreamDetails>,
    /// What limited the test, one for each direction. At `Measured` it is what this
    /// end alone can tell.
    pub verdicts: Vec<Verdict>,
    /// CPU use of this end.
    pub local_cpu: CpuUse,
    /// CPU use of the other end; none until its results are here.
    pub remote_cpu: Option<CpuUse>,
    /// Congestion control of this end's data sockets, for TCP.
    pub local_congestion: Option<String>,
    /// Congestion control of the other end's.
    pub remote_congestion: Option<String>,
    /// How this end moved the data, sent and then received, one of each at most.
    pub engines: Vec<Engine>,
    /// The other end's jitter is that of batches of datagrams, as far as it says.
    pub remote_batch_jitter: bool,
    /// The file that this end sent or stored (`-F`).
    pub file: Option<DiskFile>,
    /// Most other tests that ran at a time on the server beside this one; none where this end does not
    /// know: a client without the results of a linerate server.
    pub concurrent_tests: Option<u32>,
    /// The server's own output, if the client asked for it and it came.
    pub server_output: Option<ServerOutput>,
    /// Why the test did not run to its end; none if it did.
    pub error: Option<Error>,
}

impl TestEnd {
    /// The end of a test that measured nothing.
    pub const fn failed(error: Error) -> Self {
        const NO_USE: CpuUse =
            CpuUse { total_micropercent: 0, user_micropercent: 0, system_micropercent: 0 };
        Self {
            streams: Vec::new(),
            details: Vec::new(),
            verdicts: Vec::new(),
            local_cpu: NO_USE,
            remote_cpu: None,
            local_congestion: None,
            remote_congestion: None,
            engines: Vec::new(),
            remote_batch_jitter: false,
            file: None,
            concurrent_tests: None,
            server_output: None,
            error: Some(error),
        }
    }
}

/// What both ends know of a stream beyond its totals.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamDetails {
    /// This end.
    pub local: StreamDetail,
    /// The other end, if it is linerate and its results are here.
    pub remote: Option<StreamDetail>,
}

/// The file behind the data of this end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFile {
    /// Its name as given.
    pub name: String,
    /// Its size at the end of the test, bytes.
    pub size_bytes: u64,
    /// What the streams do that send it or store in it.
    pub role: Role,
}

/// The server's report as it sent it with its results.
#[derive(Debug, Clone)]
pub enum ServerOutput {
    /// The lines it printed.
    Text(String),
    /// Its document.
    Json(serde_json::Value),
}

/// Something a person should know, though the test goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// UDP without a rate runs at 1 Mbit/s, which measures nothing.
    DefaultUdpRate,
    /// Datagrams will be cut into fragments on the way, or not leave at all.
    DatagramAboveMtu {
        /// Datagram payload, bytes.
        datagram_bytes: u32,
        /// Largest payload that fits one packet of the path.
        fits_bytes: u32,
        /// Fragments are allowed (no `--dont-fragment`).
        may_fragment: bool,
    },
    /// The system gave a smaller socket buffer than `-w` asked for.
    BufferClamped {
        /// Asked for, bytes.
        asked: u32,
        /// Given, bytes.
        got: u32,
        /// The setting that limits it, such as `net.core.rmem_max`.
        limit: &'static str,
    },
    /// A capability that was asked for is missing here; the test runs without it.
    Unsupported {
        /// The option as typed.
        option: &'static str,
        /// What is missing.
        reason: String,
    },
    /// The server took the connection and has said nothing for a while.
    Unanswered,
    /// Other tests ran on the server beside this one.
    ConcurrentTests {
        /// Most of them at a time.
        count: u32,
    },
    /// A data stream broke; the others go on.
    StreamLost {
        /// Which.
        id: StreamId,
        /// What the system said; none if the peer just closed it.
        reason: Option<String>,
    },
}

/// What this program says its version is, with the release of iperf3 that it equals; where only
/// iperf3's words are wanted, that release alone.
pub fn version(plain: bool) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let equal = linerate_core::IPERF3_EQUIVALENT;
    if plain { format!("iperf {equal}") } else { format!("linerate {own} (equals iperf {equal})") }
}
