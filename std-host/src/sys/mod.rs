//! What streams need from the operating system beyond the standard library and socket2. One file
//! per system, the same names in each; this page is their contract.
//!
//! A system that lacks something says so and nothing fails because of it: functions that ask
//! return `None`, functions that set return an error of kind `Unsupported`, which callers turn
//! into one warning.
//!
//! | name | contract |
//! |---|---|
//! | `SEND_FLAGS` | flags of every send, so that a closed peer is an error and not a signal |
//! | `BUFFER_LIMITS` | the settings that cap send and receive buffers, for messages |
//! | `Wake` | `new`, `wake` from any thread; ends the current or the next `wait` with it, once |
//! | `Channel` | one stream's connected, non-blocking socket as its thread moves data through it, with all that is under way; its methods are the next eighteen. What has to wait is an error of kind `WouldBlock`. What is under way when it is dropped is given up |
//! | `new`, `socket` | nothing is under way; the socket, for all that is no data |
//! | `unconnected` | the same with a UDP socket that is not connected and that other channels may have too, each with what it has under way itself: what it sends goes along its route, and what it receives tells where it came from and, after `request_destination`, went to. One without a route sends nothing; one that never receives takes nothing from the others |
//! | `set_segment_size` | lets one message of `send_messages` be many datagrams of so many bytes; none ends it. Of an unconnected socket it concerns the messages of this channel alone |
//! | `wait` | blocks until the channel is ready for the interest or has failed, the wake was used, or the time is over, as exactly as the system can; may return early. The caller tries again and looks at its own state |
//! | `rest` | blocks for the time, as exactly as the system can, whatever happens |
//! | `send_blocks` | sends at most so many bytes of at most so many repetitions (`MOST_BLOCKS` at most) of a block, from a place in the first, and returns how many the system took |
//! | `send` | sends bytes, and returns how many the system took |
//! | `send_file` | sends at most so many bytes of a file over TCP without copying them; 0 at its end |
//! | `take_error` | what became of the socket or of what the system took, once |
//! | `pending_bytes` | bytes that the system took and that are not in the socket's buffer yet |
//! | `unacknowledged_bytes` | bytes that the system took and the peer has not acknowledged |
//! | `receive` | takes at most so many bytes into the beginning of the buffer, which may be exchanged for another of its length; 0 at the end of the connection |
//! | `discard` | takes at most as many bytes of a TCP stream as the buffer has, and throws them away |
//! | `unread_bytes` | bytes of a TCP stream that have arrived and were not taken |
//! | `send_messages` | sends the first bytes of the buffer as messages of so many bytes, the last as long as it is, and returns how many the system took: one at least. The buffer may be exchanged for a copy of what it was at an earlier call |
//! | `recv_messages` | receives a message into each slot of so many bytes as long as there are some, describes them, and returns how many: one at least |
//! | `prepare_thread` | called once by each stream's thread: timers as exact as the system has them |
//! | `pin_thread` | the calling thread runs on this CPU alone |
//! | `raise_descriptor_limit` | lets the process have as many sockets as its user may allow it |
//! | `return_large_blocks` | has freed blocks of the size of a stream's buffer go back to the system, where they would not |
//! | `ignore_file_size_signal` | has a file above the user's limit (`ulimit -f`) be an error of its writing, not the end of the process |
//! | `fork` | splits the process, which has one thread |
//! | `exit_code` | waits for a child of `fork` and tells how it ended |
//! | `leave_terminal` | a session without a terminal, and standard streams that go nowhere |
//! | `Hidden` | `new` lets a terminal at the standard input show nothing of what is typed and make no signal of Ctrl-C, and forgets what was typed before; ends with its drop |
//! | `is_running` | whether there is a process of this number; no where nothing tells |
//! | `cpu_times` | CPU time of the whole process |
//! | `system_names` | system, host, release, version and machine, as `uname` has them; empty what is not told |
//! | `socket_number` | the system's number of the socket, for reports |
//! | `tcp_stats` | the kernel's view of a TCP connection |
//! | `SenderLooks` | `new` for a TCP connection; `view`, again and again, is what a sender's kernel says of what it waits for |
//! | `SEND_BUFFER_BOUNDS_TCP` | whether no more than the send buffer of a TCP socket can be on its way |
//! | `socket_drops` | datagrams that the socket had no room for since it was made |
//! | `ThreadTimes` | `of_this_thread`; `cpu_ns` for which that ran, `queued_ns` for which it could have run and had no CPU |
//! | `usable_buffer` | what of a buffer size, as the system reports it, corresponds to a size asked for |
//! | `force_receive_buffer` | a larger receive buffer than the system lets everybody have |
//! | `congestion`, `set_congestion` | name of the congestion control |
//! | `mss`, `set_mss` | segment size of a TCP socket |
//! | `set_traffic_class` | the TOS or traffic class byte, by the family of the packets: an IPv6 socket may carry IPv4 |
//! | `mark_connected` | the same for a connected socket, where that is what the system marks: it lasts as long as the `Mark` that it returns |
//! | `path_mtu` | MTU that the kernel knows towards the peer of a connected socket |
//! | `set_max_pacing_rate` | kernel pacing, bytes per second |
//! | `set_dont_fragment` | no fragments of IPv4 datagrams |
//! | `set_user_timeout` | how long sent data may stay unacknowledged before the connection fails |
//! | `set_keep_alive` | asks an idle connection's peer for a sign of life |
//! | `set_flow_label` | the IPv6 flow label towards a peer: returns the address to connect to |
//! | `reuse_ended` | lets a TCP socket have a local port whose last connections are still winding down, but not one that somebody uses |
//! | `bind_to_device` | everything of an unconnected socket goes through the interface of this name |
//! | `multipath_socket` | a TCP socket that speaks MPTCP with peers that do, and plain TCP with others; what it accepts from those is a plain TCP socket |
//! | `is_multipath` | the peer of a connected `multipath_socket` speaks MPTCP too |
//! | `sctp_socket` | an SCTP socket of one association, used like a TCP socket |
//! | `set_sctp_no_delay`, `set_sctp_max_segment`, `set_sctp_streams` | what `-N`, `-M` and `--nstreams` are to it |
//! | `bind_sctp_also` | further local addresses of a bound SCTP socket; their ports are that of the first |
//! | `SORTS_UDP_PORT` | of several UDP sockets with one local address and port, what a peer sends reaches the one that is connected to it |
//! | `share_port` | lets several UDP sockets of this process have one local address and port |
//! | `request_destination` | before `recv_with_destination`: asks for local addresses |
//! | `recv_with_destination` | one datagram with the local address it was sent to; its port is 0 |
//! | `send_along` | sends one datagram along a route, at once or not at all |
//! | `request_class` | before a route of an unconnected socket is used: has its class heeded |
//! | `file_of` | a file without a name that holds the bytes, for `send_file` |
//! | `PREFERS_SEND_FILE` | files go by `send_file` even where nobody asks for no copies |
//! | `is_of_the_file` | whether an error of `send_file` is one of the file and not of the socket |
//! | `SKIPS_RX_COPY` | whether `discard` works, and `recv_messages` tells the length of what does not fit |
//! | `set_least_readable` | a TCP socket is ready to read when it has so many bytes, or has ended or failed |
//! | `request_refusals` | lets sending fail where a queue of this host is full, instead of dropping in silence |
//! | `forget_errors` | after an error of a socket with `request_refusals`: it counts as failed no longer |
//! | `request_joined` | before `recv_messages`: lets the kernel join datagrams of one size |
//! | `request_arrivals` | before `recv_messages`: has the kernel tell when each message came, by the wall clock |
//! | `MOST_MESSAGES` | most messages of one call of `send_messages` or `recv_messages` |

