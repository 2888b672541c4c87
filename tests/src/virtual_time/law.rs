//! What holds for every honest test, whatever the network does: checks of a pair after a run. Each
//! panics with a sentence that names what is broken.

use linerate_core::report::{Datagrams, SideSummary, StreamSummary};
use linerate_core::session::{Ending, Event};
use linerate_core::test::{End, Role};

use super::control::other;
use super::pair::Pair;

/// Laws of every run, also of one that failed.
pub fn check_any(pair: &Pair, label: &str) {
    for end in [End::Client, End::Server] {
        check_events(pair, end, label);
        check_intervals(pair, end, label);
    }
    for stream in &pair.streams {
        let truth = &stream.truth;
        let copies = stream.link_counts().map_or(0, |counts| counts.duplicated);
        let block_bytes = u64::from(pair.setup().settings.block_bytes);
        let most = truth.sent_bytes + copies * block_bytes;
        assert!(truth.taken_bytes <= most, "{label}: received more than was sent");
    }
    if pair.setup().settings.omit_secs == 0 {
        for_each_stream(pair, |end, index, summary| {
            let truth = &pair.streams[index].truth;
            let bytes =
                if summary.role == Role::Sender { truth.sent_bytes } else { truth.taken_bytes };
            // What moved after the last sample is nobody's.
            assert!(summary.local.bytes <= bytes, "{label}: {end:?} made up bytes");
        });
    }
}

/// Laws of a run that both ends completed.
pub fn check_complete(pair: &Pair, label: &str) {
    for end in [End::Client, End::Server] {
        assert_eq!(pair.ending(end), Some(Ending::Complete), "{label}: {end:?}");
        assert_eq!(pair.log(end).count(Event::Measured), 1, "{label}: {end:?} measured once");
    }
    for_each_stream(pair, |end, index, summary| {
        let far = pair.endpoint(other(end)).and_then(|far| far.accounts().summary(index));
        let far = far.expect("both ends have the same streams");
        let remote = summary.remote.expect("results were exchanged");
        assert_eq!(told(&far.local, far.role), told(&remote, far.role), "{label}: {end:?} heard");
        let counts = |side: &SideSummary| [side.datagrams.duplicates, side.datagrams.too_late];
        let is_extended = pair.setup().offer.and(pair.setup().answer).is_some();
        let expected = if is_extended { counts(&far.local) } else { [None; 2] };
        assert_eq!(counts(&remote), expected, "{label}: {end:?} heard of old datagrams");
        if summary.role == Role::Receiver {
            check_loss(pair, index, &summary, label);
        }
        if pair.setup().settings.omit_secs == 0 {
            let truth = &pair.streams[index].truth;
            let bytes =
                if summary.role == Role::Sender { truth.sent_bytes } else { truth.taken_bytes };
            assert_eq!(summary.local.bytes, bytes, "{label}: {end:?} bytes of stream {index}");
        }
    });
}

/// What of a side's summary goes over the wire.
fn told(side: &SideSummary, role: Role) -> impl PartialEq + std::fmt::Debug + use<> {
    let datagrams = side.datagrams;
    let jitter_ns = if role == Role::Receiver { datagrams.jitter_ns } else { 0 };
    let out_of_order = datagrams.out_of_order.filter(|&count| count > 0);
    let of_datagrams = (datagrams.packets, datagrams.lost, out_of_order, jitter_ns);
    (side.bytes, side.duration_ns, side.retransmits, of_datagrams)
}

/// A receiver's counts of datagrams are what the network knows.
fn check_loss(pair: &Pair, index: usize, summary: &StreamSummary, label: &str) {
    let stream = &pair.streams[index];
    let Some(link) = stream.link_counts() else { return };
    let trace = &stream.truth.trace;
    let truth = trace.truth_of(stream.truth.measured());
    let datagrams = summary.local.datagrams;
    let label = format!("{label}: stream {index}");
    assert_eq!(datagrams.packets, truth.packets, "{label}: packets");
    assert_eq!(datagrams.lost, Some(truth.lost), "{label}: loss");
    assert_eq!(datagrams.out_of_order, Some(truth.out_of_order), "{label}: out of order");
    assert_eq!(datagrams.duplicates, Some(truth.duplicates), "{label}: duplicates");
    assert_eq!(datagrams.too_late, Some(truth.too_late), "{label}: too late");
    let detail = stream.detail().expect("the receiver ran");
    // Who took nothing does not know that it would have been datagrams.
    if trace.arrivals() > 0 {
        assert_eq!(detail.reordering, Some(truth.reordering), "{label}: extents");
        assert_eq!(detail.loss_bursts, Some(truth.loss_bursts), "{label}: rows of losses");
    }
    let arrivals = link.sent - link.lost - link.overflowed + link.duplicated;
    if stream.truth.omitted == 0 && arrivals == trace.arrivals() as u64 {
        assert_eq!(datagrams.duplicates, Some(link.duplicated), "{label}: duplicates");
        assert_eq!(datagrams.out_of_order, Some(link.reordered), "{label}: out of order");
    }
}

