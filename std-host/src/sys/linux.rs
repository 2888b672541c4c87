//! Linux. Facts from the kernel's own headers (`linux/tcp.h`, `ip(7)`, `tcp(7)`, `socket(7)`).

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::{c_int, c_ulong};
use linerate_core::stats::TcpStats;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::unix::{
    Outgoing, Plain, check, ioctl_int, ipv6_destination, option, option_bytes, recv_with_control,
    set_bytes, set_option, timespec, u32_at,
};
use super::{Arrived, Interest, Route};

pub(crate) use super::sctp::{
    sctp_socket, set_sctp_max_segment, set_sctp_no_delay, set_sctp_streams,
};
pub(crate) use super::unix::{
    Hidden, Mark, congestion, cpu_times, exit_code, fork, ignore_file_size_signal, is_running,
    leave_terminal, mark_connected, raise_descriptor_limit, reuse_ended, set_keep_alive,
    socket_number, system_names,
};

pub(crate) const SEND_FLAGS: c_int = libc::MSG_NOSIGNAL;
pub(crate) const SORTS_UDP_PORT: bool = true;
pub(crate) const BUFFER_LIMITS: (&str, &str) = ("net.core.wmem_max", "net.core.rmem_max");

/// An eventfd.
#[derive(Debug)]
pub(crate) struct Wake(OwnedFd);

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the new descriptor belongs to nobody else.
        unsafe {
            let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub(crate) fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight readable bytes, as an eventfd takes them. It fails only when the counter
        // is full, and then the wake is pending already.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight writable bytes, as an eventfd fills them.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

pub(crate) fn wait(
    socket: &Socket,
    interest: Interest,
    wake: &Wake,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let (fd, events) = match interest {
        Interest::Read => (socket.as_raw_fd(), libc::POLLIN),
        Interest::Write => (socket.as_raw_fd(), libc::POLLOUT),
        // A negative descriptor is passed over, and with it the error flags that always count.
        Interest::Nothing => (-1, 0),
    };
    let mut fds = [
        libc::pollfd { fd: wake.0.as_raw_fd(), events: libc::POLLIN, revents: 0 },
        libc::pollfd { fd, events, revents: 0 },
    ];
    let timeout = timeout.map(timespec);
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: two pollfds, and a timespec or null, that live through the call.
    let result = unsafe { libc::ppoll(fds.as_mut_ptr(), 2, timeout, std::ptr::null()) };
    if fds[0].revents != 0 && result > 0 {
        wake.clear();
    }
    match check(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// glibc moves the size from which a block has a mapping of its own up to the largest one that was ever
/// given back, so that buffers of streams come to lie in the heaps of threads, which keep them. A size
/// that was asked for stays.
pub(crate) fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointers; a number that the library checks.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 64 * 1024);
    }
}

/// The default slack lets a timer be 50 microseconds late, four datagrams at 1 Gbit/s.
pub(crate) fn prepare_thread() {
    // SAFETY: no pointers; it concerns the calling thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

pub(crate) fn pin_thread(cpu: u16) -> io::Result<()> {
    const BITS: usize = c_ulong::BITS as usize;
    let mut mask: [c_ulong; CPUS / BITS] = [0; CPUS / BITS];
    let cpu = usize::from(cpu);
    *mask.get_mut(cpu / BITS).ok_or(io::ErrorKind::InvalidInput)? = 1 << (cpu % BITS);
    // SAFETY: the kernel reads as many bytes as the size says, a bit for each CPU; no thread but the
    // calling one is meant by 0.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) }).map(drop)
}

/// The library's own type has room for 1024 CPUs only, and `-A` goes up to number 1024.
const CPUS: usize = 2048;

/// Reads `struct tcp_info`, which older kernels know less of: what they leave out is `None`.
pub(crate) fn tcp_stats(socket: &Socket) -> Option<TcpStats> {
    let mut record = [0; 256];
    let filled = option_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut record).ok()?;
    let field = |offset| u32_at(&record, filled, offset);
    let cwnd = field(tcp_info::SND_CWND).zip(field(tcp_info::SND_MSS));
    Some(TcpStats {
        retransmits: field(tcp_info::TOTAL_RETRANS).map(u64::from),
        cwnd_bytes: cwnd.map(|(segments, mss)| u64::from(segments) * u64::from(mss)),
        snd_wnd_bytes: field(tcp_info::SND_WND).map(u64::from),
        rtt_us: field(tcp_info::RTT),
        rttvar_us: field(tcp_info::RTTVAR),
        pmtu_bytes: field(tcp_info::PMTU),
        reordering: field(tcp_info::REORD_SEEN),
    })
}

