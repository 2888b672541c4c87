//! What the bare loops are asked for by the tests: they move bytes and datagrams as a server does, but
//! without iperf3's protocol, so that a server's cost can be held against theirs.
//!
//! A connection, or a datagram, begins with a [`Command`]. Discarded data of TCP ends with the
//! connection, that of UDP with a command of no more.

use defmt::info;

use crate::{clock, log};

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

/// Data of a connection, or of datagrams, that goes on.
#[derive(Debug, Clone, Copy)]
pub struct Tally {
    role: &'static str,
    began_micros: u64,
    /// Bytes of data until now.
    pub bytes: u64,
    /// Datagrams until now.
    pub packets: u64,
}

impl Tally {
    /// Data that comes from here on.
    pub fn of_receiver() -> Self {
        Self { role: "Receiver", began_micros: clock::micros(), bytes: 0, packets: 0 }
    }

    /// Data that is sent from here on.
    pub fn of_sender() -> Self {
        Self { role: "Sender", ..Self::of_receiver() }
    }

    /// Counts a datagram.
    pub fn add_datagram(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.packets += 1;
    }

    /// Tells all of it, in the words of servers.
    pub fn tell(&self) {
        let Self { role, began_micros, bytes, packets } = *self;
        let millis = (clock::micros() - began_micros) / 1000;
        info!(
            "stream 1, {=str}: {} bytes in {} ms, {} packets, 0 lost, of 0 at the peer",
            role, bytes, millis, packets
        );
        log::costs();
    }
}

/// Bytes of the datagrams that are sent.
pub const DATAGRAM_BYTES: usize = 1400;
