//! Reading the other end's results: what must be there, and what its sentinels mean.

use super::ResultsStream;
use super::detail::{self, Object};
use crate::on_host::OnHost;
use crate::protocol::frame::Document;
use crate::protocol::json::{
    DocumentError, Filter, Kind, Member, Numbers, Taker, TextPart, WrongType, places,
};
use crate::report::{CpuUse, StreamDetail};

/// What the other end measured.
#[derive(Debug, Clone)]
pub struct ReceivedResults<const N: usize> {
    /// Its CPU use.
    pub cpu: CpuUse,
    /// Whether it counts retransmits; `None` from an end that only receives.
    pub sender_has_retransmits: Option<bool>,
    /// The congestion control in use at its end, where it says so and the name is no longer than a
    /// system's.
    pub congestion: Option<heapless::String<16>>,
    /// Server: other tests that ran on it beside this one, where it says so.
    pub concurrent_tests: Option<u32>,
    /// Its jitter is that of batches of datagrams.
    pub jitter_of_batches: bool,
    /// Its streams, in the order they came.
    pub streams: heapless::Vec<ResultsStream, N>,
}

/// Reads the other end's results, of up to `N` streams. A server's own output and the details of streams are
/// skipped; see [`ResultsDocument`].
#[derive(Debug, Clone)]
pub struct ResultsReader<const N: usize> {
    filter: Filter,
    parts: Parts<N>,
}

impl<const N: usize> ResultsReader<N> {
    /// A reader of one document of a stock end.
    pub const fn new() -> Self {
        Self::reading(STOCK_MEMBERS)
    }

    /// A reader of one document of a linerate end, which says more.
    pub const fn of_linerate() -> Self {
        Self::reading(MEMBERS)
    }

    const fn reading(members: &'static [Member]) -> Self {
        let parts = Parts {
            numbers: Numbers::new(MEMBERS),
            stream: Numbers::new(STREAM_MEMBERS),
            congestion: heapless::Vec::new(),
            congestion_fits: true,
            streams: heapless::Vec::new(),
            detail: OnHost::NONE,
        };
        Self { filter: Filter::new(members, WrongType::Absent), parts }
    }

    /// What the other end measured, once the document has ended. It leaves the reader, which is too large to be
    /// moved.
    ///
    /// # Errors
    /// [`DocumentError::Missing`] when a key that iperf3 insists on is not there, or is no number.
    pub fn finish(&mut self) -> Result<ReceivedResults<N>, DocumentError> {
        self.filter.check_complete()?;
        let numbers: &Numbers = &self.parts.numbers;
        numbers.require(&REQUIRED)?;
        let cpu = CpuUse {
            total_micropercent: count(numbers, "cpu_util_total"),
            user_micropercent: count(numbers, "cpu_util_user"),
            system_micropercent: count(numbers, "cpu_util_system"),
        };
        let concurrent_tests = numbers.number("concurrent_tests");
        let congestion = core::str::from_utf8(&self.parts.congestion).ok();
        Ok(ReceivedResults {
            cpu,
            sender_has_retransmits: quantity(numbers, "sender_has_retransmits").map(|has| has != 0),
            congestion: congestion
                .filter(|name| !name.is_empty())
                .and_then(|name| name.try_into().ok()),
            concurrent_tests: concurrent_tests.and_then(|count| u32::try_from(count).ok()),
            jitter_of_batches: numbers.flag("jitter_of_batches"),
            streams: core::mem::take(&mut self.parts.streams),
        })
    }
}

impl<const N: usize> Default for ResultsReader<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Document for ResultsReader<N> {
    fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), DocumentError> {
        let mut taker = PartsTaker { parts: &mut self.parts, details: &mut |_, _| () };
        self.filter.handle_bytes(bytes, &mut taker)
    }

    fn handle_end(&mut self) -> Result<(), DocumentError> {
        self.filter.end(&mut PartsTaker { parts: &mut self.parts, details: &mut |_, _| () })
    }
}

/// The form in which a server sends its own output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum OutputKind {
    /// `server_output_text`: a JSON text, quotes and escapes included.
    Text,
    /// `server_output_json`: a JSON object.
    Json,
}

