//! Windows, by the package `linerate-windows`, which has the system calls; what Windows lacks is the
//! fallback's.

use std::io;
use std::net::SocketAddrV6;
use std::os::windows::io::{AsRawSocket, AsSocket};
use std::time::Duration;

use linerate_core::stats::TcpStats;
use linerate_windows as native;
use socket2::{Domain, Socket, TcpKeepalive};

use super::{Arrived, KeepAlive, Route};

pub(crate) use super::fallback::{
    BUFFER_LIMITS, SEND_FLAGS, SORTS_UDP_PORT, bind_sctp_also, congestion, exit_code,
    force_receive_buffer, fork, ignore_file_size_signal, is_multipath, leave_terminal,
    prepare_thread, raise_descriptor_limit, return_large_blocks, reuse_ended, set_sctp_max_segment,
    set_sctp_no_delay, set_sctp_streams, share_port, usable_buffer,
};
pub(crate) use native::{Hidden, Mark, Wake, cpu_times, is_running, pin_thread};

pub(crate) fn system_names() -> [String; 5] {
    let [host, release] = [native::host_name(), native::release()].map(Option::unwrap_or_default);
    ["Windows".into(), host, release, String::new(), std::env::consts::ARCH.into()]
}

/// Handles are small numbers, though the type has 64 bits.
pub(crate) fn socket_number(socket: &Socket) -> i32 {
    i32::try_from(socket.as_raw_socket()).unwrap_or(i32::MAX)
}

pub(crate) fn tcp_stats(socket: &Socket) -> Option<TcpStats> {
    native::tcp_info(socket.as_socket()).map(|info| info.stats())
}

/// What TCP has not sent, since the peer takes no more, is not in it.
pub(crate) fn unacknowledged_bytes(socket: &Socket) -> Option<u64> {
    native::tcp_info(socket.as_socket()).map(|info| info.in_flight_bytes())
}

pub(crate) fn mss(socket: &Socket) -> Option<u32> {
    let told = || native::tcp_info(socket.as_socket())?.mss();
    native::mss(socket.as_socket()).or_else(told)
}

pub(crate) fn path_mtu(socket: &Socket, ipv6: bool) -> Option<u32> {
    native::path_mtu(socket.as_socket(), ipv6)
}

/// Windows takes `IP_TOS` from programs and ignores it: what it marks is a connected socket.
pub(crate) fn set_traffic_class(_socket: &Socket, _ipv6: bool, _class: u8) -> io::Result<()> {
    Ok(())
}

pub(crate) fn mark_connected(socket: &Socket, class: u8) -> io::Result<Mark> {
    let peer = socket.peer_addr()?.as_socket_ipv6();
    if peer.is_some_and(|peer| peer.ip().to_ipv4_mapped().is_some()) {
        let reason = "Windows marks no IPv4 on a socket for IPv6; a server with -4 has others";
        return Err(refusal(reason));
    }
    native::mark(socket.as_socket(), class)
}

/// Its options have a name for segment sizes that only reads them.
pub(crate) fn set_mss(_socket: &Socket, _bytes: u32) -> io::Result<()> {
    Err(refusal("Windows lets no program choose segment sizes"))
}

pub(crate) fn set_congestion(_socket: &Socket, _name: &str) -> io::Result<()> {
    Err(refusal(
        "Windows has one for all programs, which administrators choose (netsh interface tcp set \
         supplemental)",
    ))
}

pub(crate) fn set_max_pacing_rate(_socket: &Socket, _bytes_per_sec: u64) -> io::Result<()> {
    Err(refusal("Windows does not pace what programs send; -b has linerate do it"))
}

pub(crate) fn set_flow_label(
    _socket: &Socket,
    _peer: SocketAddrV6,
    _label: u32,
) -> io::Result<SocketAddrV6> {
    Err(refusal("Windows lets no program choose flow labels"))
}

pub(crate) fn multipath_socket(_domain: Domain) -> io::Result<Socket> {
    Err(refusal("Windows does not speak MPTCP"))
}

pub(crate) fn sctp_socket(_domain: Domain) -> io::Result<Socket> {
    Err(refusal("Windows does not speak SCTP"))
}

pub(crate) fn bind_to_device(_socket: &Socket, _device: &str) -> io::Result<()> {
    Err(refusal("Windows binds to addresses only: -B has that of the device"))
}

fn refusal(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, reason)
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
    socket.set_tcp_keepalive(&parameters).map_err(native::sorted)
}

/// The class of its datagrams is a matter of the whole socket.
pub(super) fn native_route(route: &Route) -> native::Route {
    native::Route { to: route.to, from: route.from }
}

pub(crate) fn send_along(socket: &Socket, route: &Route, bytes: &[u8]) -> io::Result<()> {
    native_route(route).send(socket.as_socket(), bytes)
}

pub(crate) fn request_class(_socket: &Socket, _route: &Route) -> io::Result<()> {
    let reason =
        "Windows marks what a connected socket sends, and a server's UDP streams share one";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

pub(crate) fn request_destination(socket: &Socket, ipv6: bool) -> io::Result<()> {
    native::request_destination(socket.as_socket(), ipv6)
}

pub(crate) fn recv_with_destination(socket: &Socket, buffer: &mut [u8]) -> io::Result<Arrived> {
    let datagram = native::recv_with_destination(socket.as_socket(), buffer)?;
    Ok(Arrived { len: datagram.len, from: datagram.from, to: datagram.to })
}
