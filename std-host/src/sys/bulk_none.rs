//! Systems that have none of it: data is copied, and datagrams go one by one.

use std::fs::File;
use std::io::{self, Read};

use socket2::Socket;

use super::{Arrived, Joined, Route, SEND_FLAGS, os, unsupported};

pub(crate) const SKIPS_RX_COPY: bool = false;
pub(crate) const MOST_MESSAGES: usize = 1;
pub(crate) const PREFERS_SEND_FILE: bool = false;

pub(crate) fn file_of(_bytes: &[u8]) -> io::Result<File> {
    Err(unsupported())
}

pub(crate) fn send_file(
    _socket: &Socket,
    _file: &File,
    _offset: u64,
    _most: usize,
) -> io::Result<usize> {
    Err(unsupported())
}

pub(crate) fn is_of_the_file(_error: &io::Error) -> bool {
    false
}

pub(crate) fn discard(_socket: &Socket, _buffer: &mut [u8]) -> io::Result<usize> {
    Err(unsupported())
}

pub(crate) fn set_segment_size(_socket: &Socket, _bytes: Option<u16>) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn request_joined(_socket: &Socket) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn set_least_readable(_socket: &Socket, _bytes: usize) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn request_arrivals(_socket: &Socket) -> io::Result<()> {
    Err(unsupported())
}

/// Other systems say so unasked.
pub(crate) fn request_refusals(_socket: &Socket) -> io::Result<()> {
    Ok(())
}

pub(crate) fn forget_errors(_socket: &Socket) {}

pub(crate) fn send_messages(
    socket: &Socket,
    bytes: &[u8],
    message_bytes: usize,
) -> io::Result<usize> {
    let first = &bytes[..bytes.len().min(message_bytes)];
    socket.send_with_flags(first, SEND_FLAGS).map(|_| 1)
}

/// No datagram is cut on the way.
pub(crate) fn check_segments(_socket: &Socket) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn send_messages_along(
    socket: &Socket,
    route: &Route,
    _segment: Option<u16>,
    bytes: &[u8],
    message_bytes: usize,
) -> io::Result<usize> {
    let first = &bytes[..bytes.len().min(message_bytes)];
    os::send_along(socket, route, first).map(|()| 1)
}

pub(crate) fn recv_messages(
    mut socket: &Socket,
    buffer: &mut [u8],
    slot_bytes: usize,
    found: &mut [Joined],
) -> io::Result<usize> {
    let (Some(slot), Some(found)) = (buffer.get_mut(..slot_bytes), found.first_mut()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let len = socket.read(slot)?;
    *found = Joined { len, segment: len, ..Joined::default() };
    Ok(1)
}

pub(crate) fn recv_messages_of_many(
    socket: &Socket,
    buffer: &mut [u8],
    slot_bytes: usize,
    found: &mut [Joined],
) -> io::Result<usize> {
    let (Some(slot), Some(found)) = (buffer.get_mut(..slot_bytes), found.first_mut()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let Arrived { len, from, to } = os::recv_with_destination(socket, slot)?;
    *found = Joined { len, segment: len, from: Some(from), to, ..Joined::default() };
    Ok(1)
}