/// A [`ResultsReader`] that hands on what is too large to be kept in it.
pub struct ResultsDocument<'r, const N: usize> {
    /// Reads everything else.
    pub reader: &'r mut ResultsReader<N>,
    /// Takes the server's output while it is read: the bytes of the JSON value exactly as they came, in
    /// order, in as many calls as chunks came.
    pub output: &'r mut dyn FnMut(OutputKind, &[u8]),
    /// Takes what is known of the stream with this number, as it came: there may be no such stream, and the
    /// document may still turn out to be broken.
    pub details: &'r mut dyn FnMut(u32, StreamDetail),
}

impl<const N: usize> Document for ResultsDocument<'_, N> {
    fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), DocumentError> {
        let ResultsReader { filter, parts } = &mut *self.reader;
        let mut taker = PartsTaker { parts, details: &mut *self.details };
        let mut start = 0;
        for (index, &byte) in bytes.iter().enumerate() {
            let before = output_kind(filter.raw_key());
            filter.push(byte, &mut taker)?;
            match (before, output_kind(filter.raw_key())) {
                (None, Some(_)) => start = index,
                (Some(kind), None) => (self.output)(kind, &bytes[start..=index]),
                _ => {}
            }
        }
        if let Some(kind) = output_kind(filter.raw_key()) {
            (self.output)(kind, &bytes[start..]);
        }
        Ok(())
    }

    fn handle_end(&mut self) -> Result<(), DocumentError> {
        self.reader.handle_end()
    }
}

fn output_kind(raw_key: Option<&str>) -> Option<OutputKind> {
    match raw_key? {
        "server_output_text" => Some(OutputKind::Text),
        _ => Some(OutputKind::Json),
    }
}

/// What is known so far.
#[derive(Debug, Clone)]
struct Parts<const N: usize> {
    numbers: Numbers<[i64; places(MEMBERS)]>,
    /// The stream that is being read.
    stream: Numbers<[i64; places(STREAM_MEMBERS)]>,
    congestion: heapless::Vec<u8, 16>,
    congestion_fits: bool,
    streams: heapless::Vec<ResultsStream, N>,
    /// The details that are being read.
    detail: OnHost<Object>,
}

/// Takes what comes for the parts, and hands on what is no part.
struct PartsTaker<'r, const N: usize> {
    parts: &'r mut Parts<N>,
    details: &'r mut dyn FnMut(u32, StreamDetail),
}

impl<const N: usize> Taker for PartsTaker<'_, N> {
    fn handle_text(&mut self, _: &'static str, part: TextPart) -> Result<(), DocumentError> {
        let Parts { congestion, congestion_fits, .. } = &mut *self.parts;
        match part {
            TextPart::Begin => congestion.clear(),
            TextPart::Byte(byte) => *congestion_fits &= congestion.push(byte).is_ok(),
            TextPart::End { syntax } if *congestion_fits => {
                core::str::from_utf8(congestion).map_err(|_| syntax)?;
            }
            TextPart::End { .. } => congestion.clear(),
        }
        Ok(())
    }

    fn handle_number(&mut self, object: &'static str, place: usize, value: i64) {
        let Parts { numbers, stream, detail, .. } = &mut *self.parts;
        let numbers: &mut Numbers = match object {
            "" => numbers,
            DETAILS => {
                if let Some(detail) = detail.get_or_make(Object::new) {
                    detail.handle_number(detail::MEMBERS[place].key, value);
                }
                return;
            }
            _ => stream,
        };
        numbers.put(place, value);
    }

    fn handle_element(&mut self, array: &'static str) -> Result<(), DocumentError> {
        let Parts { stream: numbers, streams, detail, .. } = &mut *self.parts;
        if array == DETAILS {
            if let Some(detail) = detail.get_or_make(Object::new) {
                let (number, told) = detail.finish()?;
                (self.details)(number, told);
                *detail = Object::new();
            }
            return Ok(());
        }
        let numbers: &mut Numbers = numbers;
        check_stream(numbers)?;
        streams.push(stream(numbers)).map_err(|_| DocumentError::TooManyStreams)?;
        numbers.clear();
        Ok(())
    }
}

