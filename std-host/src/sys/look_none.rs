//! Systems that tell little of a stream's socket and thread.

use linerate_core::stats::{TcpStats, TcpView};
use socket2::Socket;

pub(crate) const SEND_BUFFER_BOUNDS_TCP: bool = true;

/// Looks at a TCP sender's connection.
#[derive(Debug)]
pub(crate) struct SenderLooks;

impl SenderLooks {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn view(&mut self, socket: &Socket) -> Option<TcpView> {
        let TcpStats { rtt_us, snd_wnd_bytes: window_bytes, .. } = super::tcp_stats(socket)?;
        Some(TcpView { rtt_us, window_bytes, ..TcpView::default() })
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

    #[cfg(unix)]
    pub(crate) fn cpu_ns(&self) -> Option<u64> {
        super::unix::thread_clock()
    }

    #[cfg(not(unix))]
    pub(crate) fn cpu_ns(&self) -> Option<u64> {
        None
    }

    pub(crate) fn queued_ns(&self) -> Option<u64> {
        None
    }
}
