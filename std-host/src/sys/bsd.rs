//! What macOS and FreeBSD have in common beyond all Unix systems.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::c_int;
use socket2::{Domain, Socket};

use super::unix::{check, ioctl_int, ipv6_destination, recv_with_control, set_option};
use super::{Arrived, Interest, Route, unsupported};

pub(crate) const SEND_FLAGS: c_int = libc::MSG_NOSIGNAL;
pub(crate) const SORTS_UDP_PORT: bool = true;
pub(crate) const BUFFER_LIMITS: (&str, &str) = ("kern.ipc.maxsockbuf", "kern.ipc.maxsockbuf");

pub(crate) fn return_large_blocks() {}

/// A pipe to itself.
#[derive(Debug)]
pub(crate) struct Wake {
    read: OwnedFd,
    write: OwnedFd,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        let mut fds: [c_int; 2] = [-1; 2];
        // SAFETY: room for two descriptors, which belong to nobody else afterwards.
        let (read, write) = unsafe {
            check(libc::pipe(fds.as_mut_ptr()))?;
            (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
        };
        for end in [&read, &write] {
            // SAFETY: no pointers; the descriptor is open.
            unsafe {
                check(libc::fcntl(end.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC))?;
                check(libc::fcntl(end.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK))?;
            }
        }
        Ok(Self { read, write })
    }

    pub(crate) fn wake(&self) {
        let one = 1u8;
        // SAFETY: one readable byte. It fails only when the pipe is full of wakes.
        unsafe { libc::write(self.write.as_raw_fd(), (&raw const one).cast(), 1) };
    }

    pub(super) fn clear(&self) {
        let mut bytes = [0u8; 64];
        // SAFETY: as many writable bytes as the length says.
        unsafe { libc::read(self.read.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
    }
}

/// What to poll: the wake, then the socket. A negative descriptor is passed over, and with it the
/// error flags that always count.
pub(super) fn poll_list(socket: &Socket, interest: Interest, wake: &Wake) -> [libc::pollfd; 2] {
    let (fd, events) = match interest {
        Interest::Read => (socket.as_raw_fd(), libc::POLLIN),
        Interest::Write => (socket.as_raw_fd(), libc::POLLOUT),
        Interest::Nothing => (-1, 0),
    };
    [
        libc::pollfd { fd: wake.read.as_raw_fd(), events: libc::POLLIN, revents: 0 },
        libc::pollfd { fd, events, revents: 0 },
    ]
}

/// What follows from the answer of a poll.
pub(super) fn after_poll(result: c_int, fds: &[libc::pollfd; 2], wake: &Wake) -> io::Result<()> {
    if result > 0 && fds[0].revents != 0 {
        wake.clear();
    }
    match check(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

pub(crate) fn unread_bytes(socket: &Socket) -> Option<u64> {
    ioctl_int(socket, libc::FIONREAD).ok().and_then(|bytes| u64::try_from(bytes).ok())
}

pub(crate) fn usable_buffer(reported: usize) -> usize {
    reported
}

pub(crate) fn force_receive_buffer(_socket: &Socket, _bytes: usize) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn mss(socket: &Socket) -> Option<u32> {
    socket.tcp_mss().ok()
}

pub(crate) fn set_mss(socket: &Socket, bytes: u32) -> io::Result<()> {
    socket.set_tcp_mss(bytes)
}

/// An IPv6 socket that carries IPv4 takes one or the other, as the system likes it.
pub(crate) fn set_traffic_class(socket: &Socket, ipv6: bool, class: u8) -> io::Result<()> {
    let for_ipv6 = || socket.set_tclass_v6(class.into());
    if ipv6 { for_ipv6() } else { socket.set_tos_v4(class.into()).or_else(|_| for_ipv6()) }
}

pub(crate) fn path_mtu(_socket: &Socket, _ipv6: bool) -> Option<u32> {
    None
}

pub(crate) fn set_dont_fragment(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_DONTFRAG, 1 as c_int)
}

pub(crate) fn set_flow_label(
    _socket: &Socket,
    _peer: SocketAddrV6,
    _label: u32,
) -> io::Result<SocketAddrV6> {
    Err(unsupported())
}

pub(crate) fn multipath_socket(_domain: Domain) -> io::Result<Socket> {
    Err(unsupported())
}

pub(crate) fn is_multipath(_socket: &Socket) -> bool {
    false
}

pub(crate) fn bind_sctp_also(_socket: &Socket, _addresses: &[SocketAddr]) -> io::Result<()> {
    Err(unsupported())
}

/// Both options: two streams of one client have the very same local address and port.
pub(crate) fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)
}

/// The system chooses the address that it comes from: here every stream has a socket of its own.
pub(crate) fn send_along(socket: &Socket, route: &Route, bytes: &[u8]) -> io::Result<()> {
    socket.send_to_with_flags(bytes, &route.to.into(), SEND_FLAGS).map(drop)
}

pub(crate) fn request_class(_socket: &Socket, _route: &Route) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn request_destination(socket: &Socket, ipv6: bool) -> io::Result<()> {
    if ipv6 {
        return set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1 as c_int);
    }
    set_option(socket, libc::IPPROTO_IP, libc::IP_RECVDSTADDR, 1 as c_int)
}

pub(crate) fn recv_with_destination(socket: &Socket, buffer: &mut [u8]) -> io::Result<Arrived> {
    recv_with_control(socket, buffer, |level, kind, data| match (level, kind) {
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => ipv6_destination(data),
        (libc::IPPROTO_IP, libc::IP_RECVDSTADDR) => {
            let octets: [u8; 4] = data.get(..4)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv4Addr::from(octets), 0)))
        }
        _ => None,
    })
}
