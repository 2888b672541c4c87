//! How a session ends, and whose fault it is when it ends badly.

use core::fmt;

#[cfg(feature = "host")]
use super::Denial;
use super::{Phase, Timer};
use crate::protocol::code::{ControlCode, ServerError, error_number};
use crate::test::{End, StreamId};

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ending {
    /// The test ran to its end and the results were exchanged.
    Complete,
    /// It did not.
    Failed(SessionError),
}

/// Why a session did not reach its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SessionError {
    /// This end was told to stop.
    Interrupted,
    /// The other end was stopped by whoever runs it.
    Terminated(End),
    /// The server does not want this test.
    Refused(Refusal),
    /// This server refused the test; the number is what the client was told.
    Denied(ServerError),
    /// This server does not allow what the test asked for or did.
    #[cfg(feature = "host")]
    NotAllowed(Denial),
    /// The other end broke the protocol.
    Peer(PeerError),
    /// The control connection closed while something was expected on it.
    ControlClosed(Phase),
    /// The other side took the connection and never said a word: it is no such server.
    Unanswered,
    /// Nothing came in time.
    TimedOut(Timer),
    /// Client: greetings of UDP streams were not answered; which ones, the session tells.
    Ungreeted {
        /// How many streams.
        missing: u16,
        /// Of how many.
        of: u16,
    },
    /// All data streams broke before the end; what they moved is measured and exchanged.
    StreamsLost,
    /// The file behind a data stream failed in the middle of the test.
    File {
        /// Which stream.
        id: StreamId,
        /// The system's error number, zero if it gave none.
        code: i32,
    },
    /// A data stream could not be opened.
    Stream {
        /// Which.
        id: StreamId,
        /// The system's error number, zero if it gave none.
        code: i32,
    },
}

/// Why a server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// It runs another test.
    Busy,
    /// It says why, in iperf3's numbers.
    Error(ServerError),
}

impl Refusal {
    /// The server did not accept the credentials.
    pub const fn is_authentication(&self) -> bool {
        matches!(self, Self::Error(ServerError { number: error_number::AUTH, .. }))
    }
}

/// What the other end did wrong, as expected against got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PeerError {
    /// A byte that is no control code.
    UnknownCode {
        /// Where the exchange was.
        phase: Phase,
        /// The byte.
        byte: u8,
    },
    /// A control code out of turn.
    UnexpectedCode {
        /// Where the exchange was.
        phase: Phase,
        /// The code.
        code: ControlCode,
    },
    /// A document that cannot be used.
    Document {
        /// Which one.
        phase: Phase,
        /// What is wrong with it.
        error: crate::protocol::json::DocumentError,
    },
    /// Results for a stream that does not exist.
    UnknownStream {
        /// The number it gave.
        number: u32,
    },
}

impl From<PeerError> for SessionError {
    fn from(error: PeerError) -> Self {
        Self::Peer(error)
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Terminated(End::Client) => f.write_str("the client has terminated"),
            Self::Terminated(End::Server) => f.write_str("the server has terminated"),
            Self::Refused(Refusal::Busy) => {
                f.write_str("the server is busy running a test. try again later")
            }
            Self::Refused(Refusal::Error(error)) | Self::Denied(error) => error.fmt(f),
            #[cfg(feature = "host")]
            Self::NotAllowed(denial) => denial.fmt(f),
            Self::Peer(error) => error.fmt(f),
            Self::ControlClosed(phase) => {
                write!(f, "control socket has closed unexpectedly while {phase}")
            }
            // iperf3's words, which scripts look for.
            Self::TimedOut(Timer::Silence) => Timer::Silence.fmt(f),
            Self::Unanswered => f.write_str(
                "the other side took the connection and said nothing (ensure that it is iperf3 or \
                 linerate, not iperf 2)",
            ),
            Self::TimedOut(timer) => write!(f, "timed out: {timer}"),
            Self::Ungreeted { missing, of } => {
                write!(f, "no answer to the UDP greeting of {missing} of {of} streams")
            }
            Self::StreamsLost => f.write_str("all data streams broke before the end of the test"),
            Self::File { id, .. } => write!(f, "the file of stream {} failed", id.number()),
            Self::Stream { id, .. } => {
                write!(f, "unable to connect stream {}", id.number())
            }
        }
    }
}

impl core::error::Error for SessionError {}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCode { phase, byte } => write!(
                f,
                "received an unknown control message: {phase}, got byte 0x{byte:02x} (ensure the \
                 other side is iperf3 or linerate, not iperf 2)"
            ),
            Self::UnexpectedCode { phase, code } => {
                write!(f, "received a control message out of turn: {phase}, got {code}")
            }
            Self::Document { phase: Phase::Parameters, error } => {
                write!(f, "{}: {error}", ServerError::new(error_number::RECV_PARAMS))
            }
            Self::Document { phase: Phase::Results, error } => {
                write!(f, "{}: {error}", ServerError::new(error_number::RECV_RESULTS))
            }
            Self::Document { phase, error } => write!(f, "bad document: {phase}, got {error}"),
            Self::UnknownStream { number } => write!(f, "results for unknown stream {number}"),
        }
    }
}

impl core::error::Error for PeerError {}
