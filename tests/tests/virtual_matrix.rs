//! Every kind of test over quiet and bad networks, as one table: what both ends report of it. Each
//! row is held against the truth of the network before it is printed.

use std::fmt::Write as _;

use linerate_core::protocol::extension::Offer;
use linerate_core::session::Ending;
use linerate_core::test::{Direction, End, Limits, Protocol, Role, TestSettings};
use linerate_core::time::NANOS_PER_SEC;
use linerate_core::units::BitsPerSec;
use linerate_tests::link::model::{Burst, LinkModel, Reorder};
use linerate_tests::virtual_time::law;
use linerate_tests::virtual_time::pair::Pair;
use linerate_tests::virtual_time::setup::Setup;

#[test]
fn both_ends_report_the_same_true_numbers() {
    let mut table = String::new();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for (ends, limits) in ends(protocol) {
            for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
                for parallel in [1, 3] {
                    for omit_secs in [0, 2] {
                        for (network, data) in NETWORKS {
                            let row =
                                Row { protocol, limits, direction, parallel, omit_secs, data };
                            let label = format!(
                                "{} {} P{parallel} omit {omit_secs} {ends} {network}",
                                name(protocol),
                                name(direction),
                            );
                            row.write(&label, &mut table);
                        }
                    }
                }
            }
        }
    }
    insta::assert_snapshot!("matrix", table);
}

struct Row {
    protocol: Protocol,
    limits: Limits,
    direction: Direction,
    parallel: u16,
    omit_secs: u32,
    data: LinkModel,
}

impl Row {
    fn write(&self, label: &str, table: &mut String) {
        let pair = self.run();
        law::check_any(&pair, label);
        law::check_complete(&pair, label);
        self.check_amount(&pair, label);
        self.check_durations(&pair, label);
        for end in [End::Client, End::Server] {
            let label = if end == End::Client { label } else { "" };
            writeln!(table, "{label:42} {}", described(&pair, end)).expect("a string has room");
        }
    }

    fn run(&self) -> Pair {
        let mut settings = TestSettings::new(self.protocol);
        settings.direction = self.direction;
        settings.parallel = self.parallel;
        settings.omit_secs = self.omit_secs;
        settings.limits = self.limits;
        if self.protocol == Protocol::Udp {
            settings.block_bytes = 1250;
            settings.bitrate = Some(BitsPerSec(1_000_000));
            settings.counters_64bit = self.parallel > 1;
        }
        let mut setup = Setup::new(settings);
        setup.data = self.data;
        setup.seed = 42;
        // The extension and the server's output take part in every other row.
        if self.parallel > 1 {
            setup.offer = Some(Offer::OWN);
            setup.answer = Some(Offer::OWN);
        }
        let mut pair = Pair::new(setup);
        pair.run(600 * NANOS_PER_SEC);
        pair
    }

    /// A client that sends ends exactly at the limit.
    fn check_amount(&self, pair: &Pair, label: &str) {
        if self.direction != Direction::Forward {
            return;
        }
        let block_bytes = u64::from(pair.setup().settings.block_bytes);
        let blocks = match (self.limits.bytes, self.limits.blocks) {
            (Some(bytes), _) if self.protocol == Protocol::Tcp => {
                return assert_eq!(totals(pair, End::Client).sent, bytes, "{label}");
            }
            (Some(bytes), _) => bytes.div_ceil(block_bytes),
            (None, Some(blocks)) => blocks,
            (None, None) => return,
        };
        assert_eq!(totals(pair, End::Client).sent, blocks * block_bytes, "{label}");
    }

    /// A test by time lasts exactly so long at the client, and about as long at the server.
    fn check_durations(&self, pair: &Pair, label: &str) {
        let Some(seconds) = self.limits.seconds else { return };
        let expected_ns = u64::from(seconds) * NANOS_PER_SEC;
        let of = |end| pair.endpoint(end).expect("both ends ran").accounts().duration_ns();
        assert_eq!(of(End::Client), expected_ns, "{label}");
        let server_ns = of(End::Server);
        let longest_ns = expected_ns + NANOS_PER_SEC / 20;
        assert!((expected_ns..longest_ns).contains(&server_ns), "{label}: {server_ns}");
    }
}

fn ends(protocol: Protocol) -> [(&'static str, Limits); 3] {
    let none = Limits::default();
    let (bytes, blocks) = match protocol {
        Protocol::Tcp | Protocol::Sctp => (7_000_001, 41),
        Protocol::Udp => (400_001, 301),
    };
    [
        ("-t", Limits { seconds: Some(10), ..none }),
        ("-n", Limits { bytes: Some(bytes), ..none }),
        ("-k", Limits { blocks: Some(blocks), ..none }),
    ]
}

const QUIET: LinkModel =
    LinkModel { latency_ns: 20_000_000, clock_offset_ns: -250_123_456_789, ..LinkModel::STILL };

const NETWORKS: [(&str, LinkModel); 4] = [
    ("quiet", QUIET),
    ("lossy", LinkModel { loss_ppm: 20_000, jitter_ns: 3_000_000, ..QUIET }),
    (
        "rough",
        LinkModel {
            burst: Some(Burst { begin_ppm: 5000, end_ppm: 200_000 }),
            duplicate_ppm: 10_000,
            reorder: Some(Reorder { ppm: 20_000, by_ns: 25_000_000 }),
            jitter_ns: 5_000_000,
            ..QUIET
        },
    ),
    // Less than the test asks for: the queue overflows.
    ("narrow", LinkModel { rate: Some(600_000), queue_bytes: Some(270_000), ..QUIET }),
];

#[derive(Default)]
struct Totals {
    sent: u64,
    received: u64,
    packets: u64,
    lost: u64,
}

fn totals(pair: &Pair, end: End) -> Totals {
    let accounts = pair.endpoint(end).expect("both ends ran").accounts();
    let mut totals = Totals::default();
    for summary in (0..accounts.streams().len()).filter_map(|index| accounts.summary(index)) {
        let datagrams = summary.local.datagrams;
        match summary.role {
            Role::Sender => totals.sent += summary.local.bytes,
            Role::Receiver => totals.received += summary.local.bytes,
        }
        totals.packets += datagrams.packets;
        totals.lost += datagrams.lost.unwrap_or(0);
    }
    totals
}

fn described(pair: &Pair, end: End) -> String {
    let Totals { sent, received, packets, lost } = totals(pair, end);
    let log = pair.log(end);
    let omitted = log.intervals.iter().filter(|interval| interval.omitted).count();
    let measured = log.intervals.len() - omitted;
    let micros = pair.endpoint(end).expect("both ends ran").accounts().duration_ns() / 1000;
    let ending = match pair.ending(end) {
        Some(Ending::Complete) => "complete",
        _ => "failed",
    };
    format!(
        "{end:?} sent {sent:9} got {received:9} packets {packets:5} lost {lost:4} \
         intervals {omitted}+{measured} in {micros:9} us {ending}"
    )
}

fn name(of: impl std::fmt::Debug) -> String {
    let mut name = format!("{of:?}").to_lowercase();
    name.truncate(5);
    name
}
