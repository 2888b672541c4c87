//! Streams that break, fail or have nothing more to do.

use super::*;

#[test]
fn a_test_that_lost_its_streams_is_exchanged_but_not_called_complete() {
    let mut pair = Pair::new(settings(Protocol::Tcp, Direction::Forward, 1), None, None);
    while pair.client.phase() != Phase::Running {
        pair.drain();
        assert!(pair.carry(), "the exchange gets to the running test");
    }
    pair.drain();
    pair.now = Instant::from_nanos(2_000_000_000);
    pair.client.handle_stream(pair.now, StreamId::from_index(0), StreamEvent::Closed);
    pair.run();
    assert_eq!(pair.ending("client"), Some(Ending::Failed(SessionError::StreamsLost)));
    assert_eq!(pair.ending("server"), Some(Ending::Complete));
    let summary = pair.client.accounts().summary(0).expect("a stream");
    assert_eq!(summary.remote.map(|side| side.bytes), Some(2_000_000));
}

#[test]
fn a_server_that_cannot_run_a_stream_tells_its_client() {
    let mut pair = Pair::new(settings(Protocol::Tcp, Direction::Forward, 1), None, None);
    pair.run_to_running();
    pair.server.handle_stream(pair.now, STREAM, StreamEvent::Failed { code: 24 });
    pair.run();
    let failed = SessionError::Stream { id: STREAM, code: 24 };
    assert_eq!(pair.ending("server"), Some(Ending::Failed(failed)));
    let told = ServerError { number: error_number::CREATE_STREAM, errno: 24 };
    let refused = SessionError::Refused(Refusal::Error(told));
    assert_eq!(pair.ending("client"), Some(Ending::Failed(refused)));
}

#[test]
fn a_file_that_fails_ends_the_test_with_what_was_measured() {
    let mut pair = Pair::new(settings(Protocol::Tcp, Direction::Forward, 2), None, None);
    pair.run_to_running();
    pair.server.handle_stream(pair.now, STREAM, StreamEvent::FileFailed { code: 28 });
    pair.run();
    let failed = SessionError::File { id: STREAM, code: 28 };
    assert_eq!(pair.ending("server"), Some(Ending::Failed(failed)));
    let told = ServerError { number: error_number::FILE, errno: 28 };
    let refused = SessionError::Refused(Refusal::Error(told));
    assert_eq!(pair.ending("client"), Some(Ending::Failed(refused)));

    let mut pair = Pair::new(settings(Protocol::Tcp, Direction::Forward, 2), None, None);
    pair.run_to_running();
    pair.client.handle_stream(pair.now, STREAM, StreamEvent::FileFailed { code: 5 });
    pair.run();
    let failed = SessionError::File { id: STREAM, code: 5 };
    assert_eq!(pair.ending("client"), Some(Ending::Failed(failed)));
    assert_eq!(pair.ending("server"), Some(Ending::Complete));
}

#[test]
fn a_server_that_has_no_more_to_send_waits_for_its_client() {
    let mut settings = settings(Protocol::Tcp, Direction::Reverse, 1);
    settings.limits = Limits { seconds: Some(3600), ..Limits::default() };
    for (event, waits_for) in [
        (StreamEvent::LimitReached, Some(Timer::TestLimit)),
        (StreamEvent::Closed, Some(Timer::Step)),
    ] {
        let mut pair = Pair::new(settings, None, None);
        pair.run_to_running();
        pair.server.handle_stream(pair.now, STREAM, event);
        let _ = outputs(&mut pair.server);
        assert_eq!(pair.server.poll_timeout().map(|(timer, _)| timer), waits_for, "{event:?}");
    }
}

#[test]
fn a_client_ends_a_test_that_has_no_streams_left() {
    for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
        let mut settings = settings(Protocol::Tcp, direction, 2);
        settings.limits = Limits { bytes: Some(1 << 40), ..Limits::default() };
        let mut client = running_client(settings, None);
        let mut stops = 0;
        for index in 0..settings.stream_count() {
            assert_eq!(stops, 0, "the others go on");
            client.handle_stream(Instant::ZERO, StreamId::from_index(index), StreamEvent::Closed);
            let (actions, _) = outputs(&mut client);
            stops += actions.iter().filter(|&&a| a == Action::StopStreams).count();
        }
        assert_eq!(stops, 1, "{direction:?}");
    }
}

#[test]
fn a_stream_that_closes_before_the_test_starts_fails_it() {
    let mut pair = Pair::new(settings(Protocol::Tcp, Direction::Forward, 2), None, None);
    pair.client.handle_control(Instant::ZERO, &[9, 10]);
    outputs(&mut pair.client);
    pair.client.handle_stream(Instant::ZERO, STREAM, StreamEvent::Connected);
    outputs(&mut pair.client);
    pair.client.handle_stream(Instant::ZERO, STREAM, StreamEvent::Closed);
    let failed = Ending::Failed(SessionError::Stream { id: STREAM, code: 0 });
    assert_eq!(outputs(&mut pair.client).1, [Event::Finished(failed)]);
}

#[test]
fn a_server_does_not_wait_for_ever_once_all_streams_are_gone() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.limits = Limits { bytes: Some(1 << 40), ..Limits::default() };
    let mut server = running_server(settings);
    assert_eq!(server.poll_timeout(), None, "no limit of time was agreed");
    server.handle_stream(Instant::ZERO, STREAM, StreamEvent::Closed);
    let (timer, at) = server.poll_timeout().expect("the client's word is awaited");
    assert_eq!((timer, at), (Timer::Step, Instant::ZERO + Duration::from_secs(30)));
    server.handle_timeout(at);
    outputs(&mut server);
    answer(&mut server, 30 * SECOND, 1000);
    let (_, events) = outputs(&mut server);
    let error = SessionError::TimedOut(Timer::Step);
    assert_eq!(events.last(), Some(&Event::Finished(Ending::Failed(error))));
}
