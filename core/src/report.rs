//! The plain records that every output format is written from. All times are nanoseconds from the
//! start of the measured part (after the omitted start), all counts are integers; which words and
//! units a reader sees is the writers' business.

pub use crate::stats::TcpStats;
use crate::test::{Role, StreamId};

/// A stretch of a test. Both ends count from the start of the phase it lies in: the omitted start
/// and the measured part each begin at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Span {
    /// First nanosecond.
    pub start_ns: u64,
    /// First nanosecond after it.
    pub end_ns: u64,
}

impl Span {
    /// Length in nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// Datagram counts of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Datagrams {
    /// Sent (sender), or sequence numbers passed (receiver).
    pub packets: u64,
    /// Missing, as the receiver knows it; `None` where a peer could not tell.
    pub lost: Option<u64>,
    /// Came late; only the receiver knows, and it is never told to the peer.
    pub out_of_order: Option<u64>,
    /// Came again; only the receiver knows.
    pub duplicates: Option<u64>,
    /// Smoothed jitter at the end of the stretch, nanoseconds.
    pub jitter_ns: u64,
}

/// One stream within one interval, measured at this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StreamInterval {
    /// Which stream.
    pub id: StreamId,
    /// What this end does on it.
    pub role: Role,
    /// When.
    pub span: Span,
    /// It lies in the omitted start.
    pub omitted: bool,
    /// Payload bytes.
    pub bytes: u64,
    /// Counts of datagrams; zero for TCP.
    pub datagrams: Datagrams,
    /// The kernel's view at its end, for TCP senders where the system offers it; the retransmits are
    /// those of the interval alone.
    pub tcp: Option<TcpStats>,
}

/// One end of a stream over the whole measured part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SideSummary {
    /// Payload bytes that this side sent or received.
    pub bytes: u64,
    /// How long this side measured, nanoseconds; `None` where a peer did not tell.
    pub duration_ns: Option<u64>,
    /// Counts of datagrams; zero for TCP.
    pub datagrams: Datagrams,
    /// Segments sent again; `None` for receivers and where it is not known.
    pub retransmits: Option<u64>,
}

/// Extremes of the kernel's view over the measured part, sampled once an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TcpSummary {
    /// Largest congestion window, bytes.
    pub max_cwnd_bytes: u64,
    /// Largest window the peer offered, bytes.
    pub max_snd_wnd_bytes: u64,
    /// Longest, shortest and mean smoothed round trip, microseconds.
    pub max_rtt_us: u32,
    /// Shortest.
    pub min_rtt_us: u32,
    /// Mean.
    pub mean_rtt_us: u32,
    /// Segments seen out of order at the end.
    pub reordering: Option<u32>,
}

/// One stream over the whole measured part, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StreamSummary {
    /// Which stream.
    pub id: StreamId,
    /// What this end does on it.
    pub role: Role,
    /// Measured at this end.
    pub local: SideSummary,
    /// Told by the peer; `None` until its results are here, and for good if they never come.
    pub remote: Option<SideSummary>,
    /// The kernel's view of the connection, for TCP senders where the system offers it.
    pub tcp: Option<TcpSummary>,
}

impl StreamSummary {
    /// The sending side, if known.
    pub fn sent(&self) -> Option<&SideSummary> {
        self.side(Role::Sender)
    }

    /// The receiving side, if known.
    pub fn received(&self) -> Option<&SideSummary> {
        self.side(Role::Receiver)
    }

    fn side(&self, role: Role) -> Option<&SideSummary> {
        if self.role == role { Some(&self.local) } else { self.remote.as_ref() }
    }
}

/// CPU use of one end over the test, in millionths of a percent of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CpuUse {
    /// User and system together.
    pub total_micropercent: u64,
    /// In the program itself.
    pub user_micropercent: u64,
    /// In the kernel on its behalf.
    pub system_micropercent: u64,
}
