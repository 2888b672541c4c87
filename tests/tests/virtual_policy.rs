//! What ends a test before its end in virtual time: silence where a receive time-out was asked for,
//! a server's limits, and nothing else. Times are exact, whatever the report intervals are.

use std::time::Duration;

use linerate_core::protocol::code::{ServerError, error_number};
use linerate_core::protocol::extension::Offer;
use linerate_core::session::{
    Admission, Denial, Ending, Event, Policy, RateLimit, Refusal, SessionError, Timer,
};
use linerate_core::test::{Direction, End, Limits, Protocol, TestSettings};
use linerate_core::time::NANOS_PER_SEC;
use linerate_core::units::BitsPerSec;
use linerate_tests::link::model::LinkModel;
use linerate_tests::virtual_time::law;
use linerate_tests::virtual_time::pair::Pair;
use linerate_tests::virtual_time::setup::{Fault, Setup};

const MS: u64 = NANOS_PER_SEC / 1000;
const LATENCY_NS: u64 = 5 * MS;

/// One datagram of 1000 bytes every eight seconds, the first at once, for 30 seconds.
fn sparse(direction: Direction) -> Setup {
    let mut settings = TestSettings::new(Protocol::Udp);
    settings.direction = direction;
    settings.block_bytes = 1000;
    settings.bitrate = Some(BitsPerSec(1000));
    settings.limits = Limits { seconds: Some(30), ..Limits::default() };
    Setup::new(settings)
}

fn run(setup: Setup, label: &str) -> Pair {
    let longest_ns = setup.longest_ns();
    let mut pair = Pair::new(setup);
    pair.run(longest_ns);
    law::check_any(&pair, label);
    pair
}

/// Nanoseconds from the start of `end`'s clock to the end of its measurement.
fn measured_after(pair: &Pair, end: End) -> u64 {
    let at = |event| {
        let mut events = pair.log(end).events.iter();
        events.find(|(_, told)| *told == event).map(|&(at, _)| at).expect("it came")
    };
    at(Event::Measured).nanos_since(at(Event::Started))
}

fn failed(error: SessionError) -> Option<Ending> {
    Some(Ending::Failed(error))
}

fn told(number: i32) -> Option<Ending> {
    failed(SessionError::Refused(Refusal::Error(ServerError::new(number))))
}

#[test]
fn silence_ends_a_receiver_at_its_time_and_not_at_a_report() {
    let intervals = [None, Some(Duration::from_secs(1)), Some(Duration::from_secs(60))];
    for interval in intervals {
        for (direction, receiver) in [
            (Direction::Forward, End::Server),
            (Direction::Reverse, End::Client),
            (Direction::Bidirectional, End::Server),
        ] {
            let label = format!("{direction:?} {interval:?}");
            let mut setup = sparse(direction);
            setup.interval = interval;
            setup.deadlines.silence_ns = Some(1500 * MS);
            let pair = run(setup, &label);
            let silent = failed(SessionError::TimedOut(Timer::Silence));
            assert_eq!(pair.ending(receiver), silent, "{label}");
            let after_ns = measured_after(&pair, receiver);
            let expected = match (direction, receiver) {
                // Sent when the client's clock starts, one latency after the server's, and one more
                // on its way.
                (_, End::Server) => 1500 * MS + 2 * LATENCY_NS,
                // Sent when the server's clock started; it comes with the word to start.
                (_, End::Client) => 1500 * MS,
            };
            assert_eq!(after_ns, expected, "{label}");
            let bytes = |end| {
                let accounts = pair.endpoint(end).expect("it is there").accounts();
                accounts.summary(0).expect("one stream").local.bytes
            };
            assert_eq!(bytes(receiver), 1000, "{label}: what came is measured");
            let (end, expected) = match (direction, receiver) {
                // Both receive, and nothing comes to either.
                (Direction::Bidirectional, _) => (End::Client, silent),
                (_, End::Server) => (End::Client, told(error_number::NO_DATA)),
                (_, End::Client) => (End::Server, failed(SessionError::Terminated(End::Client))),
            };
            assert_eq!(pair.ending(end), expected, "{label}");
        }
    }
}

#[test]
fn silence_ends_nothing_where_no_time_out_was_asked_for() {
    for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
        let label = format!("{direction:?}");
        let pair = run(sparse(direction), &label);
        law::check_complete(&pair, &label);
    }
}

#[test]
fn data_that_keeps_coming_keeps_the_test() {
    for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
        let label = format!("{direction:?}");
        let mut setup = sparse(direction);
        setup.settings.omit_secs = 10;
        // Eight seconds between datagrams, and up to 10 ms of starting.
        setup.deadlines.silence_ns = Some(8 * NANOS_PER_SEC + 20 * MS);
        let pair = run(setup, &label);
        law::check_complete(&pair, &label);
    }
}

