//! Linux's ways to move much with few calls and few copies: `memfd_create(2)`, `sendfile(2)`,
//! `MSG_TRUNC` of `tcp(7)` and `udp(7)`, segmentation offload of `udp(7)`; and `sched_setaffinity(2)`.

use std::fs::File;
use std::io::{self, Write};
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd};

use libc::{c_int, c_ulong};
use socket2::Socket;

use super::Joined;
use super::unix::{check, check_len, recv_control, set_option, unnamed_file};

pub(crate) const SKIPS_RX_COPY: bool = true;

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

pub(crate) fn discard(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    recv_truncated(socket, buffer)
}

pub(crate) fn recv_start(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    recv_truncated(socket, buffer)
}

/// Of a byte stream, the flag throws away what is read; of a datagram, what does not fit, and the
/// answer is its true length.
fn recv_truncated(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the buffer is valid for writes of its length and borrowed through the call.
    check_len(unsafe { libc::recv(socket.as_raw_fd(), start, len, libc::MSG_TRUNC) })
}

pub(crate) fn set_segment_size(socket: &Socket, bytes: Option<u16>) -> io::Result<()> {
    let bytes = c_int::from(bytes.unwrap_or(0));
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes)
}

pub(crate) fn request_joined(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1 as c_int)
}

pub(crate) fn recv_joined(socket: &Socket, buffer: &mut [u8]) -> io::Result<Joined> {
    let (len, segment) = recv_control(socket, buffer, |level, kind, data| {
        let is_segment_size = (level, kind) == (libc::SOL_UDP, libc::UDP_GRO);
        let bytes = data.get(..size_of::<c_int>()).filter(|_| is_segment_size)?;
        usize::try_from(c_int::from_ne_bytes(bytes.try_into().ok()?)).ok()
    })?;
    Ok(Joined { len, segment: segment.filter(|&bytes| bytes > 0).unwrap_or(len) })
}

pub(crate) fn pin_thread(cpu: u16) -> io::Result<()> {
    const BITS: usize = c_ulong::BITS as usize;
    let mut mask: [c_ulong; CPUS / BITS] = [0; CPUS / BITS];
    let cpu = usize::from(cpu);
    *mask.get_mut(cpu / BITS).ok_or(io::ErrorKind::InvalidInput)? = 1 << (cpu % BITS);
    // SAFETY: the kernel reads as many bytes as the size says, a bit for each CPU; no thread but the
    // calling one is meant by 0.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) }).map(drop)
}

/// The library's own type has room for 1024 CPUs only, and `-A` goes up to number 1024.
const CPUS: usize = 2048;
