//! What a server allows a client, as far as its parameters tell. iperf3 3.21 checks the same in
//! `get_parameters`; what only a running test shows is the business of `watch`.

use super::Denial;
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

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

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
}
