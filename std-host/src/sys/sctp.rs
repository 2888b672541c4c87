//! SCTP where the kernel may have it: Linux (`linux/sctp.h`) and FreeBSD (`netinet/sctp.h`), RFC 6458.
//! Only compiled: no machine that this was tested on has SCTP in its kernel.

use std::io;

use libc::c_int;
use socket2::{Domain, Protocol, Socket, Type};

use super::unix::{Plain, set_option};

/// A one-to-one socket. Kernels without SCTP, or not allowed to load it, say that the protocol is not
/// supported.
pub(crate) fn sctp_socket(domain: Domain) -> io::Result<Socket> {
    Socket::new(domain, Type::STREAM, Some(Protocol::SCTP))
}

pub(crate) fn set_sctp_no_delay(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_SCTP, number::NODELAY, 1 as c_int)
}

pub(crate) fn set_sctp_max_segment(socket: &Socket, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_SCTP, number::MAXSEG, bytes as c_int)
}

/// Before the association is made: how many streams this end may send on.
pub(crate) fn set_sctp_streams(socket: &Socket, streams: u16) -> io::Result<()> {
    let request = InitMessage { streams, most_incoming: 0, attempts: 0, timeout_ms: 0 };
    set_option(socket, libc::IPPROTO_SCTP, number::INITMSG, request)
}

/// `struct sctp_initmsg` of RFC 6458, section 8.1.3; zeros leave the system's own.
#[derive(Clone, Copy)]
#[repr(C)]
struct InitMessage {
    streams: u16,
    most_incoming: u16,
    attempts: u16,
    timeout_ms: u16,
}

// SAFETY: four integers of the same size, without a gap between them.
unsafe impl Plain for InitMessage {}

#[cfg(target_os = "linux")]
mod number {
    use libc::c_int;

    pub(super) const INITMSG: c_int = 2;
    pub(super) const NODELAY: c_int = 3;
    pub(super) const MAXSEG: c_int = 13;
}

#[cfg(target_os = "freebsd")]
mod number {
    pub(super) use libc::{
        SCTP_INITMSG as INITMSG, SCTP_MAXSEG as MAXSEG, SCTP_NODELAY as NODELAY,
    };
}
