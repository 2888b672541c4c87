//! What macOS and FreeBSD have of it: `sendfile(2)`, each in its own way. Neither throws received data
//! away or joins datagrams.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

use socket2::Socket;

use super::unix::{check, unnamed_file};

pub(crate) use super::bulk_none::{
    MOST_MESSAGES, PREFERS_SEND_FILE, SKIPS_RX_COPY, check_segments, discard, forget_errors,
    recv_messages, recv_messages_of_many, request_arrivals, request_joined, request_refusals,
    send_messages, send_messages_along, set_least_readable, set_segment_size,
};

pub(crate) fn is_of_the_file(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

pub(crate) fn file_of(bytes: &[u8]) -> io::Result<File> {
    let mut file = unnamed_file()?;
    file.write_all(bytes)?;
    Ok(file)
}

pub(crate) fn send_file(
    socket: &Socket,
    file: &File,
    offset: u64,
    most: usize,
) -> io::Result<usize> {
    let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let (result, sent) = sendfile(socket, file, offset, most);
    match check(result) {
        // A full socket is an error even when it took a part.
        Err(error) if sent == 0 => Err(error),
        _ => Ok(usize::try_from(sent).unwrap_or(0)),
    }
}

#[cfg(target_os = "freebsd")]
fn sendfile(
    socket: &Socket,
    file: &File,
    offset: libc::off_t,
    most: usize,
) -> (libc::c_int, libc::off_t) {
    let mut sent = 0;
    let no_headers = std::ptr::null_mut();
    // SAFETY: both descriptors are open; the pointer is valid for writes of one off_t.
    let result = unsafe {
        let (from, to) = (file.as_raw_fd(), socket.as_raw_fd());
        libc::sendfile(from, to, offset, most, no_headers, &raw mut sent, 0)
    };
    (result, sent)
}

#[cfg(target_os = "macos")]
fn sendfile(
    socket: &Socket,
    file: &File,
    offset: libc::off_t,
    most: usize,
) -> (libc::c_int, libc::off_t) {
    let mut len = libc::off_t::try_from(most).unwrap_or(libc::off_t::MAX);
    let no_headers = std::ptr::null_mut();
    // SAFETY: both descriptors are open; the pointer is valid for reads and writes of one off_t.
    let result = unsafe {
        let (from, to) = (file.as_raw_fd(), socket.as_raw_fd());
        libc::sendfile(from, to, offset, &raw mut len, no_headers, 0)
    };
    (result, len)
}
