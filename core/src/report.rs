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
    /// Came late; only the receiver knows.
    pub out_of_order: Option<u64>,
    /// Came again; only the receiver knows.
    pub duplicates: Option<u64>,
    /// Came so late that nothing was known of them any more; only the receiver knows.
    pub too_late: Option<u64>,
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

/// What one end knows of a stream beyond iperf3's numbers, over a stretch. `None` is what its role,
/// protocol or system does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StreamDetail {
    /// Receiver of datagrams: jitter as RFC 3550 has it.
    pub jitter: Option<Jitter3550>,
    /// Receiver of datagrams: delay beyond that of the fastest one (PDV, RFC 5481).
    pub delay_variation: Option<Percentiles>,
    /// Receiver of datagrams: absolute difference of delay between neighbours (IPDV, RFC 3393).
    pub delay_differences: Option<Percentiles>,
    /// Receiver of datagrams: how late those out of order were.
    pub reordering: Option<Reordering>,
    /// Receiver of datagrams: the rows in which they are missing.
    pub loss_bursts: Option<LossBursts>,
    /// Receiver of datagrams: messages that its own socket had no room for, each a datagram or a row that the
    /// kernel had joined. What was in them counts as lost, too.
    pub socket_drops: Option<u64>,
    /// Sender of datagrams: calls that its own host refused for want of buffers. No datagram is lost by it.
    pub refusals: Option<u64>,
    /// Sender of datagrams: the gaps between departures.
    pub gaps: Option<Percentiles>,
    /// Sender of TCP: round trips as the kernel smooths them, sampled many times a second.
    pub round_trips: Option<Percentiles>,
    /// Sender of TCP: the round trip before there was data.
    pub idle_round_trip_us: Option<u32>,
    /// Sender of TCP: what it waited for.
    pub waits: Option<SenderWaits>,
    /// Sender of TCP: bytes that were sent again.
    pub resent_bytes: Option<u64>,
    /// Sender of TCP: what the kernel last found the path to deliver, bytes a second.
    pub delivery_bytes_per_sec: Option<u64>,
    /// Sender of TCP: the window that the receiver offered last, bytes.
    pub window_bytes: Option<u64>,
    /// The send buffer (sender) or receive buffer (receiver) of the socket, bytes.
    pub buffer_bytes: Option<u64>,
    /// What its thread did.
    pub thread: Option<ThreadUse>,
}

/// Percentiles of durations, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Percentiles {
    /// Durations measured.
    pub count: u64,
    /// Half are no longer.
    pub p50_ns: u64,
    /// 90 % are no longer.
    pub p90_ns: u64,
    /// 99 % are no longer.
    pub p99_ns: u64,
    /// 99.9 % are no longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Differences of delay between neighbours, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Jitter3550 {
    /// Smoothed with a gain of 1/16, at the end of the stretch.
    pub smoothed_ns: u64,
    /// Mean of the whole test so far.
    pub mean_ns: u64,
}

/// How late datagrams were that came out of order: the extent of each is how many with higher
/// numbers came before it (after RFC 4737, which counts other late ones in between, too).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Reordering {
    /// Datagrams.
    pub count: u64,
    /// All extents together.
    pub extent_sum: u64,
    /// The largest; of an interval that has any, the largest of the test so far.
    pub max_extent: u64,
}

/// Rows of datagrams that are missing one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LossBursts {
    /// Rows, single datagrams among them.
    pub count: u64,
    /// Datagrams of the longest.
    pub longest: u64,
}

/// What a TCP sender waited for, as its kernel accounts it, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SenderWaits {
    /// There was something to send or to be acknowledged.
    pub busy_us: u64,
    /// Of that: the receiver's window was full.
    pub receive_window_us: u64,
    /// Of that: the send buffer was too small for what the path could hold.
    pub send_buffer_us: u64,
}

/// What became of a thread's time, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ThreadUse {
    /// Length of the stretch.
    pub wall_ns: u64,
    /// It ran.
    pub cpu_ns: u64,
    /// It could have run and had no CPU; `None` where the system does not tell.
    pub queued_ns: Option<u64>,
}

