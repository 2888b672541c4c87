//! The lines beyond iperf3's: how the delay of datagrams varied, what was lost in which rows, what a TCP
//! sender met and waited for, and last what limited the test. What is not known has no line.

use linerate_core::report::{Percentiles, StreamDetail};
use linerate_core::test::Role;

use super::lines::{Label, role_tag};
use super::{TextOptions, view};
use crate::report::quantity::{percent, percentage, seconds};
use crate::report::view::Side;
use crate::report::{TestEnd, TestStart, verdict};

/// The block, for each direction in the order of the summary. Several streams are told of together, each
/// percentile as that of the worst, counts as sums; with `-V` each has its own lines.
pub(super) fn text(options: &TextOptions, start: &TestStart, end: &TestEnd) -> String {
    let mut text = String::new();
    for &role in view::directions(&start.settings, start.connection.end) {
        let streams: Vec<_> =
            view::with_details(end).filter(|(stream, _)| stream.role == role).collect();
        let known = |&(stream, details): &_| Known {
            sent: view::side(stream, Role::Sender),
            received: view::side(stream, Role::Receiver),
            sender: view::detail_of(role, details, Role::Sender),
            receiver: view::detail_of(role, details, Role::Receiver),
            lost_at_end: view::lost_at_end(start, end, stream),
            has_datagrams: view::is_udp(&start.settings),
        };
        let together: Vec<Known> = streams.iter().map(known).collect();
        if options.verbose && together.len() > 1 {
            for ((stream, _), known) in streams.iter().zip(&together) {
                let label = format!("{} ", Label::stream(start, stream.id, role));
                text += &block(&label, std::slice::from_ref(known));
            }
        } else {
            text += &block(&direction(start, role), &together);
        }
    }
    for &role in view::directions(&start.settings, start.connection.end) {
        for verdict in end.verdicts.iter().filter(|verdict| verdict.role == role) {
            let words = verdict::words(verdict, options.format);
            text += &format!("{}{words}\n", direction(start, role));
        }
    }
    text
}

/// Says which direction a line is of, where there are two.
fn direction(start: &TestStart, role: Role) -> String {
    let tag = role_tag(start, role);
    if tag.is_empty() { String::new() } else { format!("{tag} ") }
}

/// Both sides of a stream.
struct Known {
    sent: Side,
    received: Side,
    sender: StreamDetail,
    receiver: StreamDetail,
    lost_at_end: Option<u64>,
    has_datagrams: bool,
}

fn block(label: &str, streams: &[Known]) -> String {
    let rows = [
        percentiles("Delay variation", "against the fastest", streams, |known| {
            known.receiver.delay_variation
        }),
        percentiles("Between neighbours", "", streams, |known| known.receiver.delay_differences),
        jitter(streams),
        losses(streams),
        percentiles("Gaps of departure", "", streams, |known| known.sender.gaps),
        refusals(streams),
        round_trips(streams),
        waits(streams),
        resent(streams),
    ];
    let rows = rows.into_iter().flatten();
    rows.map(|(name, rest)| format!("{label}{name:<20}{rest}\n")).collect()
}

