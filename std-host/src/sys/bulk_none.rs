//! Systems that have none of it: data is copied, datagrams go one by one, and threads run where the
//! system likes.

use std::fs::File;
use std::io;

use socket2::Socket;

use super::{Joined, unsupported};

pub(crate) const SKIPS_RX_COPY: bool = false;

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

pub(crate) fn discard(_socket: &Socket, _buffer: &mut [u8]) -> io::Result<usize> {
    Err(unsupported())
}

pub(crate) fn recv_start(_socket: &Socket, _buffer: &mut [u8]) -> io::Result<usize> {
    Err(unsupported())
}

pub(crate) fn set_segment_size(_socket: &Socket, _bytes: Option<u16>) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn request_joined(_socket: &Socket) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn recv_joined(_socket: &Socket, _buffer: &mut [u8]) -> io::Result<Joined> {
    Err(unsupported())
}

pub(crate) fn pin_thread(_cpu: u16) -> io::Result<()> {
    Err(unsupported())
}
