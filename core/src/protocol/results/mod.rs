//! The results document: what each end measured, written after the end of a test, the client's
//! first. Keys, order and what must be there are iperf3's (3.0 to 3.21). Numbers are brought to
//! nanoseconds and millionths of a percent on the way in and written from them on the way out.

mod detail;
mod incoming;
mod outgoing;

pub use incoming::{OutputKind, ReceivedResults, ResultsDocument, ResultsReader};
pub use outgoing::{MAX_CONGESTION, OutgoingResults};

/// One stream as one end saw it. Counts of datagrams include the omitted start; bytes and
/// retransmits do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ResultsStream {
    /// Its number: 1, 3, 4, 5, …
    pub number: u32,
    /// Payload bytes sent or received.
    pub bytes: u64,
    /// Segments sent again; `None` for receivers and where it is not known.
    pub retransmits: Option<u64>,
    /// Smoothed jitter; zero for senders and TCP.
    pub jitter_ns: u64,
    /// Datagrams lost; zero for senders and TCP.
    pub lost: u64,
    /// The part of `lost` in the omitted start; `None` from ends up to 3.13.
    pub omitted_lost: Option<u64>,
    /// Datagrams sent (sender) or sequence numbers passed (receiver); zero for TCP.
    pub packets: u64,
    /// The part of `packets` in the omitted start; `None` from ends up to 3.13.
    pub omitted_packets: Option<u64>,
    /// Datagrams that came after a later one, without the omitted start. Ours: iperf3 counts them and
    /// keeps them to itself. `None` for senders and where none came; stock ends ignore the key.
    pub out_of_order: Option<u64>,
    /// Datagrams that came again, without the omitted start. Ours, as the next: only a linerate end is told.
    /// `None` for senders.
    pub duplicates: Option<u64>,
    /// Datagrams that came too late to know what they are, without the omitted start. `None` for senders.
    pub too_late: Option<u64>,
    /// When the measurement began, always zero; `None` from ends up to 3.1.
    pub start_ns: Option<u64>,
    /// When it ended, counted from the end of the omitted start; `None` from ends up to 3.1.
    pub end_ns: Option<u64>,
}

#[cfg(test)]
mod tests;
