//! Samples and what is told of them: intervals, the omitted start, the end of the measurement.

use super::*;

#[test]
fn an_omitted_start_is_reported_and_left_out() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.omit_secs = 2;
    settings.limits.seconds = Some(3);
    let mut pair = Pair::new(settings, None, None);
    pair.run();
    let summary = pair.client.accounts().summary(0).expect("a stream");
    assert_eq!(summary.local.duration_ns, Some(3_000_000_000));
    assert_eq!(summary.local.bytes, 3_000_000, "a byte a microsecond, of the measured part only");
    let omitted = pair.happened.iter().filter(|(_, e)| *e == Event::OmitEnded).count();
    assert_eq!(omitted, 2, "once at each end");
}

#[test]
fn intervals_end_with_the_omitted_start_and_with_the_test() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.omit_secs = 1;
    settings.limits.seconds = Some(2);
    let mut pair = Pair::with_interval(settings, Some(Duration::from_millis(500)));
    pair.run();
    let spans = pair.happened.iter().filter_map(|(end, event)| match event {
        Event::Interval { span, omitted } if *end == "client" => {
            Some((span.start_ns / 1_000_000, span.end_ns / 1_000_000, *omitted))
        }
        _ => None,
    });
    let expected = [
        (0, 500, true),
        (500, 1000, true),
        (0, 500, false),
        (500, 1000, false),
        (1000, 1500, false),
        (1500, 2000, false),
    ];
    assert_eq!(spans.collect::<Vec<_>>(), expected);
}

#[test]
fn intervals_that_a_caller_slept_through_are_not_made_up_one_by_one() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.limits.seconds = None;
    let mut pair = Pair::with_interval(settings, Some(Duration::from_nanos(2)));
    pair.run_to_running();
    // Two nanoseconds are as good as a month of tenths of a second, and the end of time is beyond
    // every grid.
    let hour = 3_600_000_000_000;
    for (now, next) in [(hour, Some(hour + 2)), (hour + 3, Some(hour + 4)), (u64::MAX, None)] {
        pair.client.handle_timeout(Instant::from_nanos(now));
        let actions: Vec<_> = core::iter::from_fn(|| pair.client.poll_action()).collect();
        assert_eq!(actions, [Action::Sample]);
        let expected = next.map(|at| (Timer::Interval, Instant::from_nanos(at)));
        assert_eq!(pair.client.poll_timeout(), expected);
        let samples = [Sample::default()];
        pair.client.handle_samples(Instant::from_nanos(now), &samples, CpuTimes::default());
        while pair.client.poll_event().is_some() {}
    }
}

#[test]
fn a_late_sample_starts_nothing_in_a_test_that_is_over() {
    let reverse = settings(Protocol::Tcp, Direction::Reverse, 1);
    let cases =
        [(Timer::Interval, reverse), (Timer::Omit, TestSettings { omit_secs: 1, ..reverse })];
    for (timer, settings) in cases {
        let mut pair = Pair::with_interval(settings, Some(Duration::from_secs(3)));
        pair.run_to_running();
        let (next, at) = pair.client.poll_timeout().expect("the test runs");
        assert_eq!(next, timer);
        pair.client.handle_timeout(at);
        assert_eq!(pair.client.poll_action(), Some(Action::Sample));
        pair.client.handle_command(Command::Interrupt);
        let actions: Vec<_> = core::iter::from_fn(|| pair.client.poll_action()).collect();
        assert_eq!(actions, [Action::StopStreams, Action::Sample]);
        pair.client.handle_samples(at, &[Sample::default()], CpuTimes::default());
        assert_eq!(pair.client.poll_timeout(), None, "{timer:?}");
    }
}

#[test]
fn the_last_sample_is_asked_for_however_many_are_owed() {
    let limits = Limits { seconds: None, bytes: Some(1), blocks: None };
    let reverse = settings(Protocol::Tcp, Direction::Reverse, 1);
    let settings = TestSettings { limits, omit_secs: 1, ..reverse };
    let mut pair = Pair::with_interval(settings, Some(Duration::from_millis(900)));
    while pair.client.phase() != Phase::Starting {
        pair.drain();
        assert!(pair.carry(), "the exchange gets to the start of the test");
    }
    let client = &mut pair.client;
    client.handle_control(
        pair.now,
        &[ControlCode::TestStart.byte(), ControlCode::TestRunning.byte()],
    );
    let mut samples = 0;
    let mut count = |client: &mut ClientSession<'_, N>| {
        let actions = core::iter::from_fn(|| client.poll_action());
        samples += actions.filter(|&action| action == Action::Sample).count();
        while client.poll_event().is_some() {}
        samples
    };
    assert_eq!(count(client), 1, "for the CPU times at the start");
    for (timer, owed) in [(Timer::Interval, 2), (Timer::Omit, 3)] {
        let (next, at) = client.poll_timeout().expect("the test runs");
        assert_eq!(next, timer);
        client.handle_timeout(at);
        assert_eq!(count(client), owed);
    }
    client.handle_command(Command::Interrupt);
    assert_eq!(count(client), 4);
}