/// What limited one direction of a test, and what says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Verdict {
    /// What this end does in that direction.
    pub role: Role,
    /// What limited it.
    pub limit: Limit,
    /// The other end did not tell its side, so that its part is a guess at most.
    pub is_one_sided: bool,
    /// What the verdict rests on.
    pub evidence: Evidence,
    /// What to try, if there is anything.
    pub hint: Option<Hint>,
}

/// What can limit a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Limit {
    /// The path: it loses data without being full.
    PathLoss,
    /// The path: what is sent waits in its queues, or is dropped from full ones.
    PathRate,
    /// TCP: the window that the receiver offers.
    ReceiveWindow,
    /// The send buffer of the sender's socket.
    SendBuffer,
    /// UDP: the receive buffer of the receiver's socket.
    ReceiveBuffer,
    /// The CPU of the sender's threads.
    SenderCpu,
    /// The CPU of the receiver's threads.
    ReceiverCpu,
    /// The rate that was asked for.
    RequestedRate,
    /// The sender had nothing to send, such as a slow file.
    Application,
    /// Nothing that was measured explains it.
    Unclear,
}

/// What a verdict rests on, of all streams of the direction together; `None` is what nobody told.
/// Shares are thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Evidence {
    /// Received, bits a second.
    pub rate: u64,
    /// The rate that was asked for, of all streams, bits a second.
    pub requested_rate: Option<u64>,
    /// Share of the time for which the sender waited for the receiver's window.
    pub receive_window_share: Option<u16>,
    /// Share for which it waited for room in its send buffer.
    pub send_buffer_share: Option<u16>,
    /// Share for which it had anything to send.
    pub busy_share: Option<u16>,
    /// Share for which the sender's threads ran or waited for a CPU.
    pub sender_cpu_share: Option<u16>,
    /// The same of the receiver's threads.
    pub receiver_cpu_share: Option<u16>,
    /// TCP: bytes sent again, millionths of all that left.
    pub resent_millionths: Option<u32>,
    /// UDP: datagrams lost, millionths of those sent.
    pub lost_millionths: Option<u32>,
    /// UDP: messages that the receiver's sockets had no room for; what was in them is among those lost.
    pub socket_drops: Option<u64>,
    /// UDP: calls that the sending host refused.
    pub refusals: Option<u64>,
    /// TCP: the round trip before there was data, microseconds; the shortest of all streams.
    pub idle_round_trip_us: Option<u32>,
    /// TCP: the median round trip under load, microseconds; the longest of all streams.
    pub loaded_round_trip_us: Option<u32>,
    /// TCP: the receiver's window, bytes; the smallest of all streams.
    pub window_bytes: Option<u64>,
    /// The send buffer, bytes; the smallest of all streams.
    pub send_buffer_bytes: Option<u64>,
    /// The receive buffer, bytes; the smallest of all streams.
    pub receive_buffer_bytes: Option<u64>,
}

/// What to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Hint {
    /// Windows of so many bytes (`-w`, and what the system allows for it), or several streams (`-P`).
    LargerWindow {
        /// Bytes that twice the rate needs at this round trip.
        bytes: u64,
    },
    /// A larger receive buffer of UDP (`-w`, `net.core.rmem_max`).
    LargerReceiveBuffer {
        /// Twice what it is.
        bytes: u64,
    },
    /// Several streams use several CPUs (`-P`), and no copies cost less (`-Z`, `--skip-rx-copy`).
    MoreStreams,
    /// No copies of TCP's data (`-Z`, `--skip-rx-copy`), where there is no CPU for more streams.
    FewerCopies,
    /// More bytes of TCP a call (`-l`).
    LargerBlocks,
    /// A higher rate (`-b`).
    HigherRate,
    /// A lower rate of UDP: what arrived of each stream.
    LowerRate {
        /// Bits a second.
        rate: u64,
    },
    /// Another congestion control (`-C`) stands losses better.
    OtherCongestionControl,
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