use std::io;
use std::net::SocketAddr;
use std::time::SystemTime;

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
mod unix;

#[cfg(any(target_os = "macos", target_os = "freebsd"))]
mod bsd;

#[cfg(any(target_os = "linux", target_os = "freebsd"))]
mod sctp;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod os;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod os;
#[cfg(target_os = "freebsd")]
#[path = "freebsd.rs"]
mod os;
#[cfg(windows)]
#[path = "windows.rs"]
mod os;
#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "freebsd", windows)))]
#[path = "fallback.rs"]
mod os;

#[cfg(target_os = "linux")]
#[path = "bulk_linux.rs"]
mod bulk;
#[cfg(any(target_os = "macos", target_os = "freebsd"))]
#[path = "bulk_bsd.rs"]
mod bulk;
#[cfg(windows)]
#[path = "bulk_windows.rs"]
mod bulk;
#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "freebsd", windows)))]
#[path = "bulk_none.rs"]
mod bulk;

#[cfg(windows)]
#[path = "channel_windows.rs"]
mod channel;
#[cfg(not(windows))]
mod channel;

/// What systems with a part of it lack, and compiled in Linux's tests, so that it cannot rot.
#[cfg(any(all(test, target_os = "linux"), target_os = "macos", target_os = "freebsd", windows))]
#[allow(dead_code, reason = "each system uses a part of it")]
mod bulk_none;

