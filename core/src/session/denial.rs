//! What a server did not allow: the number that tells a stock client, and the words with the values for
//! everybody else.

use core::fmt;

use crate::protocol::code::{ServerError, error_number};

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