/// Offsets in the kernel's `struct tcp_info`; fields are only ever added at its end.
pub(super) mod tcp_info {
    pub(in crate::sys) const SND_MSS: usize = 16;
    pub(in crate::sys) const PMTU: usize = 60;
    pub(in crate::sys) const RTT: usize = 68;
    pub(in crate::sys) const RTTVAR: usize = 72;
    /// In segments.
    pub(in crate::sys) const SND_CWND: usize = 80;
    pub(in crate::sys) const TOTAL_RETRANS: usize = 100;
    /// Since Linux 4.9, bytes a second.
    pub(in crate::sys) const DELIVERY_RATE: usize = 160;
    /// Since Linux 4.10, microseconds, as the next two.
    pub(in crate::sys) const BUSY_TIME: usize = 168;
    pub(in crate::sys) const RWND_LIMITED: usize = 176;
    pub(in crate::sys) const SNDBUF_LIMITED: usize = 184;
    /// Since Linux 4.19, as the next.
    pub(in crate::sys) const BYTES_RETRANS: usize = 208;
    pub(in crate::sys) const REORD_SEEN: usize = 220;
    /// Since Linux 5.4.
    pub(in crate::sys) const SND_WND: usize = 228;
}

pub(crate) fn unacknowledged_bytes(socket: &Socket) -> Option<u64> {
    // SIOCOUTQ is TIOCOUTQ by another name.
    ioctl_int(socket, libc::TIOCOUTQ).ok().and_then(|bytes| u64::try_from(bytes).ok())
}

pub(crate) fn unread_bytes(socket: &Socket) -> Option<u64> {
    ioctl_int(socket, libc::FIONREAD).ok().and_then(|bytes| u64::try_from(bytes).ok())
}

/// The kernel doubles what is asked for, to have room for its own records, and reports that.
pub(crate) fn usable_buffer(reported: usize) -> usize {
    reported / 2
}

/// For those who may administer the network.
pub(crate) fn force_receive_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
}

pub(crate) fn set_congestion(socket: &Socket, name: &str) -> io::Result<()> {
    socket.set_tcp_congestion(name.as_bytes())
}

pub(crate) fn mss(socket: &Socket) -> Option<u32> {
    socket.tcp_mss().ok()
}

pub(crate) fn set_mss(socket: &Socket, bytes: u32) -> io::Result<()> {
    socket.set_tcp_mss(bytes)
}

/// An IPv6 socket takes both; one of MPTCP that of IPv4 only.
pub(crate) fn set_traffic_class(socket: &Socket, ipv6: bool, class: u8) -> io::Result<()> {
    if ipv6 { socket.set_tclass_v6(class.into()) } else { socket.set_tos_v4(class.into()) }
}

pub(crate) fn path_mtu(socket: &Socket, ipv6: bool) -> Option<u32> {
    let (level, name) =
        if ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    option(socket, level, name).ok().and_then(|mtu| u32::try_from(mtu).ok())
}

/// Kernels before 4.20 take 32 bits only.
pub(crate) fn set_max_pacing_rate(socket: &Socket, bytes_per_sec: u64) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, SO_MAX_PACING_RATE, bytes_per_sec).or_else(|_| {
        let narrow = u32::try_from(bytes_per_sec).unwrap_or(u32::MAX);
        set_option(socket, libc::SOL_SOCKET, SO_MAX_PACING_RATE, narrow as c_int)
    })
}

const SO_MAX_PACING_RATE: c_int =
    if cfg!(any(target_arch = "sparc", target_arch = "sparc64")) { 0x31 } else { 47 };

pub(crate) fn set_dont_fragment(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
}

pub(crate) fn set_user_timeout(socket: &Socket, timeout: Duration) -> io::Result<()> {
    socket.set_tcp_user_timeout(Some(timeout))
}

/// Takes a lease of the label first: the kernel sends no label it has not given out.
pub(crate) fn set_flow_label(
    socket: &Socket,
    mut peer: SocketAddrV6,
    label: u32,
) -> io::Result<SocketAddrV6> {
    let request = FlowLabelRequest {
        peer: peer.ip().octets(),
        label: label.to_be(),
        action: FLOW_LABEL_GET,
        share: FLOW_LABEL_SHARE_ANY,
        flags: FLOW_LABEL_CREATE,
        expires: 0,
        linger: 0,
        padding: 0,
    };
    set_option(socket, libc::IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, request)?;
    set_option(socket, libc::IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1 as c_int)?;
    // The field is in network byte order there, and the library passes it on as it is.
    peer.set_flowinfo(label.to_be());
    Ok(peer)
}

