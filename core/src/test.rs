//! What is measured: the settings of one test that both ends must agree on, in types that cannot
//! hold nonsense. They come from a person (client) or from the parameters document (server); how
//! that document spells them is `protocol::parameters`' business.

use crate::units::{BitsPerSec, PacketsPerSec};

/// The transport of the data streams. The control connection is always TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Protocol {
    /// A byte stream per data connection.
    Tcp,
    /// Datagrams with a sequence number and a time stamp.
    Udp,
    /// A byte stream per association, with one stream of SCTP in each (`--sctp`). Counted and
    /// reported as TCP is.
    Sctp,
}

impl Protocol {
    /// What reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }

    /// Data flows in connections that deliver everything in order, and not in datagrams.
    pub const fn is_stream(self) -> bool {
        match self {
            Self::Tcp | Self::Sctp => true,
            Self::Udp => false,
        }
    }
}

/// Which way data flows, as the client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Direction {
    /// The client sends.
    Forward,
    /// The server sends (`-R`).
    Reverse,
    /// Both send, each on streams of its own (`--bidir`).
    Bidirectional,
}

/// Which end of the control connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum End {
    /// The one that connects and decides when the test is over.
    Client,
    /// The one that listens.
    Server,
}

/// What this end does on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Role {
    /// It produces the data.
    Sender,
    /// It consumes the data.
    Receiver,
}

impl Role {
    /// What the other end of the same stream does.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

impl Direction {
    /// Data streams of a test with `parallel` streams a direction.
    pub const fn stream_count(self, parallel: u16) -> usize {
        match self {
            Self::Bidirectional => 2 * parallel as usize,
            _ => parallel as usize,
        }
    }

    /// What `end` does on the stream at `index` (order of creation): in bidirectional tests the
    /// first half is sent by the client, the second by the server.
    pub const fn role(self, end: End, index: usize, parallel: u16) -> Role {
        let client_sends = match self {
            Self::Forward => true,
            Self::Reverse => false,
            Self::Bidirectional => index < parallel as usize,
        };
        match (client_sends, end) {
            (true, End::Client) | (false, End::Server) => Role::Sender,
            _ => Role::Receiver,
        }
    }
}

/// A stream's number in the results documents: 1, 3, 4, 5, … in order of creation on each side.
/// iperf3 has never used 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StreamId(u32);

impl StreamId {
    /// The number of the stream that was created `index`-th, counted from zero.
    pub const fn from_index(index: usize) -> Self {
        Self(if index == 0 { 1 } else { index as u32 + 2 })
    }

    /// Order of creation, counted from zero.
    pub const fn index(self) -> usize {
        if self.0 <= 1 { 0 } else { self.0 as usize - 2 }
    }

    /// The stream with this number, unless no stream can have it.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 | 2 => None,
            _ => Some(Self(number)),
        }
    }

    /// The number as it stands in the results documents.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// When the client ends the test. Absent limits do not count; with all absent the test runs until
/// somebody interrupts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Limits {
    /// Seconds of measured time, the omitted start not counted (`-t`).
    pub seconds: Option<u32>,
    /// Bytes in one direction, summed over its streams (`-n`).
    pub bytes: Option<u64>,
    /// Blocks or datagrams in one direction, summed over its streams (`-k`).
    pub blocks: Option<u64>,
}

/// Segmentation and receive offload as `--gsro` asks for it (iperf3 3.21): local to each end, the
/// wire format does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Offload {
    /// Let the kernel cut large sends into datagrams.
    pub gso: bool,
    /// Let the kernel join received datagrams.
    pub gro: bool,
}

