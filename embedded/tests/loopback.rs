//! The server against a client of the same engine, on one stack over smoltcp's loopback, in virtual
//! time: every way of moving data, and every way of not ending well.

mod support;

use linerate_embedded::TurnedAway;
use linerate_embedded::engine::protocol::code::{ServerError, error_number};
use linerate_embedded::engine::protocol::greeting;
use linerate_embedded::engine::session::{Ending, Event, Phase, SessionError, Timer};
use linerate_embedded::engine::test::{Direction, Protocol};
use smoltcp::socket::{tcp, udp};
use support::cases::{assert_goes_on, every_case, every_way, run_to_its_end, settings};
use support::pair::{Pair, Peer};
use support::random_peer::Anarchy;
use support::world::{HOST, OTHER_HOST, SERVER, World};

every_case!(World);

#[test]
fn what_the_stack_lacks_is_refused_by_iperf3s_number() {
    let mut world = World::new();
    world.client_without_streams(r#"{"sctp":true,"time":1,"len":1000}"#);
    world.run_until(None, 5, |world, _| !world.told.endings.is_empty());
    let error = ServerError::new(error_number::NO_SCTP);
    assert_eq!(world.told.endings, [Ending::Failed(SessionError::Denied(error))]);
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
fn connections_that_never_stand_are_soon_given_up() {
    let mut world = World::new();
    world.pass(None, 10);
    for _ in 0..2 {
        world.net.call_and_vanish(world.now);
    }
    world.pass(None, 3500);
    assert_goes_on(&mut world, "after two that never stood");
}

#[test]
fn other_clients_are_refused_and_the_first_not_disturbed() {
    let mut world = World::new();
    let mut first = world.start(settings(Protocol::Tcp, Direction::Reverse));
    world.run_to(&mut first, Phase::Running);
    // The server closes these connections first, so that their last state would be a long one.
    for count in 1..=5 {
        let mut other = world.start(settings(Protocol::Tcp, Direction::Forward));
        world.run_until(Some(&mut first), 1, |world, _| {
            other.poll(world.now, &mut world.net);
            other.told().is_over() && other.is_closed()
        });
        assert!(matches!(other.ending(), Some(Ending::Failed(SessionError::Refused(_)))));
        assert_eq!(world.told.turned_away, vec![TurnedAway::Busy; count]);
        other.leave(&mut world.net);
    }
    run_to_its_end(&mut world, &mut first, 5);
    assert_eq!(first.ending(), Some(Ending::Complete));
}

#[test]
fn a_client_whose_cookie_overtakes_the_last_goodbye_waits_for_it() {
    let mut world = World::new();
    let mut last = world.start(settings(Protocol::Tcp, Direction::Forward));
    world.run_to(&mut last, Phase::Results);
    world.run_until(None, 1, |world, _| last.has_news(&world.net));
    let mut next = world.start(settings(Protocol::Tcp, Direction::Forward));
    world.pass_with(Some(&mut next), 50);
    assert_eq!((next.phase(), &world.told.turned_away[..]), (Phase::Greeting, &[][..]));
    last.poll(world.now, &mut world.net);
    assert_eq!(last.ending(), Some(Ending::Complete));
    run_to_its_end(&mut world, &mut next, 3);
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
        world.pass_with(None, 10);
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
        let mut client = world.start(settings);
        run_to_its_end(&mut world, &mut client, 5);
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
