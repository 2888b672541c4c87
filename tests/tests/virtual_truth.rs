//! What a receiver says of networks that are known, in virtual time: counts are what the network did,
//! percentiles and jitter are near those of the whole list of delays, for the test and for each of its
//! intervals. What is measured stands above what was injected in a table, which `--nocapture` shows.

use std::fmt::Write as _;

use linerate_core::flow::{ReceiveFlow, StreamPlan};
use linerate_core::protocol::datagram::Header;
use linerate_core::report::LossBursts;
use linerate_core::stats::BUCKETS;
use linerate_core::test::{Direction, End, Limits, Protocol, Role, StreamId, TestSettings};
use linerate_core::time::{Instant, NANOS_PER_SEC};
use linerate_core::units::BitsPerSec;
use linerate_tests::link::model::{Burst, Holes, Link, LinkModel, Pattern, Reorder};
use linerate_tests::link::told::{COLUMNS, Told, delays};
use linerate_tests::link::trace::{Delays, Truth};
use linerate_tests::virtual_time::control::other;
use linerate_tests::virtual_time::law;
use linerate_tests::virtual_time::pair::Pair;
use linerate_tests::virtual_time::setup::Setup;
use linerate_tests::virtual_time::stream::Stream;

#[test]
fn receivers_tell_what_was_injected() {
    let mut table = format!("{:17} {:8} {COLUMNS}\n", "network", "");
    for (network, data) in NETWORKS {
        for (direction, omit_secs) in [(Direction::Forward, 0), (Direction::Reverse, 1)] {
            let label = format!("{network} {direction:?}");
            let pair = run(data, TestSettings { direction, omit_secs, ..settings() });
            law::check_any(&pair, &label);
            law::check_complete(&pair, &label);
            let stream = &pair.streams[0];
            let told = measured(&pair);
            let right = Told::injected(&stream.truth.trace, stream.truth.measured());
            for (first, second, told) in [(network, "measured", told), ("", "injected", right)] {
                if direction == Direction::Forward {
                    writeln!(table, "{first:17} {second:8} {told}").expect("a string has room");
                }
            }
            assert_eq!(told.truth, right.truth, "{label}");
            check_delays(&told.delays, &right.delays, &label);
            check_parts(stream, &label);
        }
    }
    println!("{table}");
}

/// Rows of losses that are as long as the network was told to make them.
#[test]
fn rows_of_losses_have_the_length_that_was_asked_for() {
    for (every, length) in [(10, 1), (97, 5), (500, 70), (1000, 900)] {
        let data = LinkModel { holes: Some(Holes { every, length }), ..QUIET };
        let pair = run(data, settings());
        let detail = pair.streams[0].detail().expect("the receiver ran");
        let Truth { packets, lost, .. } = measured(&pair).truth;
        // A row that nothing comes after is not seen.
        let count = (packets - 1) / (every + length);
        assert_eq!(detail.loss_bursts, Some(LossBursts { count, longest: length }));
        assert_eq!(lost, count * length);
    }
}

/// Every datagram that is overtaken comes after as many as pass while it is held back.
#[test]
fn extents_are_those_that_were_asked_for() {
    for by in [2, 4, 40] {
        let reorder = Some(Reorder { ppm: 200, by_ns: by * MS + MS / 2 });
        let pair = run(LinkModel { reorder, ..QUIET }, settings());
        let told = pair.streams[0].detail().and_then(|detail| detail.reordering);
        let told = told.expect("the receiver ran");
        assert!(told.count > 1, "{told:?}");
        assert_eq!((told.max_extent, told.extent_sum), (by, told.count * by), "{told:?}");
    }
}

#[test]
fn an_offset_of_the_clocks_changes_nothing() {
    for (network, data) in NETWORKS.into_iter().filter(|(network, _)| HARD.contains(network)) {
        let [near, far] = [0, 7 * 3600 * NANOS_PER_SEC as i64].map(|clock_offset_ns| {
            let pair = run(LinkModel { clock_offset_ns, ..data }, settings());
            (pair.streams[0].detail(), measured(&pair).delays.iperf3_ns)
        });
        assert_eq!(near, far, "{network}");
    }
}

