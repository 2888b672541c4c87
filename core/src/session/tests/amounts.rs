//! Tests by an amount: how much each stream moves, and when all of it is there.

use super::*;

#[test]
fn a_server_waits_for_what_is_in_flight_of_an_agreed_amount() {
    let by_time = settings(Protocol::Tcp, Direction::Forward, 1);
    let limits = Limits { bytes: Some(1000), ..Limits::default() };
    let tcp = TestSettings { limits, ..by_time };
    let blocks = Limits { blocks: Some(10), ..Limits::default() };
    let by_blocks = TestSettings { limits: blocks, block_bytes: 100, ..by_time };
    let udp = TestSettings { limits, ..settings(Protocol::Udp, Direction::Forward, 1) };
    let both = TestSettings { limits, ..settings(Protocol::Tcp, Direction::Bidirectional, 1) };
    // How many bytes are there after each second, and which of these ends the test.
    let cases: [(TestSettings, &[u64], usize); 7] = [
        (tcp, &[400, 800, 1000, 1000], 2),
        (by_blocks, &[400, 800, 1000, 1000], 2),
        (tcp, &[1024, 1024], 0),
        (tcp, &[400, 400, 1000], 1),
        (both, &[400, 800], 0),
        (udp, &[400, 800], 0),
        (by_time, &[400, 800], 0),
    ];
    for (settings, received, last) in cases {
        let mut server = running_server(settings);
        server.handle_control(Instant::ZERO, &[ControlCode::TestEnd.byte()]);
        for (index, &bytes) in received[..=last].iter().enumerate() {
            let now = SECOND * index as u64;
            let (mut actions, _) = outputs(&mut server);
            answer(&mut server, now, bytes);
            actions.extend(outputs(&mut server).0);
            server.handle_timeout(Instant::from_nanos(now + SECOND));
            let is_over = actions.contains(&Action::StopStreams);
            assert_eq!(is_over, index == last, "{settings:?} {bytes}");
        }
    }
}

#[test]
fn a_server_sends_no_more_than_its_clients_amount_in_whole_blocks() {
    let bytes = |bytes| Limits { bytes: Some(bytes), ..Limits::default() };
    let blocks = |blocks| Limits { blocks: Some(blocks), ..Limits::default() };
    let (tcp, udp) = (Protocol::Tcp, Protocol::Udp);
    let (reverse, both) = (Direction::Reverse, Direction::Bidirectional);
    // Blocks of 1000 bytes; seconds omitted, and what each stream that the server sends has to do.
    let cases: [(_, _, _, u32, &[Option<u64>]); 8] = [
        (tcp, reverse, bytes(2000), 0, &[Some(2000)]),
        (tcp, reverse, bytes(2001), 0, &[Some(3000)]),
        (tcp, reverse, bytes(2001), 0, &[Some(2000), Some(1000)]),
        (tcp, both, bytes(1), 0, &[Some(1000)]),
        (tcp, reverse, blocks(7), 0, &[Some(4000), Some(3000)]),
        (tcp, reverse, Limits { seconds: Some(1), ..Limits::default() }, 0, &[None]),
        // The client may leave out more than the server does, or lose some.
        (tcp, reverse, bytes(2000), 1, &[None]),
        (udp, reverse, bytes(2000), 0, &[None]),
    ];
    for (protocol, direction, limits, omit_secs, expected) in cases {
        let settings = settings(protocol, direction, expected.len() as u16);
        let settings = TestSettings { limits, omit_secs, block_bytes: 1000, ..settings };
        let server = running_server(settings);
        let plans = (0..settings.stream_count())
            .map(|index| server.plan(StreamId::from_index(index)).expect("the clock runs"));
        let sent: Vec<_> =
            plans.filter(|plan| plan.role == Role::Sender).map(|plan| plan.limit_bytes).collect();
        assert_eq!(sent, expected, "{settings:?}");
    }
}

#[test]
fn nothing_more_is_in_flight_once_all_streams_are_closed() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.limits = Limits { bytes: Some(1000), ..Limits::default() };
    let mut server = running_server(settings);
    server.handle_control(Instant::ZERO, &[ControlCode::TestEnd.byte()]);
    outputs(&mut server);
    server.handle_stream(Instant::ZERO, STREAM, StreamEvent::Closed);
    assert!(outputs(&mut server).0.contains(&Action::StopStreams));
}

