//! CPUs that streams can be pinned to (`-A`).

use std::io;

use linerate_core::protocol::code::error_number;
use linerate_core::protocol::error_text;

use crate::error::Error;
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

/// Fails for a CPU that this process cannot have. Where threads cannot be pinned at all, streams go
/// without, and a test says so.
///
/// # Errors
/// [`Error::System`] with the number.
pub(crate) fn require_cpu(cpu: u16) -> Result<(), Error> {
    match check_cpu(cpu) {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(unusable_cpu(cpu, &error)),
        _ => Ok(()),
    }
}

/// What is wrong with a CPU, in iperf3's words.
pub(crate) fn unusable_cpu(cpu: u16, error: &io::Error) -> Error {
    let text = error_text::text(error_number::AFFINITY).unwrap_or_default();
    Error::system(format!("{text} to CPU {cpu} (-A)"), error)
}
