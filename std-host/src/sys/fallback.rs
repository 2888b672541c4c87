//! Any other system, with what the standard library and socket2 offer: streams work, waiting is
//! coarse, and the kernel's own view is missing.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, SocketAddrV6};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use linerate_core::stats::{CpuTimes, TcpStats};
use socket2::{Domain, Socket};

use super::{Arrived, Forked, Interest, KeepAlive, Route, unsupported};

pub(crate) const SEND_FLAGS: i32 = 0;
pub(crate) const SORTS_UDP_PORT: bool = false;
pub(crate) const BUFFER_LIMITS: (&str, &str) =
    ("the system's largest send buffer", "the system's largest receive buffer");

/// A flag that a thread can sleep on.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    woken: Mutex<bool>,
    condition: Condvar,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(crate) fn wake(&self) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condition.notify_one();
    }
}

/// Nothing here tells when a socket is ready: the caller tries again after a moment.
pub(crate) fn wait(
    _socket: &Socket,
    interest: Interest,
    wake: &Wake,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let most = match interest {
        Interest::Nothing => Duration::from_secs(3600),
        Interest::Read | Interest::Write => Duration::from_micros(500),
    };
    let timeout = timeout.unwrap_or(most).min(most);
    let woken = wake.woken.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = wake.condition.wait_timeout_while(woken, timeout, |woken| !*woken);
    *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    Ok(())
}

pub(crate) fn prepare_thread() {}

pub(crate) fn pin_thread(_cpu: u16) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn fork() -> io::Result<Forked> {
    Err(unsupported())
}

pub(crate) fn exit_code(_child: u32) -> Option<u8> {
    None
}

pub(crate) fn leave_terminal() -> io::Result<()> {
    Err(unsupported())
}

#[derive(Debug)]
pub(crate) struct Hidden(());

impl Hidden {
    pub(crate) fn new() -> io::Result<Self> {
        Err(unsupported())
    }
}

pub(crate) fn is_running(_process: u32) -> bool {
    false
}

pub(crate) fn raise_descriptor_limit() {}

pub(crate) fn ignore_file_size_signal() {}

pub(crate) fn return_large_blocks() {}

pub(crate) fn cpu_times() -> CpuTimes {
    CpuTimes::default()
}

pub(crate) fn system_names() -> [String; 5] {
    let machine = std::env::consts::ARCH.into();
    [std::env::consts::OS.into(), String::new(), String::new(), String::new(), machine]
}

pub(crate) fn socket_number(_socket: &Socket) -> i32 {
    0
}

pub(crate) fn tcp_stats(_socket: &Socket) -> Option<TcpStats> {
    None
}

pub(crate) fn unacknowledged_bytes(_socket: &Socket) -> Option<u64> {
    None
}

pub(crate) fn unread_bytes(_socket: &Socket) -> Option<u64> {
    None
}

pub(crate) fn usable_buffer(reported: usize) -> usize {
    reported
}

pub(crate) fn force_receive_buffer(_socket: &Socket, _bytes: usize) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn congestion(_socket: &Socket) -> Option<String> {
    None
}

pub(crate) fn set_congestion(_socket: &Socket, _name: &str) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn mss(_socket: &Socket) -> Option<u32> {
    None
}

pub(crate) fn set_mss(_socket: &Socket, _bytes: u32) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn set_traffic_class(socket: &Socket, ipv6: bool, class: u8) -> io::Result<()> {
    if ipv6 { Err(unsupported()) } else { socket.set_tos_v4(class.into()) }
}

/// Every system but Windows marks by [`set_traffic_class`].
#[derive(Debug)]
pub(crate) struct Mark;

pub(crate) fn mark_connected(_socket: &Socket, _class: u8) -> io::Result<Mark> {
    Ok(Mark)
}

pub(crate) fn path_mtu(_socket: &Socket, _ipv6: bool) -> Option<u32> {
    None
}

pub(crate) fn set_max_pacing_rate(_socket: &Socket, _bytes_per_sec: u64) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn set_dont_fragment(_socket: &Socket) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn set_user_timeout(_socket: &Socket, _timeout: Duration) -> io::Result<()> {
    Err(unsupported())
}

/// The system's own times only.
pub(crate) fn set_keep_alive(socket: &Socket, wanted: KeepAlive) -> io::Result<()> {
    socket.set_keepalive(true)?;
    match wanted {
        KeepAlive { idle: None, interval: None, count: None } => Ok(()),
        _ => Err(unsupported()),
    }
}

pub(crate) fn set_flow_label(
    _socket: &Socket,
    _peer: SocketAddrV6,
    _label: u32,
) -> io::Result<SocketAddrV6> {
    Err(unsupported())
}

pub(crate) fn bind_to_device(_socket: &Socket, _device: &str) -> io::Result<()> {
    Err(unsupported())
}

/// What the option does differs between systems: on some it would share the port with anybody.
pub(crate) fn reuse_ended(_socket: &Socket) -> io::Result<()> {
    Ok(())
}

pub(crate) fn multipath_socket(_domain: Domain) -> io::Result<Socket> {
    Err(unsupported())
}

pub(crate) fn is_multipath(_socket: &Socket) -> bool {
    false
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

pub(crate) fn bind_sctp_also(_socket: &Socket, _addresses: &[SocketAddr]) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_address(true)
}

/// The system chooses the address that it comes from.
pub(crate) fn send_along(socket: &Socket, route: &Route, bytes: &[u8]) -> io::Result<()> {
    socket.send_to(bytes, &route.to.into()).map(drop)
}

pub(crate) fn request_class(_socket: &Socket, _route: &Route) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn request_destination(_socket: &Socket, _ipv6: bool) -> io::Result<()> {
    Err(unsupported())
}

pub(crate) fn recv_with_destination(socket: &Socket, buffer: &mut [u8]) -> io::Result<Arrived> {
    // SAFETY: the same bytes, and socket2 only ever writes whole ones to them.
    let room = unsafe { &mut *(std::ptr::from_mut(buffer) as *mut [MaybeUninit<u8>]) };
    let (len, from) = socket.recv_from(room)?;
    let from = from.as_socket().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Arrived { len, from, to: None })
}