#[test]
fn an_end_that_only_sends_waits_for_no_data() {
    let mut setup = sparse(Direction::Reverse);
    setup.data = LinkModel { loss_ppm: 1_000_000, ..setup.data };
    setup.deadlines.silence_ns = Some(1500 * MS);
    let pair = run(setup, "all is lost");
    // It is the client that misses the data; its server hears only that it goes.
    assert_eq!(pair.ending(End::Client), failed(SessionError::TimedOut(Timer::Silence)));
    assert_eq!(measured_after(&pair, End::Client), 1500 * MS);
    assert_eq!(pair.ending(End::Server), failed(SessionError::Terminated(End::Client)));
}

#[test]
fn what_a_server_does_not_allow_is_refused_before_data_flows() {
    let policy = Policy {
        bitrate: Some(RateLimit { rate: BitsPerSec(1_000_000), span_ns: 5 * NANOS_PER_SEC }),
        seconds: Some(5),
        has_file: true,
        ..Policy::default()
    };
    let tcp = |change: &dyn Fn(&mut TestSettings)| {
        let mut settings = TestSettings::new(Protocol::Tcp);
        settings.limits.seconds = Some(5);
        change(&mut settings);
        settings
    };
    for (label, settings, number) in [
        ("rate", tcp(&|s| s.bitrate = Some(BitsPerSec(1_000_001))), error_number::TOTAL_RATE),
        ("paced rate", tcp(&|s| s.fq_rate = Some(BitsPerSec(1_000_001))), error_number::TOTAL_RATE),
        ("time", tcp(&|s| s.limits.seconds = Some(6)), error_number::MAX_DURATION),
        ("no time", tcp(&|s| s.limits.seconds = None), error_number::MAX_DURATION),
        ("omitted start", tcp(&|s| s.omit_secs = 1), error_number::MAX_DURATION),
        ("datagrams", TestSettings::new(Protocol::Udp), error_number::UDP_FILE),
        (
            "rate and time",
            tcp(&|s| (s.bitrate, s.limits.seconds) = (Some(BitsPerSec(1 << 40)), None)),
            error_number::TOTAL_RATE,
        ),
    ] {
        let mut setup = Setup::new(settings);
        setup.policy = policy;
        let pair = run(setup, label);
        assert_eq!(pair.ending(End::Client), told(number), "{label}");
        let server = pair.ending(End::Server);
        assert!(
            matches!(
                server,
                Some(Ending::Failed(SessionError::NotAllowed(denial)))
                    if denial.told().number == number
            ),
            "{label}: {server:?}"
        );
        for end in [End::Client, End::Server] {
            assert_eq!(pair.log(end).count(Event::Started), 0, "{label}");
        }
    }
}

#[test]
fn a_rate_above_the_limit_ends_the_test_when_the_span_is_full() {
    for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
        for interval in [None, Some(Duration::from_secs(1)), Some(Duration::from_secs(60))] {
            let label = format!("{direction:?} {interval:?}");
            let mut settings = TestSettings::new(Protocol::Tcp);
            settings.direction = direction;
            settings.block_bytes = 1000;
            settings.limits = Limits { seconds: Some(30), ..Limits::default() };
            let mut setup = Setup::new(settings);
            setup.interval = interval;
            setup.window_bytes = 10_000;
            setup.policy.bitrate =
                Some(RateLimit { rate: BitsPerSec(1_000_000), span_ns: 2 * NANOS_PER_SEC });
            let pair = run(setup, &label);
            assert_eq!(pair.ending(End::Client), told(error_number::TOTAL_RATE), "{label}");
            let Some(Ending::Failed(SessionError::NotAllowed(Denial::Measured {
                measured,
                limit,
            }))) = pair.ending(End::Server)
            else {
                panic!("{label}: {:?}", pair.ending(End::Server));
            };
            // A window of 10 kB in 10 ms is 8 Mbit/s each way.
            let both = if direction == Direction::Bidirectional { 2 } else { 1 };
            assert!((7_900_000 * both..=8_100_000 * both).contains(&measured), "{measured}");
            assert_eq!(limit, 1_000_000, "{label}");
            assert_eq!(measured_after(&pair, End::Server), 2 * NANOS_PER_SEC, "{label}");
        }
    }
}

