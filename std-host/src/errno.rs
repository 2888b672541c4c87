//! Numbers of the system's errors on the wire. iperf3's documents and codes carry the number of the system
//! that failed, which only systems of one family share: Unix systems send and read their own, as iperf3
//! does; others speak Linux's.

use std::io;
#[cfg(any(test, not(unix)))]
use std::io::ErrorKind;

/// The number to tell a peer; zero where there is none.
#[cfg(unix)]
pub(crate) fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// The error of which a peer told the number.
#[cfg(unix)]
pub(crate) fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// The number to tell a peer; zero where there is none.
#[cfg(not(unix))]
pub(crate) fn number(error: &io::Error) -> i32 {
    number_of(error.kind())
}

/// The error of which a peer told the number.
#[cfg(not(unix))]
pub(crate) fn error(number: i32) -> io::Error {
    kind_of(number).map_or_else(
        || io::Error::other(format!("error {number} of the other end's system")),
        io::Error::from,
    )
}

#[cfg(any(test, not(unix)))]
fn number_of(kind: ErrorKind) -> i32 {
    KINDS.iter().find(|(_, known)| *known == kind).map_or(0, |(number, _)| *number)
}

#[cfg(any(test, not(unix)))]
fn kind_of(number: i32) -> Option<ErrorKind> {
    KINDS.iter().find(|(known, _)| *known == number).map(|(_, kind)| *kind)
}

/// What may become of files and connections, by Linux's numbers (asm-generic/errno.h).
#[cfg(any(test, not(unix)))]
const KINDS: [(i32, ErrorKind); 24] = [
    (2, ErrorKind::NotFound),
    (11, ErrorKind::WouldBlock),
    (12, ErrorKind::OutOfMemory),
    (13, ErrorKind::PermissionDenied),
    (16, ErrorKind::ResourceBusy),
    (17, ErrorKind::AlreadyExists),
    (20, ErrorKind::NotADirectory),
    (21, ErrorKind::IsADirectory),
    (22, ErrorKind::InvalidInput),
    (27, ErrorKind::FileTooLarge),
    (28, ErrorKind::StorageFull),
    (30, ErrorKind::ReadOnlyFilesystem),
    (32, ErrorKind::BrokenPipe),
    (95, ErrorKind::Unsupported),
    (98, ErrorKind::AddrInUse),
    (99, ErrorKind::AddrNotAvailable),
    (100, ErrorKind::NetworkDown),
    (101, ErrorKind::NetworkUnreachable),
    (103, ErrorKind::ConnectionAborted),
    (104, ErrorKind::ConnectionReset),
    (107, ErrorKind::NotConnected),
    (110, ErrorKind::TimedOut),
    (111, ErrorKind::ConnectionRefused),
    (113, ErrorKind::HostUnreachable),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_numbers_are_those_of_linux() {
        for (number, kind) in KINDS {
            assert_eq!(io::Error::from_raw_os_error(number).kind(), kind, "{number}");
        }
    }

    #[test]
    fn each_kind_has_one_number_and_comes_back() {
        for (number, kind) in KINDS {
            assert_eq!((number_of(kind), kind_of(number)), (number, Some(kind)));
        }
        assert_eq!((number_of(ErrorKind::Other), kind_of(10_054)), (0, None));
    }
}
