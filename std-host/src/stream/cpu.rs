//! CPUs that streams can be pinned to (`-A`).

use std::io;

use crate::sys;

/// Whether a thread of this process can run on the CPU with this number: tried by one that is gone
/// afterwards.
///
/// # Errors
/// What the system says of a CPU that it does not have, or that this process may not use; kind
/// `Unsupported` where threads cannot be pinned at all.
pub(crate) fn check_cpu(cpu: u16) -> io::Result<()> {
    let probe = std::thread::Builder::new().spawn(move || sys::pin_thread(cpu))?;
    probe.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}
