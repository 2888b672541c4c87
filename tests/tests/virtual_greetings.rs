//! UDP set-up in virtual time, over networks that lose, double, delay and reorder greetings: with a
//! server that acknowledges them it always succeeds; with any other, nothing is ever said twice that
//! did arrive, and what cannot be known is an error in time.

use linerate_core::protocol::extension::Offer;
use linerate_core::session::{Ending, SessionError, Timer};
use linerate_core::test::{Direction, End, Limits, Protocol, StreamId, TestSettings};
use linerate_core::time::NANOS_PER_SEC;
use linerate_core::units::BitsPerSec;
use linerate_tests::link::model::{Burst, LinkModel, Reorder};
use linerate_tests::virtual_time::law;
use linerate_tests::virtual_time::pair::Pair;
use linerate_tests::virtual_time::random::seeds;
use linerate_tests::virtual_time::setup::Setup;

const DIRECTIONS: [Direction; 3] =
    [Direction::Forward, Direction::Reverse, Direction::Bidirectional];

#[test]
fn acknowledged_greetings_come_through_whatever_the_network_does() {
    let networks = [
        LinkModel { loss_ppm: 500_000, ..NETWORK },
        LinkModel { loss_ppm: 500_000, duplicate_ppm: 500_000, ..NETWORK },
        LinkModel { reorder: Some(Reorder { ppm: 500_000, by_ns: NANOS_PER_SEC }), ..NETWORK },
        LinkModel { latency_ns: NANOS_PER_SEC, duplicate_ppm: 300_000, ..NETWORK },
        LinkModel { burst: Some(Burst { begin_ppm: 200_000, end_ppm: 100_000 }), ..NETWORK },
    ];
    for seed in seeds(20, 500) {
        for (number, network) in networks.into_iter().enumerate() {
            for direction in DIRECTIONS {
                let setup = Setup { seed, greetings: Some(network), ..named(direction, 4) };
                let label = format!("seed {seed} network {number} {direction:?}");
                let pair = ran(setup);
                check_complete(&pair, &label);
            }
        }
    }
}

#[test]
fn a_named_stream_whose_first_greeting_is_lost_waits_a_fifth_of_a_second() {
    for (from, most_ns) in [(End::Client, 300_000_000), (End::Server, 100_000_000)] {
        let lost_greetings = vec![(from, 1)];
        let pair = ran(Setup { lost_greetings, ..named(Direction::Forward, 1) });
        check_complete(&pair, &format!("{from:?}"));
        let before_ns = 5 * NETWORK.latency_ns;
        let set_up_ns = began_after(&pair) - before_ns;
        assert!(set_up_ns < most_ns, "{from:?}: {set_up_ns}");
    }
}

#[test]
fn any_single_lost_greeting_is_repeated_to_a_stock_server_and_never_another() {
    for direction in DIRECTIONS {
        for parallel in [1, 2, 4] {
            let count = direction.stream_count(parallel) as u64;
            for lost in 1..=count {
                let lost_greetings = vec![(End::Client, lost)];
                let pair = ran(Setup { lost_greetings, ..once(direction, parallel) });
                let label = format!("{direction:?} {parallel}, greeting {lost} lost");
                check_complete(&pair, &label);
                assert_eq!(pair.greetings.sent[End::Client as usize], count + 1, "{label}");
                assert_eq!(pair.greetings.copies, 0, "{label}");
                // One stream waits a second, and all of them two for the start.
                assert!(began_after(&pair) < 4 * NANOS_PER_SEC, "{label}");
            }
        }
    }
}

#[test]
fn the_start_of_a_stock_server_proves_that_all_arrived_whatever_replies_are_lost() {
    for direction in DIRECTIONS {
        for parallel in [1, 4] {
            let count = direction.stream_count(parallel) as u64;
            let mut which: Vec<Vec<u64>> = (1..=count).map(|reply| vec![reply]).collect();
            which.push((1..=count).collect());
            for lost in which {
                let lost_greetings = lost.iter().map(|&reply| (End::Server, reply)).collect();
                let pair = ran(Setup { lost_greetings, ..once(direction, parallel) });
                let label = format!("{direction:?} {parallel}, replies {lost:?} lost");
                check_complete(&pair, &label);
                assert_eq!(pair.greetings.sent, [count; 2], "{label}: each is said once");
                let most_ns = lost.len() as u64 * NANOS_PER_SEC;
                assert!(began_after(&pair) < most_ns + NANOS_PER_SEC / 2, "{label}");
            }
        }
    }
}

