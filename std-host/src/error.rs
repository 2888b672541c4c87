//! What can go wrong, sorted by whose business it is, and the exit code of each class.

use std::fmt;
use std::io;

use linerate_core::protocol::code::{ServerError, error_number};
use linerate_core::session::{Phase, Refusal, SessionError};
use linerate_core::test::Protocol;

use crate::auth;

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
        /// Its number for that, where it has one.
        code: Option<i32>,
    },
    /// No control connection to the server.
    Connect {
        /// Host and port as given.
        server: String,
        /// What the system said for the last address tried.
        message: String,
    },
    /// A data stream cannot be opened, though the control connection stands.
    Stream {
        /// Its number.
        number: u32,
        /// Its transport.
        protocol: Protocol,
        /// The server's port.
        port: u16,
        /// What the system said.
        message: String,
    },
    /// The control connection works, but greetings of UDP streams were not answered.
    UdpUnanswered {
        /// The server's port.
        port: u16,
        /// The numbers of the streams.
        streams: Vec<u32>,
        /// Streams of the test.
        of: u16,
        /// The network said that nobody listens on the port.
        is_refused: bool,
    },
    /// All data streams broke, the last of them by an error of this end's system.
    StreamsLost {
        /// What the system said.
        reason: String,
    },
    /// The control connection broke, as the other end or the system says.
    ControlLost {
        /// Where the exchange was.
        phase: Phase,
        /// What the system said.
        reason: String,
    },
    /// This end was told to stop.
    Interrupted {
        /// By what, such as a signal, if that was said.
        by: Option<String>,
    },
    /// Client: the server does not want the test, and says why in its own words.
    Refused {
        /// What it says in iperf3's words.
        refusal: Refusal,
        /// Its own, which begin with those where they are the same.
        text: String,
    },
    /// Client: the server closed the connection once it had the credentials. Many releases of iperf3
    /// refuse a login without a word.
    LoginUnanswered,
    /// Server: a client was refused that did not log in as it should. The client hears no reason.
    Login(auth::Refusal),
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
    /// The command line, or something on this machine, made the test or its report impossible.
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

impl ExitCode {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::Usage,
        Self::Connect,
        Self::Refused,
        Self::Authentication,
        Self::Aborted,
        Self::Partial,
    ];

    /// What the code says, in one sentence without its full stop.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Success => "the test ran to its end; a server was stopped in good order",
            Self::Usage => {
                "the command line, or something on this machine, made the test or its report \
                 impossible"
            }
            Self::Connect => "the server cannot be reached",
            Self::Refused => "the server is busy or refused the test",
            Self::Authentication => "the server did not accept the credentials",
            Self::Aborted => "somebody at either end stopped the test",
            Self::Partial => {
                "the test broke off: what was measured is incomplete, or the peer's half is missing"
            }
        }
    }
}

impl Error {
    /// An error of the operating system, with what was tried.
    pub fn system(what: impl Into<String>, error: &io::Error) -> Self {
        let code = error.raw_os_error();
        Self::System { what: what.into(), message: words(error), code }
    }

    /// The class that this error belongs to.
    pub const fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) | Self::System { .. } => ExitCode::Usage,
            Self::Connect { .. } | Self::Stream { .. } | Self::UdpUnanswered { .. } => {
                ExitCode::Connect
            }
            Self::StreamsLost { .. } | Self::ControlLost { .. } => ExitCode::Partial,
            Self::Interrupted { .. } => ExitCode::Aborted,
            Self::Login(_) | Self::LoginUnanswered => ExitCode::Authentication,
            Self::Refused { refusal, .. } => session_exit_code(&SessionError::Refused(*refusal)),
            Self::Session(error) => session_exit_code(error),
        }
    }
}

/// What the system says, in its words alone: the standard library adds the number, and Windows ends its
/// sentences.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) if error.raw_os_error().is_some() => text[..at].trim_end_matches('.').to_owned(),
        _ => text,
    }
}