/// A fourth of all datagrams is overtaken, and none is lost.
#[test]
fn reordering_alone_is_no_loss() {
    let mut settings = settings();
    settings.limits = Limits { blocks: Some(5000), ..Limits::default() };
    let pair = run(LinkModel { reorder: reorder(250_000, 8 * MS), ..QUIET }, settings);
    law::check_any(&pair, "reordering");
    law::check_complete(&pair, "reordering");
    let Truth { packets, lost, out_of_order, .. } = measured(&pair).truth;
    assert_eq!((packets, lost), (5000, 0));
    assert!(out_of_order > 1000, "{out_of_order}");
}

#[test]
fn intervals_hold_what_came_in_them_though_it_comes_in_lumps() {
    let lumps = Some(Pattern::Lumps { every_ns: 300 * MS });
    let pair = run(LinkModel { pattern: lumps, ..QUIET }, settings());
    law::check_complete(&pair, "lumps");
    let intervals = &pair.log(End::Server).intervals;
    let packets: Vec<u64> =
        intervals.iter().map(|interval| interval.streams[0].datagrams.packets).collect();
    // Three or four lumps of 300 datagrams come in a second.
    assert!(packets[..9].iter().all(|&count| count == 900 || count == 1200), "{packets:?}");
}

/// Jitter of the first half of a test is in its percentiles and in its mean, not in its last value.
#[test]
fn a_summary_is_of_the_whole_test() {
    let early = Pattern::Early { until_ns: 5 * NANOS_PER_SEC, jitter_ns: MS / 2 };
    let pair = run(LinkModel { pattern: Some(early), ..QUIET }, settings());
    let detail = pair.streams[0].detail().expect("the receiver ran");
    let jitter = detail.jitter.expect("datagrams came");
    assert!(jitter.smoothed_ns < 2_000 && jitter.mean_ns > 50_000, "{jitter:?}");
    let differences = detail.delay_differences.expect("datagrams came");
    assert!(differences.p90_ns > 100_000, "{differences:?}");
    let intervals = pair.streams[0].parts.iter().filter_map(|(_, part)| part.delay_differences);
    let intervals: Vec<u64> = intervals.map(|interval| interval.p90_ns).collect();
    assert!(intervals[1] > 100_000 && intervals[8] < 2_000, "{intervals:?}");
}

/// iperf3's jitter of the same arrivals, datagram by datagram: with gaps, doubles and datagrams that
/// are overtaken, through an omitted start, and with clocks that are near each other or far apart.
#[test]
fn jitter_is_that_of_an_iperf3_receiver_at_every_moment() {
    for (network, data) in NETWORKS {
        for ahead_us in [0, 7 * 3600 * 1_000_000, -21_000, -900_000] {
            for omit_until in [None, Some(2 * NANOS_PER_SEC)] {
                let label = format!("{network} {ahead_us} {omit_until:?}");
                replay(&recorded(data, ahead_us), omit_until.map(|ns| START_NS + ns), &label);
            }
        }
    }
}

/// One datagram as it came.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    /// On the receiver's clock.
    arrived_ns: u64,
    /// On the sender's.
    sent_us: u64,
    sequence: u64,
}

/// What comes over a network in four seconds, in order of arrival.
fn recorded(data: LinkModel, ahead_us: i64) -> Vec<Arrival> {
    let mut link = Link::new(data, 3);
    let mut arrivals = Vec::new();
    for sequence in 1..=4000 {
        let sent_ns = START_NS + sequence * MS;
        let sent_us = (sent_ns / 1000).saturating_add_signed(-ahead_us);
        let copies = link.send(Instant::from_nanos(sent_ns), 1250);
        arrivals.extend(copies.map(|at| Arrival { arrived_ns: at.as_nanos(), sent_us, sequence }));
    }
    arrivals.sort_by_key(|arrival| arrival.arrived_ns);
    arrivals
}

