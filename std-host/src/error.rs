//! What can go wrong, sorted by whose business it is, and the exit code of each class.

use std::fmt;
use std::io;

use linerate_core::session::SessionError;

/// Why a test or a server could not do its work.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// An option cannot be what was given.
    Usage(String),
    /// The system refused something this end needs, such as a port to listen on.
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        message: String,
    },
    /// No control connection to the server.
    Connect {
        /// Host and port as given.
        server: String,
        /// What the system said for the last address tried.
        message: String,
    },
    /// The control exchange ended before its time; who is at fault is in the value.
    Session(SessionError),
}

/// Exit codes of the command, by class. iperf3 knows only 0 and 1; every failure here is non-zero
/// too, so a script that asks for success sees no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// The test ran to its end; a server was stopped in good order.
    Success = 0,
    /// The command line, or something on this machine, made the test impossible.
    Usage = 1,
    /// The server cannot be reached.
    Connect = 2,
    /// The server is busy or refused the test.
    Refused = 3,
    /// The server did not accept the credentials.
    Authentication = 4,
    /// Somebody at either end stopped the test.
    Aborted = 5,
    /// The test broke off: what was measured is incomplete, or the peer's half is missing.
    Partial = 6,
}

impl Error {
    /// An error of the operating system, with what was tried.
    pub fn system(what: impl Into<String>, error: &io::Error) -> Self {
        Self::System { what: what.into(), message: error.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::System { what, message } => write!(f, "{what}: {message}"),
            Self::Connect { server, message } => write!(f, "{server}: {message}"),
            Self::Session(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
