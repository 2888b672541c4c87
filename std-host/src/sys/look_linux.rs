//! What Linux tells of a stream's socket and thread: `TCP_INFO` of `tcp(7)`, `SO_MEMINFO`,
//! `schedstat` of `proc(5)`, `clock_gettime(2)`.

use std::fs::File;
use std::os::unix::fs::FileExt;

use linerate_core::report::SenderWaits;
use linerate_core::stats::TcpView;
use socket2::Socket;

use super::os::tcp_info;
use super::unix::{option_bytes, thread_clock, u32_at, u64_at};

pub(crate) const SEND_BUFFER_BOUNDS_TCP: bool = true;

/// Looks at a TCP sender's connection.
#[derive(Debug)]
pub(crate) struct SenderLooks;

impl SenderLooks {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn view(&mut self, socket: &Socket) -> Option<TcpView> {
        let mut record = [0; 256];
        let filled = option_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut record).ok()?;
        let number = |offset| u32_at(&record, filled, offset);
        let large = |offset| u64_at(&record, filled, offset);
        let waits = || {
            Some(SenderWaits {
                busy_us: large(tcp_info::BUSY_TIME)?,
                receive_window_us: large(tcp_info::RWND_LIMITED)?,
                send_buffer_us: large(tcp_info::SNDBUF_LIMITED)?,
            })
        };
        Some(TcpView {
            rtt_us: number(tcp_info::RTT),
            waits: waits(),
            resent_bytes: large(tcp_info::BYTES_RETRANS),
            delivery_bytes_per_sec: large(tcp_info::DELIVERY_RATE),
            window_bytes: number(tcp_info::SND_WND).map(u64::from),
        })
    }
}

pub(crate) fn socket_drops(socket: &Socket) -> Option<u64> {
    let mut record = [0; 4 * 16];
    let filled = option_bytes(socket, libc::SOL_SOCKET, SO_MEMINFO, &mut record).ok()?;
    u32_at(&record, filled, 4 * SK_MEMINFO_DROPS).map(u64::from)
}

/// The calling thread's times.
#[derive(Debug)]
pub(crate) struct ThreadTimes(Option<File>);

impl ThreadTimes {
    pub(crate) fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    pub(crate) fn cpu_ns(&self) -> Option<u64> {
        thread_clock()
    }

    /// The second number of its schedstat.
    pub(crate) fn queued_ns(&self) -> Option<u64> {
        let mut text = [0; 64];
        let len = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = str::from_utf8(&text[..len]).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

/// Since Linux 4.12; the C library has no name for it.
const SO_MEMINFO: libc::c_int = 55;
/// Place in its array of numbers of 32 bits.
const SK_MEMINFO_DROPS: usize = 8;