/// The settings of one test, agreed between both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TestSettings {
    /// Transport of the data streams.
    pub protocol: Protocol,
    /// Which way data flows.
    pub direction: Direction,
    /// Streams in each direction, 1 to [`MAX_PARALLEL`].
    pub parallel: u16,
    /// Seconds at the start that are left out of the result, 0 to [`MAX_OMIT_SECS`].
    pub omit_secs: u32,
    /// When the client ends the test.
    pub limits: Limits,
    /// Bytes a TCP write or a UDP datagram.
    pub block_bytes: u32,
    /// Target rate of each stream; none means as fast as possible.
    pub bitrate: Option<BitsPerSec>,
    /// Blocks sent back to back before the rate is looked at again; none leaves it to the sender, which
    /// is one in iperf3.
    pub burst: Option<u16>,
    /// Kernel pacing of each data socket (`--fq-rate`).
    pub fq_rate: Option<BitsPerSec>,
    /// Unused since iperf3 3.18, still sent by every client.
    pub pacing_timer_us: u32,
    /// Socket buffers asked for (`-w`); none leaves them to the system.
    pub window_bytes: Option<u32>,
    /// Maximum segment size asked for (`-M`).
    pub mss_bytes: Option<u32>,
    /// Switch Nagle's algorithm off (`-N`).
    pub no_delay: bool,
    /// The IPv4 TOS or IPv6 traffic class byte (`-S`, `--dscp`).
    pub tos: u8,
    /// IPv6 flow label (`-L`).
    pub flow_label: Option<u32>,
    /// Sequence numbers of 64 bits instead of 32 in the datagrams.
    pub counters_64bit: bool,
    /// Digits instead of random bytes as payload.
    pub repeating_payload: bool,
    /// Send without copying where the system can (`-Z`).
    pub zero_copy: bool,
    /// Let the receiving kernel throw the data away where it can.
    pub skip_rx_copy: bool,
    /// Forbid fragmentation (IPv4 UDP).
    pub dont_fragment: bool,
    /// The client wants the server's own output with the results.
    pub server_output: bool,
    /// Data streams over MPTCP (`-m`).
    pub mptcp: bool,
    /// CPU the server's streams are to run on (`-A n,m`).
    pub server_affinity: Option<u16>,
    /// Offload asked for with `--gsro`.
    pub offload: Offload,
}

impl TestSettings {
    /// iperf3's defaults: one TCP stream from client to server for ten seconds.
    pub const fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            direction: Direction::Forward,
            parallel: 1,
            omit_secs: 0,
            limits: Limits { seconds: Some(DEFAULT_SECONDS), bytes: None, blocks: None },
            block_bytes: match protocol {
                Protocol::Tcp => DEFAULT_TCP_BLOCK,
                Protocol::Udp => DEFAULT_UDP_BLOCK,
                Protocol::Sctp => DEFAULT_SCTP_BLOCK,
            },
            bitrate: match protocol {
                Protocol::Tcp | Protocol::Sctp => None,
                Protocol::Udp => Some(DEFAULT_UDP_RATE),
            },
            burst: None,
            fq_rate: None,
            pacing_timer_us: 1000,
            window_bytes: None,
            mss_bytes: None,
            no_delay: false,
            tos: 0,
            flow_label: None,
            counters_64bit: false,
            repeating_payload: false,
            zero_copy: false,
            skip_rx_copy: false,
            dont_fragment: false,
            server_output: false,
            mptcp: false,
            server_affinity: None,
            offload: Offload { gso: false, gro: false },
        }
    }

    /// Sets the target rate of each stream to so many of its blocks; none of them is no limit.
    pub const fn set_packet_rate(&mut self, rate: PacketsPerSec) {
        self.bitrate = match rate.bits(self.block_bytes) {
            BitsPerSec(0) => None,
            bits => Some(bits),
        };
    }

    /// Bits per second that were asked for, all streams and both directions together; none for a test
    /// that goes as fast as it can.
    pub fn asked_bits_per_second(&self) -> Option<u64> {
        // A pacing by the kernel counts where it is asked for, whatever the rate of the sender.
        let rates = [self.bitrate, self.fq_rate].into_iter().flatten();
        let most = rates.map(|rate| rate.0).max()?;
        Some(most.saturating_mul(self.stream_count() as u64))
    }

    /// Whether receivers may have datagrams joined, with one time of arrival for all of a row: where
    /// they were asked to, and where datagrams come so fast that one by one would be too slow.
    pub fn joins_arrivals(&self) -> bool {
        let is_udp = self.protocol == Protocol::Udp;
        is_udp && (self.offload.gro || self.gap_is_below(JOINED_GAP_NANOS))
    }

    /// Whether the blocks of a stream are closer to each other than that, as far as one knows.
    pub fn gap_is_below(&self, nanos: u64) -> bool {
        self.bitrate.is_none_or(|rate| rate.nanos_for(self.block_bytes.into()) < nanos)
    }

    /// Data streams of this test, both directions together.
    pub const fn stream_count(&self) -> usize {
        self.direction.stream_count(self.parallel)
    }

    /// What `end` does on the stream at `index`.
    pub const fn role(&self, end: End, index: usize) -> Role {
        self.direction.role(end, index, self.parallel)
    }
}

