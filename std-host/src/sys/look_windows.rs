//! What Windows tells of a stream's socket and thread.

use linerate_core::stats::TcpView;
use linerate_windows as native;
use socket2::Socket;
use std::os::windows::io::AsSocket;

/// Windows lets a sender have as much on its way as the path takes, whatever the buffer is.
pub(crate) const SEND_BUFFER_BOUNDS_TCP: bool = false;

/// Looks at a TCP sender's connection.
#[derive(Debug)]
pub(crate) struct SenderLooks(native::SenderLooks);

impl SenderLooks {
    pub(crate) fn new() -> Self {
        Self(native::SenderLooks::default())
    }

    pub(crate) fn view(&mut self, socket: &Socket) -> Option<TcpView> {
        Some(self.0.view(&native::tcp_info(socket.as_socket())?))
    }
}

pub(crate) fn socket_drops(_socket: &Socket) -> Option<u64> {
    None
}

/// The calling thread's times.
#[derive(Debug)]
pub(crate) struct ThreadTimes;

impl ThreadTimes {
    pub(crate) fn of_this_thread() -> Self {
        Self
    }

    pub(crate) fn cpu_ns(&self) -> Option<u64> {
        native::thread_cpu_ns()
    }

    pub(crate) fn queued_ns(&self) -> Option<u64> {
        None
    }
}
