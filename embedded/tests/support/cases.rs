//! What every adapter must do, told once: every way of moving data, and every way of not ending well.

use std::net::{Ipv4Addr, SocketAddr};

use linerate_embedded::engine::session::{Ending, Phase, SessionError};
use linerate_embedded::engine::test::{Direction, Limits, Protocol, TestSettings};
use linerate_embedded::engine::units::BitsPerSec;
use linerate_embedded::{NotBegun, NotReached};

use super::loss::Loss;
use super::pair::{Break, Pair, Peer, STREAMS};

/// Makes a test of every case, which every adapter has, each in a world of its own.
macro_rules! every_case {
    ($world:ty) => {
        $crate::support::cases::every_case! { $world, cases:
            every_way_of_moving_data_is_measured_by_both_ends
            two_streams_one_way_share_all_there_is
            an_omitted_start_is_left_out_at_both_ends
            a_limit_of_bytes_is_received_to_the_last_byte
            a_rate_is_kept_by_a_sending_server
            frames_that_are_lost_only_cost_time
            a_client_says_what_it_has_no_room_for
            a_server_that_is_not_there_is_told_apart_from_one_that_is_silent
            an_interrupted_client_tells_its_server
            an_interrupted_server_tells_its_client_and_goes_on
            a_client_whose_cable_is_cut_gives_up_and_can_start_again
            wherever_a_client_breaks_off_the_next_one_is_served
        }
        $crate::support::cases::every_case! { $world, random_peer:
            an_honest_script_does_well
            a_silent_connection_is_turned_away_while_another_may_be_a_stream
            a_silent_connection_holds_its_place_no_longer_than_its_patience
            a_refused_client_that_stays_keeps_the_next_one_out_for_a_moment_only
            refused_clients_in_the_places_of_streams_make_room_for_the_next_test
            after_any_peer_the_next_client_is_served
            whatever_a_server_does_its_client_comes_to_an_end
        }
    };
    ($world:ty, $module:ident: $($case:ident)*) => {
        $(#[test]
        fn $case() {
            $crate::support::$module::$case::<$world>();
        })*
    };
}
pub(crate) use every_case;

pub(crate) fn settings(protocol: Protocol, direction: Direction) -> TestSettings {
    let limits = Limits { seconds: Some(1), ..Limits::default() };
    let bitrate = (protocol == Protocol::Udp).then_some(BitsPerSec(4_000_000));
    TestSettings { direction, limits, bitrate, ..TestSettings::new(protocol) }
}

pub(crate) fn every_way() -> impl Iterator<Item = TestSettings> {
    let directions = [Direction::Forward, Direction::Reverse, Direction::Bidirectional];
    [Protocol::Tcp, Protocol::Udp]
        .into_iter()
        .flat_map(move |protocol| directions.map(|direction| settings(protocol, direction)))
}

pub(crate) fn every_way_of_moving_data_is_measured_by_both_ends<P: Pair>() {
    assert_measures(&mut P::new(), every_way());
}

pub(crate) fn assert_measures(pair: &mut impl Pair, ways: impl Iterator<Item = TestSettings>) {
    for settings in ways {
        let client = pair.run_test(settings);
        assert_eq!(client.ending(), Some(Ending::Complete), "{settings:?}");
        assert_eq!(pair.told().endings.last(), Some(&Ending::Complete), "{settings:?}");
        assert_eq!(pair.told().summaries.len(), settings.stream_count());
        for (index, at_server) in pair.told().summaries.iter().enumerate() {
            let (sent, received) = client.told().counted(index);
            let what = format!("{settings:?}: sent {sent:?}, received {received:?}");
            assert_eq!(at_server.sent().map(|side| side.bytes), Some(sent.0), "{what}");
            assert_eq!(at_server.received().map(|side| side.bytes), Some(received.0), "{what}");
            let (protocol, bytes) = (settings.protocol, u64::from(settings.block_bytes));
            // What is on its way at the end: a few datagrams, or two buffers.
            let most_missing = if protocol == Protocol::Udp { 8 * bytes } else { 2 * 8192 };
            assert!(received.0 <= sent.0 && sent.0 - received.0 <= most_missing, "{what}");
            if protocol == Protocol::Udp {
                // 4 Mbit/s for a second are 500,000 bytes; the first datagram leaves at once, and a
                // server goes on until it hears of the end.
                let fewest = 500_000 / bytes + 1;
                assert_eq!(sent.0, sent.1 * bytes, "{what}");
                assert!((fewest..=fewest + 2).contains(&sent.1), "{what}");
            } else {
                assert!(received.0 > 1_000_000, "{what}");
            }
        }
    }
}

