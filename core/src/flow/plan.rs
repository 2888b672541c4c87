//! What one stream is to do, fixed when the test starts. Sessions write plans, flows follow them.

use crate::test::{Protocol, Role, StreamId};
use crate::time::Instant;
use crate::units::BitsPerSec;

/// Everything a flow needs to know about its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StreamPlan {
    /// Which stream.
    pub id: StreamId,
    /// What this end does on it.
    pub role: Role,
    /// Transport.
    pub protocol: Protocol,
    /// Bytes a TCP write or a UDP datagram.
    pub block_bytes: u32,
    /// Target rate of a sender; none means as fast as possible.
    pub bitrate: Option<BitsPerSec>,
    /// Blocks that a sender with a rate sends back to back, where a number was asked for; else as many
    /// as the rate calls for.
    pub burst: Option<u16>,
    /// UDP receiver: datagrams may be joined, with one time of arrival for all of a row.
    pub joins_arrivals: bool,
    /// UDP receiver: datagrams come so often that they may wait a little for each other, where the system
    /// tells when each came.
    pub may_wait: bool,
    /// Bytes after which a stream is done, the omitted start not counted: a sender's share of the
    /// test's amount, or for a client's receiver all of it. For UDP a multiple of the datagram size.
    pub limit_bytes: Option<u64>,
    /// What falls to this stream of all that the test may move, bytes, the omitted start counted: a
    /// sender sends no more; a receiver goes on, and says that it has it. For a UDP sender a multiple of
    /// the datagram size.
    pub share_bytes: Option<u64>,
    /// Sequence numbers of 64 bits instead of 32.
    pub counters_64bit: bool,
    /// The end of the omitted start; none if nothing is omitted.
    pub omit_until: Option<Instant>,
}
