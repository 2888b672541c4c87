//! The server against a client of the same engine, on one stack over smoltcp's loopback, in virtual
//! time: every way of moving data, and every way of not ending well.

mod support;

use linerate_embedded::engine::protocol::code::{ServerError, error_number};
use linerate_embedded::engine::protocol::greeting;
use linerate_embedded::engine::session::{Ending, Event, Phase, SessionError, Timer};
use linerate_embedded::engine::test::{Direction, Limits, Protocol, TestSettings};
use linerate_embedded::engine::units::BitsPerSec;
use linerate_embedded::{NotBegun, NotReached, TurnedAway};
use smoltcp::socket::{tcp, udp};
use smoltcp::wire::IpAddress;
use support::client::Client;
use support::world::{HOST, Loss, OTHER_HOST, SERVER, World};

fn settings(protocol: Protocol, direction: Direction) -> TestSettings {
    let limits = Limits { seconds: Some(1), ..Limits::default() };
    let bitrate = (protocol == Protocol::Udp).then_some(BitsPerSec(4_000_000));
    TestSettings { direction, limits, bitrate, ..TestSettings::new(protocol) }
}

fn every_way() -> impl Iterator<Item = TestSettings> {
    let directions = [Direction::Forward, Direction::Reverse, Direction::Bidirectional];
    [Protocol::Tcp, Protocol::Udp]
        .into_iter()
        .flat_map(move |protocol| directions.map(|direction| settings(protocol, direction)))
}