#[test]
fn data_that_comes_before_any_reply_or_word_is_proof_enough_and_is_counted() {
    for parallel in [1, 3] {
        let lost_greetings = (1..=3).map(|reply| (End::Server, reply)).collect();
        let mut setup = Setup { lost_greetings, ..once(Direction::Reverse, parallel) };
        // The server's word that it starts takes its time; its data does not.
        setup.control_latency_ns = 400_000_000;
        setup.greetings = Some(NETWORK);
        let pair = ran(setup);
        check_complete(&pair, &format!("{parallel}"));
        assert_eq!(pair.greetings.sent, [u64::from(parallel); 2]);
        for stream in &pair.streams {
            let first = stream.truth.trace.first();
            assert_eq!(first, Some(1), "what waited in the socket is counted");
        }
    }
}

#[test]
fn of_several_lost_greetings_a_stock_server_is_told_none_again_and_the_streams_are_named() {
    let lost_greetings = vec![(End::Client, 2), (End::Client, 4)];
    let pair = ran(Setup { lost_greetings, ..once(Direction::Forward, 4) });
    let error = SessionError::Ungreeted { missing: 2, of: 4 };
    assert_eq!(pair.ending(End::Client), Some(Ending::Failed(error)));
    assert!(pair.client.ungreeted().eq([1, 3].map(StreamId::from_index)));
    assert_eq!(pair.greetings.sent[End::Client as usize], 4);
    let (at, _) = pair.log(End::Client).finished.expect("it failed");
    assert!(at.as_nanos() < START_NS + 5 * NANOS_PER_SEC, "at once when it is known");
    assert!(pair.ending(End::Server).is_some(), "the server is told");
}

#[test]
fn a_stock_server_that_never_answers_is_given_up_in_time() {
    for (parallel, most_secs) in [(1, 31), (4, 7)] {
        let lost_greetings = (1..=100).map(|greeting| (End::Client, greeting)).collect();
        let mut setup = Setup { lost_greetings, ..once(Direction::Reverse, parallel) };
        // As patient as a stock one.
        setup.deadlines.greet_ns = u64::MAX;
        let pair = ran(setup);
        let error = SessionError::Ungreeted { missing: parallel, of: parallel };
        assert_eq!(pair.ending(End::Client), Some(Ending::Failed(error)));
        let (at, _) = pair.log(End::Client).finished.expect("it failed");
        assert!(at.as_nanos() < START_NS + most_secs * NANOS_PER_SEC, "{parallel}: {at:?}");
    }
}

#[test]
fn a_server_waits_for_each_greeting_of_a_stock_client_but_not_for_ever() {
    let from_third = |last| (3..=last).map(|greeting| (End::Client, greeting));
    let mut setup = once(Direction::Forward, 3);
    setup.lost_greetings = from_third(100).collect();
    setup.deadlines.streams_ns = 20 * NANOS_PER_SEC;
    let pair = ran(setup);
    let error = SessionError::TimedOut(Timer::Greeting);
    assert_eq!(pair.ending(End::Server), Some(Ending::Failed(error)));
    let (at, _) = pair.log(End::Server).finished.expect("it failed");
    let greet_ns = pair.setup().deadlines.greet_ns;
    assert!((0..NANOS_PER_SEC / 2).contains(&(at.as_nanos() - START_NS - greet_ns)), "{at:?}");
    // Until then the client may find out what is lost, and greet again.
    let mut setup = once(Direction::Forward, 3);
    setup.lost_greetings = from_third(4).collect();
    check_complete(&ran(setup), "the third greeting came at the third time");
}

