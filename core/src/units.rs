//! Bytes and rates, and iperf3's rules for writing them: sizes step by 1024, rates by 1000, and of
//! a suffix only the first letter counts (`1MB` is `1M`). Blanks around them do no harm.

use core::fmt;

use crate::time::NANOS_PER_SEC;

/// A data rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BitsPerSec(pub u64);

impl BitsPerSec {
    /// Nanoseconds that `bytes` take at this rate, rounded up; zero for a rate of zero.
    pub const fn nanos_for(self, bytes: u64) -> u64 {
        if self.0 == 0 {
            return 0;
        }
        let nanos = (bytes as u128 * 8 * NANOS_PER_SEC as u128).div_ceil(self.0 as u128);
        if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
    }
}

/// A rate of blocks: datagrams of UDP, writes of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PacketsPerSec(pub u64);

impl PacketsPerSec {
    /// The payload that goes by at this rate, at most what the parameters document can carry.
    pub const fn bits(self, packet_bytes: u32) -> BitsPerSec {
        let bits = self.0.saturating_mul(8 * packet_bytes as u64);
        BitsPerSec(if bits > i64::MAX as u64 { i64::MAX as u64 } else { bits })
    }
}

/// Reads a size or a count: a number and an optional k, m, g or t in steps of 1024.
///
/// # Errors
/// [`UnitError`] when there is no number, an unknown suffix, or a value that no size can have.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    parse(text, 1024.0)
}

/// Reads a rate in bits per second: a number and an optional k, m, g or t in steps of 1000.
///
/// # Errors
/// [`UnitError`] when there is no number, an unknown suffix, or a value that no rate can have.
pub fn parse_rate(text: &str) -> Result<BitsPerSec, UnitError> {
    parse(text, 1000.0).map(BitsPerSec)
}

/// Reads what stands before the `pps` of a rate in packets per second: a number and an optional k, m,
/// g or t in steps of 1000. What is no whole packet is cut off, unless nothing would be left.
///
/// # Errors
/// [`UnitError`] when there is no number, an unknown suffix, or a rate that the largest blocks cannot
/// have.
pub fn parse_packet_rate(text: &str) -> Result<PacketsPerSec, UnitError> {
    let value = parse_value(text, 1000.0)?;
    let is_possible = value == 0.0 || (1.0..MAX_PACKETS_PER_SEC as f64).contains(&value);
    if is_possible { Ok(PacketsPerSec(value as u64)) } else { Err(UnitError::OutOfRange) }
}

/// What is wrong with a written size or rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum UnitError {
    /// It does not begin with a decimal number.
    NoNumber,
    /// The letter after the number is none of k, m, g, t.
    UnknownSuffix(char),
    /// Below zero, or above what 64 bits hold.
    OutOfRange,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => f.write_str("not a number"),
            Self::UnknownSuffix(suffix) => {
                write!(f, "unknown suffix '{suffix}', allowed: k, m, g, t")
            }
            Self::OutOfRange => f.write_str("out of range"),
        }
    }
}

impl core::error::Error for UnitError {}

fn parse(text: &str, step: f64) -> Result<u64, UnitError> {
    let value = parse_value(text, step)?;
    if (0.0..=MAX_EXACT).contains(&value) { Ok(value as u64) } else { Err(UnitError::OutOfRange) }
}

fn parse_value(text: &str, step: f64) -> Result<f64, UnitError> {
    let text = text.trim_ascii();
    let (number, suffix) = text.split_at(number_len(text));
    let number: f64 = number.parse().map_err(|_| UnitError::NoNumber)?;
    let power = match suffix.chars().next() {
        None => 0,
        Some('k' | 'K') => 1,
        Some('m' | 'M') => 2,
        Some('g' | 'G') => 3,
        Some('t' | 'T') => 4,
        Some(other) => return Err(UnitError::UnknownSuffix(other)),
    };
    Ok((0..power).fold(number, |value, _| value * step))
}