pub(crate) fn two_streams_one_way_share_all_there_is<P: Pair>() {
    let mut pair = P::new();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for direction in [Direction::Forward, Direction::Reverse] {
            let settings = settings(protocol, direction);
            let client = pair.run_test(TestSettings { parallel: 2, bitrate: None, ..settings });
            let [first, second] = [0, 1].map(|index| client.told().counted(index).0.0);
            let apart = first.abs_diff(second) * 100 / first.max(1);
            let what = format!("{protocol:?} {direction:?}: {first}, {second}");
            assert!(first + second > 1_000_000, "{what}");
            // A client has a UDP socket for each stream, and where the wire is slower than they are,
            // the stack may let the one that stands first always go first.
            let is_fair = protocol == Protocol::Tcp || direction == Direction::Reverse;
            assert!(apart < 5 || !is_fair, "{what}");
        }
    }
}

pub(crate) fn an_omitted_start_is_left_out_at_both_ends<P: Pair>() {
    let mut pair = P::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let settings = settings(Protocol::Udp, direction);
        let client = pair.run_test(TestSettings { omit_secs: 1, ..settings });
        // 4 Mbit/s for the measured second; the ends begin and end a few datagrams apart.
        let (sent, received) = client.told().counted(0);
        for bytes in [sent.0, received.0] {
            assert!((490_000..510_000).contains(&bytes), "{direction:?}: {sent:?} {received:?}");
        }
    }
}

pub(crate) fn a_limit_of_bytes_is_received_to_the_last_byte<P: Pair>() {
    let mut pair = P::new();
    let limits = Limits { bytes: Some(300_001), ..Limits::default() };
    for direction in [Direction::Forward, Direction::Reverse] {
        let client = pair.run_test(TestSettings { limits, ..settings(Protocol::Tcp, direction) });
        let (sent, received) = client.told().counted(0);
        assert!(received.0 >= 300_001 && sent.0 >= received.0, "{direction:?} {received:?}");
        if direction == Direction::Forward {
            assert_eq!((sent.0, received.0), (300_001, 300_001));
        }
    }
}

pub(crate) fn a_rate_is_kept_by_a_sending_server<P: Pair>() {
    let mut pair = P::new();
    let bitrate = Some(BitsPerSec(8_000_000));
    let settings = settings(Protocol::Tcp, Direction::Reverse);
    let client = pair.run_test(TestSettings { bitrate, ..settings });
    // A million bytes in a second, and the block of 128 KiB that is being sent at its end.
    let (sent, _) = client.told().counted(0);
    assert!((900_000..=1_000_000 + 131_072).contains(&sent.0), "{sent:?}");
}

pub(crate) fn frames_that_are_lost_only_cost_time<P: Pair>() {
    for count in [50, 11] {
        let mut pair = P::new();
        pair.lose(Loss::OneOf(count));
        let limits = Limits { bytes: Some(200_000), ..Limits::default() };
        for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
            let settings = settings(Protocol::Tcp, direction);
            let client = pair.run_test(TestSettings { limits, ..settings });
            assert_eq!(client.ending(), Some(Ending::Complete), "{direction:?}, one of {count}");
        }
    }
}

pub(crate) fn a_client_says_what_it_has_no_room_for<P: Pair>() {
    let mut pair = P::new();
    let tcp = TestSettings::new(Protocol::Tcp);
    let udp = TestSettings::new(Protocol::Udp);
    for (settings, expected) in [
        (TestSettings { parallel: 3, ..tcp }, NotBegun::TooManyStreams { most: STREAMS }),
        (
            TestSettings { parallel: 2, direction: Direction::Bidirectional, ..tcp },
            NotBegun::TooManyStreams { most: STREAMS },
        ),
        (TestSettings { block_bytes: 1473, ..udp }, NotBegun::DatagramTooLong { most: 1472 }),
        (TestSettings::new(Protocol::Sctp), NotBegun::NoSctp),
    ] {
        let refused = pair.try_start(pair.server(), settings);
        assert_eq!(refused.err(), Some(expected));
    }
    let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 5201));
    let refused = pair.try_start(nowhere, tcp);
    assert_eq!(refused.err(), Some(NotBegun::NoRoute));
}

pub(crate) fn a_server_that_is_not_there_is_told_apart_from_one_that_is_silent<P: Pair>() {
    for (loss, is_interrupted, expected) in [
        (Loss::None, false, NotReached::Refused),
        (Loss::All, false, NotReached::TimedOut),
        (Loss::All, true, NotReached::Interrupted),
    ] {
        let mut pair = P::new();
        pair.lose(loss);
        let closed = SocketAddr::new(pair.server().ip(), 5202);
        let client = pair.try_start(closed, TestSettings::new(Protocol::Tcp));
        let mut client = client.expect("it has room for it");
        if is_interrupted {
            pair.interrupt_client(&mut client);
        }
        run_to_its_end(&mut pair, &mut client, 11);
        assert_eq!(client.told().not_reached, Some(expected));
        pair.run_until(Some(&mut client), 11, |_, client| client.is_some_and(Peer::is_closed));
    }
}