#[test]
fn a_client_that_keeps_to_the_limit_runs_to_its_end() {
    for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
        let label = format!("{direction:?}");
        let mut settings = TestSettings::new(Protocol::Tcp);
        settings.direction = direction;
        settings.parallel = 2;
        settings.block_bytes = 10_000;
        settings.bitrate = Some(BitsPerSec(250_000));
        settings.limits = Limits { seconds: Some(12), ..Limits::default() };
        let mut setup = Setup::new(settings);
        setup.policy = Policy {
            bitrate: Some(RateLimit { rate: BitsPerSec(1_000_000), span_ns: NANOS_PER_SEC }),
            seconds: Some(12),
            has_file: true,
            ..Policy::default()
        };
        let pair = run(setup, &label);
        law::check_complete(&pair, &label);
    }
}

#[test]
fn a_client_that_does_not_end_its_test_is_ended_after_the_grace() {
    for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
        let mut setup = sparse(direction);
        setup.settings.omit_secs = 3;
        setup.settings.limits.seconds = Some(5);
        // Quiet data alone would not end it before.
        setup.policy.seconds = Some(8);
        let mut pair = Pair::new(setup);
        pair.schedule(500 * MS, Fault::Block(End::Client, 100 * NANOS_PER_SEC));
        pair.run(200 * NANOS_PER_SEC);
        let over = failed(SessionError::TimedOut(Timer::TestLimit));
        assert_eq!(pair.ending(End::Server), over, "{direction:?}");
        // The omitted start, the time, and iperf3's 40 seconds.
        let expected = (3 + 5 + 40) * NANOS_PER_SEC;
        assert_eq!(measured_after(&pair, End::Server), expected, "{direction:?}");
    }
}

/// What a client that offers the extension is told of a refusal, and one that does not.
#[test]
fn a_refusal_is_explained_to_whoever_can_read_it() {
    let limited = Policy {
        bytes: Some(1_000_000),
        streams: Some(2),
        refuses_udp: true,
        seconds: Some(5),
        ..Policy::default()
    };
    let tcp = |change: &dyn Fn(&mut TestSettings)| {
        let mut settings = TestSettings::new(Protocol::Tcp);
        settings.limits.seconds = Some(5);
        change(&mut settings);
        settings
    };
    let accept = Admission::Accept;
    let full = Denial::Tests { limit: 1 };
    let server_streams = Denial::ServerStreams { asked: 4, taken: 9, limit: 12 };
    let server_rate = Denial::ServerBitrate { asked: Some(4), taken: 9, limit: 12 };
    for (settings, admission, denial) in [
        (tcp(&|s| s.parallel = 3), accept, Denial::Streams { asked: 3, limit: 2 }),
        (TestSettings::new(Protocol::Udp), accept, Denial::Datagrams),
        (
            tcp(&|s| s.limits.seconds = None),
            accept,
            Denial::Duration { asked_secs: None, limit_secs: 5 },
        ),
        (tcp(&|_| ()), Admission::NotAllowed(full), full),
        (tcp(&|_| ()), Admission::NotAllowed(server_streams), server_streams),
        (tcp(&|_| ()), Admission::NotAllowed(server_rate), server_rate),
    ] {
        for offer in [None, Some(Offer::OWN)] {
            let label = format!("{denial} {offer:?}");
            let mut setup = Setup::new(settings);
            (setup.policy, setup.admission) = (limited, admission);
            (setup.offer, setup.answer) = (offer, Some(Offer::OWN));
            let pair = run(setup, &label);
            let refusal = match denial.told() {
                ServerError { number: error_number::BUSY, .. } => Refusal::Busy,
                told => Refusal::Error(told),
            };
            let refused = failed(SessionError::Refused(refusal));
            assert_eq!(pair.ending(End::Client), refused, "{label}");
            assert_eq!(pair.ending(End::Server), failed(SessionError::NotAllowed(denial)));
            let expected = offer.map(|_| denial.to_string());
            assert_eq!(pair.client.explanation(), expected.as_deref(), "{label}");
        }
    }
}

