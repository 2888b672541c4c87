//! What an end knows of a stream beyond iperf3's numbers, as one flat object of integers. The keys are
//! ours (`docs/extension.md`); only a linerate end is sent them, and read for them.

use core::fmt::{self, Write};

use super::incoming::{known, stream_number};
use crate::protocol::json::{DocumentError, Kind, Member};
use crate::report::StreamDetail;
use crate::stats::known::WholeRow;

/// An object that is being read. The text of so many members would be several times as large.
#[derive(Debug, Clone)]
pub(super) struct Object {
    number: Option<u32>,
    row: WholeRow,
}

impl Object {
    pub(super) const fn new() -> Self {
        Self { number: None, row: WholeRow::new() }
    }

    /// Takes a number as it came.
    pub(super) fn handle_number(&mut self, key: &'static str, value: i64) {
        if key == ID {
            self.number = Some(stream_number(value));
        } else if let Some(place) = KEYS.iter().position(|member| member.key == key) {
            let value = known(value).filter(|&value| value <= MOST);
            self.row.put(place, value.map(|value| [value]));
        }
    }

    /// Which stream it is and what is known of it, once the object has ended.
    pub(super) fn finish(&self) -> Result<(u32, StreamDetail), DocumentError> {
        let number = self.number.ok_or(DocumentError::Missing { key: ID })?;
        Ok((number, self.row.detail()))
    }
}

/// Prints a part of the object of a stream, counted from zero.
pub(super) fn print(
    out: &mut impl Write,
    part: usize,
    number: u32,
    detail: &StreamDetail,
) -> fmt::Result {
    if part == 0 {
        write!(out, "{{\"{ID}\":{number}")?;
    }
    let row = WholeRow::of(detail);
    let keys = KEYS.iter().enumerate().skip(part * KEYS_OF_PART).take(KEYS_OF_PART);
    for (place, member) in keys {
        if let Some(value) = row.one(place) {
            write!(out, ",\"{}\":{value}", member.key)?;
        }
    }
    out.write_str(if part + 1 == PARTS { "}" } else { "" })
}

/// Parts in which an object is printed.
pub(super) const PARTS: usize = KEYS.len().div_ceil(KEYS_OF_PART);

/// So many of the longest keys with the widest numbers fit a piece.
const KEYS_OF_PART: usize = 10;

/// No test measures more: it is 104 days in nanoseconds, and two days of 400 Gbit/s in bytes. What a peer
/// says beyond it is unknown.
const MOST: u64 = 1 << 53;

const ID: &str = "id";

/// The members of an object, in the order in which they are written.
pub(super) const MEMBERS: &[Member] = &[
    number(ID),
    number("jitter_ns"),
    number("jitter_mean_ns"),
    number("pdv_count"),
    number("pdv_p50_ns"),
    number("pdv_p90_ns"),
    number("pdv_p99_ns"),
    number("pdv_p999_ns"),
    number("pdv_max_ns"),
    number("ipdv_count"),
    number("ipdv_p50_ns"),
    number("ipdv_p90_ns"),
    number("ipdv_p99_ns"),
    number("ipdv_p999_ns"),
    number("ipdv_max_ns"),
    number("reordered"),
    number("extent_sum"),
    number("extent_max"),
    number("loss_bursts"),
    number("loss_burst_max"),
    number("socket_drops"),
    number("refusals"),
    number("gap_count"),
    number("gap_p50_ns"),
    number("gap_p90_ns"),
    number("gap_p99_ns"),
    number("gap_p999_ns"),
    number("gap_max_ns"),
    number("rtt_count"),
    number("rtt_p50_ns"),
    number("rtt_p90_ns"),
    number("rtt_p99_ns"),
    number("rtt_p999_ns"),
    number("rtt_max_ns"),
    number("rtt_idle_us"),
    number("busy_us"),
    number("rwnd_us"),
    number("sndbuf_us"),
    number("resent_bytes"),
    number("delivery_bytes_per_sec"),
    number("window_bytes"),
    number("buffer_bytes"),
    number("wall_ns"),
    number("cpu_ns"),
    number("queued_ns"),
];

const fn number(key: &'static str) -> Member {
    Member::new(key, Kind::Number)
}

/// The members behind the first, in the order of a row.
const KEYS: &[Member] = MEMBERS.split_at(1).1;

const _: () = assert!(KEYS.len() == WholeRow::PLACES);
