//! The socket of one stream on Windows: several overlapped operations are under way, by the package
//! `linerate-windows`.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use linerate_windows as native;
use socket2::Socket;

use super::{Interest, Joined, Route, Wake, os, unsupported};

/// See the contract.
#[derive(Debug)]
pub(crate) struct Channel(native::Channel<Arc<Socket>>);

impl Channel {
    pub(crate) fn new(socket: Arc<Socket>) -> io::Result<Self> {
        native::Channel::new(socket).map(Self)
    }

    pub(crate) fn unconnected(socket: Arc<Socket>, route: Option<Route>) -> io::Result<Self> {
        native::Channel::unconnected(socket, route.as_ref().map(os::native_route)).map(Self)
    }

    pub(crate) fn socket(&self) -> &Arc<Socket> {
        self.0.socket()
    }

    pub(crate) fn wait(
        &self,
        interest: Interest,
        wake: &Wake,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let interest = match interest {
            Interest::Read => native::Interest::Read,
            Interest::Write => native::Interest::Write,
            Interest::Nothing => native::Interest::Nothing,
        };
        self.0.wait(interest, wake, timeout)
    }

    pub(crate) fn rest(&self, time: Duration) {
        self.0.rest(time);
    }

    pub(crate) fn send_blocks(
        &self,
        block: &Arc<[u8]>,
        count: usize,
        start: usize,
        most: usize,
    ) -> io::Result<usize> {
        self.0.send_blocks(block, count, start, most)
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes)
    }

    pub(crate) fn send_file(
        &self,
        file: &Arc<File>,
        offset: u64,
        most: usize,
    ) -> io::Result<usize> {
        self.0.send_file(file, offset, most)
    }

    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.0.take_error()
    }

    pub(crate) fn pending_bytes(&self) -> u64 {
        self.0.pending_bytes()
    }

    /// What the socket's buffer still holds is not known everywhere.
    pub(crate) fn unacknowledged_bytes(&self) -> Option<u64> {
        let in_flight = os::unacknowledged_bytes(self.0.socket()).unwrap_or(0);
        Some(self.0.pending_bytes() + in_flight)
    }

    pub(crate) fn receive(&self, buffer: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        self.0.receive(buffer, most)
    }

    pub(crate) fn discard(&self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(unsupported())
    }

    pub(crate) fn unread_bytes(&self) -> Option<u64> {
        self.0.unread_bytes()
    }

    pub(crate) fn send_messages(
        &self,
        buffer: &mut Vec<u8>,
        len: usize,
        message_bytes: usize,
    ) -> io::Result<usize> {
        self.0.send_messages(buffer, len, message_bytes)
    }

    pub(crate) fn set_segment_size(&self, bytes: Option<u16>) -> io::Result<()> {
        self.0.set_segment_size(bytes)
    }

    pub(crate) fn recv_messages(
        &self,
        buffer: &mut [u8],
        slot_bytes: usize,
        found: &mut [Joined],
    ) -> io::Result<usize> {
        let slots = buffer.len().min(found.len() * slot_bytes);
        self.0.recv_messages(&mut buffer[..slots], slot_bytes, |index, message| {
            let native::Message { len, segment, from, to } = message;
            found[index] = Joined { len, segment, arrived: None, from, to };
        })
    }
}