#[test]
fn a_stock_server_that_stopped_sending_an_amount_ends_the_test() {
    let limits = Limits { seconds: None, bytes: Some(u64::MAX), blocks: None };
    let settings = TestSettings { limits, ..settings(Protocol::Udp, Direction::Reverse, 2) };
    let own = Some(Offer::OWN);
    for (answer, gives_up) in [(None, true), (own, false)] {
        let mut pair = Pair::new(settings, own, answer);
        pair.run_to_running();
        let tally = Tally { bytes: 1000, ..Tally::default() };
        let samples = [Sample { tally, ..Sample::default() }; 2];
        let mut stopped_at = None;
        while let Some((Timer::ReceiveCheck, at)) = pair.client.poll_timeout() {
            if at.as_nanos() > 10 * SECOND {
                break;
            }
            pair.client.handle_timeout(at);
            while pair.client.poll_action().is_some() {}
            pair.client.handle_samples(at, &samples, CpuTimes::default());
            let is_over = core::iter::from_fn(|| pair.client.poll_action())
                .any(|action| action == Action::StopStreams);
            while pair.client.poll_event().is_some() {}
            stopped_at = stopped_at.or(is_over.then(|| at.as_nanos() / SECOND));
        }
        // Three seconds, and four times the 11 ms that a datagram takes at the default rate.
        assert_eq!(stopped_at, gives_up.then_some(3), "{answer:?}");
    }
}

#[test]
fn receivers_of_an_amount_are_looked_at_soon_and_when_they_have_their_shares() {
    let limits = Limits { seconds: None, bytes: Some(5000), blocks: None };
    let settings = TestSettings { limits, ..settings(Protocol::Udp, Direction::Reverse, 5) };
    let mut client = running_client(settings, None);
    let share = |index| client.plan(StreamId::from_index(index)).and_then(|plan| plan.share_bytes);
    assert_eq!((share(0), share(4)), (Some(1000), Some(1000)));
    let say = |client: &mut ClientSession<'_, N>, now, bytes: [u64; 5]| {
        let of = |bytes| Sample { tally: Tally { bytes, ..Tally::default() }, ..Sample::default() };
        client.handle_samples(now, &bytes.map(of), CpuTimes::default());
        outputs(client).0
    };
    // Nothing has come so far.
    for due_ms in [1, 3, 7] {
        let (timer, at) = client.poll_timeout().expect("the rest is awaited");
        assert_eq!((timer, at.as_nanos()), (Timer::ReceiveCheck, due_ms * SECOND / 1000));
        client.handle_timeout(at);
        assert_eq!(outputs(&mut client).0, [Action::Sample]);
        assert_eq!(say(&mut client, at, [0; 5]), []);
    }
    let now = Instant::from_nanos(SECOND / 100);
    client.handle_stream(now, STREAM, StreamEvent::ShareReached);
    assert_eq!(outputs(&mut client).0, [Action::Sample]);
    assert_eq!(say(&mut client, now, [1000, 900, 900, 900, 900]), []);
    let (_, at) = client.poll_timeout().expect("the rest is awaited");
    assert_eq!(at.nanos_since(now), SECOND / 1000);
    client.handle_timeout(at);
    outputs(&mut client);
    let actions = say(&mut client, at, [1100, 1100, 1000, 900, 900]);
    assert_eq!(actions, [Action::StopStreams, Action::Sample]);
}

#[test]
fn each_stream_of_a_linerate_server_brings_its_share_and_one_of_a_stock_server_may_bring_all() {
    let limits = Limits { seconds: None, bytes: Some(5000), blocks: None };
    let settings = TestSettings { limits, ..settings(Protocol::Tcp, Direction::Reverse, 2) };
    let own = Some(Offer::OWN);
    for (answer, limit_bytes) in [(own, 2500), (None, 5000)] {
        let mut pair = Pair::new(settings, own, answer);
        pair.run_to_running();
        let client = &mut pair.client;
        let plan = client.plan(STREAM).expect("the clock runs");
        assert_eq!(plan.limit_bytes, Some(limit_bytes));
        let mut ends_with = |index| {
            client.handle_stream(pair.now, StreamId::from_index(index), StreamEvent::LimitReached);
            outputs(client).0.contains(&Action::StopStreams)
        };
        assert_eq!(ends_with(0), answer.is_none());
        assert!(answer.is_none() || ends_with(1));
    }
}

/// One of two streams has lost its path; the other has its share.
#[test]
fn a_share_that_does_not_come_is_given_up() {
    let limits = Limits { seconds: None, bytes: Some(5000), blocks: None };
    let settings = TestSettings { limits, ..settings(Protocol::Udp, Direction::Reverse, 2) };
    let own = Some(Offer::OWN);
    let mut pair = Pair::new(settings, own, own);
    pair.run_to_running();
    let client = &mut pair.client;
    client.handle_stream(pair.now, STREAM, StreamEvent::LimitReached);
    outputs(client);
    let of = |bytes| Sample { tally: Tally { bytes, ..Tally::default() }, ..Sample::default() };
    let ended = loop {
        let (_, at) = client.poll_timeout().expect("the rest is awaited");
        client.handle_timeout(at);
        outputs(client);
        client.handle_samples(at, &[of(2500), of(0)], CpuTimes::default());
        if outputs(client).0.contains(&Action::StopStreams) {
            break at;
        }
    };
    assert_eq!(ended.as_nanos() / SECOND, 3);
}
