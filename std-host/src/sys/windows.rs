//! Windows, with what the standard library and socket2 offer there. The data plane that Windows
//! deserves, on Winsock itself, is the business of the package `linerate-windows`.

use std::os::windows::io::AsRawSocket;

use socket2::Socket;

pub(crate) use super::fallback::{
    BUFFER_LIMITS, SEND_FLAGS, Wake, congestion, cpu_times, mss, path_mtu, prepare_thread,
    recv_with_destination, request_destination, set_congestion, set_dont_fragment, set_flow_label,
    set_keep_alive, set_max_pacing_rate, set_mss, set_traffic_class, set_user_timeout, share_port,
    tcp_stats, unacknowledged_bytes, unread_bytes, usable_buffer, wait,
};

/// Handles are small numbers, though the type has 64 bits.
pub(crate) fn socket_number(socket: &Socket) -> i32 {
    i32::try_from(socket.as_raw_socket()).unwrap_or(i32::MAX)
}