/// Length of the decimal number at the start of `text`: sign, digits, fraction, exponent.
fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let sign = |at: usize| usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let mut len = sign(0);
    len += digits(len);
    if bytes.get(len) == Some(&b'.') {
        len += 1 + digits(len + 1);
    }
    if matches!(bytes.get(len), Some(b'e' | b'E')) {
        let exponent = len + 1 + sign(len + 1);
        if digits(exponent) > 0 {
            len = exponent + digits(exponent);
        }
    }
    len
}

/// Largest value a signed 64-bit field of the parameters document can carry.
const MAX_EXACT: f64 = i64::MAX as f64 - 1024.0;
/// As many as make less than 2^63 bits a second of the largest blocks, 2^23 bits each.
const MAX_PACKETS_PER_SEC: u64 = 1 << 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_step_by_1024_and_rates_by_1000() {
        for (text, size, rate) in [
            ("0", 0, 0),
            ("10M", 10 << 20, 10_000_000),
            ("1.5k", 1536, 1500),
            ("2.5G", 5 << 29, 2_500_000_000),
            ("1MB", 1 << 20, 1_000_000),
            ("1e3", 1000, 1000),
            (".5t", 1 << 39, 500_000_000_000),
            ("  7k ", 7168, 7000),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
            assert_eq!(parse_rate(text), Ok(BitsPerSec(rate)), "{text}");
        }
    }

    #[test]
    fn nonsense_is_named() {
        for (text, error) in [
            ("", UnitError::NoNumber),
            ("abc", UnitError::NoNumber),
            ("inf", UnitError::NoNumber),
            ("nan", UnitError::NoNumber),
            ("-1", UnitError::OutOfRange),
            ("1e30", UnitError::OutOfRange),
            ("9223372036854775807", UnitError::OutOfRange),
            ("5x", UnitError::UnknownSuffix('x')),
            ("10%", UnitError::UnknownSuffix('%')),
        ] {
            assert_eq!(parse_size(text), Err(error), "{text}");
        }
    }

    #[test]
    fn packets_step_by_1000_and_are_none_or_whole_ones() {
        for (text, packets) in [
            ("1000", Ok(1000)),
            ("2.5k", Ok(2500)),
            (" 3M ", Ok(3_000_000)),
            ("1", Ok(1)),
            ("1.9", Ok(1)),
            ("0", Ok(0)),
            ("0.5", Err(UnitError::OutOfRange)),
            ("-1", Err(UnitError::OutOfRange)),
            ("1099511627775", Ok((1 << 40) - 1)),
            ("1099511627776", Err(UnitError::OutOfRange)),
            ("", Err(UnitError::NoNumber)),
            ("5x", Err(UnitError::UnknownSuffix('x'))),
        ] {
            assert_eq!(parse_packet_rate(text), packets.map(PacketsPerSec), "{text}");
        }
    }

    #[test]
    fn packets_become_bits_of_payload() {
        // 1000 * 1448 * 8.
        assert_eq!(PacketsPerSec(1000).bits(1448), BitsPerSec(11_584_000));
        assert_eq!(PacketsPerSec(0).bits(1448), BitsPerSec(0));
        assert_eq!(PacketsPerSec((1 << 40) - 1).bits(1 << 20), BitsPerSec((1 << 63) - (1 << 23)));
        assert_eq!(PacketsPerSec(u64::MAX).bits(u32::MAX), BitsPerSec(i64::MAX as u64));
    }

    #[test]
    fn a_rate_knows_how_long_bytes_take() {
        // 1250 bytes are 10 000 bits: 10 ms at 1 Mbit/s.
        assert_eq!(BitsPerSec(1_000_000).nanos_for(1250), 10_000_000);
        assert_eq!(BitsPerSec(3).nanos_for(1), 2_666_666_667);
        assert_eq!(BitsPerSec(1).nanos_for(u64::MAX), u64::MAX);
        assert_eq!(BitsPerSec(0).nanos_for(1), 0);
    }
}
