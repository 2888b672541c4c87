//! What a person is told on the error stream and in the documents' `error` key: one sentence each,
//! with iperf3's words where scripts look for them, and always the option and the values at fault.

use std::io;

use linerate_core::protocol::code::error_number;
use linerate_core::protocol::error_text;
use linerate_core::session::{Refusal, SessionError};
use linerate_core::test::End;

use super::Warning;
use crate::errno;
use crate::error::{Error, words};

/// The line for the error stream, without its newline: `linerate: error - TEXT`. `program` is the
/// name that the program was started under, `end` what it runs as.
pub fn error_line(program: &str, error: &Error, end: End) -> String {
    let text = error_text(error, end);
    match kind(error, end) {
        Kind::Usage => format!("{program}: parameter error - {text}"),
        Kind::Error => format!("{program}: error - {text}"),
        Kind::Interrupt => format!("{program}: interrupt - {text}"),
        Kind::Notice => format!("{program}: {text}"),
    }
}

/// The value of the documents' `error` key. As in iperf3, a server's has the word in front that a
/// client's lacks.
pub(super) fn error_value(error: &Error, end: End) -> String {
    let text = error_text(error, end);
    match (kind(error, end), end) {
        (Kind::Interrupt, _) => format!("interrupt - {text}"),
        (Kind::Error, End::Server) => format!("error - {text}"),
        _ => text,
    }
}

/// What a warning says, without its newline; for the error stream, so that the report stays what
/// iperf3's readers expect.
pub fn warning_text(warning: &Warning) -> String {
    match warning {
        Warning::DefaultUdpRate => "UDP without -b sends only 1 Mbit/s, which says little about \
            the path: give -b RATE, or -b 0 for as fast as possible"
            .into(),
        Warning::DatagramAboveMtu { datagram_bytes, fits_bytes, may_fragment } => {
            let packets = fragments(*datagram_bytes, *fits_bytes);
            let so = match may_fragment {
                true => format!(
                    "each datagram travels as {packets} fragments and is lost with any of them"
                ),
                false => "none can be sent with --dont-fragment".into(),
            };
            format!(
                "-l {datagram_bytes} does not fit one packet of this path: {datagram_bytes} > \
                 {fits_bytes} bytes, so {so}; -l {fits_bytes} is the largest that fits"
            )
        }
        Warning::BufferClamped { asked, got, limit } => {
            format!(
                "-w {asked}: the system gave {got} bytes of {asked} asked for, {limit} limits it"
            )
        }
        Warning::Unsupported { option, reason } => {
            format!("{option} has no effect here: {reason}")
        }
        Warning::Unanswered => "the server took the connection and has not answered yet: it may \
            have a queue, where one's turn comes without a word, or be no iperf3; --answer-timeout \
            says how long to wait"
            .into(),
        Warning::ConcurrentTests { count: 1 } => {
            "another test ran on the server beside this one".into()
        }
        Warning::ConcurrentTests { count } => {
            format!("up to {count} other tests ran on the server beside this one")
        }
        Warning::StreamLost { id, reason: None } => {
            format!("stream {} broke, the others go on", id.number())
        }
        Warning::StreamLost { id, reason: Some(reason) } => {
            format!("stream {} broke, the others go on: {reason}", id.number())
        }
    }
}

