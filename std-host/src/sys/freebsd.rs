//! FreeBSD. The kernel's view of a connection is its own `struct tcp_info` (`netinet/tcp.h`).

use std::io;
use std::time::Duration;

use libc::c_int;
use linerate_core::stats::TcpStats;
use socket2::Socket;

use super::bsd::{after_poll, poll_list};
use super::unix::{check, ioctl_int, option_bytes, set_option, timespec, u32_at};
use super::{Interest, unsupported};

pub(crate) use super::bsd::{
    BUFFER_LIMITS, SEND_FLAGS, SORTS_UDP_PORT, Wake, bind_sctp_also, force_receive_buffer,
    is_multipath, mss, multipath_socket, path_mtu, recv_with_destination, request_class,
    request_destination, return_large_blocks, send_along, set_dont_fragment, set_flow_label,
    set_mss, set_traffic_class, share_port, unread_bytes, usable_buffer,
};
pub(crate) use super::sctp::{
    sctp_socket, set_sctp_max_segment, set_sctp_no_delay, set_sctp_streams,
};
pub(crate) use super::unix::{
    Hidden, Mark, congestion, cpu_times, exit_code, fork, ignore_file_size_signal, is_running,
    leave_terminal, mark_connected, raise_descriptor_limit, reuse_ended, set_keep_alive,
    socket_number, system_names,
};

pub(crate) fn wait(
    socket: &Socket,
    interest: Interest,
    wake: &Wake,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let timeout = timeout.map(timespec);
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let mut fds = poll_list(socket, interest, wake);
    // SAFETY: two pollfds, and a timespec or null, that live through the call.
    let result = unsafe { libc::ppoll(fds.as_mut_ptr(), 2, timeout, std::ptr::null()) };
    after_poll(result, &fds, wake)
}

pub(crate) fn prepare_thread() {}

pub(crate) fn pin_thread(cpu: u16) -> io::Result<()> {
    // SAFETY: all-zero bytes are an empty set.
    let mut set: libc::cpuset_t = unsafe { std::mem::zeroed() };
    if usize::from(cpu) >= 8 * size_of_val(&set) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number lies within the set; the kernel reads one set, and -1 is the calling thread.
    check(unsafe {
        libc::CPU_SET(usize::from(cpu), &mut set);
        libc::cpuset_setaffinity(
            libc::CPU_LEVEL_WHICH,
            libc::CPU_WHICH_TID,
            -1,
            size_of_val(&set),
            &raw const set,
        )
    })
    .map(drop)
}

pub(crate) fn tcp_stats(socket: &Socket) -> Option<TcpStats> {
    let mut record = [0; 256];
    let filled = option_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut record).ok()?;
    let field = |offset| u32_at(&record, filled, offset);
    Some(TcpStats {
        retransmits: field(tcp_info::SND_REXMITPACK).map(u64::from),
        cwnd_bytes: field(tcp_info::SND_CWND).map(u64::from),
        snd_wnd_bytes: field(tcp_info::SND_WND).map(u64::from),
        rtt_us: field(tcp_info::RTT),
        rttvar_us: field(tcp_info::RTTVAR),
        pmtu_bytes: None,
        reordering: None,
    })
}

/// Offsets in `struct tcp_info`, which begins like Linux's.
mod tcp_info {
    pub(super) const RTT: usize = 68;
    pub(super) const RTTVAR: usize = 72;
    /// In bytes.
    pub(super) const SND_CWND: usize = 80;
    pub(super) const SND_WND: usize = 100;
    pub(super) const SND_REXMITPACK: usize = 120;
}

pub(crate) fn unacknowledged_bytes(socket: &Socket) -> Option<u64> {
    ioctl_int(socket, libc::FIONWRITE).ok().and_then(|bytes| u64::try_from(bytes).ok())
}

pub(crate) fn set_congestion(socket: &Socket, name: &str) -> io::Result<()> {
    socket.set_tcp_congestion(name.as_bytes())
}

/// Works in kernels built with RATELIMIT; takes 32 bits.
pub(crate) fn set_max_pacing_rate(socket: &Socket, bytes_per_sec: u64) -> io::Result<()> {
    let rate = u32::try_from(bytes_per_sec).unwrap_or(u32::MAX);
    set_option(socket, libc::SOL_SOCKET, SO_MAX_PACING_RATE, rate as c_int)
}

const SO_MAX_PACING_RATE: c_int = 0x1018;

/// In whole seconds, since FreeBSD 14.
pub(crate) fn set_user_timeout(socket: &Socket, timeout: Duration) -> io::Result<()> {
    let seconds = timeout.as_millis().div_ceil(1000);
    let seconds = c_int::try_from(seconds).unwrap_or(c_int::MAX);
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXUNACKTIME, seconds)
}

pub(crate) fn bind_to_device(_socket: &Socket, _device: &str) -> io::Result<()> {
    Err(unsupported())
}