/// `struct in6_flowlabel_req` of `linux/in6.h`.
#[derive(Clone, Copy)]
#[repr(C)]
struct FlowLabelRequest {
    peer: [u8; 16],
    label: u32,
    action: u8,
    share: u8,
    flags: u16,
    expires: u16,
    linger: u16,
    padding: u32,
}

// SAFETY: integers without a gap between them: 16 + 4 + 1 + 1 + 2 + 2 + 2 + 4 bytes.
unsafe impl Plain for FlowLabelRequest {}

const IPV6_FLOWLABEL_MGR: c_int = 32;
const IPV6_FLOWINFO_SEND: c_int = 33;
const FLOW_LABEL_GET: u8 = 0;
const FLOW_LABEL_SHARE_ANY: u8 = 255;
const FLOW_LABEL_CREATE: u16 = 1;

/// Root only, on kernels before 5.7.
pub(crate) fn bind_to_device(socket: &Socket, device: &str) -> io::Result<()> {
    socket.bind_device(Some(device.as_bytes()))
}

/// Kernels without MPTCP, or with `net.mptcp.enabled` off, say that the protocol is not supported.
pub(crate) fn multipath_socket(domain: Domain) -> io::Result<Socket> {
    Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP))
}

/// A connection that fell back to TCP has no such record; nor have kernels before 5.16.
pub(crate) fn is_multipath(socket: &Socket) -> bool {
    option_bytes(socket, SOL_MPTCP, MPTCP_INFO, &mut [0; 256]).is_ok()
}

const SOL_MPTCP: c_int = 284;
const MPTCP_INFO: c_int = 1;

/// The kernel takes the addresses one after the other without a gap, each as long as its family's.
pub(crate) fn bind_sctp_also(socket: &Socket, addresses: &[SocketAddr]) -> io::Result<()> {
    let mut packed = Vec::new();
    for address in addresses.iter().map(|&address| SockAddr::from(address)) {
        // SAFETY: the storage has as many initialised bytes as the address is long.
        packed.extend_from_slice(unsafe {
            std::slice::from_raw_parts(address.as_ptr().cast::<u8>(), address.len() as usize)
        });
    }
    set_bytes(socket, libc::IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, &packed)
}

const SCTP_SOCKOPT_BINDX_ADD: c_int = 100;

/// `SO_REUSEADDR` suffices between UDP sockets here. `SO_REUSEPORT` would do harm: it spreads
/// datagrams over all sockets of an address, connected or not.
pub(crate) fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_address(true)
}

/// It goes with each datagram.
pub(crate) fn request_class(_socket: &Socket, _route: &Route) -> io::Result<()> {
    Ok(())
}

pub(crate) fn request_destination(socket: &Socket, ipv6: bool) -> io::Result<()> {
    if ipv6 {
        return set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1 as c_int);
    }
    set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1 as c_int)
}

pub(crate) fn recv_with_destination(socket: &Socket, buffer: &mut [u8]) -> io::Result<Arrived> {
    recv_with_control(socket, buffer, destination)
}

/// The local address that a datagram was sent to, if this control message tells it.
pub(super) fn destination(level: c_int, kind: c_int, data: &[u8]) -> Option<SocketAddr> {
    match (level, kind) {
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => ipv6_destination(data),
        // `struct in_pktinfo`: interface, local address to answer from, destination in the header.
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let octets: [u8; 4] = data.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv4Addr::from(octets), 0)))
        }
        _ => None,
    }
}

pub(crate) fn send_along(socket: &Socket, route: &Route, bytes: &[u8]) -> io::Result<()> {
    super::bulk::send_messages_along(socket, route, None, bytes, bytes.len()).map(drop)
}

/// The control messages that send a datagram along a route.
pub(super) fn control_of(route: &Route) -> Outgoing {
    let mut control = Outgoing::EMPTY;
    let class = c_int::from(route.class).to_ne_bytes();
    // An IPv6 socket may carry IPv4, and then takes the class of that.
    let is_ipv6 = route.to.ip().to_canonical().is_ipv6();
    match route.from {
        Some(SocketAddr::V4(from)) => {
            // `struct in_pktinfo`, as above.
            let info = [[0; 4], from.ip().octets(), [0; 4]];
            control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info.as_flattened());
        }
        Some(SocketAddr::V6(from)) => {
            let mut info = [0; 20];
            info[..16].copy_from_slice(&from.ip().octets());
            info[16..].copy_from_slice(&from.scope_id().to_ne_bytes());
            control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
        }
        None => {}
    }
    match route.class {
        0 => {}
        _ if is_ipv6 => control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class),
        _ => control.push(libc::IPPROTO_IP, libc::IP_TOS, &class),
    }
    control
}
