//! Linux's ways to move much with few calls and few copies: `memfd_create(2)`, `sendfile(2)`,
//! `MSG_TRUNC` of `tcp(7)` and `udp(7)`, segmentation offload of `udp(7)`, `sendmmsg(2)` and
//! `recvmmsg(2)`.

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libc::c_int;
use socket2::{SockAddr, SockAddrStorage, Socket};

use super::os::{control_of, destination};
use super::unix::{
    Control, Outgoing, check, check_len, each_control, option, set_option, unnamed_file,
};
use super::{Joined, Route, SEND_FLAGS};

pub(crate) const SKIPS_RX_COPY: bool = true;
pub(crate) const MOST_MESSAGES: usize = 16;
/// iperf3 reads and sends unless it is told otherwise, and so does this.
pub(crate) const PREFERS_SEND_FILE: bool = false;

/// In memory, or in a temporary directory where a kernel before 3.17 has no such files.
pub(crate) fn file_of(bytes: &[u8]) -> io::Result<File> {
    let mut file = memory_file().or_else(|_| unnamed_file())?;
    file.write_all(bytes)?;
    Ok(file)
}

fn memory_file() -> io::Result<File> {
    // SAFETY: the name ends with a zero byte; the new descriptor belongs to nobody else.
    unsafe {
        let fd = check(libc::memfd_create(c"payload".as_ptr(), libc::MFD_CLOEXEC))?;
        Ok(File::from_raw_fd(fd))
    }
}

/// It takes no flags: towards a closed peer it relies on `SIGPIPE` being ignored, which Rust's start-up
/// code sees to.
pub(crate) fn send_file(
    socket: &Socket,
    file: &File,
    offset: u64,
    most: usize,
) -> io::Result<usize> {
    let mut offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the pointer is valid for reads and writes of one off_t; both descriptors are open.
    check_len(unsafe {
        libc::sendfile(socket.as_raw_fd(), file.as_raw_fd(), &raw mut offset, most)
    })
}

pub(crate) fn is_of_the_file(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

/// The flag throws away what is read of a byte stream.
pub(crate) fn discard(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the buffer is valid for writes of its length and borrowed through the call.
    check_len(unsafe { libc::recv(socket.as_raw_fd(), start, len, libc::MSG_TRUNC) })
}

pub(crate) fn set_segment_size(socket: &Socket, bytes: Option<u16>) -> io::Result<()> {
    let bytes = c_int::from(bytes.unwrap_or(0));
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes)
}

/// Whether messages can be cut, and so by a control message, too.
pub(crate) fn check_segments(socket: &Socket) -> io::Result<()> {
    option(socket, libc::SOL_UDP, libc::UDP_SEGMENT).map(drop)
}

pub(crate) fn request_joined(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1 as c_int)
}

pub(crate) fn set_least_readable(socket: &Socket, bytes: usize) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

pub(crate) fn request_arrivals(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1 as c_int)
}

/// A full queue of a device drops in silence unless the socket asks for errors (`IP_RECVERR`). An IPv6
/// socket may carry IPv4.
pub(crate) fn request_refusals(socket: &Socket) -> io::Result<()> {
    let of_ipv6 = set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1 as c_int);
    set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1 as c_int).or(of_ipv6)
}

/// What routers said stays in a queue of its own, for as long as which the socket counts as failed.
pub(crate) fn forget_errors(socket: &Socket) {
    let mut buffer = [0_u8; 1];
    let (start, flags) = (buffer.as_mut_ptr().cast(), libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT);
    for _ in 0..MOST_ERRORS {
        // SAFETY: the buffer is valid for writes of its length through the call.
        let taken = unsafe { libc::recv(socket.as_raw_fd(), start, buffer.len(), flags) };
        if taken < 0 {
            return;
        }
    }
}

/// A queue holds no more than a receive buffer's worth; what is left is taken the next time.
const MOST_ERRORS: usize = 64;

pub(crate) fn send_messages(
    socket: &Socket,
    bytes: &[u8],
    message_bytes: usize,
) -> io::Result<usize> {
    if bytes.len() <= message_bytes {
        return socket.send_with_flags(bytes, SEND_FLAGS).map(|_| 1);
    }
    send_each(socket, bytes, message_bytes, |_| {})
}

pub(crate) fn send_messages_along(
    socket: &Socket,
    route: &Route,
    segment: Option<u16>,
    bytes: &[u8],
    message_bytes: usize,
) -> io::Result<usize> {
    let to = SockAddr::from(route.to);
    let mut control: Outgoing = control_of(route);
    if let Some(bytes) = segment {
        control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &bytes.to_ne_bytes());
    }
    let mut send = || {
        send_each(socket, bytes, message_bytes.max(1), |message| {
            message.msg_name = to.as_ptr().cast_mut().cast();
            message.msg_namelen = to.len();
            control.lend_to(message);
        })
    };
    match send() {
        // What the network said of others' datagrams is told once, and hinders nobody then.
        Err(error) if is_of_the_network(&error) => {
            forget_errors(socket);
            send()
        }
        sent => sent,
    }
}

