//! What linerate needs from Windows itself: the data plane on overlapped Winsock operations, and facts
//! about sockets and the process that neither the standard library nor socket2 offers. It knows sockets,
//! bytes and datagrams, no streams and no tests; `std-host` puts it behind the same names as every other
//! system's. On other systems the crate is empty, but for the tests of what reads plain bytes and of what
//! becomes of operations.
//!
//! Sources: the Winsock reference of Microsoft Learn. A call that an older Windows lacks answers
//! `None` or an error of kind `Unsupported`.
#![cfg(any(windows, test))]

mod backlog;
mod bytes;
#[cfg(windows)]
mod calls;
#[cfg(windows)]
mod channel;
#[cfg(windows)]
mod connection;
#[cfg(windows)]
mod datagram;
#[cfg(windows)]
mod event;
mod flight;
mod incoming;
#[cfg(windows)]
mod operation;
#[cfg(windows)]
mod options;
mod outgoing;
#[cfg(windows)]
mod process;
mod qos;
#[cfg(windows)]
mod qwave;
#[cfg(windows)]
mod system;
mod tcp_info;
mod threads;

#[cfg(windows)]
pub use calls::is_of_the_file;
#[cfg(windows)]
pub use channel::{Channel, Message, Route};
#[cfg(windows)]
pub use connection::tcp_info;
#[cfg(windows)]
pub use datagram::{Datagram, recv_with_destination, request_destination};
#[cfg(windows)]
pub use event::{Interest, Wake};
#[cfg(windows)]
pub use options::{mss, path_mtu, request_joined, set_dont_fragment, set_user_timeout, sorted};
#[cfg(windows)]
pub use process::cpu_times;
#[cfg(windows)]
pub use qwave::{Mark, mark};
#[cfg(windows)]
pub use system::{host_name, release};
pub use tcp_info::{SenderLooks, TcpInfo};
#[cfg(windows)]
pub use threads::{pin_thread, thread_cpu_ns};