#[test]
fn every_way_of_moving_data_is_measured_by_both_ends() {
    let mut world = World::new();
    for settings in every_way() {
        let client = world.run_test(settings);
        assert_eq!(client.ending(), Some(Ending::Complete), "{settings:?}");
        assert_eq!(world.told.endings.last(), Some(&Ending::Complete), "{settings:?}");
        assert_eq!(world.told.summaries.len(), settings.stream_count());
        for (index, at_server) in world.told.summaries.iter().enumerate() {
            let (sent, received) = client.counted(index);
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

#[test]
fn two_streams_one_way_get_equal_shares() {
    let mut world = World::new();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for direction in [Direction::Forward, Direction::Reverse] {
            let settings = settings(protocol, direction);
            let client = world.run_test(TestSettings { parallel: 2, bitrate: None, ..settings });
            let [first, second] = [0, 1].map(|index| client.counted(index).0.0);
            let apart = first.abs_diff(second) * 100 / first.max(1);
            assert!(second > 0 && apart < 5, "{protocol:?} {direction:?}: {first}, {second}");
        }
    }
}

#[test]
fn an_omitted_start_is_left_out_at_both_ends() {
    let mut world = World::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let settings = settings(Protocol::Udp, direction);
        let client = world.run_test(TestSettings { omit_secs: 1, ..settings });
        // 4 Mbit/s for the measured second; the ends begin and end a few datagrams apart.
        let (sent, received) = client.counted(0);
        for bytes in [sent.0, received.0] {
            assert!((490_000..510_000).contains(&bytes), "{direction:?}: {sent:?} {received:?}");
        }
    }
}

#[test]
fn a_limit_of_bytes_is_received_to_the_last_byte() {
    let mut world = World::new();
    let limits = Limits { bytes: Some(300_001), ..Limits::default() };
    for direction in [Direction::Forward, Direction::Reverse] {
        let client = world.run_test(TestSettings { limits, ..settings(Protocol::Tcp, direction) });
        let (sent, received) = client.counted(0);
        assert!(received.0 >= 300_001 && sent.0 >= received.0, "{direction:?} {received:?}");
        if direction == Direction::Forward {
            assert_eq!((sent.0, received.0), (300_001, 300_001));
        }
    }
}

#[test]
fn what_the_stack_lacks_is_refused_by_iperf3s_number() {
    let mut world = World::new();
    world.client_without_streams(r#"{"sctp":true,"time":1,"len":1000}"#);
    world.run_until(None, 5, |world, _| !world.told.endings.is_empty());
    let error = ServerError::new(error_number::NO_SCTP);
    assert_eq!(world.told.endings, [Ending::Failed(SessionError::Denied(error))]);
}

#[test]
fn a_client_says_what_it_has_no_room_for() {
    let mut world = World::new();
    let tcp = TestSettings::new(Protocol::Tcp);
    let udp = TestSettings::new(Protocol::Udp);
    for (settings, expected) in [
        (TestSettings { parallel: 3, ..tcp }, NotBegun::TooManyStreams { most: 2 }),
        (
            TestSettings { parallel: 2, direction: Direction::Bidirectional, ..tcp },
            NotBegun::TooManyStreams { most: 2 },
        ),
        (TestSettings { block_bytes: 1473, ..udp }, NotBegun::DatagramTooLong { most: 1472 }),
        (TestSettings::new(Protocol::Sctp), NotBegun::NoSctp),
    ] {
        let refused = Client::try_start(SERVER, world.now, &mut world.net, settings);
        assert_eq!(refused.err(), Some(expected));
    }
    let nowhere = (IpAddress::v4(0, 0, 0, 0), 5201).into();
    let refused = Client::try_start(nowhere, world.now, &mut world.net, tcp);
    assert_eq!(refused.err(), Some(NotBegun::NoRoute));
}

#[test]
fn a_server_that_is_not_there_is_told_apart_from_one_that_is_silent() {
    for (loss, is_interrupted, expected) in [
        (Loss::None, false, NotReached::Refused),
        (Loss::All, false, NotReached::TimedOut),
        (Loss::All, true, NotReached::Interrupted),
    ] {
        let mut world = World::new();
        world.net.cable.loss = loss;
        let closed = (HOST, 5202).into();
        let tcp = TestSettings::new(Protocol::Tcp);
        let client = Client::try_start(closed, world.now, &mut world.net, tcp);
        let mut client = client.expect("it has room for it");
        if is_interrupted {
            client.interrupt();
        }
        world.run_until(Some(&mut client), 11, |_, client| client.is_some_and(Client::is_over));
        assert_eq!(client.not_reached(), Some(expected));
        world.run_until(Some(&mut client), 11, |_, client| client.is_some_and(Client::is_closed));
    }
}

#[test]
fn an_interrupted_client_tells_its_server() {
    let mut world = World::new();
    for settings in every_way() {
        let mut client = Client::start(world.now, &mut world.net, settings);
        run_to(&mut world, &mut client, Phase::Running);
        client.interrupt();
        world.run_until(Some(&mut client), 5, |world, client| {
            client.is_some_and(Client::is_closed) && !world.server.is_busy()
        });
        let interrupted = Ending::Failed(SessionError::Interrupted);
        assert_eq!(client.ending(), Some(interrupted), "{settings:?}");
        let terminated = world.told.endings.last();
        let was_told = matches!(terminated, Some(Ending::Failed(SessionError::Terminated(_))));
        assert!(was_told, "{settings:?}: {terminated:?}");
        client.leave(&mut world.net);
    }
    assert_goes_on(&mut world, "after an interrupt");
}

#[test]
fn a_rate_is_kept_by_a_sending_server() {
    let mut world = World::new();
    let bitrate = Some(BitsPerSec(8_000_000));
    let client =
        world.run_test(TestSettings { bitrate, ..settings(Protocol::Tcp, Direction::Reverse) });
    // A million bytes in a second, and the block of 128 KiB that is being sent at its end.
    let (sent, _) = client.counted(0);
    assert!((900_000..=1_000_000 + 131_072).contains(&sent.0), "{sent:?}");
}

#[test]
fn frames_that_are_lost_only_cost_time() {
    for count in [50, 11] {
        let mut world = World::new();
        world.net.cable.loss = Loss::OneOf(count);
        let limits = Limits { bytes: Some(200_000), ..Limits::default() };
        for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
            let client =
                world.run_test(TestSettings { limits, ..settings(Protocol::Tcp, direction) });
            assert_eq!(client.ending(), Some(Ending::Complete), "{direction:?}, one of {count}");
        }
    }
}

#[test]
fn an_interrupted_server_tells_its_client_and_goes_on() {
    let mut world = World::new();
    let mut client =
        Client::start(world.now, &mut world.net, settings(Protocol::Tcp, Direction::Forward));
    run_to(&mut world, &mut client, Phase::Running);
    world.server.interrupt();
    world.run_until(Some(&mut client), 5, |_, client| client.is_some_and(Client::is_over));
    assert!(matches!(client.ending(), Some(Ending::Failed(SessionError::Terminated(_)))));
    assert_eq!(world.told.endings, [Ending::Failed(SessionError::Interrupted)]);
    client.leave(&mut world.net);
    assert_goes_on(&mut world, "after an interrupt");
}

/// How a client ends that does not end well.
#[derive(Debug, Clone, Copy)]
enum Break {
    /// Its system closes its connections.
    Close,
    /// Its system resets them.
    Reset,
    /// Its machine starts anew and knows nothing of them.
    Forget,
    /// The cable is cut.
    Cut,
}

#[test]
fn wherever_a_client_breaks_off_the_next_one_is_served() {
    let phases = [
        Phase::Greeting,
        Phase::Preparing,
        Phase::Streams,
        Phase::Starting,
        Phase::Running,
        Phase::Ending,
        Phase::Results,
    ];
    for how in [Break::Close, Break::Reset, Break::Forget, Break::Cut] {
        for settings in every_way() {
            for phase in phases {
                let what = format!("{how:?} in {phase:?} of {settings:?}");
                let mut world = World::new();
                let mut client = Client::start(world.now, &mut world.net, settings);
                run_to(&mut world, &mut client, phase);
                match how {
                    Break::Close => client.close(&mut world.net),
                    Break::Reset => client.reset(&mut world.net),
                    Break::Forget => client.leave(&mut world.net),
                    Break::Cut => world.net.cable.loss = Loss::All,
                }
                // The longest wait for a step of the exchange, and a moment to close.
                let began = world.now;
                world.step(None);
                world.run_until(None, 35, |world, _| !world.server.is_busy());
                assert!(world.told.endings.len() <= 1, "{what}");
                world.net.cable.loss = Loss::None;
                let after = world.now - began;
                assert_goes_on(&mut world, &format!("{what}, {after} later"));
            }
        }
    }
}

#[test]
fn strangers_are_turned_away_and_hold_up_nobody() {
    let cases: [(&[u8], bool, Option<TurnedAway>); 5] = [
        (b"GET / HTTP/1.1\r\n\r\n", false, None),
        (b"SSH-2.0-OpenSSH_9.6\r\n", false, None),
        (b"", true, Some(TurnedAway::Gone)),
        (b"half a cookie", true, Some(TurnedAway::Gone)),
        (b"half a cookie", false, Some(TurnedAway::Silent)),
    ];
    for (bytes, closes, expected) in cases {
        let mut world = World::new();
        let stranger = world.net.connect();
        world.run_until(None, 1, |world, _| {
            world.net.sockets.get::<tcp::Socket<'_>>(stranger).may_send()
        });
        let socket = world.net.sockets.get_mut::<tcp::Socket<'_>>(stranger);
        socket.send_slice(bytes).expect("it is connected");
        if closes {
            socket.close();
        }
        // Another client comes while the stranger is still there.
        assert_goes_on(&mut world, &format!("beside {bytes:?}"));
        world.run_until(None, 12, |world, _| !world.told.turned_away.is_empty());
        match expected {
            Some(why) => assert_eq!(world.told.turned_away, [why], "{bytes:?}"),
            None => assert!(matches!(world.told.turned_away[..], [TurnedAway::Foreign(_)])),
        }
        world.net.sockets.get_mut::<tcp::Socket<'_>>(stranger).close();
        assert_goes_on(&mut world, &format!("after {bytes:?}"));
    }
}

#[test]
fn other_clients_are_refused_and_the_first_not_disturbed() {
    let mut world = World::new();
    let mut first =
        Client::start(world.now, &mut world.net, settings(Protocol::Tcp, Direction::Reverse));
    run_to(&mut world, &mut first, Phase::Running);
    // The server closes these connections first, so that their last state would be a long one.
    for count in 1..=5 {
        let mut other =
            Client::start(world.now, &mut world.net, settings(Protocol::Tcp, Direction::Forward));
        world.run_until(Some(&mut first), 1, |world, _| {
            other.poll(world.now, &mut world.net);
            other.is_over() && other.is_closed()
        });
        assert!(matches!(other.ending(), Some(Ending::Failed(SessionError::Refused(_)))));
        assert_eq!(world.told.turned_away, vec![TurnedAway::Busy; count]);
        other.leave(&mut world.net);
    }
    world.run_until(Some(&mut first), 5, |_, first| first.is_some_and(Client::is_over));
    assert_eq!(first.ending(), Some(Ending::Complete));
}

#[test]
fn a_client_whose_cookie_overtakes_the_last_goodbye_waits_for_it() {
    let mut world = World::new();
    let mut last =
        Client::start(world.now, &mut world.net, settings(Protocol::Tcp, Direction::Forward));
    run_to(&mut world, &mut last, Phase::Results);
    world.run_until(None, 1, |world, _| last.has_news(&world.net));
    let mut next =
        Client::start(world.now, &mut world.net, settings(Protocol::Tcp, Direction::Forward));
    world.pass(Some(&mut next), 50);
    assert_eq!((next.phase(), &world.told.turned_away[..]), (Phase::Greeting, &[][..]));
    last.poll(world.now, &mut world.net);
    assert_eq!(last.ending(), Some(Ending::Complete));
    world.run_until(Some(&mut next), 3, |_, next| next.is_some_and(Client::is_over));
    assert_eq!(next.ending(), Some(Ending::Complete));
}

#[test]
fn a_datagram_greeting_counts_once_and_only_from_the_client_itself() {
    let mut world = World::new();
    let control = world.client_without_streams(
        r#"{"udp":true,"time":1,"parallel":1,"bidirectional":true,"len":1000,"bandwidth":4000000}"#,
    );
    world.run_until(None, 1, |world, _| world.told.events.contains(&Event::Agreed));
    world.run_until(None, 1, |world, _| {
        world.net.sockets.get::<tcp::Socket<'_>>(control).recv_queue() == 2
    });
    let [stranger, first, second] =
        [OTHER_HOST, HOST, HOST].map(|address| world.net.datagrams(address));
    for (from, is_last) in
        [(stranger, false), (first, false), (first, false), (stranger, false), (second, true)]
    {
        let socket = world.net.sockets.get_mut::<udp::Socket<'_>>(from);
        socket.send_slice(&greeting::HELLO, SERVER).expect("there is room");
        world.pass(None, 10);
        assert_eq!(world.told.events.contains(&Event::Started), is_last);
    }
    let answers = [stranger, first, second].map(|handle| {
        let socket = world.net.sockets.get_mut::<udp::Socket<'_>>(handle);
        socket.recv().is_ok_and(|(datagram, _)| datagram == greeting::REPLY)
    });
    assert_eq!(answers, [false, true, true]);
}

#[test]
fn the_next_client_may_come_before_the_last_one_has_gone() {
    let mut world = World::new();
    for settings in every_way().chain(every_way()) {
        let mut client = Client::start(world.now, &mut world.net, settings);
        world.run_until(Some(&mut client), 5, |_, client| client.is_some_and(Client::is_over));
        // The goodbye is queued but not sent: the next connection comes with it.
        assert_eq!(client.ending(), Some(Ending::Complete), "{settings:?}");
    }
    assert_eq!(world.told.turned_away, []);
}

#[test]
fn a_client_without_streams_is_given_up_in_time() {
    let cases = [
        (r#"{"tcp":true,"time":1,"len":1000}"#, Timer::Streams),
        (r#"{"udp":true,"time":1,"len":1000}"#, Timer::Greeting),
    ];
    for (parameters, timer) in cases {
        let mut world = World::new();
        let control = world.client_without_streams(parameters);
        world.run_until(None, 45, |world, _| !world.told.endings.is_empty());
        let too_late = Ending::Failed(SessionError::TimedOut(timer));
        assert_eq!(world.told.endings, [too_late]);
        world.net.sockets.remove(control);
        assert_goes_on(&mut world, "after a client without streams");
    }
}

fn run_to(world: &mut World, client: &mut Client, phase: Phase) {
    world.run_until(Some(client), 5, |_, client| {
        client.is_some_and(|client| client.phase() == phase || client.is_over())
    });
}

fn assert_goes_on(world: &mut World, what: &str) {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let limits = Limits { bytes: Some(20_000), ..Limits::default() };
        let settings = TestSettings { limits, ..settings(protocol, Direction::Forward) };
        let client = world.run_test(settings);
        assert_eq!(client.ending(), Some(Ending::Complete), "{what}");
        assert_eq!(world.told.endings.last(), Some(&Ending::Complete), "{what}");
    }
}
