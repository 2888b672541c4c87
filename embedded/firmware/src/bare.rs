//! What the bare loops are asked for by the tests: they move bytes and datagrams as a server does, but
//! without iperf3's protocol, so that a server's cost can be held against theirs.
//!
//! A connection, or a datagram, begins with a [`Command`]. Discarded data of TCP ends with the
//! connection, that of UDP with a command of no more.

use defmt::info;

use crate::log;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// To count what comes and throw it away.
    Discard,
    /// To send so many bytes, or so many datagrams.
    Send(u32),
    /// Datagrams: there come no more to be discarded.
    End,
}

impl Command {
    /// Bytes on the wire: a letter, and a number in little-endian order.
    pub const BYTES: usize = 5;

    /// The command at the beginning of what came.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (&[kind, ref number @ ..], _) = bytes.split_first_chunk::<{ Self::BYTES }>()?;
        match kind {
            b'd' => Some(Self::Discard),
            b's' => Some(Self::Send(u32::from_le_bytes(*number))),
            b'e' => Some(Self::End),
            _ => None,
        }
    }
}

/// Tells what was counted, in the words of servers.
pub fn told(role: &str, bytes: u64, packets: u64) {
    info!("stream 1, {=str}: {} bytes in 0 ms, {} packets, 0 lost", role, bytes, packets);
    log::costs();
}

/// Bytes of the datagrams that are sent.
pub const DATAGRAM_BYTES: usize = 1400;
