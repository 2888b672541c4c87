//! The value of each option: text in, type out, or the words that say what is allowed. Numbers are
//! read to their last character, where iperf3 takes what it can and makes `abc` a zero.

use std::time::Duration;

use linerate_core::protocol::code::error_number;
use linerate_core::test::{
    MAX_BURST, MAX_MSS, MAX_OMIT_SECS, MAX_PARALLEL, MAX_SECONDS, MAX_WINDOW,
};
use linerate_core::units::{BitsPerSec, UnitError, parse_rate, parse_size};

use super::problem::{iperf3_text, number};
use crate::report::UnitFormat;

/// What `-b` asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    /// None is no limit.
    pub(super) bitrate: Option<BitsPerSec>,
    /// Blocks back to back.
    pub(super) burst: Option<u16>,
}

pub(super) fn host(text: &str) -> Result<String, String> {
    some_text(text, "must be a name or an address")
}

pub(super) fn congestion(text: &str) -> Result<String, String> {
    some_text(text, "must be the name of a congestion control algorithm")
}

pub(super) fn port(text: &str) -> Result<u16, String> {
    whole(text, 1, u16::MAX).ok_or_else(|| iperf3_text(number::PORT))
}

pub(super) fn duration(text: &str) -> Result<u32, String> {
    whole(text, 0, MAX_SECONDS).ok_or_else(|| iperf3_text(error_number::DURATION))
}

pub(super) fn omit(text: &str) -> Result<u32, String> {
    whole(text, 0, MAX_OMIT_SECS).ok_or_else(|| iperf3_text(error_number::OMIT))
}

pub(super) fn parallel(text: &str) -> Result<u16, String> {
    whole(text, 1, MAX_PARALLEL).ok_or_else(|| iperf3_text(error_number::STREAM_COUNT))
}

/// Zero stands for the system's own size.
pub(super) fn mss(text: &str) -> Result<u32, String> {
    match whole(text, 0, u32::MAX) {
        Some(bytes) if bytes <= MAX_MSS => Ok(bytes),
        Some(_) => Err(iperf3_text(error_number::MSS)),
        None => Err(format!("TCP MSS must be 0 to {MAX_MSS} bytes")),
    }
}

/// Zero stands for no intervals.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if seconds == 0.0 || (0.1..=60.0).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(iperf3_text(number::INTERVAL)),
    }
}

pub(super) fn format(text: &str) -> Result<UnitFormat, String> {
    text.parse().map_err(|_| iperf3_text(number::FORMAT))
}

/// Zero stands for no limit.
pub(super) fn count(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| match error {
        UnitError::OutOfRange => "must be 0 or more, and less than 2^63".into(),
        _ => bad_unit(text),
    })
}

/// Zero stands for the default. The limits depend on the protocol: whatever exceeds a number is
/// passed on as the largest one, and refused there.
pub(super) fn length(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Err(UnitError::OutOfRange) => Ok(u64::MAX),
        other => other.map_err(|_| bad_unit(text)),
    }
}

/// Zero stands for the system's own tuning.
pub(super) fn window(text: &str) -> Result<u32, String> {
    match parse_size(text) {
        Ok(bytes) => match u32::try_from(bytes) {
            Ok(bytes) if bytes <= MAX_WINDOW => Ok(bytes),
            _ => Err(iperf3_text(error_number::WINDOW)),
        },
        Err(UnitError::OutOfRange) => {
            Err(format!("socket buffer size must be 0 to {MAX_WINDOW} bytes"))
        }
        Err(_) => Err(bad_unit(text)),
    }
}

/// A rate of zero stands for no limit.
pub(super) fn bitrate(text: &str) -> Result<Rate, String> {
    let (rate, burst) = match text.split_once('/') {
        Some((rate, burst)) => (rate, Some(burst)),
        None => (text, None),
    };
    let rate = parse_rate(rate).map_err(|error| match error {
        UnitError::OutOfRange => "must be 0 or more, and less than 2^63 bits per second".into(),
        _ => bad_unit(rate),
    })?;
    let burst = burst
        .map(|text| whole(text, 1, MAX_BURST).ok_or_else(|| iperf3_text(error_number::BURST)))
        .transpose()?;
    Ok(Rate { bitrate: (rate.0 > 0).then_some(rate), burst })
}

pub(super) fn tos(text: &str) -> Result<u8, String> {
    based(text).ok_or_else(|| iperf3_text(error_number::TOS))
}

/// The whole byte that holds the code point. The three names of RFC 1349 set a bit each that lies
/// across the border of the code point, which is why they have no number of their own.
pub(super) fn dscp(text: &str) -> Result<u8, String> {
    let name = text.to_ascii_lowercase();
    let code_point = match name.as_bytes() {
        b"lowdelay" => return Ok(0x10),
        b"throughput" => return Ok(0x08),
        b"reliability" => return Ok(0x04),
        b"ef" => Some(46),
        b"va" => Some(44),
        [b'c', b's', class @ b'0'..=b'7'] => Some((class - b'0') << 3),
        [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
            Some((class - b'0') << 3 | (drop - b'0') << 1)
        }
        _ => based(&name).filter(|code_point| *code_point < 64),
    };
    code_point.map(|code_point| code_point << 2).ok_or_else(|| iperf3_text(number::DSCP))
}

pub(super) fn connect_timeout(text: &str) -> Result<Duration, String> {
    match parse_size(text) {
        Ok(millis @ 1..=MAX_TIMEOUT_MS) => Ok(Duration::from_millis(millis)),
        Err(UnitError::NoNumber | UnitError::UnknownSuffix(_)) => Err(bad_unit(text)),
        _ => Err(format!("must be 1 to {MAX_TIMEOUT_MS} milliseconds")),
    }
}

fn some_text(text: &str, allowed: &str) -> Result<String, String> {
    if text.is_empty() { Err(allowed.into()) } else { Ok(text.into()) }
}

/// A decimal number with nothing around it.
fn whole<T: std::str::FromStr + PartialOrd>(text: &str, min: T, max: T) -> Option<T> {
    text.parse().ok().filter(|value| (min..=max).contains(value))
}

/// A number in the base that its prefix tells, as C writes them: `0x` sixteen, `0` eight.
fn based(text: &str) -> Option<u8> {
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    // A sign may stand before a number, not behind its prefix.
    if base == 16 && !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, base).ok()
}

fn bad_unit(text: &str) -> String {
    format!("{}: '{text}' (a number, then k, m, g or t)", iperf3_text(number::UNIT))
}

/// The longest wait that iperf3 can be told.
const MAX_TIMEOUT_MS: u64 = i32::MAX as u64;
