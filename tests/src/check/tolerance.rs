//! Where stock iperf3 is known to break a law: by how much, since or until which release, and why. The
//! numbers are those of its own runs with itself; linerate has none.

use crate::check::Report;
use crate::tool::Tool;

/// What stock iperf3 is allowed, each with its reason. linerate is allowed nothing.
pub(super) struct Tolerance {
    /// A sender limited by an amount sends ten blocks a turn and looks at the amount in between, on
    /// each stream.
    pub(super) blocks_over_the_amount: u64,
    /// From 3.16 on, a client looks at the amount only when an interval ends, and a sender with a rate
    /// goes on until then.
    pub(super) ends_with_an_interval: bool,
    /// From 3.16 on a stream's thread may be in the middle of a block when the test ends: the block goes
    /// out, and the counts of bytes, of packets and of the results document each have it or not.
    pub(super) blocks_counted_by_chance: u64,
    /// As a client of a test of both ways it shows its own time as the server's sending time.
    pub(super) seconds_shown_apart: f64,
    /// As a receiver it stops counting when the end is announced, though data is still in the socket;
    /// a test of a few milliseconds can be over before anything was read.
    pub(super) may_miss_everything: bool,
    /// Such a receiver, kept from its processor, is behind by what the sockets of both ends can hold.
    pub(super) bytes_behind_at_the_end: u64,
    /// A sender with a rate makes up for a stall in full, also for one in the omitted start.
    pub(super) makes_up_for_the_omitted: bool,
    /// Before 3.16 it counts what one call moved as a TCP block, so a number of blocks can be fewer
    /// bytes.
    pub(super) part_of_a_block_that_counts: f64,
    /// From 3.16 on it counts in the summary, but in no interval, what its threads moved between the
    /// last interval and the end.
    pub(super) part_in_no_interval: f64,
}

impl Tolerance {
    pub(super) fn of(report: &Report<'_>) -> Self {
        let threads = minor_version(report) >= FIRST_WITH_THREADS;
        match report.tool {
            Tool::Linerate | Tool::LinerateWindows => Self {
                blocks_over_the_amount: 0,
                ends_with_an_interval: false,
                blocks_counted_by_chance: 0,
                seconds_shown_apart: 0.001,
                may_miss_everything: false,
                bytes_behind_at_the_end: 0,
                makes_up_for_the_omitted: false,
                part_of_a_block_that_counts: 1.0,
                part_in_no_interval: 0.0,
            },
            Tool::Iperf3 => Self {
                blocks_over_the_amount: 10,
                ends_with_an_interval: threads,
                blocks_counted_by_chance: u64::from(threads),
                seconds_shown_apart: 0.5,
                may_miss_everything: true,
                // The largest buffers that Linux tunes to: 6 MiB for a receiver, 4 for a sender.
                bytes_behind_at_the_end: 10 << 20,
                makes_up_for_the_omitted: true,
                part_of_a_block_that_counts: if threads { 1.0 } else { 0.5 },
                part_in_no_interval: if threads { 0.01 } else { 0.0 },
            },
        }
    }
}

/// The 12 of `iperf 3.12`.
fn minor_version(report: &Report<'_>) -> u64 {
    let version = report.document["start"]["version"].as_str().unwrap_or_default();
    let minor = version.trim_start_matches("iperf 3.");
    let end = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
    minor[..end].parse().unwrap_or(0)
}

/// iperf3 3.16 gave each stream a thread, which changed when it counts and when it stops.
const FIRST_WITH_THREADS: u64 = 16;
