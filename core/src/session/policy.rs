//! What a server allows a client, as far as its parameters tell. iperf3 3.21 checks the same in
//! `get_parameters`; what only a running test shows is the business of `watch`.

use core::fmt;

use crate::protocol::code::{ServerError, error_number};
use crate::test::{Direction, Limits, Protocol, TestSettings};
use crate::units::BitsPerSec;

/// What a server allows each of its tests. Without any limit it allows everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policy {
    /// All streams and both directions together.
    pub bitrate: Option<RateLimit>,
    /// Seconds, the omitted start included. A test without an end of its own by time is refused.
    pub seconds: Option<u32>,
    /// Payload bytes of all streams and both directions together, the omitted start included.
    pub bytes: Option<u64>,
    /// Streams each way.
    pub streams: Option<u16>,
    /// No tests by datagrams.
    pub refuses_udp: bool,
    /// Data goes into a file or comes from one, which datagrams cannot carry.
    pub has_file: bool,
    /// All tests of the server together: what this one moves is told by
    /// [`Action::Weigh`](super::Action::Weigh).
    pub server_bitrate: Option<RateLimit>,
}

/// A rate that a test may not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RateLimit {
    /// The highest average.
    pub rate: BitsPerSec,
    /// What it is averaged over, nanoseconds; zero for the whole test so far.
    pub span_ns: u64,
}

