//! The header at the start of every UDP datagram: seconds, microseconds, sequence number, all
//! big-endian; the sequence number is 32 bits wide, or 64 with `udp_counters_64bit` (iperf3 3.1).
//! Times are on the sender's own clock, so only their differences mean anything.

use crate::time::Instant;

/// One datagram's stamp and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Header {
    /// When it was sent, whole microseconds on the sender's clock.
    pub sent_us: u64,
    /// Its number; the first datagram of a stream is 1. Only the low 32 bits travel in the short
    /// form.
    pub sequence: u64,
}

impl Header {
    /// The header of a datagram sent at `now`.
    pub const fn new(now: Instant, sequence: u64) -> Self {
        Self { sent_us: now.as_nanos() / 1000, sequence }
    }

    /// Bytes that the header takes.
    pub const fn len(counters_64bit: bool) -> usize {
        if counters_64bit { 16 } else { 12 }
    }

    /// Writes the header over the start of a datagram of at least [`Header::len`] bytes.
    ///
    /// # Panics
    /// If the datagram is shorter; settings guarantee 16 bytes.
    pub fn write(&self, datagram: &mut [u8], counters_64bit: bool) {
        let seconds = (self.sent_us / 1_000_000) as u32;
        let micros = (self.sent_us % 1_000_000) as u32;
        datagram[0..4].copy_from_slice(&seconds.to_be_bytes());
        datagram[4..8].copy_from_slice(&micros.to_be_bytes());
        if counters_64bit {
            datagram[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        } else {
            datagram[8..12].copy_from_slice(&(self.sequence as u32).to_be_bytes());
        }
    }

    /// Reads the header of a datagram, or `None` if it is too short to have one. In the short form
    /// `sequence` is the 32-bit number as it came.
    pub fn read(datagram: &[u8], counters_64bit: bool) -> Option<Self> {
        let (&stamp, rest) = datagram.split_first_chunk()?;
        let sequence = if counters_64bit {
            u64::from_be_bytes(*rest.first_chunk()?)
        } else {
            u64::from(u32::from_be_bytes(*rest.first_chunk()?))
        };
        let stamp = u64::from_be_bytes(stamp);
        let sent_us = (stamp >> 32) * 1_000_000 + (stamp & 0xffff_ffff);
        Some(Self { sent_us, sequence })
    }

    /// How many of the datagrams of `len` bytes each that `row` begins with left together with
    /// `first`: the same time, and numbers one after the other. A shorter one at the end is not looked
    /// at.
    pub fn count_following(first: &[u8], row: &[u8], len: usize, counters_64bit: bool) -> usize {
        let Some(Self { mut sequence, .. }) = Self::read(first, counters_64bit) else { return 0 };
        let Some(stamp) = first.first_chunk::<8>() else { return 0 };
        let mut is_next = |datagram: &[u8]| {
            sequence = sequence.wrapping_add(1);
            let rest = datagram.strip_prefix(stamp.as_slice());
            if counters_64bit {
                let number = rest.and_then(<[u8]>::first_chunk);
                number.is_some_and(|&number| u64::from_be_bytes(number) == sequence)
            } else {
                let number = rest.and_then(<[u8]>::first_chunk);
                number.is_some_and(|&number| u32::from_be_bytes(number) == sequence as u32)
            }
        };
        row.chunks_exact(len.max(1)).take_while(|datagram| is_next(datagram)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_survive_the_wire() {
        for (counters_64bit, sequence) in [(false, u64::from(u32::MAX)), (true, 1 << 40)] {
            let header = Header { sent_us: 7_000_042, sequence };
            let mut datagram = [0xaa; 20];
            header.write(&mut datagram, counters_64bit);
            assert_eq!(Header::read(&datagram, counters_64bit), Some(header));
            assert_eq!(datagram[..8], [0, 0, 0, 7, 0, 0, 0, 42]);
            let len = Header::len(counters_64bit);
            assert_eq!(datagram[len], 0xaa, "payload is left alone");
            assert_eq!(Header::read(&datagram[..len - 1], counters_64bit), None);
        }
    }
}
