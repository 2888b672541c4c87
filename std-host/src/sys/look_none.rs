//! Systems that tell little of a stream's socket and thread.

use linerate_core::stats::TcpView;
use socket2::Socket;

pub(crate) fn tcp_view(socket: &Socket) -> Option<TcpView> {
    let stats = super::tcp_stats(socket)?;
    Some(TcpView { rtt_us: stats.rtt_us, window_bytes: stats.snd_wnd_bytes, ..TcpView::default() })
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
