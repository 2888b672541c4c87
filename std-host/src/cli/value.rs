//! The value of each option: text in, type out, or the words that say what is allowed. Numbers are
//! read to their last character, where iperf3 takes what it can and makes `abc` a zero. Blanks around
//! a number are none of it.

use std::time::Duration;

use linerate_core::protocol::code::error_number;
use linerate_core::test::{
    MAX_AFFINITY, MAX_BURST, MAX_FLOW_LABEL, MAX_MSS, MAX_OMIT_SECS, MAX_PARALLEL, MAX_SECONDS,
    MAX_WINDOW,
};
use linerate_core::units::{
    BitsPerSec, PacketsPerSec, UnitError, parse_packet_rate, parse_rate, parse_size,
};

use super::LogChoice;
use super::problem::{iperf3_text, number};
use crate::config::KeepAlive;
use crate::report::UnitFormat;
use crate::report::log::LogFormat;

/// What `--timestamps` prints when it is given no format of its own.
pub(super) const TIMESTAMP_FORMAT: &str = "%c ";

/// What `-b` asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    /// None is no limit, unless it is in packets.
    pub(super) bitrate: Option<BitsPerSec>,
    /// The same in blocks.
    pub(super) packets: Option<PacketsPerSec>,
    /// Blocks back to back.
    pub(super) burst: Option<u16>,
}

/// What `--server-bitrate-limit` allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BitrateLimit {
    /// None is no limit.
    pub(super) bitrate: Option<BitsPerSec>,
    /// Zero is the whole test; none is the default.
    pub(super) span: Option<Duration>,
}

/// What `--queue` allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queue {
    /// Clients that wait.
    pub(super) clients: u32,
    /// How long at most; none is the default.
    pub(super) time: Option<Duration>,
}

/// CPUs that `-A` chooses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Affinity {
    /// For this end.
    pub(super) own: u16,
    /// For the server's end of a client's test.
    pub(super) server: Option<u16>,
}

pub(super) fn host(text: &str) -> Result<String, String> {
    some_text(text, "must be a name or an address")
}

pub(super) fn device(text: &str) -> Result<String, String> {
    some_text(text, "must be the name of a network device")
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
    seconds(text).ok_or_else(|| iperf3_text(number::INTERVAL))
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
    let (rate, burst) = before_slash(text);
    let burst = burst
        .map(|text| whole(text, 1, MAX_BURST).ok_or_else(|| iperf3_text(error_number::BURST)))
        .transpose()?;
    let wrong = |error| match error {
        UnitError::OutOfRange if before_pps(rate).is_some() => PACKET_RATES.into(),
        UnitError::OutOfRange => RATES.into(),
        _ => format!("{}, and pps for packets)", bad_unit(rate).trim_end_matches(')')),
    };
    let (bits, packets) = match before_pps(rate) {
        Some(number) => (BitsPerSec(0), parse_packet_rate(number).map_err(wrong)?),
        None => (parse_rate(rate).map_err(wrong)?, PacketsPerSec(0)),
    };
    Ok(Rate { bitrate: not_zero(bits), packets: Some(packets).filter(|rate| rate.0 > 0), burst })
}

/// A rate of zero stands for no limit.
pub(super) fn bitrate_limit(text: &str) -> Result<BitrateLimit, String> {
    let (rate, span) = before_slash(text);
    let wrong = || format!("{} (0, or 0.1 to 60 seconds)", iperf3_text(number::LIMIT_SPAN));
    let span = span.map(|text| seconds(text).ok_or_else(wrong)).transpose()?;
    Ok(BitrateLimit { bitrate: not_zero(fq_rate(rate)?), span })
}

/// The same of a file of limits: see [`exact`].
pub(super) fn exact_bitrate_limit(text: &str) -> Result<BitrateLimit, String> {
    exact(before_slash(text).0, |_| bitrate_limit(text))
}

/// A rate of zero stands for no limit.
pub(super) fn exact_rate(text: &str) -> Result<BitsPerSec, String> {
    exact(text, fq_rate)
}

/// Zero stands for no limit.
pub(super) fn exact_count(text: &str) -> Result<u64, String> {
    exact(text, count)
}

/// iperf3 overlooks what stands behind a unit. A limit must not be another than it looks like: nothing
/// stands there.
fn exact<T>(text: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
    let number = text.trim();
    let number = number.strip_suffix(|c: char| c.is_ascii_alphabetic()).unwrap_or(number);
    if number.parse::<f64>().is_ok() { read(text) } else { Err(bad_unit(text)) }
}

pub(super) fn tests(text: &str) -> Result<u32, String> {
    whole(text, 1, MAX_TESTS).ok_or_else(|| format!("must be 1 to {MAX_TESTS} tests"))
}

/// Zero stands for any number.
pub(super) fn tests_or_any(text: &str) -> Result<u32, String> {
    whole(text, 0, MAX_TESTS).ok_or_else(|| format!("must be 0 to {MAX_TESTS} tests"))
}