#[test]
fn an_interval_that_ends_with_the_omitted_start_or_the_test_is_one() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.omit_secs = 1;
    settings.limits.seconds = Some(2);
    let mut client = running_client(settings, Some(Duration::from_secs(1)));
    let mut spans = Vec::new();
    while client.phase() == Phase::Running {
        let (_, at) = client.poll_timeout().expect("a test by time");
        client.handle_timeout(at);
        let (actions, mut events) = outputs(&mut client);
        for (index, _) in actions.iter().filter(|&&a| a == Action::Sample).enumerate() {
            // Receivers take some more between two samples.
            answer(&mut client, at.as_nanos(), at.as_nanos() + index as u64);
            events.extend(outputs(&mut client).1);
        }
        spans.extend(events.into_iter().filter_map(|event| match event {
            Event::Interval { span, omitted } => Some((span.start_ns, span.end_ns, omitted)),
            _ => None,
        }));
    }
    assert_eq!(spans, [(0, SECOND, true), (0, SECOND, false), (SECOND, 2 * SECOND, false)]);
}

#[test]
fn samples_that_are_answered_after_the_end_arm_nothing() {
    for (limits, wakes) in [
        (Limits { seconds: Some(3), ..Limits::default() }, 1),
        (Limits { seconds: Some(3), bytes: Some(1000), blocks: None }, 2),
    ] {
        let mut settings = settings(Protocol::Tcp, Direction::Reverse, 1);
        settings.limits = limits;
        settings.omit_secs = 1;
        let mut client = running_client(settings, Some(Duration::from_millis(1500)));
        // The first timers ask for samples, and nobody answers before the interrupt.
        for _ in 0..wakes {
            let (_, at) = client.poll_timeout().expect("timers run");
            client.handle_timeout(at);
            outputs(&mut client);
        }
        client.handle_stream(Instant::from_nanos(SECOND), STREAM, StreamEvent::Closed);
        outputs(&mut client);
        let mut measured = 0;
        for _ in 0..wakes + 1 {
            answer(&mut client, 2 * SECOND, 5000);
            measured += outputs(&mut client).1.iter().filter(|&&e| e == Event::Measured).count();
        }
        assert_eq!((measured, client.phase()), (1, Phase::Ending), "{limits:?}");
        let timer = client.poll_timeout().map(|(timer, _)| timer);
        assert_eq!(timer, Some(Timer::Step), "{limits:?}");
    }
}

#[test]
fn a_test_that_ends_within_its_omitted_start_measured_nothing() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.omit_secs = 5;
    let mut client = running_client(settings, None);
    client.handle_command(Command::Interrupt);
    outputs(&mut client);
    answer(&mut client, SECOND, 5000);
    let summary = client.accounts().summary(0).expect("a stream");
    assert_eq!((summary.local.bytes, summary.local.duration_ns), (0, Some(0)));
}

#[test]
fn a_test_ends_even_if_no_sample_was_ever_answered_in_time() {
    let mut settings = settings(Protocol::Tcp, Direction::Reverse, 1);
    settings.omit_secs = 1;
    settings.limits = Limits { bytes: Some(1000), ..Limits::default() };
    let mut client = begun_client(settings, Some(Duration::from_millis(300)));
    for _ in 0..6 {
        let Some((_, at)) = client.poll_timeout() else { break };
        client.handle_timeout(at);
        outputs(&mut client);
    }
    client.handle_command(Command::Interrupt);
    outputs(&mut client);
    let mut events = Vec::new();
    for _ in 0..5 {
        answer(&mut client, 2 * SECOND, 5000);
        events.extend(outputs(&mut client).1);
    }
    assert_eq!(events.last(), Some(&Event::Finished(Ending::Failed(SessionError::Interrupted))));
}

#[test]
fn a_test_of_no_length_has_no_interval() {
    let settings = settings(Protocol::Tcp, Direction::Forward, 1);
    for interval in [None, Some(Duration::from_secs(1))] {
        let mut client = running_client(settings, interval);
        client.handle_command(Command::Interrupt);
        outputs(&mut client);
        answer(&mut client, 0, 0);
        let interrupted = Event::Finished(Ending::Failed(SessionError::Interrupted));
        assert_eq!(outputs(&mut client).1, [Event::Measured, interrupted], "{interval:?}");
    }
}

#[test]
fn a_measured_part_that_is_over_before_the_omitted_start_was_ended_is_reported() {
    let limits = Limits { seconds: None, bytes: Some(1000), blocks: None };
    let settings =
        TestSettings { limits, omit_secs: 1, ..settings(Protocol::Tcp, Direction::Forward, 1) };
    let mut pair = Pair::new(settings, None, None);
    pair.run_to_running();
    // The timer of the omitted start is late: the stream has sent everything before it fires.
    let now = Instant::from_nanos(SECOND + 5);
    pair.client.handle_stream(now, StreamId::from_index(0), StreamEvent::LimitReached);
    while pair.client.poll_action().is_some() {}
    let tally = |bytes| Tally { bytes, ..Tally::default() };
    let sample = Sample { tally: tally(51_000), omitted: Some(tally(50_000)), ..Sample::default() };
    pair.client.handle_samples(now, &[sample], CpuTimes::default());
    let summary = pair.client.accounts().summary(0).expect("a stream");
    assert_eq!((summary.local.bytes, summary.local.duration_ns), (1000, Some(5)));
}
