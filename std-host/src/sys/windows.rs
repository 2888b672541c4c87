//! Windows, by the package `linerate-windows`, which has the system calls; what Windows lacks is the
//! fallback's.

use std::io;
use std::os::windows::io::{AsRawSocket, AsSocket};
use std::time::Duration;

use linerate_windows as native;
use socket2::{Socket, TcpKeepalive};

use super::{Arrived, Interest, KeepAlive, unsupported};

pub(crate) use super::fallback::{
    BUFFER_LIMITS, SEND_FLAGS, bind_sctp_also, bind_to_device, congestion, exit_code,
    force_receive_buffer, fork, ignore_file_size_signal, is_multipath, leave_terminal,
    multipath_socket, prepare_thread, raise_descriptor_limit, return_large_blocks, reuse_ended,
    sctp_socket, set_congestion, set_flow_label, set_max_pacing_rate, set_mss,
    set_sctp_max_segment, set_sctp_no_delay, set_sctp_streams, share_port, tcp_stats,
    unacknowledged_bytes, usable_buffer,
};
pub(crate) use native::{Hidden, Wake, cpu_times, is_running};

pub(crate) fn wait(
    socket: &Socket,
    interest: Interest,
    wake: &Wake,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let interest = match interest {
        Interest::Read => native::Interest::Read,
        Interest::Write => native::Interest::Write,
        Interest::Nothing => native::Interest::Nothing,
    };
    native::wait(socket.as_socket(), interest, wake, timeout)
}

/// Handles are small numbers, though the type has 64 bits.
pub(crate) fn socket_number(socket: &Socket) -> i32 {
    i32::try_from(socket.as_raw_socket()).unwrap_or(i32::MAX)
}

pub(crate) fn unread_bytes(socket: &Socket) -> Option<u64> {
    native::unread_bytes(socket.as_socket())
}

pub(crate) fn mss(socket: &Socket) -> Option<u32> {
    native::mss(socket.as_socket())
}

pub(crate) fn path_mtu(socket: &Socket, ipv6: bool) -> Option<u32> {
    native::path_mtu(socket.as_socket(), ipv6)
}

/// Windows takes `IP_TOS` from programs and ignores it, which is worse than to refuse.
pub(crate) fn set_traffic_class(_socket: &Socket, _ipv6: bool, _class: u8) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn set_dont_fragment(socket: &Socket) -> io::Result<()> {
    native::set_dont_fragment(socket.as_socket())
}

pub(crate) fn set_user_timeout(socket: &Socket, timeout: Duration) -> io::Result<()> {
    native::set_user_timeout(socket.as_socket(), timeout)
}

/// Windows 10 1703 and later take all three.
pub(crate) fn set_keep_alive(socket: &Socket, wanted: KeepAlive) -> io::Result<()> {
    socket.set_keepalive(true)?;
    let mut parameters = TcpKeepalive::new();
    if let Some(idle) = wanted.idle {
        parameters = parameters.with_time(idle);
    }
    if let Some(interval) = wanted.interval {
        parameters = parameters.with_interval(interval);
    }
    if let Some(count) = wanted.count {
        parameters = parameters.with_retries(count);
    }
    socket.set_tcp_keepalive(&parameters)
}

pub(crate) fn request_destination(socket: &Socket, ipv6: bool) -> io::Result<()> {
    native::request_destination(socket.as_socket(), ipv6)
}

pub(crate) fn recv_with_destination(socket: &Socket, buffer: &mut [u8]) -> io::Result<Arrived> {
    let datagram = native::recv_with_destination(socket.as_socket(), buffer)?;
    Ok(Arrived { len: datagram.len, from: datagram.from, to: datagram.to })
}