#[test]
fn at_half_loss_a_stock_server_is_never_told_twice_what_it_has_heard() {
    let mut complete = [0; 2];
    for seed in seeds(200, 5000) {
        for (kind, parallel) in [1, 4].into_iter().enumerate() {
            for direction in DIRECTIONS {
                let greetings = Some(LinkModel { loss_ppm: 500_000, ..NETWORK });
                let mut setup = Setup { seed, greetings, ..once(direction, parallel) };
                setup.deadlines.greet_ns = setup.deadlines.streams_ns;
                let label = format!("seed {seed} {direction:?} {parallel}");
                let pair = ran(setup);
                law::check_any(&pair, &label);
                assert_eq!(pair.greetings.copies, 0, "{label}: a copy would count as data");
                match pair.ending(End::Client) {
                    Some(Ending::Complete) => {
                        check_complete(&pair, &label);
                        complete[kind] += 1;
                    }
                    Some(Ending::Failed(SessionError::Ungreeted { missing, .. })) => {
                        assert_eq!(
                            pair.client.ungreeted().count(),
                            usize::from(missing),
                            "{label}"
                        );
                    }
                    other => panic!("{label}: {other:?}"),
                }
            }
        }
    }
    println!("complete: {complete:?}");
    assert!(complete[0] > 100, "a single stream mostly comes through");
}

#[test]
fn streams_of_a_stock_server_are_numbered_by_arrival_when_greetings_overtake_each_other() {
    // Seldom enough that mostly one greeting or reply is late in a test.
    let reorder = Some(Reorder { ppm: 60_000, by_ns: 3 * NANOS_PER_SEC / 2 });
    let mut agreed = [0; 2];
    for seed in seeds(200, 2000) {
        let greetings = Some(LinkModel { reorder, ..NETWORK });
        let pair = ran(Setup { seed, greetings, ..once(Direction::Forward, 4) });
        law::check_any(&pair, &format!("seed {seed}"));
        assert_eq!(pair.greetings.copies, 0, "seed {seed}: what is late is not lost");
        assert_eq!(pair.ending(End::Client), Some(Ending::Complete), "seed {seed}");
        agreed[usize::from(pair.agrees_on_numbers())] += 1;
    }
    println!("numbers differ and agree: {agreed:?}");
    // Whether a greeting or its reply was late cannot always be known.
    assert!(agreed[1] > 5 * agreed[0], "{agreed:?}");
}

/// A network that only delays.
const NETWORK: LinkModel = LinkModel { latency_ns: 10_000_000, ..LinkModel::STILL };

/// When a pair begins.
const START_NS: u64 = 1_000_000_000_000;

/// A client and a server that acknowledges its greetings.
fn named(direction: Direction, parallel: u16) -> Setup {
    let own = Some(Offer::OWN);
    Setup { offer: own, answer: own, ..once(direction, parallel) }
}

/// A client and a server without the extension.
fn once(direction: Direction, parallel: u16) -> Setup {
    let settings = TestSettings {
        direction,
        parallel,
        limits: Limits { seconds: Some(1), ..Limits::default() },
        bitrate: Some(BitsPerSec(400_000)),
        block_bytes: 1000,
        ..TestSettings::new(Protocol::Udp)
    };
    let mut setup = Setup::new(settings);
    setup.data = NETWORK;
    setup.control_latency_ns = NETWORK.latency_ns;
    setup
}

fn ran(setup: Setup) -> Pair {
    let longest_ns = setup.longest_ns();
    let mut pair = Pair::new(setup);
    pair.run(longest_ns);
    pair
}

fn check_complete(pair: &Pair, label: &str) {
    law::check_any(pair, label);
    law::check_complete(pair, label);
    assert!(pair.agrees_on_numbers(), "{label}: {:?}", pair.greetings.met);
}

/// How long after its beginning the client's clock ran.
fn began_after(pair: &Pair) -> u64 {
    use linerate_core::session::Event;
    let events = &pair.log(End::Client).events;
    let (at, _) = events.iter().find(|(_, event)| *event == Event::Started).expect("it began");
    at.as_nanos() - START_NS
}
