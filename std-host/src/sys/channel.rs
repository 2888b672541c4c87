//! The socket of a stream where every call is over when it returns: nothing is under way between
//! two calls, and the socket itself tells when the next can do something.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, IoSlice, Read};
use std::sync::Arc;
use std::time::Duration;

use socket2::Socket;

use super::{Interest, Joined, MOST_BLOCKS, Route, SEND_FLAGS, Wake, bulk, os};

/// See the contract.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: Arc<Socket>,
    way: Way,
}

/// Where datagrams go.
#[derive(Debug)]
enum Way {
    /// To the peer that the socket is connected to.
    Connected,
    /// Nowhere: others send.
    Nowhere,
    /// Along a route, in datagrams of so many bytes.
    Along(Route, Cell<Option<u16>>),
}

impl Channel {
    pub(crate) fn new(socket: Arc<Socket>) -> io::Result<Self> {
        Ok(Self { socket, way: Way::Connected })
    }

    pub(crate) fn unconnected(socket: Arc<Socket>, route: Option<Route>) -> io::Result<Self> {
        let way = route.map_or(Way::Nowhere, |route| Way::Along(route, Cell::new(None)));
        Ok(Self { socket, way })
    }

    pub(crate) fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    pub(crate) fn wait(
        &self,
        interest: Interest,
        wake: &Wake,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        os::wait(&self.socket, interest, wake, timeout)
    }

    pub(crate) fn rest(&self, time: Duration) {
        std::thread::sleep(time);
    }

    pub(crate) fn send_blocks(
        &self,
        block: &Arc<[u8]>,
        count: usize,
        start: usize,
        most: usize,
    ) -> io::Result<usize> {
        let mut left = most;
        let mut parts = [IoSlice::new(&[]); MOST_BLOCKS];
        let mut used = 0;
        for (index, part) in parts.iter_mut().take(count).enumerate() {
            let rest = if index == 0 { &block[start..] } else { block };
            let rest = &rest[..rest.len().min(left)];
            if rest.is_empty() {
                break;
            }
            (*part, left, used) = (IoSlice::new(rest), left - rest.len(), used + 1);
        }
        match &parts[..used] {
            [one] => self.send(one),
            parts => self.socket.send_vectored_with_flags(parts, SEND_FLAGS),
        }
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.send_with_flags(bytes, SEND_FLAGS)
    }

    pub(crate) fn send_file(
        &self,
        file: &Arc<File>,
        offset: u64,
        most: usize,
    ) -> io::Result<usize> {
        bulk::send_file(&self.socket, file, offset, most)
    }

    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }

    pub(crate) fn pending_bytes(&self) -> u64 {
        0
    }

    pub(crate) fn unacknowledged_bytes(&self) -> Option<u64> {
        os::unacknowledged_bytes(&self.socket)
    }

    #[allow(clippy::ptr_arg, reason = "other systems exchange the buffer for another")]
    pub(crate) fn receive(&self, buffer: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let most = most.min(buffer.len());
        self.socket.as_ref().read(&mut buffer[..most])
    }

    pub(crate) fn discard(&self, buffer: &mut [u8]) -> io::Result<usize> {
        bulk::discard(&self.socket, buffer)
    }

    pub(crate) fn unread_bytes(&self) -> Option<u64> {
        os::unread_bytes(&self.socket)
    }

    #[allow(clippy::ptr_arg, reason = "other systems exchange the buffer for another")]
    pub(crate) fn send_messages(
        &self,
        buffer: &mut Vec<u8>,
        len: usize,
        message_bytes: usize,
    ) -> io::Result<usize> {
        let bytes = &buffer[..len];
        match &self.way {
            Way::Connected => bulk::send_messages(&self.socket, bytes, message_bytes),
            Way::Along(route, segment) => {
                let segment = segment.get();
                bulk::send_messages_along(&self.socket, route, segment, bytes, message_bytes)
            }
            Way::Nowhere => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn set_segment_size(&self, bytes: Option<u16>) -> io::Result<()> {
        match &self.way {
            Way::Connected => bulk::set_segment_size(&self.socket, bytes),
            Way::Along(_, segment) => {
                bulk::check_segments(&self.socket)?;
                segment.set(bytes);
                Ok(())
            }
            Way::Nowhere => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn recv_messages(
        &self,
        buffer: &mut [u8],
        slot_bytes: usize,
        found: &mut [Joined],
    ) -> io::Result<usize> {
        match self.way {
            Way::Connected => bulk::recv_messages(&self.socket, buffer, slot_bytes, found),
            _ => bulk::recv_messages_of_many(&self.socket, buffer, slot_bytes, found),
        }
    }
}