#[cfg(target_os = "linux")]
#[path = "look_linux.rs"]
mod look;
#[cfg(windows)]
#[path = "look_windows.rs"]
mod look;
#[cfg(not(any(target_os = "linux", windows)))]
#[path = "look_none.rs"]
mod look;

/// Compiled in Linux's tests too, so that it cannot rot.
#[cfg(all(test, target_os = "linux"))]
#[allow(dead_code, reason = "nothing of it runs")]
mod look_none;

/// Compiled in every system's tests too, so that it cannot rot.
#[cfg(any(test, windows))]
#[allow(dead_code, reason = "tests and Windows use a part of it")]
mod fallback;

pub(crate) use bulk::{
    MOST_MESSAGES, PREFERS_SEND_FILE, SKIPS_RX_COPY, file_of, forget_errors, is_of_the_file,
    request_arrivals, request_joined, request_refusals, set_least_readable,
};
pub(crate) use channel::Channel;
pub(crate) use look::{SEND_BUFFER_BOUNDS_TCP, SenderLooks, ThreadTimes, socket_drops};
pub(crate) use os::{
    BUFFER_LIMITS, Hidden, Mark, SEND_FLAGS, SORTS_UDP_PORT, Wake, bind_sctp_also, bind_to_device,
    congestion, cpu_times, exit_code, force_receive_buffer, fork, ignore_file_size_signal,
    is_multipath, is_running, leave_terminal, mark_connected, mss, multipath_socket, path_mtu,
    pin_thread, prepare_thread, raise_descriptor_limit, recv_with_destination, request_class,
    request_destination, return_large_blocks, reuse_ended, sctp_socket, send_along, set_congestion,
    set_dont_fragment, set_flow_label, set_keep_alive, set_max_pacing_rate, set_mss,
    set_sctp_max_segment, set_sctp_no_delay, set_sctp_streams, set_traffic_class, set_user_timeout,
    share_port, socket_number, system_names, tcp_stats, usable_buffer,
};

pub(crate) use crate::config::KeepAlive;

/// Most repetitions of a block that one call sends.
pub(crate) const MOST_BLOCKS: usize = 8;

/// What a thread waits for on its socket; a failed socket ends every wait but `Nothing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Data, or the end of it.
    Read,
    /// Room in the send buffer.
    Write,
    /// The wake or the time only.
    Nothing,
}

/// A datagram and where it came from and went to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    /// Bytes written to the buffer.
    pub(crate) len: usize,
    /// The sender.
    pub(crate) from: SocketAddr,
    /// The local address it was sent to, where the system tells; the port is zero.
    pub(crate) to: Option<SocketAddr>,
}

/// How datagrams leave an unconnected socket. Both addresses are of its family, as it tells them itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    /// Where to.
    pub(crate) to: SocketAddr,
    /// The local address that they come from, its port zero; none leaves it to the system.
    pub(crate) from: Option<SocketAddr>,
    /// Their TOS or traffic class byte; zero leaves it to the socket.
    pub(crate) class: u8,
}

/// Which process goes on after a `fork`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system can do it")]
pub(crate) enum Forked {
    /// The old one, with the number of its child.
    Parent(u32),
    /// The new one.
    Child,
}

/// Datagrams that came as one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Joined {
    /// Bytes of all of them, one after the other; of them those are in the slot that fit.
    pub(crate) len: usize,
    /// Bytes of each but the last, which may be shorter.
    pub(crate) segment: usize,
    /// When the kernel had them, where it was asked to tell and does.
    pub(crate) arrived: Option<SystemTime>,
    /// The sender; none where the socket is connected to it.
    pub(crate) from: Option<SocketAddr>,
    /// The local address that an unconnected socket had them at, where it tells; its port is zero.
    pub(crate) to: Option<SocketAddr>,
}

/// The answer of a system that lacks a capability.
#[allow(dead_code, reason = "not every system lacks something")]
fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this system cannot do it")
}

#[cfg(test)]
mod tests;