pub(crate) fn an_interrupted_client_tells_its_server<P: Pair>() {
    let mut pair = P::new();
    for settings in every_way() {
        let mut client = pair.start(settings);
        pair.run_to(&mut client, Phase::Running);
        pair.interrupt_client(&mut client);
        pair.run_until(Some(&mut client), 5, |pair, client| {
            client.is_some_and(Peer::is_closed) && !pair.is_busy()
        });
        let interrupted = Ending::Failed(SessionError::Interrupted);
        assert_eq!(client.ending(), Some(interrupted), "{settings:?}");
        let terminated = pair.told().endings.last().copied();
        let was_told = matches!(terminated, Some(Ending::Failed(SessionError::Terminated(_))));
        assert!(was_told, "{settings:?}: {terminated:?}");
        pair.break_off(&mut client, Break::Forget);
    }
    assert_goes_on(&mut pair, "after an interrupt");
}

pub(crate) fn an_interrupted_server_tells_its_client_and_goes_on<P: Pair>() {
    let mut pair = P::new();
    let mut client = pair.start(settings(Protocol::Tcp, Direction::Forward));
    pair.run_to(&mut client, Phase::Running);
    pair.interrupt_server();
    run_to_its_end(&mut pair, &mut client, 5);
    assert!(matches!(client.ending(), Some(Ending::Failed(SessionError::Terminated(_)))));
    assert_eq!(pair.told().endings, [Ending::Failed(SessionError::Interrupted)]);
    pair.break_off(&mut client, Break::Forget);
    assert_goes_on(&mut pair, "after an interrupt");
}

pub(crate) fn wherever_a_client_breaks_off_the_next_one_is_served<P: Pair>() {
    let phases = [
        Phase::Greeting,
        Phase::Preparing,
        Phase::Streams,
        Phase::Starting,
        Phase::Running,
        Phase::Ending,
        Phase::Results,
    ];
    for &how in P::BREAKS {
        for settings in every_way() {
            for phase in phases {
                let what = format!("{how:?} in {phase:?} of {settings:?}");
                let mut pair = P::new();
                let mut client = pair.start(settings);
                pair.run_to(&mut client, phase);
                pair.break_off(&mut client, how);
                pair.run_until(None, 1, first_step());
                // The longest wait for a step of the exchange, and a moment to close.
                pair.run_until(None, 35, |pair, _| !pair.is_busy());
                assert!(pair.told().endings.len() <= 1, "{what}");
                drop(client);
                pair.lose(Loss::None);
                assert_goes_on(&mut pair, &what);
            }
        }
    }
}

pub(crate) fn a_client_whose_cable_is_cut_gives_up_and_can_start_again<P: Pair>() {
    for settings in every_way() {
        for phase in [Phase::Greeting, Phase::Streams, Phase::Running, Phase::Results] {
            let what = format!("in {phase:?} of {settings:?}");
            let mut pair = P::new();
            let mut client = pair.start(settings);
            pair.run_to(&mut client, phase);
            pair.break_off(&mut client, Break::Cut);
            // The longest wait for a step of the exchange, and for the connections to break.
            pair.run_until(Some(&mut client), 65, |pair, client| {
                client.is_some_and(Peer::is_closed) && !pair.is_busy()
            });
            assert!(client.told().is_over(), "{what}");
            assert_ne!(client.ending(), Some(Ending::Complete), "{what}");
            pair.lose(Loss::None);
            assert_goes_on(&mut pair, &what);
        }
    }
}

pub(crate) fn run_to_its_end<P: Pair>(pair: &mut P, client: &mut P::Client, seconds: u64) {
    pair.run_until(Some(client), seconds, |_, client| {
        client.is_some_and(|client| client.told().is_over())
    });
}

pub(crate) fn assert_goes_on<P: Pair>(pair: &mut P, what: &str) {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let limits = Limits { bytes: Some(20_000), ..Limits::default() };
        let settings = TestSettings { limits, ..settings(protocol, Direction::Forward) };
        let client = pair.run_test(settings);
        assert_eq!(client.ending(), Some(Ending::Complete), "{what}");
        assert_eq!(pair.told().endings.last(), Some(&Ending::Complete), "{what}");
    }
}

/// Is done after one step.
fn first_step<P: Pair>() -> impl FnMut(&mut P, Option<&P::Client>) -> bool {
    let mut steps = 0;
    move |_, _| {
        steps += 1;
        steps > 1
    }
}