/// Neither a full buffer nor a full queue of this host.
fn is_of_the_network(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::WouldBlock && error.raw_os_error() != Some(libc::ENOBUFS)
}

/// Sends messages, each with what `address` adds to it.
fn send_each(
    socket: &Socket,
    bytes: &[u8],
    message_bytes: usize,
    mut address: impl FnMut(&mut libc::msghdr),
) -> io::Result<usize> {
    // SAFETY: all-zero bytes are a message without anything.
    let mut messages: [libc::mmsghdr; MOST_MESSAGES] = unsafe { std::mem::zeroed() };
    let mut parts = [NO_BYTES; MOST_MESSAGES];
    let mut count = 0;
    for (piece, (message, part)) in
        bytes.chunks(message_bytes).zip(messages.iter_mut().zip(&mut parts))
    {
        *part = libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        address(&mut message.msg_hdr);
        count += 1;
    }
    // SAFETY: the first `count` messages have one part each, which lies in `bytes`, and an address and
    // control messages that outlive the call or none; nothing is written but the lengths in the messages.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count, SEND_FLAGS as _)
    };
    check(sent).map(|sent| sent as usize)
}

/// The flag tells the true length of a datagram that is longer than its slot.
pub(crate) fn recv_messages(
    socket: &Socket,
    buffer: &mut [u8],
    slot_bytes: usize,
    found: &mut [Joined],
) -> io::Result<usize> {
    recv_each(socket, buffer, slot_bytes, found, &mut [])
}

pub(crate) fn recv_messages_of_many(
    socket: &Socket,
    buffer: &mut [u8],
    slot_bytes: usize,
    found: &mut [Joined],
) -> io::Result<usize> {
    // SAFETY: all-zero bytes are an address of no family.
    let mut senders: [libc::sockaddr_storage; MOST_MESSAGES] = unsafe { std::mem::zeroed() };
    recv_each(socket, buffer, slot_bytes, found, &mut senders)
}

/// The same, with room for the sender of each message or for none.
fn recv_each(
    socket: &Socket,
    buffer: &mut [u8],
    slot_bytes: usize,
    found: &mut [Joined],
    senders: &mut [libc::sockaddr_storage],
) -> io::Result<usize> {
    // SAFETY: all-zero bytes are a message without anything.
    let mut messages: [libc::mmsghdr; MOST_MESSAGES] = unsafe { std::mem::zeroed() };
    let mut parts = [NO_BYTES; MOST_MESSAGES];
    let mut controls = [const { Control::EMPTY }; MOST_MESSAGES];
    let most = found.len().min(MOST_MESSAGES);
    let mut count = 0;
    for (slot, ((message, part), control)) in buffer
        .chunks_exact_mut(slot_bytes)
        .take(most)
        .zip(messages.iter_mut().zip(&mut parts).zip(&mut controls))
    {
        *part = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        control.lend_to(&mut message.msg_hdr);
        count += 1;
    }
    for (message, sender) in messages.iter_mut().zip(&mut *senders) {
        message.msg_hdr.msg_name = std::ptr::from_mut(sender).cast();
        message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
    }
    // SAFETY: the first `count` messages have one part each, a slot of their own in `buffer`, a control
    // buffer and room for an address of their own or none, all valid through the call with the lengths beside them.
    let received = check(unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            count,
            libc::MSG_TRUNC as _,
            std::ptr::null_mut(),
        )
    })? as usize;
    for (message, found) in messages[..received].iter().zip(&mut *found) {
        let len = message.msg_len as usize;
        *found = Joined { len, segment: len, ..Joined::default() };
        each_control(&message.msg_hdr, |level, kind, data| match (level, kind) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let bytes = data.first_chunk().map_or(0, |&bytes| c_int::from_ne_bytes(bytes));
                found.segment = usize::try_from(bytes).ok().filter(|&n| n > 0).unwrap_or(len);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => found.arrived = time_of(data),
            _ => found.to = found.to.or_else(|| destination(level, kind, data)),
        });
    }
    for (message, (sender, found)) in
        messages[..received].iter().zip(senders.iter().zip(&mut *found))
    {
        found.from = address_of(sender, message.msg_hdr.msg_namelen);
    }
    Ok(received)
}

fn address_of(sender: &libc::sockaddr_storage, len: libc::socklen_t) -> Option<SocketAddr> {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: both are the same type of the system, and the kernel wrote an address of this length.
    let address = unsafe {
        *storage.view_as() = *sender;
        SockAddr::new(storage, len)
    };
    address.as_socket()
}

/// A `struct timespec` of whatever width.
fn time_of(data: &[u8]) -> Option<SystemTime> {
    let (seconds, nanos) = match data.len() {
        16 => {
            let word = |at| Some(i64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?));
            (word(0)?, word(8)?)
        }
        8 => {
            let word = |at| Some(i32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?));
            (word(0)?.into(), word(4)?.into())
        }
        _ => return None,
    };
    let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
    UNIX_EPOCH.checked_add(since)
}

const NO_BYTES: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