/// The name of a line and what stands behind it.
type Row = Option<(&'static str, String)>;

fn percentiles(
    name: &'static str,
    note: &str,
    streams: &[Known],
    of: impl Fn(&Known) -> Option<Percentiles>,
) -> Row {
    let known: Vec<Percentiles> = streams.iter().filter_map(of).collect();
    let worst = |of: fn(&Percentiles) -> u64| known.iter().map(of).max().map(millis);
    let whose = worst_of(known.len());
    let notes: Vec<&str> = [note, &whose].into_iter().filter(|note| !note.is_empty()).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    let figures = format!(
        "p50 {:>7}  p90 {:>7}  p99 {:>7}  p99.9 {:>7}  max {:>7} ms{notes}",
        worst(|known| known.p50_ns)?,
        worst(|known| known.p90_ns)?,
        worst(|known| known.p99_ns)?,
        worst(|known| known.p999_ns)?,
        worst(|known| known.max_ns)?,
    );
    Some((name, figures))
}

fn jitter(streams: &[Known]) -> Row {
    let known: Vec<_> = streams.iter().filter_map(|known| known.receiver.jitter).collect();
    let smoothed = millis(known.iter().map(|jitter| jitter.smoothed_ns).max()?);
    let mean = millis(known.iter().map(|jitter| jitter.mean_ns).max()?);
    let whose = worst_of(known.len());
    let whose = if whose.is_empty() { whose } else { format!(" ({whose})") };
    Some(("Jitter (RFC 3550)", format!("{smoothed} ms, mean {mean} ms{whose}")))
}

/// Nothing, where no more is known than iperf3's own line says.
fn losses(streams: &[Known]) -> Row {
    let received = || streams.iter().filter(|known| known.has_datagrams && known.received.is_known);
    let counted =
        |of: fn(&Known) -> Option<u64>| received().filter_map(of).reduce(u64::saturating_add);
    let lost = counted(|known| known.received.datagrams.lost)?;
    let bursts = || streams.iter().filter_map(|known| known.receiver.loss_bursts);
    let late = || streams.iter().filter_map(|known| known.receiver.reordering);
    let at_end = counted(|known| known.lost_at_end).filter(|&count| count > 0);
    let duplicates = counted(|known| known.received.datagrams.duplicates);
    let rows = bursts().map(|bursts| bursts.count).sum::<u64>();
    let longest = bursts().map(|bursts| bursts.longest).max().unwrap_or(0);
    let late_count = late().map(|late| late.count).sum::<u64>();
    let extent = late().map(|late| late.max_extent).max().unwrap_or(0);
    let first = match (lost, rows) {
        (0, _) => at_end.is_none().then(|| "none".to_owned()),
        (_, 0) => Some(lost.to_string()),
        (_, 1) => Some(format!("{lost} in 1 row")),
        _ => Some(format!("{lost} in {rows} rows, longest {longest}")),
    };
    let some = |count: Option<u64>, words: &str| {
        count.filter(|&count| count > 0).map(|count| format!("{count} {words}"))
    };
    let others = [
        some(at_end, "at the very end"),
        some(
            counted(|known| known.receiver.socket_drops),
            "messages had no room in the receiver's socket",
        ),
        some(Some(late_count), &format!("late by up to {extent}")),
        some(duplicates, "came twice"),
        some(counted(|known| known.received.datagrams.too_late), "too late to tell"),
    ];
    let others: Vec<_> = others.into_iter().flatten().collect();
    if others.is_empty() && bursts().next().is_none() {
        return None;
    }
    Some(("Lost", first.into_iter().chain(others).collect::<Vec<_>>().join("; ")))
}

fn refusals(streams: &[Known]) -> Row {
    let count: u64 = streams.iter().filter_map(|known| known.sender.refusals).sum();
    let words = "calls by the sending host, for want of buffers; nothing is lost by it";
    (count > 0).then(|| ("Refused", format!("{count} {words}")))
}

/// The idle round trip is the shortest of all: that of the path, before anything queues.
fn round_trips(streams: &[Known]) -> Row {
    let idle = streams.iter().filter_map(|known| known.sender.idle_round_trip_us).min();
    let idle = idle.map(|micros| format!("idle {} ms", millis(u64::from(micros) * 1000)));
    let note = idle.as_deref().unwrap_or("");
    let loaded = percentiles("Round trip", note, streams, |known| known.sender.round_trips);
    loaded.or_else(|| idle.map(|idle| ("Round trip", idle)))
}

/// Shares of the time that its kernel was watched for, of several senders their mean.
fn waits(streams: &[Known]) -> Row {
    let known = || streams.iter().filter_map(|known| Some((known, known.sender.waits?)));
    known().next()?;
    let watched_ns =
        |known: &Known| known.sender.thread.map_or(known.sent.duration_ns, |thread| thread.wall_ns);
    let whole_us: u64 = known().map(|(known, _)| watched_ns(known) / 1000).sum();
    let share = |micros: u64| percent(percentage(micros, whole_us).min(100.0));
    let window = share(known().map(|(_, waits)| waits.receive_window_us).sum());
    let buffer = share(known().map(|(_, waits)| waits.send_buffer_us).sum());
    let figures = format!("{window} % for the receive window, {buffer} % for the send buffer");
    Some(("Sender waited", figures))
}

fn resent(streams: &[Known]) -> Row {
    let known = || streams.iter().filter_map(|known| Some((known, known.sender.resent_bytes?)));
    known().next()?;
    let sent = known().fold(0, |sum: u64, (known, _)| sum.saturating_add(known.sent.bytes));
    let resent = known().fold(0, |sum: u64, (_, resent)| sum.saturating_add(resent));
    let share = percent(percentage(resent, sent.saturating_add(resent)));
    Some(("Sent again", format!("{share} % of the bytes")))
}

fn worst_of(streams: usize) -> String {
    if streams > 1 { format!("worst of {streams} streams") } else { String::new() }
}

fn millis(nanos: u64) -> String {
    format!("{:.3}", seconds(nanos) * 1000.0)
}
