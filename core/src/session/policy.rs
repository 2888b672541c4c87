//! What a server allows a client, as far as its parameters tell. iperf3 3.21 checks the same in
//! `get_parameters`; what only a running test shows is the business of `watch`.

use core::fmt;

use crate::protocol::code::{ServerError, error_number};
use crate::test::{Direction, Protocol, TestSettings};
use crate::units::BitsPerSec;

/// What a server allows each of its tests. Without any limit it allows everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policy {
    /// All streams and both directions together.
    pub bitrate: Option<RateLimit>,
    /// Seconds, the omitted start included. A test without an end of its own by time is refused.
    pub seconds: Option<u32>,
    /// Data goes into a file or comes from one, which datagrams cannot carry.
    pub has_file: bool,
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

/// What a server did not allow.
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
    /// The client asked for datagrams of a server with a file.
    DatagramsWithFile,
}

impl Policy {
    /// Whether a test may begin. Of several reasons against it the rate comes first, as in iperf3.
    pub(super) fn check(&self, settings: &TestSettings) -> Result<(), Denial> {
        if self.has_file && settings.protocol == Protocol::Udp {
            return Err(Denial::DatagramsWithFile);
        }
        if let Some(limit) = self.bitrate {
            check_rate(settings, limit.rate.0)?;
        }
        if let Some(limit_secs) = self.seconds {
            let with_omit = |secs: u32| secs.saturating_add(settings.omit_secs);
            let asked_secs = settings.limits.seconds.map(with_omit);
            if asked_secs.is_none_or(|asked| asked > limit_secs) {
                return Err(Denial::Duration { asked_secs, limit_secs });
            }
        }
        Ok(())
    }
}

fn check_rate(settings: &TestSettings, limit: u64) -> Result<(), Denial> {
    let directions = if settings.direction == Direction::Bidirectional { 2 } else { 1 };
    let streams = u64::from(settings.parallel) * directions;
    // A pacing by the kernel counts where it is asked for, whatever the rate of the sender.
    for rate in [settings.bitrate, settings.fq_rate].into_iter().flatten() {
        let asked = rate.0.saturating_mul(streams);
        if asked > limit {
            return Err(Denial::Bitrate { asked, limit });
        }
    }
    Ok(())
}

impl Denial {
    /// What the client is told.
    pub const fn told(self) -> ServerError {
        ServerError::new(match self {
            Self::Bitrate { .. } | Self::Measured { .. } => error_number::TOTAL_RATE,
            Self::Duration { .. } => error_number::MAX_DURATION,
            Self::DatagramsWithFile => error_number::UDP_FILE,
        })
    }
}

impl fmt::Display for Denial {
    /// iperf3's words, then the values.
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
            Self::Duration { asked_secs: None, limit_secs } => {
                write!(
                    f,
                    ": asked for a test without a limit of time, allowed: {limit_secs} seconds"
                )
            }
            Self::DatagramsWithFile => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;
    use crate::test::Limits;

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
        ] {
            assert_eq!((denial.told().number, denial.to_string().as_str()), (number, text));
        }
    }
}