fn replay(arrivals: &[Arrival], omit_until: Option<u64>, label: &str) {
    let plan = StreamPlan {
        id: StreamId::from_index(0),
        role: Role::Receiver,
        protocol: Protocol::Udp,
        block_bytes: 1250,
        bitrate: None,
        burst: None,
        joins_arrivals: false,
        may_wait: false,
        limit_bytes: None,
        share_bytes: None,
        counters_64bit: true,
        omit_until: omit_until.map(Instant::from_nanos),
    };
    let mut flow = ReceiveFlow::<64, BUCKETS>::new(&plan);
    let mut iperf3 = Iperf3Jitter::default();
    let mut is_omitted = omit_until.is_some();
    for &Arrival { arrived_ns, sent_us, sequence } in arrivals {
        if is_omitted && omit_until.is_some_and(|until| arrived_ns >= until) {
            is_omitted = false;
            iperf3 = Iperf3Jitter::default();
        }
        let mut datagram = [0; 16];
        Header { sent_us, sequence }.write(&mut datagram, true);
        flow.handle_datagram(Instant::from_nanos(arrived_ns), &datagram, datagram.len());
        iperf3.record(sent_us, arrived_ns / 1000);
        let apart_ns = flow.tally().jitter_ns as f64 - iperf3.seconds * 1e9;
        assert!(apart_ns.abs() < 1000.0, "{label}: {apart_ns} ns apart at {sequence}");
    }
}

/// As iperf3 since 3.8 computes it: seconds in floating point, from stamps of whole microseconds. The
/// transit is how far the stamps are apart, whichever is later.
#[derive(Debug, Default)]
struct Iperf3Jitter {
    previous: Option<f64>,
    seconds: f64,
}

impl Iperf3Jitter {
    fn record(&mut self, sent_us: u64, arrived_us: u64) {
        let transit = arrived_us.abs_diff(sent_us) as f64 / 1e6;
        let difference = (transit - self.previous.unwrap_or(transit)).abs();
        self.previous = Some(transit);
        self.seconds += (difference - self.seconds) / 16.0;
    }
}

fn settings() -> TestSettings {
    let mut settings = TestSettings::new(Protocol::Udp);
    settings.limits.seconds = Some(10);
    settings.block_bytes = 1250;
    settings.bitrate = Some(BitsPerSec(10_000_000));
    settings.counters_64bit = true;
    settings
}

/// A thousand datagrams a second; twenty thousand small ones where they have to come late by far more
/// than a receiver remembers.
fn run(data: LinkModel, mut settings: TestSettings) -> Pair {
    if data.reorder.is_some_and(|reorder| reorder.by_ns >= FAR_NS) {
        settings.block_bytes = 125;
        settings.bitrate = Some(BitsPerSec(20_000_000));
        settings.limits.seconds = Some(3);
    }
    // The word that the test is over comes after the data.
    let setup = Setup { data, seed: 42, control_latency_ns: 60 * MS, ..Setup::new(settings) };
    let mut pair = Pair::new(setup);
    pair.run(60 * NANOS_PER_SEC);
    pair
}

/// What the receiver tells.
fn measured(pair: &Pair) -> Told {
    let receiver = other(pair.streams[0].sender);
    let summary = pair.endpoint(receiver).and_then(|end| end.accounts().summary(0));
    let detail = pair.streams[0].detail().expect("the receiver ran");
    Told::measured(&summary.expect("it received").local.datagrams, &detail)
}

