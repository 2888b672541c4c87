//! Writing the results as a stock end does, and to a linerate end what is known beyond that. The first
//! piece holds everything before the streams, each further piece one stream, and then as many pieces as
//! there are parts the details of one; a server's own output goes between the first two.

use core::fmt::{self, Write};

use super::ResultsStream;
use super::detail::{self, PARTS};
use crate::protocol::frame::{Outgoing, PIECE_BYTES};
use crate::protocol::json::{Escaped, Scaled, Window};
use crate::report::{CpuUse, StreamDetail};

/// Results ready to be sent as the body of a frame.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingResults<'a, F, D> {
    /// CPU use of this end.
    pub cpu: CpuUse,
    /// -1: this end only receives; 0: it sends and cannot count retransmits; 1: it can.
    pub sender_has_retransmits: i8,
    /// The algorithm in use. A name of more than [`MAX_CONGESTION`] bytes is left out; no system
    /// has one.
    pub congestion: Option<&'a str>,
    /// Streams of the test, at least one.
    pub stream_count: usize,
    /// What was measured on the stream at an index, in order of creation.
    pub stream: F,
    /// To a linerate end: what is known beyond that of the stream at an index. Ours; stock ends are never
    /// sent it.
    pub detail: Option<D>,
    /// Server, to a linerate client: other tests that ran on it beside this one. Ours; stock ends
    /// ignore the key.
    pub concurrent_tests: Option<u32>,
    /// To a linerate end: the jitter is that of batches of datagrams, which came by one call. Ours too.
    pub jitter_of_batches: bool,
    /// If present, the caller inserts one complete member of so many bytes, such as
    /// `"server_output_text":"…"` without any comma around it, before piece 1.
    pub server_output_bytes: Option<u32>,
}

/// Longest congestion control name that is sent; Linux allows 15 bytes.
pub const MAX_CONGESTION: usize = 32;

impl<F, D> Outgoing for OutgoingResults<'_, F, D>
where
    F: Fn(usize) -> ResultsStream,
    D: Fn(usize) -> StreamDetail,
{
    fn write_piece(&self, index: usize, out: &mut [u8; PIECE_BYTES]) -> Option<usize> {
        let mut piece = Window::new(0, out);
        let details = self.stream_count * if self.detail.is_some() { PARTS } else { 0 };
        match index.checked_sub(1) {
            None => self.print_head(&mut piece),
            Some(stream) if stream < self.stream_count => self.print_stream(&mut piece, stream),
            // Without streams the array still has to end.
            Some(0) => piece.write_str(",\"streams\":[]}"),
            Some(after) if after - self.stream_count < details => {
                self.print_detail(&mut piece, after - self.stream_count)
            }
            Some(_) => return None,
        }
        .expect("the widest numbers and the longest name fit a piece");
        Some(piece.filled().unwrap_or(0))
    }

    fn insert_before(&self) -> Option<(usize, u32)> {
        self.server_output_bytes.map(|bytes| (1, bytes))
    }
}

impl<F, D> OutgoingResults<'_, F, D>
where
    F: Fn(usize) -> ResultsStream,
    D: Fn(usize) -> StreamDetail,
{
    fn print_head(&self, out: &mut Window<'_>) -> fmt::Result {
        write!(
            out,
            "{{\"cpu_util_total\":{},\"cpu_util_user\":{},\"cpu_util_system\":{},\
             \"sender_has_retransmits\":{}",
            Scaled { value: self.cpu.total_micropercent, digits: 6 },
            Scaled { value: self.cpu.user_micropercent, digits: 6 },
            Scaled { value: self.cpu.system_micropercent, digits: 6 },
            self.sender_has_retransmits,
        )?;
        if let Some(name) = self.congestion.filter(|name| name.len() <= MAX_CONGESTION) {
            write!(out, ",\"congestion_used\":{}", Escaped(name))?;
        }
        if let Some(count) = self.concurrent_tests {
            write!(out, ",\"concurrent_tests\":{count}")?;
        }
        if self.jitter_of_batches {
            out.write_str(",\"jitter_of_batches\":true")?;
        }
        out.write_str(if self.server_output_bytes.is_some() { "," } else { "" })
    }

    fn print_stream(&self, out: &mut Window<'_>, index: usize) -> fmt::Result {
        let stream = (self.stream)(index);
        out.write_str(if index == 0 { ",\"streams\":[" } else { "," })?;
        write!(out, "{{\"id\":{},\"bytes\":{},\"retransmits\":", stream.number, stream.bytes)?;
        match stream.retransmits {
            Some(retransmits) => write!(out, "{retransmits}")?,
            None => out.write_str("-1")?,
        }
        write!(out, ",\"jitter\":{}", seconds(stream.jitter_ns))?;
        // A stock end takes the omitted counts only together.
        let omitted = stream.omitted_lost.zip(stream.omitted_packets);
        write!(out, ",\"errors\":{}", stream.lost)?;
        if let Some((lost, _)) = omitted {
            write!(out, ",\"omitted_errors\":{lost}")?;
        }
        write!(out, ",\"packets\":{}", stream.packets)?;
        if let Some((_, packets)) = omitted {
            write!(out, ",\"omitted_packets\":{packets}")?;
        }
        if let Some(count @ 1..) = stream.out_of_order {
            write!(out, ",\"out_of_order\":{count}")?;
        }
        if let Some(count) = stream.duplicates {
            write!(out, ",\"duplicates\":{count}")?;
        }
        if let Some(count) = stream.too_late {
            write!(out, ",\"too_late\":{count}")?;
        }
        if let Some(start_ns) = stream.start_ns {
            write!(out, ",\"start_time\":{}", seconds(start_ns))?;
        }
        if let Some(end_ns) = stream.end_ns {
            write!(out, ",\"end_time\":{}", seconds(end_ns))?;
        }
        out.write_str(match index + 1 == self.stream_count {
            true if self.detail.is_some() => "}]",
            true => "}]}",
            false => "}",
        })
    }

    /// Prints the piece at an index among those of the details.
    fn print_detail(&self, out: &mut Window<'_>, index: usize) -> fmt::Result {
        let (stream, part) = (index / PARTS, index % PARTS);
        let Some(tell) = &self.detail else { return Ok(()) };
        if part == 0 {
            out.write_str(if stream == 0 { ",\"details\":[" } else { "," })?;
        }
        detail::print(out, part, (self.stream)(stream).number, &tell(stream))?;
        let is_last = index + 1 == self.stream_count * PARTS;
        out.write_str(if is_last { "]}" } else { "" })
    }
}

const fn seconds(ns: u64) -> Scaled {
    Scaled { value: ns, digits: 9 }
}
