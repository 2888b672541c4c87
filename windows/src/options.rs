//! Socket options and facts that are one number each.

use std::io;
use std::mem::size_of;
use std::os::windows::io::{AsRawSocket, BorrowedSocket};
use std::ptr::{null, null_mut};
use std::time::Duration;

use windows_sys::Win32::Networking::WinSock::{
    FIONBIO, FIONREAD, IP_DONTFRAGMENT, IP_MTU, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP,
    IPV6_MTU, SO_ERROR, SOCKET, SOCKET_ERROR, SOL_SOCKET, TCP_MAXRT, TCP_MAXRTMS, TCP_MAXSEG,
    UDP_RECV_MAX_COALESCED_SIZE, UDP_SEND_MSG_SIZE, WSAENOPROTOOPT, WSAEOPNOTSUPP, WSAIoctl,
    getsockopt, ioctlsocket, setsockopt,
};

/// Segment size of a TCP connection, where the system tells.
pub fn mss(socket: BorrowedSocket<'_>) -> Option<u32> {
    option(socket, IPPROTO_TCP, TCP_MAXSEG).ok().filter(|&bytes| bytes > 0)
}

/// MTU towards the peer of a connected socket; since Windows 10.
pub fn path_mtu(socket: BorrowedSocket<'_>, ipv6: bool) -> Option<u32> {
    let (level, name) = if ipv6 { (IPPROTO_IPV6, IPV6_MTU) } else { (IPPROTO_IP, IP_MTU) };
    // Without a limit it answers the largest number.
    option(socket, level, name).ok().filter(|&bytes| bytes > 0 && bytes < u32::MAX)
}

/// No fragments of IPv4 datagrams.
///
/// # Errors
/// Of kind `Unsupported` where the system lacks the option.
pub fn set_dont_fragment(socket: BorrowedSocket<'_>) -> io::Result<()> {
    set_option(socket, IPPROTO_IP, IP_DONTFRAGMENT, 1)
}

/// How long sent data may stay unacknowledged before the connection fails: in milliseconds since
/// Windows 10, in whole seconds, rounded up, before.
///
/// # Errors
/// Of kind `Unsupported` where the system lacks both options.
pub fn set_user_timeout(socket: BorrowedSocket<'_>, timeout: Duration) -> io::Result<()> {
    let millis = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    set_option(socket, IPPROTO_TCP, TCP_MAXRTMS, millis)
        .or_else(|_| set_option(socket, IPPROTO_TCP, TCP_MAXRT, millis.div_ceil(1000)))
}

/// What became of the socket, once.
pub(crate) fn socket_error(socket: BorrowedSocket<'_>) -> io::Result<Option<io::Error>> {
    let code = option(socket, SOL_SOCKET, SO_ERROR)?;
    Ok((code != 0).then(|| io::Error::from_raw_os_error(code as i32)))
}

/// Bytes of a TCP stream that have arrived and were not read.
pub(crate) fn unread_bytes(socket: BorrowedSocket<'_>) -> Option<u64> {
    let mut bytes = 0u32;
    // SAFETY: this request writes one u32, which `bytes` is.
    check(unsafe { ioctlsocket(raw(socket), FIONREAD, &raw mut bytes) }).ok()?;
    Some(bytes.into())
}

/// Lets one sent message be many datagrams of so many bytes, which the system or the device cuts; 0 ends
/// it. Since Windows 10 2004.
///
/// # Errors
/// Of kind `Unsupported` where the system lacks the option.
pub(crate) fn set_segment_size(socket: BorrowedSocket<'_>, bytes: u32) -> io::Result<()> {
    set_option(socket, IPPROTO_UDP, UDP_SEND_MSG_SIZE, bytes)
}

/// Whether the system can do that, and so by a control message, too.
///
/// # Errors
/// As for [`set_segment_size`].
pub(crate) fn can_cut(socket: BorrowedSocket<'_>) -> io::Result<()> {
    option(socket, IPPROTO_UDP, UDP_SEND_MSG_SIZE).map(drop)
}

/// Lets the system join datagrams of one size and sender that come together. Since Windows 10 2004.
///
/// # Errors
/// Of kind `Unsupported` where the system lacks the option.
pub fn request_joined(socket: BorrowedSocket<'_>) -> io::Result<()> {
    set_option(socket, IPPROTO_UDP, UDP_RECV_MAX_COALESCED_SIZE, u16::MAX.into())
}

/// Bytes that a TCP connection should have under way to fill its path, where the system tells.
pub(crate) fn ideal_backlog(socket: BorrowedSocket<'_>) -> Option<u64> {
    let (mut bytes, mut written) = (0u32, 0);
    // SAFETY: reads nothing and writes one number of 32 bits; no completion is asked for.
    check(unsafe {
        WSAIoctl(
            raw(socket),
            SIO_IDEAL_SEND_BACKLOG_QUERY,
            null(),
            0,
            (&raw mut bytes).cast(),
            size_of_val(&bytes) as u32,
            &raw mut written,
            null_mut(),
            None,
        )
    })
    .ok()?;
    Some(bytes.into())
}

/// Operations wait for as long as they have to: what would block is for calls without one to say.
pub(crate) fn set_blocking(socket: BorrowedSocket<'_>) -> io::Result<()> {
    let mut is_nonblocking = 0u32;
    // SAFETY: this request reads one number of 32 bits.
    check(unsafe { ioctlsocket(raw(socket), FIONBIO, &raw mut is_nonblocking) })
}

/// Sets an option that is a number of 32 bits.
pub(crate) fn set_option(
    socket: BorrowedSocket<'_>,
    level: i32,
    name: i32,
    value: u32,
) -> io::Result<()> {
    let bytes = value.to_ne_bytes();
    let len = bytes.len() as i32;
    // SAFETY: `bytes` lives through the call and has `len` readable bytes.
    check(unsafe { setsockopt(raw(socket), level, name, bytes.as_ptr(), len) })
}

/// Reads an option that is a number of 32 bits.
fn option(socket: BorrowedSocket<'_>, level: i32, name: i32) -> io::Result<u32> {
    let mut bytes = [0; size_of::<u32>()];
    let mut len = bytes.len() as i32;
    // SAFETY: the system writes at most `len` bytes, as many as `bytes` has.
    check(unsafe { getsockopt(raw(socket), level, name, bytes.as_mut_ptr(), &raw mut len) })?;
    Ok(u32::from_ne_bytes(bytes))
}

/// The handle as Winsock takes it.
pub(crate) fn raw(socket: BorrowedSocket<'_>) -> SOCKET {
    socket.as_raw_socket() as SOCKET
}

/// The result of a Winsock call; an option that the system does not know is `Unsupported`.
pub(crate) fn check(result: i32) -> io::Result<()> {
    if result != SOCKET_ERROR { Ok(()) } else { Err(sorted(io::Error::last_os_error())) }
}

/// The same for the error of somebody else's call.
pub fn sorted(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(WSAENOPROTOOPT | WSAEOPNOTSUPP) => io::Error::new(io::ErrorKind::Unsupported, error),
        _ => error,
    }
}

/// `_IOR('t', 123, ULONG)` of `mstcpip.h`.
const SIO_IDEAL_SEND_BACKLOG_QUERY: u32 = 0x4004_747b;