/// Zero stands for any number.
pub(super) fn tests_an_hour(text: &str) -> Result<u32, String> {
    let tests = whole(text, 0, MAX_HOURLY_TESTS);
    tests.ok_or_else(|| format!("must be 0 to {MAX_HOURLY_TESTS} tests"))
}

pub(super) fn streams_in_all(text: &str) -> Result<u32, String> {
    let streams = whole(text, 1, MAX_STREAMS_IN_ALL);
    streams.ok_or_else(|| format!("must be 1 to {MAX_STREAMS_IN_ALL} streams"))
}

pub(super) fn queue(text: &str) -> Result<Queue, String> {
    let (clients, time) = before_slash(text);
    let wrong =
        || format!("must be 0 to {MAX_QUEUE} clients, or CLIENTS/SECONDS with 1 to {MAX_SECONDS}");
    let clients = whole(clients, 0, MAX_QUEUE).ok_or_else(wrong)?;
    let secs = time.map(|text| whole(text, 1, MAX_SECONDS).ok_or_else(wrong)).transpose()?;
    Ok(Queue { clients, time: secs.map(|secs| Duration::from_secs(secs.into())) })
}

/// Zero stands for no limit.
pub(super) fn answer_timeout(text: &str) -> Result<Duration, String> {
    let secs = whole(text, 0, MAX_SECONDS).map(|secs| Duration::from_secs(secs.into()));
    secs.ok_or_else(|| format!("must be 0 to {MAX_SECONDS} seconds"))
}

pub(super) fn fq_rate(text: &str) -> Result<BitsPerSec, String> {
    parse_rate(text).map_err(|error| match error {
        UnitError::OutOfRange => RATES.into(),
        _ => bad_unit(text),
    })
}

pub(super) fn pacing_timer(text: &str) -> Result<u32, String> {
    match parse_size(text) {
        Ok(micros @ 0..=MAX_C_INT) => Ok(micros as u32),
        Ok(_) | Err(UnitError::OutOfRange) => Err(format!("must be 0 to {MAX_C_INT} microseconds")),
        Err(_) => Err(bad_unit(text)),
    }
}

pub(super) fn tos(text: &str) -> Result<u8, String> {
    based(text)
        .and_then(|byte| u8::try_from(byte).ok())
        .ok_or_else(|| iperf3_text(error_number::TOS))
}

pub(super) fn flow_label(text: &str) -> Result<u32, String> {
    let label = based(text).filter(|label| (1..=MAX_FLOW_LABEL).contains(label));
    label
        .ok_or_else(|| format!("{} (1 to {MAX_FLOW_LABEL})", iperf3_text(error_number::FLOW_LABEL)))
}

pub(super) fn affinity(text: &str) -> Result<Affinity, String> {
    let cpu = |text| based(text).and_then(|cpu| u16::try_from(cpu).ok()).filter(in_affinity);
    let (own, server) = match text.split_once(',') {
        Some((own, server)) => (cpu(own), cpu(server).map(Some)),
        None => (cpu(text), Some(None)),
    };
    let both = own.zip(server).map(|(own, server)| Affinity { own, server });
    both.ok_or_else(|| format!("{} (0 to {MAX_AFFINITY})", iperf3_text(error_number::AFFINITY)))
}

fn in_affinity(cpu: &u16) -> bool {
    *cpu <= MAX_AFFINITY
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
        _ => based(&name).and_then(|code| u8::try_from(code).ok()).filter(|code| *code < 64),
    };
    code_point.map(|code_point| code_point << 2).ok_or_else(|| iperf3_text(number::DSCP))
}

pub(super) fn connect_timeout(text: &str) -> Result<Duration, String> {
    match parse_size(text) {
        Ok(millis @ 1..=MAX_C_INT) => Ok(Duration::from_millis(millis)),
        Err(UnitError::NoNumber | UnitError::UnknownSuffix(_)) => Err(bad_unit(text)),
        _ => Err(format!("must be 1 to {MAX_C_INT} milliseconds")),
    }
}

pub(super) fn receive_timeout(text: &str) -> Result<Duration, String> {
    millis(text, 100, number::RECEIVE_TIMEOUT)
}

pub(super) fn send_timeout(text: &str) -> Result<Duration, String> {
    millis(text, 0, number::SEND_TIMEOUT)
}

fn millis(text: &str, least: u32, number: i32) -> Result<Duration, String> {
    let most = MAX_SECONDS * 1000;
    let millis = whole(text, least, most).map(|millis| Duration::from_millis(millis.into()));
    millis.ok_or_else(|| format!("{} ({least} to {most} milliseconds)", iperf3_text(number)))
}

pub(super) fn test_log(text: &str) -> Result<LogChoice, String> {
    match text {
        "text" => Ok(LogChoice::Lines(LogFormat::Text)),
        "json" => Ok(LogChoice::Lines(LogFormat::Json)),
        "off" => Ok(LogChoice::Off),
        _ => Err("must be text, json or off".into()),
    }
}