/// One end, once; nothing after it; at most one measurement, before it.
fn check_events(pair: &Pair, end: End, label: &str) {
    let log = pair.log(end);
    let finishes = log.events.iter().filter(|(_, e)| matches!(e, Event::Finished(_))).count();
    assert!(finishes <= 1, "{label}: {end:?} finished {finishes} times");
    assert!(log.too_late.is_empty(), "{label}: {end:?} too late: {:?}", log.too_late);
    let steps = log.events.iter().filter_map(|(_, event)| match event {
        Event::Agreed => Some(0),
        Event::Started => Some(1),
        Event::OmitEnded => Some(2),
        Event::Measured => Some(3),
        Event::Finished(_) => Some(4),
        Event::Interval { .. } | Event::StillUnanswered => None,
    });
    let steps: Vec<u8> = steps.collect();
    assert!(steps.is_sorted_by(|a, b| a < b), "{label}: {end:?} told {:?}", log.events);
    let measured = log.count(Event::Measured);
    assert!(measured <= 1, "{label}: {end:?} measured {measured} times");
    if measured == 1 {
        let at = log.events.iter().position(|(_, e)| *e == Event::Measured).expect("counted");
        let after: Vec<_> = log.events[at + 1..].iter().map(|(_, event)| event).collect();
        let ends = matches!(after[..], [] | [Event::Finished(_)]);
        assert!(ends, "{label}: {end:?} told {after:?} after its measurement");
    }
}

/// Intervals follow each other without gaps, are not empty, and add up to the totals.
fn check_intervals(pair: &Pair, end: End, label: &str) {
    let log = pair.log(end);
    let mut expected_ns = 0;
    let mut was_omitted = true;
    for (index, interval) in log.intervals.iter().enumerate() {
        if was_omitted && !interval.omitted {
            expected_ns = 0;
        }
        was_omitted = interval.omitted;
        assert_eq!(interval.span.start_ns, expected_ns, "{label}: {end:?} intervals have a gap");
        // What was sent at the very moment of the last cut needs an interval of its own.
        let moved = interval.streams.iter().any(|part| part.bytes > 0);
        let is_last = index + 1 == log.intervals.len();
        assert!(
            interval.span.nanos() > 0 || (moved && is_last),
            "{label}: {end:?} has an empty interval {interval:?}"
        );
        expected_ns = interval.span.end_ns;
    }
    if log.count(Event::Measured) == 0 {
        return;
    }
    let Some(session) = pair.endpoint(end) else { return };
    for index in 0..session.accounts().streams().len() {
        let total = session.accounts().summary(index).expect("it is there").local;
        let parts = log.intervals.iter().filter(|interval| !interval.omitted);
        let parts: Vec<_> = parts.map(|interval| interval.streams[index]).collect();
        // A test that ends within its omitted start has no measured part.
        if pair.setup().settings.omit_secs > 0 && log.count(Event::OmitEnded) == 0 {
            return;
        }
        let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
        assert_eq!(bytes, total.bytes, "{label}: {end:?} bytes of the intervals");
        let packets: u64 = parts.iter().map(|part| part.datagrams.packets).sum();
        assert_eq!(packets, total.datagrams.packets, "{label}: {end:?} packets of the intervals");
        let lost = |of: Datagrams| of.lost.unwrap_or(0);
        let part_lost = parts.iter().map(|part| lost(part.datagrams)).sum::<u64>();
        // What comes late makes up for a loss of an earlier interval, which has been told.
        assert!(part_lost >= lost(total.datagrams), "{label}: {end:?} loss of the intervals");
        for part in &parts {
            let is_possible = lost(part.datagrams) <= part.datagrams.packets;
            assert!(is_possible, "{label}: {end:?} lost more than was sent: {part:?}");
        }
        let counts: [fn(Datagrams) -> Option<u64>; 3] =
            [|of| of.out_of_order, |of| of.duplicates, |of| of.too_late];
        for count in counts {
            let part_count = parts.iter().filter_map(|part| count(part.datagrams)).sum::<u64>();
            let total_count = count(total.datagrams).unwrap_or(0);
            assert_eq!(part_count, total_count, "{label}: {end:?} late or doubled in intervals");
        }
        let retransmits = parts.iter().filter_map(|part| part.tcp?.retransmits).sum::<u64>();
        // What is sent again after the last interval belongs to none.
        assert!(
            retransmits <= total.retransmits.unwrap_or(0),
            "{label}: {end:?} retransmits of the intervals"
        );
    }
}

fn for_each_stream(pair: &Pair, mut check: impl FnMut(End, usize, StreamSummary)) {
    for end in [End::Client, End::Server] {
        let Some(session) = pair.endpoint(end) else { continue };
        for index in 0..session.accounts().streams().len() {
            check(end, index, session.accounts().summary(index).expect("it is there"));
        }
    }
}
