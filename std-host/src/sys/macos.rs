//! macOS. The kernel's view of a connection is `struct tcp_connection_info` (`netinet/tcp.h`).

use std::ffi::CString;
use std::io;
use std::num::NonZeroU32;
use std::time::Duration;

use libc::c_int;
use linerate_core::stats::TcpStats;
use socket2::{Domain, Socket};

use super::bsd::{after_poll, poll_list};
use super::unix::{option, option_bytes, set_option, u32_at};
use super::{Interest, unsupported};

pub(crate) use super::bsd::{
    BUFFER_LIMITS, SEND_FLAGS, SORTS_UDP_PORT, Wake, bind_sctp_also, force_receive_buffer,
    is_multipath, mss, multipath_socket, path_mtu, recv_with_destination, request_class,
    request_destination, return_large_blocks, send_along, set_dont_fragment, set_flow_label,
    set_mss, set_traffic_class, share_port, unread_bytes, usable_buffer,
};
pub(crate) use super::unix::{
    Hidden, Mark, cpu_times, exit_code, fork, ignore_file_size_signal, is_running, leave_terminal,
    mark_connected, raise_descriptor_limit, reuse_ended, set_keep_alive, socket_number,
    system_names,
};

/// `poll` counts milliseconds: the last fraction of one is slept, which is as good as a wait.
pub(crate) fn wait(
    socket: &Socket,
    interest: Interest,
    wake: &Wake,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let millis = timeout.map_or(-1, |time| c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX));
    if let (0, Some(fraction)) = (millis, timeout) {
        std::thread::sleep(fraction);
    }
    let mut fds = poll_list(socket, interest, wake);
    // SAFETY: two pollfds that live through the call.
    let result = unsafe { libc::poll(fds.as_mut_ptr(), 2, millis) };
    after_poll(result, &fds, wake)
}

pub(crate) fn prepare_thread() {}

/// Mach takes hints about threads that share a cache, but no CPU numbers.
pub(crate) fn pin_thread(_cpu: u16) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn tcp_stats(socket: &Socket) -> Option<TcpStats> {
    let mut record = [0; 256];
    let filled =
        option_bytes(socket, libc::IPPROTO_TCP, libc::TCP_CONNECTION_INFO, &mut record).ok()?;
    let field = |offset| u32_at(&record, filled, offset);
    let retransmits: Option<[u8; 8]> =
        record[..filled].get(info::RETRANSMITTED).and_then(|bytes| bytes.try_into().ok());
    Some(TcpStats {
        retransmits: retransmits.map(u64::from_ne_bytes),
        cwnd_bytes: field(info::SND_CWND).map(u64::from),
        snd_wnd_bytes: field(info::SND_WND).map(u64::from),
        rtt_us: field(info::SRTT_MS).map(|ms| ms.saturating_mul(1000)),
        rttvar_us: field(info::RTTVAR_MS).map(|ms| ms.saturating_mul(1000)),
        pmtu_bytes: None,
        reordering: None,
    })
}

/// Offsets in `struct tcp_connection_info`.
mod info {
    use std::ops::Range;

    pub(super) const SND_CWND: usize = 24;
    pub(super) const SND_WND: usize = 28;
    pub(super) const SRTT_MS: usize = 44;
    pub(super) const RTTVAR_MS: usize = 48;
    /// Packets.
    pub(super) const RETRANSMITTED: Range<usize> = 104..112;
}

pub(crate) fn unacknowledged_bytes(socket: &Socket) -> Option<u64> {
    let bytes = option(socket, libc::SOL_SOCKET, libc::SO_NWRITE).ok()?;
    u64::try_from(bytes).ok()
}

pub(crate) fn congestion(_socket: &Socket) -> Option<String> {
    None
}

pub(crate) fn set_congestion(_socket: &Socket, _name: &str) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn set_max_pacing_rate(_socket: &Socket, _bytes_per_sec: u64) -> io::Result<()> {
    Err(unsupported())
}

/// Counts from the first retransmission, in whole seconds.
pub(crate) fn set_user_timeout(socket: &Socket, timeout: Duration) -> io::Result<()> {
    let seconds = timeout.as_millis().div_ceil(1000);
    let seconds = c_int::try_from(seconds).unwrap_or(c_int::MAX);
    set_option(socket, libc::IPPROTO_TCP, TCP_RXT_CONNDROPTIME, seconds)
}

const TCP_RXT_CONNDROPTIME: c_int = 0x80;

/// By the interface's number, for the family that the socket has.
pub(crate) fn bind_to_device(socket: &Socket, device: &str) -> io::Result<()> {
    let name = CString::new(device)?;
    // SAFETY: a string that ends with a zero and lives through the call.
    let index = NonZeroU32::new(unsafe { libc::if_nametoindex(name.as_ptr()) });
    let index = index.ok_or_else(io::Error::last_os_error)?;
    if socket.local_addr()?.is_ipv6() {
        socket.bind_device_by_index_v6(Some(index))
    } else {
        socket.bind_device_by_index_v4(Some(index))
    }
}

pub(crate) fn sctp_socket(_domain: Domain) -> io::Result<Socket> {
    Err(unsupported())
}

pub(crate) fn set_sctp_no_delay(_socket: &Socket) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn set_sctp_max_segment(_socket: &Socket, _bytes: u32) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn set_sctp_streams(_socket: &Socket, _streams: u16) -> io::Result<()> {
    Err(unsupported())
}