/// What went wrong, in the words of the end that it happened to.
pub(super) fn error_text(error: &Error, end: End) -> String {
    match error {
        Error::Interrupted { by } => {
            let terminated = SessionError::Terminated(end);
            match by {
                Some(by) => format!("{terminated} by {by}"),
                None => terminated.to_string(),
            }
        }
        Error::Session(SessionError::ControlClosed(phase)) if end == End::Server => {
            format!("the client has unexpectedly closed the connection while {phase}")
        }
        Error::ControlLost { phase, reason } if end == End::Server => {
            format!("the connection to the client broke while {phase}: {reason}")
        }
        // A running test has no number of its own for a file that fails.
        Error::Session(SessionError::Refused(Refusal::Error(told)))
        | Error::Refused { refusal: Refusal::Error(told), .. }
            if told.number == error_number::FILE && is_of_writing(told.errno) =>
        {
            let cause = words(&errno::error(told.errno));
            format!("unable to write -F file: {cause}")
        }
        // Its own words tell of the step that failed, and only the number of the cause.
        Error::Refused { refusal: Refusal::Error(told), text }
            if told.number == error_number::FILE && told.errno > 0 =>
        {
            format!("-F: {text}: {}", words(&errno::error(told.errno)))
        }
        // The number is the server's system's; of the same kind, most likely, as in iperf3.
        Error::Session(SessionError::Refused(Refusal::Error(told)))
            if told.errno > 0 && error_text::has_cause(told.number) =>
        {
            format!("{told}: {}", words(&errno::error(told.errno)))
        }
        Error::Connect { .. } => {
            let iperf3 = error_text::text(CONNECT).unwrap_or("unable to connect to server");
            format!("{iperf3}: {error}")
        }
        other => other.to_string(),
    }
}

/// What the system says of a file that is open and takes no more.
fn is_of_writing(errno: i32) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let kind = errno::error(errno).kind();
    matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)
}

/// How an error is introduced.
enum Kind {
    Usage,
    Error,
    /// Somebody stopped this end.
    Interrupt,
    /// A client that leaves is everyday life to a server.
    Notice,
}

fn kind(error: &Error, end: End) -> Kind {
    match (error, end) {
        (Error::Usage(_), _) => Kind::Usage,
        (Error::Interrupted { .. }, _) => Kind::Interrupt,
        (
            Error::Session(SessionError::Terminated(End::Client) | SessionError::ControlClosed(_))
            | Error::ControlLost { .. },
            End::Server,
        ) => Kind::Notice,
        _ => Kind::Error,
    }
}

/// Packets that a datagram is cut into: its payload and 8 bytes of UDP header are shared out over
/// packets that carry as much as the largest unfragmented datagram with its header.
const fn fragments(datagram_bytes: u32, fits_bytes: u32) -> u32 {
    (datagram_bytes.saturating_add(UDP_HEADER)).div_ceil(fits_bytes.saturating_add(UDP_HEADER))
}