/// Datagram size when nobody says, bytes: the segment size of the control connection, so that a
/// datagram fits one packet of the path. Values that no path has come from systems that do not know.
pub const fn datagram_bytes_for(control_mss: Option<u32>) -> u32 {
    match control_mss {
        Some(mss @ MIN_UDP_BLOCK..=MAX_UDP_BLOCK) => mss,
        _ => DEFAULT_UDP_BLOCK,
    }
}

/// Length of a test when nobody says (`-t`), seconds; iperf3 since 3.0.
pub const DEFAULT_SECONDS: u32 = 10;
/// Longest test (`-t`), seconds: one day; iperf3 since 3.0.5.
pub const MAX_SECONDS: u32 = 86_400;
/// Datagrams of a stream that are closer than this may share a time of arrival: 560 Mbit/s of 1400 bytes.
pub const JOINED_GAP_NANOS: u64 = 20_000;
/// Datagrams of a stream that are closer than this may wait for each other before they are taken: 45
/// Mbit/s of 1400 bytes.
pub const WAITING_GAP_NANOS: u64 = 250_000;
/// Longest omitted start (`-O`), seconds; iperf3 since 3.18 (60 before).
pub const MAX_OMIT_SECS: u32 = 600;
/// Most streams a direction (`-P`); iperf3 since 3.0.
pub const MAX_PARALLEL: u16 = 128;
/// Bytes a TCP write when nobody says (`-l`).
pub const DEFAULT_TCP_BLOCK: u32 = 131_072;
/// Bytes an SCTP message when nobody says (`-l`); iperf3 since 3.1.
pub const DEFAULT_SCTP_BLOCK: u32 = 65_536;
/// Largest TCP or SCTP block (`-l`).
pub const MAX_TCP_BLOCK: u32 = 1_048_576;
/// Datagram size when the path tells nothing better (`-l`); iperf3 since 3.1.5.
pub const DEFAULT_UDP_BLOCK: u32 = 1460;
/// Smallest datagram: the largest header; iperf3 since 3.2.
pub const MIN_UDP_BLOCK: u32 = 16;
/// Largest datagram an IPv4 packet carries.
pub const MAX_UDP_BLOCK: u32 = 65_507;
/// UDP rate when nobody says: 1 Mbit/s, and iperf3 means 2^20 by it.
pub const DEFAULT_UDP_RATE: BitsPerSec = BitsPerSec(1_048_576);
/// Most blocks a burst (`-b rate/burst`).
pub const MAX_BURST: u16 = 1000;
/// Largest socket buffer (`-w`).
pub const MAX_WINDOW: u32 = 536_870_912;
/// Largest segment size (`-M`); iperf3 since 3.21 (9216 before).
pub const MAX_MSS: u32 = 32_767;
/// Largest CPU number (`-A`).
pub const MAX_AFFINITY: u16 = 1024;
/// Largest IPv6 flow label (`-L`).
pub const MAX_FLOW_LABEL: u32 = 1_048_575;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_numbers_skip_two() {
        let numbers: [u32; 4] = core::array::from_fn(|i| StreamId::from_index(i).number());
        assert_eq!(numbers, [1, 3, 4, 5]);
        for index in 0..300 {
            assert_eq!(StreamId::from_index(index).index(), index);
        }
        assert_eq!(StreamId::from_number(2), None);
    }

    #[test]
    fn nonsense_segment_sizes_do_not_become_datagrams() {
        // Systems have been seen to report -1, 0, 2^31 and 13.
        for nonsense in [None, Some(0), Some(13), Some(1 << 31), Some(u32::MAX)] {
            assert_eq!(datagram_bytes_for(nonsense), DEFAULT_UDP_BLOCK);
        }
        assert_eq!(datagram_bytes_for(Some(1448)), 1448);
    }

    #[test]
    fn bidirectional_halves_have_opposite_roles() {
        // parallel 2: streams 0 and 1 are sent by the client, 2 and 3 by the server.
        let roles = |end| core::array::from_fn(|i| Direction::Bidirectional.role(end, i, 2));
        use Role::{Receiver, Sender};
        assert_eq!(roles(End::Client), [Sender, Sender, Receiver, Receiver]);
        assert_eq!(roles(End::Server), roles(End::Client).map(Role::opposite));
    }
}
