//! What linerate needs from Windows itself: the data plane on overlapped Winsock operations, facts about
//! sockets and the process, consoles, services and the event log, as far as neither the standard library
//! nor socket2 offers them. It knows sockets, bytes and datagrams, no streams and no tests; `std-host` puts
//! what other systems have too behind the same names as theirs. On other systems the crate is empty, but for the tests of what reads plain bytes and of what
//! becomes of operations.
//!
//! Sources: the reference of Microsoft Learn. A call that an older Windows lacks answers
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
mod console;
#[cfg(windows)]
mod datagram;
#[cfg(windows)]
mod event;
#[cfg(windows)]
pub mod event_log;
#[cfg(windows)]
mod file;
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
pub mod service;
#[cfg(windows)]
mod system;
mod tcp_info;
#[cfg(windows)]
mod text;
mod threads;

#[cfg(windows)]
pub use calls::is_of_the_file;
#[cfg(windows)]
pub use channel::{Channel, Message, Route};
#[cfg(windows)]
pub use connection::tcp_info;
#[cfg(windows)]
pub use console::Hidden;
#[cfg(windows)]
pub use datagram::{Datagram, recv_with_destination, request_destination};
#[cfg(windows)]
pub use event::{Interest, Wake};
#[cfg(windows)]
pub use file::{FileKind, file_kind};
#[cfg(windows)]
pub use options::{mss, path_mtu, request_joined, set_dont_fragment, set_user_timeout, sorted};
#[cfg(windows)]
pub use process::{cpu_times, is_running};
#[cfg(windows)]
pub use qwave::{Mark, mark};
#[cfg(windows)]
pub use system::{host_name, release};
pub use tcp_info::{SenderLooks, TcpInfo};
#[cfg(windows)]
pub use threads::{pin_thread, thread_cpu_ns};