/// A server may refuse with iperf3's numbers before the test or break it off with them later: the
/// numbers that only a running test can earn count as broken off.
const fn session_exit_code(error: &SessionError) -> ExitCode {
    match error {
        SessionError::Interrupted | SessionError::Terminated(_) => ExitCode::Aborted,
        SessionError::Refused(Refusal::Busy) => ExitCode::Refused,
        SessionError::Refused(Refusal::Error(error)) | SessionError::Denied(error) => {
            match error.number {
                error_number::AUTH => ExitCode::Authentication,
                error_number::CLIENT_TERMINATED => ExitCode::Aborted,
                error_number::NO_DATA
                | error_number::DURATION_EXPIRED
                | error_number::RECV_RESULTS
                | error_number::CREATE_STREAM
                | error_number::STREAM_ID => ExitCode::Partial,
                _ => ExitCode::Refused,
            }
        }
        SessionError::NotAllowed(_) => ExitCode::Refused,
        SessionError::Unanswered | SessionError::Ungreeted { .. } => ExitCode::Connect,
        SessionError::Peer(_)
        | SessionError::ControlClosed(_)
        | SessionError::TimedOut(_)
        | SessionError::StreamsLost
        | SessionError::File { .. }
        | SessionError::Stream { .. } => ExitCode::Partial,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::System { what, message, .. } => write!(f, "{what}: {message}"),
            Self::Connect { server, message } => write!(f, "{server}: {message}"),
            Self::Stream { number, protocol, port, message } => {
                let transport = protocol.name();
                write!(
                    f,
                    "unable to connect stream {number}: the control connection works, but \
                     {transport} port {port} does not: {message}"
                )
            }
            Self::UdpUnanswered { port, streams, of, is_refused } => {
                let numbers: Vec<_> = streams.iter().map(u32::to_string).collect();
                let plural = if streams.len() == 1 { "" } else { "s" };
                write!(f, "unable to connect stream{plural} {}: ", numbers.join(", "))?;
                if *is_refused {
                    return write!(
                        f,
                        "TCP works, but UDP port {port} is refused (nobody listens there, or a \
                         firewall rejects it)"
                    );
                }
                match usize::from(*of) - streams.len().min(usize::from(*of)) {
                    0 => write!(
                        f,
                        "TCP works, but UDP port {port} gives no answer (a firewall may drop UDP)"
                    ),
                    answered => write!(
                        f,
                        "TCP works, but UDP port {port} answered only {answered} of {of} streams \
                         (the network loses datagrams)"
                    ),
                }
            }
            Self::StreamsLost { reason } => write!(f, "{}: {reason}", SessionError::StreamsLost),
            Self::ControlLost { phase, reason } => {
                write!(f, "{}: {reason}", SessionError::ControlClosed(*phase))
            }
            Self::Interrupted { by: None } => f.write_str("interrupted"),
            Self::Interrupted { by: Some(by) } => write!(f, "interrupted by {by}"),
            Self::Login(refusal) => {
                write!(f, "{}: {refusal}", ServerError::new(error_number::AUTH))
            }
            Self::Refused { refusal, text } => {
                let known = SessionError::Refused(*refusal).to_string();
                match text.starts_with(&known) {
                    true => f.write_str(text),
                    false => write!(f, "{known}: {text}"),
                }
            }
            Self::LoginUnanswered => write!(
                f,
                "{}: the server has the credentials and closed the connection, which is how many \
                 iperf3 servers refuse them",
                ServerError::new(error_number::AUTH)
            ),
            Self::Session(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_core::test::{End, StreamId};

    #[test]
    fn unanswered_greetings_name_their_streams_and_the_port() {
        let error = |streams: &[u32], of, is_refused| {
            let streams = streams.to_vec();
            Error::UdpUnanswered { port: 5201, streams, of, is_refused }.to_string()
        };
        for (text, begins, has) in [
            (error(&[1], 1, false), "stream 1: ", "TCP works, but UDP port 5201 gives no answer"),
            (error(&[1, 3, 4], 3, false), "streams 1, 3, 4: ", "gives no answer"),
            (error(&[3, 5], 4, false), "streams 3, 5: ", "answered only 2 of 4 streams"),
            (error(&[1], 1, true), "stream 1: ", "UDP port 5201 is refused"),
        ] {
            let text = text.strip_prefix("unable to connect ").expect("iperf3's words");
            assert!(text.starts_with(begins) && text.contains(has), "{text}");
        }
    }

    #[test]
    fn every_class_has_its_exit_code() {
        use SessionError::{Denied, Interrupted, Refused, Stream, Terminated};
        let refused = |number| Refused(Refusal::Error(ServerError::new(number)));
        let refusal = [
            (Refused(Refusal::Busy), 3),
            (refused(error_number::MAX_DURATION), 3),
            (refused(error_number::TOTAL_RATE), 3),
            (Denied(ServerError::new(error_number::STREAM_COUNT)), 3),
            (refused(error_number::AUTH), 4),
            (Denied(ServerError::new(error_number::AUTH)), 4),
            (Interrupted, 5),
            (Terminated(End::Client), 5),
            (Terminated(End::Server), 5),
            (refused(error_number::DURATION_EXPIRED), 6),
            (Stream { id: StreamId::from_index(0), code: 0 }, 6),
        ];
        for (error, code) in refusal {
            assert_eq!(Error::Session(error).exit_code() as u8, code, "{error:?}");
        }
        assert_eq!(Error::Usage("-t x".into()).exit_code() as u8, 1);
        let system = Error::system("port 5201", &io::Error::from(io::ErrorKind::AddrInUse));
        assert_eq!(system.exit_code() as u8, 1);
        let connect = Error::Connect { server: "192.0.2.1:5201".into(), message: "refused".into() };
        assert_eq!(connect.exit_code() as u8, 2);
    }
}
