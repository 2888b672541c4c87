//! What a failed socket call means for a stream.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use linerate_core::test::Protocol;

/// What to do about an error of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The call may work at once.
    Again,
    /// Wait until the socket is ready.
    Wait,
    /// Wait a little: nothing will tell when it works again.
    Pause(Duration),
    /// The stream is over.
    GiveUp,
}

/// The remedy for `error`. Of a connected UDP socket, refusals and missing routes are news from
/// the network about earlier datagrams: a test through an outage goes on when the outage ends.
pub(super) fn remedy(protocol: Protocol, error: &Error) -> Remedy {
    if is_out_of_buffers(error) {
        return Remedy::Pause(BUFFERS_PAUSE);
    }
    if protocol == Protocol::Udp && is_from_a_router(error) {
        return Remedy::Pause(OUTAGE_PAUSE);
    }
    match (error.kind(), protocol) {
        (ErrorKind::Interrupted, _) => Remedy::Again,
        (ErrorKind::WouldBlock, _) => Remedy::Wait,
        (ErrorKind::ConnectionRefused, Protocol::Udp) => Remedy::Again,
        // Windows reports an unreachable port as a reset.
        (ErrorKind::ConnectionReset, Protocol::Udp) => Remedy::Again,
        (
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown,
            Protocol::Udp,
        ) => Remedy::Pause(OUTAGE_PAUSE),
        _ => Remedy::GiveUp,
    }
}

/// This host has no room for what is sent; nothing of it left.
pub(super) fn is_out_of_buffers(error: &Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(libc::ENOBUFS);
    #[cfg(not(unix))]
    return error.raw_os_error() == Some(10055); // WSAENOBUFS
}

/// What systems make of a router's words that the standard library has no kind for.
fn is_from_a_router(error: &Error) -> bool {
    #[cfg(windows)]
    return error.raw_os_error() == Some(10_052); // WSAENETRESET: its time to live has run out.
    #[cfg(target_os = "linux")]
    return matches!(error.raw_os_error(), Some(libc::EHOSTDOWN | libc::ENONET));
    #[cfg(not(any(target_os = "linux", windows)))]
    {
        let _ = error;
        false
    }
}

/// The queue of a network device empties in less than this.
const BUFFERS_PAUSE: Duration = Duration::from_micros(100);
const OUTAGE_PAUSE: Duration = Duration::from_millis(10);

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn errors_that_pass_do_not_end_a_stream() {
        use Protocol::{Tcp, Udp};
        for (code, protocol, expected) in [
            (libc::EINTR, Tcp, Remedy::Again),
            (libc::EAGAIN, Tcp, Remedy::Wait),
            (libc::EAGAIN, Udp, Remedy::Wait),
            (libc::ENOBUFS, Udp, Remedy::Pause(BUFFERS_PAUSE)),
            (libc::ECONNREFUSED, Udp, Remedy::Again),
            (libc::ENETUNREACH, Udp, Remedy::Pause(OUTAGE_PAUSE)),
            (libc::ENETDOWN, Udp, Remedy::Pause(OUTAGE_PAUSE)),
            #[cfg(target_os = "linux")]
            (libc::EHOSTDOWN, Udp, Remedy::Pause(OUTAGE_PAUSE)),
            #[cfg(target_os = "linux")]
            (libc::EHOSTDOWN, Tcp, Remedy::GiveUp),
            (libc::EMSGSIZE, Udp, Remedy::GiveUp),
            (libc::ECONNRESET, Tcp, Remedy::GiveUp),
            (libc::EPIPE, Tcp, Remedy::GiveUp),
            (libc::EHOSTUNREACH, Tcp, Remedy::GiveUp),
        ] {
            let error = Error::from_raw_os_error(code);
            assert_eq!(remedy(protocol, &error), expected, "{protocol:?} {error}");
        }
    }
}