/// What a server did not allow. The first are decided here, from the parameters and the running test;
/// the others concern what only an adapter knows: other tests and the client's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Denial {
    /// The client asked for more bits per second than it may have.
    Bitrate {
        /// Of all streams and both directions together.
        asked: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The running test moved more bits per second than it may.
    Measured {
        /// The average over the limit's span.
        measured: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The client asked for more time than it may have.
    Duration {
        /// With the omitted start; none for a test without a limit of time.
        asked_secs: Option<u32>,
        /// What is allowed.
        limit_secs: u32,
    },
    /// The client asked for more bytes than it may have.
    Bytes {
        /// Of both directions together.
        asked: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The running test moved more bytes than it may.
    MeasuredBytes {
        /// What it moved.
        measured: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The client asked for more streams than it may have.
    Streams {
        /// Each way.
        asked: u16,
        /// What is allowed.
        limit: u16,
    },
    /// The client asked for datagrams.
    Datagrams,
    /// The client asked for datagrams of a server with a file.
    DatagramsWithFile,
    /// All tests together would move more bits per second than the server may.
    ServerBitrate {
        /// Of this test; none where it has no rate of its own.
        asked: Option<u64>,
        /// What the others have.
        taken: u64,
        /// What is allowed.
        limit: u64,
    },
    /// All tests together moved more bits per second than the server may, this one the most.
    ServerMeasured {
        /// What all moved.
        measured: u64,
        /// What is allowed.
        limit: u64,
    },
    /// All tests together would have more streams than the server may.
    ServerStreams {
        /// Of this test, both directions together.
        asked: u32,
        /// What the others have.
        taken: u32,
        /// What is allowed.
        limit: u32,
    },
    /// All places for tests are taken.
    Tests {
        /// How many there are.
        limit: u32,
    },
    /// Too many clients have not said yet what to test.
    Clients {
        /// How many there may be, with those that have.
        limit: u32,
    },
    /// All places for tests of this address are taken.
    AddressTests {
        /// How many there are.
        limit: u32,
    },
    /// This address has had its tests of this hour.
    HourlyTests {
        /// How many it may have.
        limit: u32,
        /// Seconds until it may have another.
        wait_secs: u32,
    },
    /// All places are taken, and so are all places in the queue.
    Queue {
        /// How many may wait.
        limit: u32,
    },
    /// It waited for a place and got none.
    QueueTime {
        /// So long.
        limit_secs: u32,
    },
    /// Nobody of this network gets a test.
    Network,
    /// A test of this name is there already.
    SameName,
    /// The server takes no further tests.
    Closing,
}

impl Policy {
    /// Whether a test may begin. Of several reasons against it the rate comes first, as in iperf3.
    pub(super) fn check(&self, settings: &TestSettings) -> Result<(), Denial> {
        if settings.protocol == Protocol::Udp {
            if self.refuses_udp {
                return Err(Denial::Datagrams);
            }
            if self.has_file {
                return Err(Denial::DatagramsWithFile);
            }
        }
        if let (Some(limit), Some(asked)) = (self.bitrate, settings.asked_bits_per_second())
            && asked > limit.rate.0
        {
            return Err(Denial::Bitrate { asked, limit: limit.rate.0 });
        }
        if let Some(limit_secs) = self.seconds {
            let with_omit = |secs: u32| secs.saturating_add(settings.omit_secs);
            let asked_secs = settings.limits.seconds.map(with_omit);
            if asked_secs.is_none_or(|asked| asked > limit_secs) {
                return Err(Denial::Duration { asked_secs, limit_secs });
            }
        }
        if let Some(limit) = self.streams.filter(|&limit| settings.parallel > limit) {
            return Err(Denial::Streams { asked: settings.parallel, limit });
        }
        if let (Some(limit), Some(asked)) = (self.bytes, asked_bytes(settings))
            && asked > limit
        {
            return Err(Denial::Bytes { asked, limit });
        }
        Ok(())
    }
}

/// What a test by an amount will move, both directions together.
fn asked_bytes(settings: &TestSettings) -> Option<u64> {
    let Limits { bytes, blocks, .. } = settings.limits;
    let in_blocks = blocks.map(|count| count.saturating_mul(u64::from(settings.block_bytes)));
    let both = if settings.direction == Direction::Bidirectional { 2 } else { 1 };
    bytes.or(in_blocks).map(|bytes| bytes.saturating_mul(both))
}

impl Denial {
    /// What the client is told, in iperf3's nearest number.
    pub const fn told(self) -> ServerError {
        ServerError::new(match self {
            Self::Bitrate { .. }
            | Self::Measured { .. }
            | Self::Bytes { .. }
            | Self::MeasuredBytes { .. }
            | Self::ServerBitrate { .. }
            | Self::ServerMeasured { .. } => error_number::TOTAL_RATE,
            Self::Duration { .. } => error_number::MAX_DURATION,
            Self::Streams { .. } => error_number::STREAM_COUNT,
            Self::Datagrams => error_number::NOT_OFFERED,
            Self::DatagramsWithFile => error_number::UDP_FILE,
            Self::ServerStreams { .. }
            | Self::Tests { .. }
            | Self::Clients { .. }
            | Self::AddressTests { .. }
            | Self::HourlyTests { .. }
            | Self::Queue { .. }
            | Self::QueueTime { .. }
            | Self::Network
            | Self::SameName
            | Self::Closing => error_number::BUSY,
        })
    }
}

impl fmt::Display for Denial {
    /// iperf3's words, then what they do not say.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.told().fmt(f)?;
        match self {
            Self::Bitrate { asked, limit } => {
                write!(f, ": asked for {asked} bits/s, allowed: {limit}")
            }
            Self::Measured { measured, limit } => {
                write!(f, ": measured {measured} bits/s, allowed: {limit}")
            }
            Self::Duration { asked_secs: Some(asked), limit_secs } => {
                write!(f, ": asked for {asked} seconds, allowed: {limit_secs}")
            }
            Self::Duration { asked_secs: None, limit_secs } => write!(
                f,
                ": asked for a test without a limit of time, allowed: {limit_secs} seconds"
            ),
            Self::Bytes { asked, limit } => {
                write!(f, ": asked for {asked} bytes, allowed: {limit}")
            }
            Self::MeasuredBytes { measured, limit } => {
                write!(f, ": moved {measured} bytes, allowed: {limit}")
            }
            Self::Streams { asked, limit } => {
                write!(f, ": asked for {asked} streams each way, allowed: {limit}")
            }
            Self::Datagrams => f.write_str(": this server allows no UDP"),
            Self::DatagramsWithFile => Ok(()),
            Self::ServerBitrate { asked, taken, limit } => {
                match asked {
                    Some(asked) => write!(f, ": asked for {asked} bits/s")?,
                    None => f.write_str(": asked for any rate")?,
                }
                write!(f, ", other tests have {taken}, allowed for all together: {limit}")
            }
            Self::ServerMeasured { measured, limit } => write!(
                f,
                ": all tests together moved {measured} bits/s, this one the most, allowed: {limit}"
            ),
            Self::ServerStreams { asked, taken, limit } => write!(
                f,
                ": asked for {asked} streams, other tests have {taken}, allowed for all together: \
                 {limit}"
            ),
            Self::Tests { limit } => write!(f, ": tests at once: {limit}"),
            Self::Clients { limit } => write!(f, ": clients at once: {limit}"),
            Self::AddressTests { limit } => write!(f, ": tests at once of one address: {limit}"),
            Self::HourlyTests { limit, wait_secs } => {
                write!(f, ": tests an hour of one address: {limit}, the next in {wait_secs} s")
            }
            Self::Queue { limit } => write!(f, ": clients in the queue: {limit}"),
            Self::QueueTime { limit_secs } => write!(f, ": waited {limit_secs} s in the queue"),
            Self::Network => f.write_str(": this network is not allowed"),
            Self::SameName => f.write_str(": another test has the same cookie"),
            Self::Closing => f.write_str(": the server takes no further tests"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;
    use crate::protocol::explanation::EXPLANATION_LIMIT;

    fn settings(change: impl FnOnce(&mut TestSettings)) -> TestSettings {
        let mut settings = TestSettings::new(Protocol::Tcp);
        change(&mut settings);
        settings
    }

    fn with_rate(parallel: u16, direction: Direction, rate: u64) -> TestSettings {
        settings(|s| {
            (s.parallel, s.direction, s.bitrate) = (parallel, direction, Some(BitsPerSec(rate)));
        })
    }

    #[test]
    fn rates_of_all_streams_and_both_directions_are_added() {
        let policy = Policy {
            bitrate: Some(RateLimit { rate: BitsPerSec(1000), span_ns: 0 }),
            ..Policy::default()
        };
        let paced = settings(|s| (s.parallel, s.fq_rate) = (2, Some(BitsPerSec(501))));
        for (settings, asked) in [
            (with_rate(1, Direction::Forward, 1000), None),
            (with_rate(1, Direction::Forward, 1001), Some(1001)),
            (with_rate(4, Direction::Reverse, 250), None),
            (with_rate(4, Direction::Reverse, 251), Some(1004)),
            (with_rate(2, Direction::Bidirectional, 250), None),
            (with_rate(2, Direction::Bidirectional, 251), Some(1004)),
            (with_rate(128, Direction::Bidirectional, u64::MAX), Some(u64::MAX)),
            (paced, Some(1002)),
            // What nobody limits is watched once it runs.
            (TestSettings::new(Protocol::Tcp), None),
        ] {
            let expected = asked.map(|asked| Denial::Bitrate { asked, limit: 1000 });
            assert_eq!(policy.check(&settings).err(), expected);
        }
    }

    #[test]
    fn time_counts_with_the_omitted_start_and_has_to_be_limited() {
        let policy = Policy { seconds: Some(5), ..Policy::default() };
        let lasting = |seconds, omit| {
            settings(|s| (s.limits, s.omit_secs) = (Limits { seconds, ..Limits::default() }, omit))
        };
        let by_bytes = settings(|s| {
            s.limits = Limits { seconds: None, bytes: Some(1), blocks: None };
        });
        for (settings, asked) in [
            (lasting(Some(5), 0), None),
            (lasting(Some(6), 0), Some(Some(6))),
            (lasting(Some(3), 2), None),
            (lasting(Some(3), 3), Some(Some(6))),
            (lasting(None, 0), Some(None)),
            (by_bytes, Some(None)),
        ] {
            let denial = |asked_secs| Denial::Duration { asked_secs, limit_secs: 5 };
            assert_eq!(policy.check(&settings).err(), asked.map(denial));
        }
    }

    #[test]
    fn datagrams_do_not_go_with_a_file() {
        let policy = Policy { has_file: true, ..Policy::default() };
        assert!(policy.check(&TestSettings::new(Protocol::Tcp)).is_ok());
        let denied = policy.check(&TestSettings::new(Protocol::Udp));
        assert_eq!(denied, Err(Denial::DatagramsWithFile));
    }

    #[test]
    fn every_denial_can_be_explained_in_full() {
        let most = u64::MAX;
        for denial in [
            Denial::Duration { asked_secs: None, limit_secs: u32::MAX },
            Denial::ServerBitrate { asked: Some(most), taken: most, limit: most },
            Denial::ServerMeasured { measured: most, limit: most },
            Denial::ServerStreams { asked: u32::MAX, taken: u32::MAX, limit: u32::MAX },
            Denial::HourlyTests { limit: u32::MAX, wait_secs: u32::MAX },
        ] {
            assert!(denial.to_string().len() <= EXPLANATION_LIMIT as usize, "{denial}");
        }
    }

    #[test]
    fn bytes_count_both_ways_whatever_they_are_counted_in() {
        let policy = Policy { bytes: Some(1000), ..Policy::default() };
        let moving = |bytes, blocks, direction| {
            settings(|s| {
                s.limits = Limits { seconds: None, bytes, blocks };
                (s.block_bytes, s.direction) = (100, direction);
            })
        };
        for (settings, asked) in [
            (moving(Some(1000), None, Direction::Forward), None),
            (moving(Some(1001), None, Direction::Reverse), Some(1001)),
            (moving(Some(501), None, Direction::Bidirectional), Some(1002)),
            (moving(None, Some(10), Direction::Forward), None),
            (moving(None, Some(11), Direction::Forward), Some(1100)),
            (moving(None, Some(u64::MAX), Direction::Forward), Some(u64::MAX)),
            // By time: it is watched once it runs.
            (TestSettings::new(Protocol::Tcp), None),
        ] {
            let expected = asked.map(|asked| Denial::Bytes { asked, limit: 1000 });
            assert_eq!(policy.check(&settings).err(), expected);
        }
    }

    #[test]
    fn streams_count_each_way_and_datagrams_can_be_forbidden() {
        let policy = Policy { streams: Some(4), refuses_udp: true, ..Policy::default() };
        for (parallel, direction, denial) in [
            (4, Direction::Bidirectional, None),
            (5, Direction::Forward, Some(Denial::Streams { asked: 5, limit: 4 })),
        ] {
            let settings = settings(|s| (s.parallel, s.direction) = (parallel, direction));
            assert_eq!(policy.check(&settings).err(), denial);
        }
        let denied = policy.check(&TestSettings::new(Protocol::Udp));
        assert_eq!(denied, Err(Denial::Datagrams));
    }

    #[test]
    fn words_are_those_of_iperf3_with_the_values_after_them() {
        for (denial, number, text) in [
            (
                Denial::Bitrate { asked: 20, limit: 10 },
                27,
                "total required bandwidth is larger than server limit: asked for 20 bits/s, \
                 allowed: 10",
            ),
            (
                Denial::Duration { asked_secs: Some(9), limit_secs: 5 },
                37,
                "client's requested duration exceeds the server's maximum permitted limit: asked \
                 for 9 seconds, allowed: 5",
            ),
            (Denial::DatagramsWithFile, 34, "cannot transfer file using UDP"),
            (
                Denial::Datagrams,
                13,
                "an option you are trying to set is not implemented yet: this server allows no UDP",
            ),
            (
                Denial::Streams { asked: 9, limit: 4 },
                6,
                "invalid number of parallel streams (min = 1, max = 128): asked for 9 streams each \
                 way, allowed: 4",
            ),
            (
                Denial::ServerBitrate { asked: None, taken: 90, limit: 80 },
                27,
                "total required bandwidth is larger than server limit: asked for any rate, other \
                 tests have 90, allowed for all together: 80",
            ),
            (
                Denial::HourlyTests { limit: 3, wait_secs: 77 },
                121,
                "the server is busy running a test. try again later: tests an hour of one address: \
                 3, the next in 77 s",
            ),
        ] {
            assert_eq!((denial.told().number, denial.to_string().as_str()), (number, text));
        }
    }
}
