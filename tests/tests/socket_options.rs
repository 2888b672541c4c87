//! What options do to sockets, seen from outside: the ports and devices that connections use, the
//! marks of their packets, and paths of several cables. What needs networks of its own needs Linux and root.

use linerate_tests::tool::{Tool, skipped};

#[path = "socket_options/ports.rs"]
mod ports;
#[path = "socket_options/timeouts.rs"]
mod timeouts;

#[cfg(target_os = "linux")]
#[path = "socket_options/devices.rs"]
mod devices;
#[cfg(target_os = "linux")]
#[path = "socket_options/marks.rs"]
mod marks;
#[cfg(target_os = "linux")]
#[path = "socket_options/paths.rs"]
mod paths;
#[cfg(target_os = "linux")]
#[path = "socket_options/transports.rs"]
mod transports;

/// Who is the client, and who the server; one of them is linerate.
const PAIRS: [(Tool, Tool); 3] = [
    (Tool::Linerate, Tool::Linerate),
    (Tool::Linerate, Tool::Iperf3),
    (Tool::Iperf3, Tool::Linerate),
];

#[cfg(target_os = "linux")]
fn has_mptcp() -> bool {
    let enabled = std::fs::read_to_string("/proc/sys/net/mptcp/enabled");
    let has = enabled.is_ok_and(|enabled| enabled.trim() == "1");
    if !has {
        skipped("the kernel has no MPTCP");
    }
    has
}

fn has_ipv6() -> bool {
    let has = std::net::TcpListener::bind("[::1]:0").is_ok();
    if !has {
        skipped("the loopback has no IPv6");
    }
    has
}