#[test]
fn a_limit_of_bytes_ends_the_test_as_it_is_reached() {
    let limit = 3_000_000;
    for (protocol, direction, parallel, most) in [
        // What a server sends stops at the limit.
        (Protocol::Tcp, Direction::Reverse, 1, 0),
        (Protocol::Tcp, Direction::Reverse, 7, 0),
        (Protocol::Udp, Direction::Reverse, 7, 0),
        // What comes to it comes in windows of 10 kB.
        (Protocol::Tcp, Direction::Forward, 1, 10_000),
        (Protocol::Tcp, Direction::Forward, 7, 70_000),
        (Protocol::Tcp, Direction::Bidirectional, 1, 20_000),
    ] {
        for offer in [None, Some(Offer::OWN)] {
            let label = format!("{protocol:?} {direction:?} {parallel} {offer:?}");
            let mut settings = TestSettings::new(protocol);
            (settings.direction, settings.block_bytes) = (direction, 1000);
            (settings.parallel, settings.bitrate) = (parallel, None);
            settings.limits = Limits { seconds: Some(30), ..Limits::default() };
            let mut setup = Setup::new(settings);
            (setup.interval, setup.window_bytes) = (None, 10_000);
            (setup.offer, setup.answer) = (offer, Some(Offer::OWN));
            setup.policy.bytes = Some(limit);
            let pair = run(setup, &label);
            assert_eq!(pair.ending(End::Client), told(error_number::TOTAL_RATE), "{label}");
            let Some(Ending::Failed(SessionError::NotAllowed(denial))) = pair.ending(End::Server)
            else {
                panic!("{label}: {:?}", pair.ending(End::Server));
            };
            let Denial::MeasuredBytes { measured, limit: told } = denial else {
                panic!("{denial}")
            };
            assert_eq!(told, limit, "{label}");
            // Shares are in whole datagrams.
            let least = limit - u64::from(parallel) * 1000;
            assert!((least..=limit + most).contains(&measured), "{label}: {measured}");
            let expected = offer.map(|_| denial.to_string());
            assert_eq!(pair.client.explanation(), expected.as_deref(), "{label}");
        }
    }
}

#[test]
fn an_amount_that_is_just_what_is_allowed_is_moved() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
            for (parallel, offer) in [(1, None), (3, Some(Offer::OWN))] {
                let label = format!("{protocol:?} {direction:?} {parallel} {offer:?}");
                let mut settings = TestSettings::new(protocol);
                (settings.direction, settings.parallel) = (direction, parallel);
                (settings.block_bytes, settings.bitrate) = (1000, Some(BitsPerSec(8_000_000)));
                settings.limits = Limits { seconds: None, bytes: Some(333_333), blocks: None };
                let mut setup = Setup::new(settings);
                (setup.offer, setup.answer) = (offer, Some(Offer::OWN));
                let both = if direction == Direction::Bidirectional { 2 } else { 1 };
                setup.policy.bytes = Some(both * 333_333);
                law::check_complete(&run(setup, &label), &label);
            }
        }
    }
}

#[test]
fn what_is_omitted_is_moved_all_the_same() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let mut settings = TestSettings::new(protocol);
        (settings.direction, settings.omit_secs) = (Direction::Reverse, 1);
        (settings.block_bytes, settings.bitrate) = (1000, Some(BitsPerSec(8_000_000)));
        settings.limits = Limits { seconds: None, bytes: Some(333_000), blocks: None };
        let mut setup = Setup::new(settings);
        setup.policy.bytes = Some(333_000);
        let pair = run(setup, "an omitted start");
        assert_eq!(pair.ending(End::Client), told(error_number::TOTAL_RATE), "{protocol:?}");
        let denial = Denial::MeasuredBytes { measured: 334_000, limit: 333_000 };
        assert_eq!(pair.ending(End::Server), failed(SessionError::NotAllowed(denial)));
    }
}

#[test]
fn what_all_tests_move_together_counts_over_the_whole_span() {
    let span_ns = 2 * NANOS_PER_SEC;
    for (bitrate, others, limit, ended_after) in [
        // 8 Mbit/s alone, 4 of the last two seconds after the first.
        (None, 0, 8_200_000, None),
        (None, 6_000_000, 9_900_000, Some(NANOS_PER_SEC)),
        (None, 6_000_000, 13_900_000, Some(span_ns)),
        // As soon as it has moved what a span may hold.
        (None, 0, 1_000_000, Some(span_ns / 8)),
        // What was agreed counts from the first look on, and not more.
        (Some(1_000_000), 6_000_000, 7_000_000, None),
        (Some(1_000_000), 6_000_000, 6_999_999, Some(MS)),
    ] {
        let label = format!("{bitrate:?} {others} {limit}");
        let mut settings = TestSettings::new(Protocol::Tcp);
        settings.block_bytes = 1000;
        settings.bitrate = bitrate.map(BitsPerSec);
        settings.limits = Limits { seconds: Some(10), ..Limits::default() };
        let mut setup = Setup::new(settings);
        setup.window_bytes = 10_000;
        setup.others_bits_per_second = others;
        setup.policy.server_bitrate = Some(RateLimit { rate: BitsPerSec(limit), span_ns });
        let pair = run(setup, &label);
        match ended_after {
            None => law::check_complete(&pair, &label),
            Some(expected) => {
                assert_eq!(pair.ending(End::Client), told(error_number::TOTAL_RATE), "{label}");
                let after_ns = measured_after(&pair, End::Server);
                // Eight looks while it moves what a span may hold.
                let step_ns = limit * span_ns / 8_000_000 / 8;
                assert!(after_ns.abs_diff(expected) <= step_ns + LATENCY_NS, "{label}: {after_ns}");
            }
        }
    }
}
