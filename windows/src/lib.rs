//! What linerate needs from Windows itself: Winsock calls, process facts, consoles, services and the
//! event log, as far as neither the standard library nor socket2 offers them. It knows sockets and
//! datagrams, no streams and no tests; `std-host` puts it behind the same names as every other system's. On other systems the crate is empty, but
//! for the tests of what reads plain bytes.
//!
//! Sources: the reference of Microsoft Learn. A call that an older Windows lacks answers
//! `None` or an error of kind `Unsupported`.
#![cfg(any(windows, test))]

mod bytes;
#[cfg(windows)]
mod console;
#[cfg(windows)]
mod datagram;
#[cfg(windows)]
pub mod events;
#[cfg(windows)]
mod file;
#[cfg(windows)]
mod options;
#[cfg(windows)]
mod process;
#[cfg(windows)]
mod ready;
#[cfg(windows)]
pub mod service;
#[cfg(windows)]
mod text;

#[cfg(windows)]
pub use console::Hidden;
#[cfg(windows)]
pub use datagram::{Datagram, recv_with_destination, request_destination};
#[cfg(windows)]
pub use file::{FileKind, file_kind};
#[cfg(windows)]
pub use options::{mss, path_mtu, set_dont_fragment, set_user_timeout, unread_bytes};
#[cfg(windows)]
pub use process::{cpu_times, is_running};
#[cfg(windows)]
pub use ready::{Interest, Wake, wait};