/// The stretches between two samples.
fn check_parts(stream: &Stream, label: &str) {
    let measured = stream.truth.measured();
    let mut begin = 0;
    for (end, part) in &stream.parts {
        let first = if *end > measured.start { measured.start } else { 0 };
        let stretch = begin.max(first)..*end;
        let label = format!("{label}, arrivals {stretch:?}");
        begin = *end;
        let right = stream.truth.trace.delays_of(stretch.clone(), first);
        let told = Delays { iperf3_ns: right.iperf3_ns, ..delays(part, 0) };
        check_delays(&told, &right, &label);
        let told = part.reordering.unwrap_or_default();
        let right = stream.truth.trace.truth_of(stretch).reordering;
        assert_eq!((told.count, told.extent_sum), (right.count, right.extent_sum), "{label}");
        assert!(told.max_extent >= right.max_extent, "{label}");
        assert!(told.count > 0 || told.max_extent == 0, "{label}");
    }
}

fn check_delays(told: &Delays, right: &Delays, label: &str) {
    assert_eq!(told.variation.count, right.variation.count, "{label}");
    assert_eq!(told.differences.count, right.differences.count, "{label}");
    for ((what, told_ns), (_, right_ns)) in told.all_ns().into_iter().zip(right.all_ns()) {
        // The microsecond is what a sender's stamp is cut to.
        let is_near = (told_ns - right_ns).abs() <= right_ns / 20.0 + 1064.0;
        assert!(is_near, "{label}: {what} is told as {told_ns} ns of {right_ns}");
    }
}

const MS: u64 = 1_000_000;
const START_NS: u64 = 100_000 * NANOS_PER_SEC;
const FAR_NS: u64 = 300 * MS;

const QUIET: LinkModel = LinkModel {
    latency_ns: 20 * MS,
    clock_offset_ns: 5 * 3600 * NANOS_PER_SEC as i64 + 123_456_789,
    ..LinkModel::STILL
};

/// Those that have something of everything.
const HARD: [&str; 3] = ["uniform, small", "queue that is full", "all of it"];

const NETWORKS: [(&str, LinkModel); 15] = [
    ("still", QUIET),
    ("random loss", LinkModel { loss_ppm: 20_000, ..QUIET }),
    ("rows of 5 lost", LinkModel { holes: Some(Holes { every: 95, length: 5 }), ..QUIET }),
    ("bursts of loss", LinkModel { burst: BURST, ..QUIET }),
    ("doubles", LinkModel { duplicate_ppm: 20_000, ..QUIET }),
    ("doubles, apart", LinkModel { duplicate_ppm: 20_000, jitter_ns: 4 * MS, ..QUIET }),
    ("overtaken by 4", LinkModel { reorder: reorder(30_000, 4 * MS + MS / 2), ..QUIET }),
    ("overtaken by 100", LinkModel { reorder: reorder(10_000, 100 * MS), ..QUIET }),
    ("too late", LinkModel { reorder: reorder(2000, FAR_NS), ..QUIET }),
    ("uniform delay", LinkModel { jitter_ns: 3 * MS, ..QUIET }),
    ("uniform, small", LinkModel { jitter_ns: MS / 2, ..QUIET }),
    ("spikes", LinkModel { pattern: Some(Pattern::Spikes { ppm: 5000, by_ns: 8 * MS }), ..QUIET }),
    ("queue that drains", LinkModel { pattern: QUEUE, ..QUIET }),
    ("queue that is full", LinkModel { rate: Some(9_500_000), queue_bytes: Some(50_000), ..QUIET }),
    (
        "all of it",
        LinkModel {
            burst: BURST,
            duplicate_ppm: 10_000,
            reorder: reorder(20_000, 25 * MS),
            pattern: QUEUE,
            jitter_ns: MS,
            ..QUIET
        },
    ),
];

const BURST: Option<Burst> = Some(Burst { begin_ppm: 5000, end_ppm: 200_000 });
const QUEUE: Option<Pattern> =
    Some(Pattern::Queue { period_ns: 2 * NANOS_PER_SEC, deepest_ns: 30 * MS });

const fn reorder(ppm: u32, by_ns: u64) -> Option<Reorder> {
    Some(Reorder { ppm, by_ns })
}
