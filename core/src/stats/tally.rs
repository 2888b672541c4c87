//! Counters of one stream since it started, the omitted start included. They only grow (jitter
//! apart), so that every interval and every summary is the difference of two of them.

use crate::time::Instant;

/// What one stream has moved so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tally {
    /// Payload bytes the network took (sender) or delivered (receiver).
    pub bytes: u64,
    /// Whole blocks (TCP) or datagrams (UDP) moved.
    pub blocks: u64,
    /// Datagrams: sent (sender), or the highest sequence number seen (receiver). Zero for TCP.
    pub packets: u64,
    /// Datagrams missing below the highest sequence number seen, right now; what was missing when the
    /// omitted start ended stays counted.
    pub lost: u64,
    /// Datagrams that came after one with a higher number, duplicates not counted.
    pub out_of_order: u64,
    /// Datagrams that came more than once.
    pub duplicates: u64,
    /// Datagrams so old that they may have been counted as missing or not.
    pub too_late: u64,
    /// Jitter as iperf3 smooths it, nanoseconds, at this moment.
    pub jitter_ns: u64,
}

/// What the kernel knows of a TCP connection. A field that the system cannot tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TcpStats {
    /// Segments sent again since the connection began; where the system counts bytes, as many as would
    /// hold them.
    pub retransmits: Option<u64>,
    /// Congestion window, bytes.
    pub cwnd_bytes: Option<u64>,
    /// Window the peer offers, bytes.
    pub snd_wnd_bytes: Option<u64>,
    /// Smoothed round trip, microseconds.
    pub rtt_us: Option<u32>,
    /// Its variation, microseconds.
    pub rttvar_us: Option<u32>,
    /// Path MTU, bytes.
    pub pmtu_bytes: Option<u32>,
    /// Reordering degree that the kernel reckons with, segments seen out of order.
    pub reordering: Option<u32>,
}

/// One stream at one moment: what the flow counted and what the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sample {
    /// The flow's counters.
    pub tally: Tally,
    /// The counters as they were when the omitted start was over, once the flow has seen that; it
    /// knows better than whoever takes samples. `None` where nothing is omitted, or where the flow
    /// does not look at the time.
    pub omitted: Option<Tally>,
    /// When a receiver took data last; none before, and for senders.
    pub arrived: Option<Instant>,
    /// The kernel's view, for TCP where the system offers it.
    pub tcp: Option<TcpStats>,
}

/// CPU time this end has used since any fixed moment before the test, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CpuTimes {
    /// In the program itself.
    pub user_ns: u64,
    /// In the kernel on its behalf.
    pub system_ns: u64,
}