const UDP_HEADER: u32 = 8;
/// iperf3's number for a control connection that could not be made.
const CONNECT: i32 = 103;

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use linerate_core::protocol::code::ServerError;
    use linerate_core::session::Phase;
    use linerate_core::test::StreamId;

    use super::*;

    #[test]
    fn errors_are_introduced_as_iperf3_does() {
        let refused =
            Error::Connect { server: "[::1]:5201".into(), message: "Connection refused".into() };
        let busy = Error::Session(SessionError::Refused(Refusal::Busy));
        let gone = Error::Session(SessionError::Terminated(End::Client));
        for (error, end, line) in [
            (
                refused,
                End::Client,
                "linerate: error - unable to connect to server - server may have stopped running \
                 or use a different port, firewall issue, etc.: [::1]:5201: Connection refused",
            ),
            (
                busy,
                End::Client,
                "linerate: error - the server is busy running a test. try again later",
            ),
            (gone.clone(), End::Server, "linerate: the client has terminated"),
            (
                Error::Session(SessionError::ControlClosed(Phase::Running)),
                End::Server,
                "linerate: the client has unexpectedly closed the connection while running the test",
            ),
            (gone, End::Client, "linerate: error - the client has terminated"),
            (
                Error::Usage("cannot be both reverse and bidirectional".into()),
                End::Client,
                "linerate: parameter error - cannot be both reverse and bidirectional",
            ),
        ] {
            assert_eq!(error_line("linerate", &error, end), line);
        }
    }

    #[test]
    fn an_interrupted_end_says_which_end_it_was() {
        let error = Error::Interrupted { by: Some("signal Interrupt(2)".into()) };
        for (end, line) in [
            (End::Client, "iperf3: interrupt - the client has terminated by signal Interrupt(2)"),
            (End::Server, "iperf3: interrupt - the server has terminated by signal Interrupt(2)"),
        ] {
            assert_eq!(error_line("iperf3", &error, end), line);
        }
    }

    #[test]
    fn documents_of_servers_keep_the_word_error() {
        let error = Error::Session(SessionError::Refused(Refusal::Busy));
        assert!(error_value(&error, End::Server).starts_with("error - the server is busy"));
        assert!(error_value(&error, End::Client).starts_with("the server is busy"));
        let gone = Error::Session(SessionError::Terminated(End::Client));
        assert_eq!(error_value(&gone, End::Server), "the client has terminated");
    }

    #[cfg(unix)]
    #[test]
    fn a_servers_reason_is_told_where_iperf3_tells_it() {
        for (number, errno, text) in [
            (14, libc::ENOENT, "unable to open -F file: No such file or directory"),
            (14, 0, "unable to open -F file"),
            (14, libc::ENOSPC, "unable to write -F file: No space left on device"),
            (14, libc::EDQUOT, "unable to write -F file: Disk quota exceeded"),
            (14, libc::EFBIG, "unable to write -F file: File too large"),
            (6, libc::ENOENT, "invalid number of parallel streams (min = 1, max = 128)"),
        ] {
            let refusal = Refusal::Error(ServerError { number, errno });
            let error = Error::Session(SessionError::Refused(refusal));
            assert_eq!(error_value(&error, End::Client), text);
        }
        for (errno, text) in [
            (libc::ENOSPC, "unable to write -F file: No space left on device"),
            (libc::EIO, "-F: the file of stream 1 failed: Input/output error"),
        ] {
            let refusal = Refusal::Error(ServerError { number: 14, errno });
            let error = Error::Refused { refusal, text: "the file of stream 1 failed".into() };
            assert_eq!(error_value(&error, End::Client), text);
        }
    }

    fn above_mtu(datagram_bytes: u32, may_fragment: bool) -> Warning {
        Warning::DatagramAboveMtu { datagram_bytes, fits_bytes: 1472, may_fragment }
    }

    #[test]
    fn warnings_name_the_option_and_the_values() {
        for (warning, words) in [
            (Warning::DefaultUdpRate, &["-b", "1 Mbit/s"][..]),
            // 2000 + 8 bytes in packets of 1472 + 8 make two.
            (above_mtu(2000, true), &["-l 2000", "2000 > 1472", "2 fragments", "-l 1472"]),
            // 32768 + 8 bytes in packets of 1480 make 23.
            (above_mtu(32_768, true), &["23 fragments"]),
            (above_mtu(2000, false), &["2000 > 1472", "--dont-fragment"]),
            (
                Warning::BufferClamped { asked: 8 << 20, got: 425_984, limit: "net.core.rmem_max" },
                &["-w", "8388608", "425984", "net.core.rmem_max"],
            ),
            (
                Warning::Unsupported { option: "-Z", reason: "no sendfile".into() },
                &["-Z", "no sendfile"],
            ),
            (Warning::Unanswered, &["has not answered", "queue", "--answer-timeout"]),
            (Warning::ConcurrentTests { count: 1 }, &["another test"]),
            (Warning::ConcurrentTests { count: 7 }, &["7 other tests"]),
            (Warning::StreamLost { id: StreamId::from_index(1), reason: None }, &["stream 3"]),
            (
                Warning::StreamLost { id: StreamId::from_index(0), reason: Some("reset".into()) },
                &["stream 1", "reset"],
            ),
        ] {
            let text = warning_text(&warning);
            for word in words {
                assert!(text.contains(word), "{word:?} not in {text:?}");
            }
            assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
        }
    }
}