const MEMBERS: &[Member] = &[
    Member::new("cpu_util_total", Kind::Scaled(6)),
    Member::new("cpu_util_user", Kind::Scaled(6)),
    Member::new("cpu_util_system", Kind::Scaled(6)),
    Member::new("sender_has_retransmits", Kind::Int32),
    Member::new("congestion_used", Kind::Text),
    Member::new("server_output_text", Kind::RawText),
    Member::new("server_output_json", Kind::RawObject),
    Member::new("streams", Kind::Elements(&STREAM_MEMBERS)),
    Member::new("concurrent_tests", Kind::Int32),
    Member::new("jitter_of_batches", Kind::Flag),
    Member::new(DETAILS, Kind::Elements(&detail::MEMBERS)),
];

/// Those that are iperf3's.
const STOCK_MEMBERS: &[Member] = MEMBERS.split_at(MEMBERS.len() - 3).0;

const DETAILS: &str = "details";

const STREAM_MEMBERS: &[Member] = &[
    Member::new("id", Kind::Number),
    Member::new("bytes", Kind::Number),
    Member::new("retransmits", Kind::Number),
    Member::new("jitter", Kind::Scaled(9)),
    Member::new("errors", Kind::Number),
    Member::new("omitted_errors", Kind::Number),
    Member::new("packets", Kind::Number),
    Member::new("omitted_packets", Kind::Number),
    Member::new("out_of_order", Kind::Number),
    Member::new("duplicates", Kind::Number),
    Member::new("too_late", Kind::Number),
    Member::new("start_time", Kind::Scaled(9)),
    Member::new("end_time", Kind::Scaled(9)),
];

/// Those that iperf3 insists on.
const REQUIRED: [&str; 5] =
    ["cpu_util_total", "cpu_util_user", "cpu_util_system", "sender_has_retransmits", "streams"];

/// Those that iperf3 insists on for each stream.
const STREAM_REQUIRED: [&str; 6] = ["id", "bytes", "retransmits", "jitter", "errors", "packets"];

fn check_stream(numbers: &Numbers) -> Result<(), DocumentError> {
    match (numbers.number("omitted_errors"), numbers.number("omitted_packets")) {
        (Some(_), None) => Err(DocumentError::Missing { key: "omitted_packets" }),
        (None, Some(_)) => Err(DocumentError::Missing { key: "omitted_errors" }),
        _ => numbers.require(&STREAM_REQUIRED),
    }
}

fn stream(numbers: &Numbers) -> ResultsStream {
    ResultsStream {
        number: stream_number(numbers.number("id").unwrap_or(0)),
        bytes: count(numbers, "bytes"),
        retransmits: quantity(numbers, "retransmits")
            .filter(|&retransmits| retransmits != u64::from(u32::MAX)),
        jitter_ns: count(numbers, "jitter"),
        lost: count(numbers, "errors"),
        omitted_lost: quantity(numbers, "omitted_errors"),
        packets: count(numbers, "packets"),
        omitted_packets: quantity(numbers, "omitted_packets"),
        out_of_order: quantity(numbers, "out_of_order"),
        duplicates: quantity(numbers, "duplicates"),
        too_late: quantity(numbers, "too_late"),
        start_ns: quantity(numbers, "start_time"),
        end_ns: quantity(numbers, "end_time"),
    }
}

/// A value that has no way to be unknown.
fn count(numbers: &Numbers, key: &str) -> u64 {
    quantity(numbers, key).unwrap_or(0)
}

/// A value that is there and known.
fn quantity(numbers: &Numbers, key: &str) -> Option<u64> {
    numbers.number(key).and_then(known)
}

/// A number that no stream can have stays one: zero, or the largest.
pub(super) fn stream_number(id: i64) -> u32 {
    u32::try_from(id.max(0)).unwrap_or(u32::MAX)
}

/// A value unless it says "unknown": iperf3 writes -1, and other ends write the same as an
/// unsigned number of 64 bits.
pub(super) fn known(value: i64) -> Option<u64> {
    if value == i64::MAX { None } else { u64::try_from(value).ok() }
}