pub(super) fn idle_timeout(text: &str) -> Result<Duration, String> {
    let seconds = whole(text, 1, MAX_SECONDS).map(|secs| Duration::from_secs(secs.into()));
    seconds.ok_or_else(|| {
        format!("{} (1 to {MAX_SECONDS} seconds)", iperf3_text(number::IDLE_TIMEOUT))
    })
}

pub(super) fn time_skew(text: &str) -> Result<Duration, String> {
    let seconds = whole(text, 1, i32::MAX as u32).map(|secs| Duration::from_secs(secs.into()));
    seconds.ok_or_else(|| format!("{} of seconds", iperf3_text(number::TIME_SKEW)))
}

/// Parts may be left out; a zero is the system's choice.
pub(super) fn keep_alive(text: &str) -> Result<KeepAlive, String> {
    let mut parts = text.split('/').map(|part| match part {
        "" => Some(0),
        part => whole(part, 0, MAX_KEEP_ALIVE),
    });
    let wrong = || format!("must be IDLE/INTERVAL/COUNT, each 0 to {MAX_KEEP_ALIVE}");
    let mut next = || parts.next().unwrap_or(Some(0)).ok_or_else(wrong);
    let (idle, interval, count) = (next()?, next()?, next()?);
    if parts.next().is_some() {
        return Err(wrong());
    }
    if idle != 0 && idle <= interval * count {
        return Err(iperf3_text(number::KEEP_ALIVE));
    }
    let seconds = |secs: u32| (secs > 0).then(|| Duration::from_secs(secs.into()));
    let count = (count > 0).then_some(count);
    Ok(KeepAlive { idle: seconds(idle), interval: seconds(interval), count })
}

/// The levels are iperf3's; what is above the highest is the highest.
pub(super) fn debug_level(text: &str) -> Result<u8, String> {
    let level = whole(text, 0, u32::MAX).map(|level| level.min(MAX_DEBUG_LEVEL) as u8);
    level.ok_or_else(|| format!("must be 0 to {MAX_DEBUG_LEVEL}"))
}

pub(super) fn sctp_streams(text: &str) -> Result<u16, String> {
    match parse_size(text) {
        Ok(streams @ 1..=MAX_SCTP_STREAMS) => Ok(streams as u16),
        Err(UnitError::NoNumber | UnitError::UnknownSuffix(_)) => Err(bad_unit(text)),
        _ => Err(format!("must be 1 to {MAX_SCTP_STREAMS} streams")),
    }
}

fn before_slash(text: &str) -> (&str, Option<&str>) {
    text.split_once('/').map_or((text, None), |(before, after)| (before, Some(after)))
}

/// What stands before the `pps` of a rate in packets.
fn before_pps(rate: &str) -> Option<&str> {
    let rate = rate.trim_end();
    let (number, unit) = rate.split_at_checked(rate.len().checked_sub(3)?)?;
    unit.eq_ignore_ascii_case("pps").then_some(number)
}

fn not_zero(rate: BitsPerSec) -> Option<BitsPerSec> {
    (rate.0 > 0).then_some(rate)
}

/// Zero, or the length that an interval may have.
fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse().ok();
    let seconds = seconds.filter(|secs| *secs == 0.0 || (0.1..=60.0).contains(secs));
    seconds.map(Duration::from_secs_f64)
}

fn some_text(text: &str, allowed: &str) -> Result<String, String> {
    if text.is_empty() { Err(allowed.into()) } else { Ok(text.into()) }
}

/// A decimal number with nothing but blanks around it.
fn whole<T: std::str::FromStr + PartialOrd>(text: &str, min: T, max: T) -> Option<T> {
    text.trim().parse().ok().filter(|value| (min..=max).contains(value))
}

/// A number in the base that its prefix tells, as C writes them: `0x` sixteen, `0` eight.
fn based(text: &str) -> Option<u32> {
    let text = text.trim();
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    // A sign may stand before a number, not behind its prefix.
    if base == 16 && !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, base).ok()
}

fn bad_unit(text: &str) -> String {
    format!("{}: '{text}' (a number, then k, m, g or t)", iperf3_text(number::UNIT))
}

const RATES: &str = "must be 0 or more, and less than 2^63 bits per second";
/// More of the largest blocks are 2^63 bits.
const PACKET_RATES: &str = "must be 0, or 1 or more and less than 2^40 packets per second";
/// What iperf3 keeps in an `int`.
const MAX_C_INT: u64 = i32::MAX as u64;
/// As many seconds, or questions, as the option of any system takes.
const MAX_KEEP_ALIVE: u32 = 32_767;
const MAX_DEBUG_LEVEL: u32 = 4;
/// The field of the protocol has 16 bits.
const MAX_SCTP_STREAMS: u64 = u16::MAX as u64;
/// Far more than a host serves at once.
const MAX_TESTS: u32 = 10_000;
const MAX_HOURLY_TESTS: u32 = 1_000_000;
const MAX_STREAMS_IN_ALL: u32 = 100_000;
const MAX_QUEUE: u32 = 1000;
