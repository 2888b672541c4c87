//! Both ends wired to each other byte by byte, without streams or time: the order of the exchange.
//! Runs with data, loss and deadlines are in the workspace's `tests`.

extern crate std;
use std::string::String;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::protocol::code::{ControlCode, ServerError, error_number};
use crate::protocol::cookie::Cookie;
use crate::protocol::extension::Offer;
use crate::protocol::parameters::ClientText;
use crate::stats::{CpuTimes, Remote, Sample, Tally};
use crate::test::{Direction, Limits, Protocol, TestSettings};
use crate::time::Instant;
use crate::units::{BitsPerSec, PacketsPerSec};

const N: usize = 8;

struct Pair {
    client: ClientSession<'static, N>,
    server: ServerSession<N, 64>,
    now: Instant,
    happened: Vec<(&'static str, Event)>,
}

impl Pair {
    fn new(settings: TestSettings, offer: Option<Offer>, answer: Option<Offer>) -> Self {
        Self::with(settings, None, offer, answer)
    }

    fn with_interval(settings: TestSettings, interval: Option<Duration>) -> Self {
        Self::with(settings, interval, None, None)
    }

    fn with(
        settings: TestSettings,
        interval: Option<Duration>,
        offer: Option<Offer>,
        answer: Option<Offer>,
    ) -> Self {
        let config = ClientConfig {
            settings,
            packet_rate: None,
            text: ClientText { title: Some("a \"title\""), ..ClientText::default() },
            client_version: crate::IPERF3_EQUIVALENT,
            interval,
            offer,
            deadlines: Deadlines::default(),
        };
        let cookie = Cookie::from_random([7; 36]);
        let now = Instant::ZERO;
        let mut client = ClientSession::new(now, config, cookie).expect("few streams");
        let Some(Transmit::Bytes(bytes)) = client.poll_control() else { panic!("no cookie") };
        assert_eq!(bytes, cookie.as_bytes());
        client.consume_control(Cookie::LEN);
        let server_config = ServerConfig { interval, extension: answer, ..ServerConfig::default() };
        let server = ServerSession::new(now, server_config);
        Self { client, server, now, happened: Vec::new() }
    }

    /// Runs until neither end has anything left to say or to wait for but the end of time.
    fn run(&mut self) {
        loop {
            self.drain();
            if self.carry() {
                continue;
            }
            let timeouts = [self.client.poll_timeout(), self.server.poll_timeout()];
            let Some(at) = timeouts.into_iter().flatten().map(|(_, at)| at).min() else { return };
            self.now = at;
            self.client.handle_timeout(at);
            self.drain();
            self.server.handle_timeout(at);
        }
    }

    /// Runs until the client's clock does.
    fn run_to_running(&mut self) {
        while self.client.phase() != Phase::Running {
            self.drain();
            assert!(self.carry(), "the exchange gets to the running test");
        }
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            let (now, count) = (self.now, self.client.settings().stream_count());
            let tally = Tally { bytes: now.as_nanos() / 1000, ..Tally::default() };
            let samples = vec![Sample { tally, ..Sample::default() }; count];
            if let Some(action) = self.client.poll_action() {
                let rest: Vec<_> = core::iter::from_fn(|| self.client.poll_action()).collect();
                self.happened.extend(
                    core::iter::from_fn(|| self.client.poll_event()).map(|event| ("client", event)),
                );
                for action in core::iter::once(action).chain(rest) {
                    match action {
                        Action::OpenStream(id, _) => {
                            self.server.handle_stream_accepted(now).expect("it awaits streams");
                            self.client.handle_stream(now, id, StreamEvent::Connected);
                        }
                        Action::Sample => {
                            self.client.handle_samples(now, &samples, CpuTimes::default());
                        }
                        _ => {}
                    }
                }
            } else if let Some(action) = self.server.poll_action() {
                let rest: Vec<_> = core::iter::from_fn(|| self.server.poll_action()).collect();
                self.happened.extend(
                    core::iter::from_fn(|| self.server.poll_event()).map(|event| ("server", event)),
                );
                for action in core::iter::once(action).chain(rest) {
                    match action {
                        Action::Prepare => self.server.handle_prepared(now, Admission::Accept),
                        Action::Sample => {
                            self.server.handle_samples(now, &samples, CpuTimes::default());
                        }
                        Action::CollectOutput => self.server.handle_server_output(now, None),
                        _ => {}
                    }
                }
            } else {
                let client = core::iter::from_fn(|| self.client.poll_event());
                self.happened.extend(client.map(|event| ("client", event)));
                let server = core::iter::from_fn(|| self.server.poll_event());
                self.happened.extend(server.map(|event| ("server", event)));
                return;
            }
        }
    }

    /// Carries one byte each way; `false` if there was none.
    fn carry(&mut self) -> bool {
        let first = |transmit: Option<Transmit<'_>>| match transmit {
            Some(Transmit::Bytes(bytes)) => Some(bytes[0]),
            Some(Transmit::ServerOutput) => panic!("nobody announced any"),
            None => None,
        };
        let to_server = first(self.client.poll_control());
        let to_client = first(self.server.poll_control());
        if let Some(byte) = to_server {
            self.client.consume_control(1);
            self.server.handle_control(self.now, &[byte]);
            self.drain();
        }
        if let Some(byte) = to_client {
            self.server.consume_control(1);
            self.client.handle_control(self.now, &[byte]);
            self.drain();
        }
        to_server.or(to_client).is_some()
    }

    fn ending(&self, end: &str) -> Option<Ending> {
        self.happened.iter().find_map(|(who, event)| match event {
            Event::Finished(ending) if *who == end => Some(*ending),
            _ => None,
        })
    }
}

fn settings(protocol: Protocol, direction: Direction, parallel: u16) -> TestSettings {
    TestSettings { direction, parallel, ..TestSettings::new(protocol) }
}

#[test]
fn every_direction_and_number_of_streams_runs_to_its_end() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
            for parallel in [1, 4] {
                for server_output in [false, true] {
                    let mut settings = settings(protocol, direction, parallel);
                    settings.server_output = server_output;
                    let mut pair = Pair::new(settings, None, None);
                    pair.run();
                    assert_eq!(pair.ending("client"), Some(Ending::Complete), "{settings:?}");
                    assert_eq!(pair.ending("server"), Some(Ending::Complete), "{settings:?}");
                    assert_eq!(pair.server.settings(), pair.client.settings());
                    assert_eq!(pair.server.text().title(), Some("a \"title\""));
                    let summary = pair.client.accounts().summary(0).expect("a stream");
                    assert_eq!(summary.local.bytes, 10_000_000);
                    assert_eq!(summary.remote.map(|side| side.bytes), Some(10_000_000));
                }
            }
        }
    }
}

#[test]
fn the_extension_is_agreed_only_if_both_want_it() {
    let own = Some(Offer::OWN);
    for (offer, answer, agreed) in [(own, own, own), (own, None, None), (None, own, None)] {
        let settings = settings(Protocol::Tcp, Direction::Forward, 1);
        let mut pair = Pair::new(settings, offer, answer);
        pair.run();
        assert_eq!(pair.client.extension(), agreed);
        assert_eq!(pair.server.extension(), agreed);
        assert_eq!(pair.ending("client"), Some(Ending::Complete));
    }
}

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
fn an_echoed_start_does_not_end_a_measured_test_again() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.server_output = true;
    let mut pair = Pair::new(settings, None, None);
    pair.run_to_running();
    let Pair { server, now, .. } = &mut pair;
    let mut actions_after = |code: ControlCode| {
        server.handle_control(*now, &[code.byte()]);
        let mut actions: Vec<_> = core::iter::from_fn(|| server.poll_action()).collect();
        if actions.contains(&Action::Sample) {
            server.handle_samples(*now, &[Sample::default()], CpuTimes::default());
            actions.extend(core::iter::from_fn(|| server.poll_action()));
        }
        while server.poll_event().is_some() {}
        actions
    };
    let ends = [Action::StopStreams, Action::Sample, Action::CloseStreams, Action::CollectOutput];
    assert_eq!(actions_after(ControlCode::TestEnd), ends);
    assert_eq!(actions_after(ControlCode::TestStart), []);
}

#[test]
fn a_silent_server_is_given_up_in_time() {
    let settings = settings(Protocol::Tcp, Direction::Forward, 1);
    let mut pair = Pair::new(settings, None, None);
    let (timer, at) = pair.client.poll_timeout().expect("an answer is awaited");
    assert_eq!(timer, Timer::Quiet);
    pair.client.handle_timeout(at);
    assert_eq!(pair.client.poll_event(), Some(Event::StillUnanswered));
    let (timer, at) = pair.client.poll_timeout().expect("an answer is awaited");
    assert_eq!(timer, Timer::Step);
    pair.client.handle_timeout(at);
    let actions: Vec<_> = core::iter::from_fn(|| pair.client.poll_action()).collect();
    assert_eq!(actions, [Action::CloseStreams, Action::CloseControl]);
    let error = SessionError::Unanswered;
    assert_eq!(pair.client.poll_event(), Some(Event::Finished(Ending::Failed(error))));
    assert_eq!(pair.client.poll_control(), None, "no goodbye to a server that said nothing");
}

#[test]
fn an_interrupt_is_measured_and_told_to_the_other_end() {
    let mut pair = Pair::new(settings(Protocol::Tcp, Direction::Forward, 1), None, None);
    pair.run_to_running();
    pair.now = Instant::from_nanos(1_500_000_000);
    pair.client.handle_command(Command::Interrupt);
    pair.run();
    let interrupted = Ending::Failed(SessionError::Interrupted);
    assert_eq!(pair.ending("client"), Some(interrupted));
    let terminated = SessionError::Terminated(crate::test::End::Client);
    assert_eq!(pair.ending("server"), Some(Ending::Failed(terminated)));
    for (end, accounts) in [("client", pair.client.accounts()), ("server", pair.server.accounts())]
    {
        assert_eq!(accounts.summary(0).expect("a stream").local.bytes, 1_500_000, "{end}");
    }
}

/// A client whose test has just begun, everything drained; its first sample is answered.
fn running_client(settings: TestSettings, interval: Option<Duration>) -> ClientSession<'static, N> {
    let mut client = begun_client(settings, interval);
    answer(&mut client, 0, 0);
    client
}

fn client_config(settings: TestSettings, interval: Option<Duration>) -> ClientConfig<'static> {
    ClientConfig {
        settings,
        packet_rate: None,
        text: ClientText::default(),
        client_version: crate::IPERF3_EQUIVALENT,
        interval,
        offer: None,
        deadlines: Deadlines::default(),
    }
}

/// As [`running_client`], the first sample not answered yet.
fn begun_client(settings: TestSettings, interval: Option<Duration>) -> ClientSession<'static, N> {
    let config = client_config(settings, interval);
    let cookie = Cookie::from_random([7; 36]);
    let mut client = ClientSession::new(Instant::ZERO, config, cookie).expect("few streams");
    client.handle_control(Instant::ZERO, &[9, 10]);
    for index in 0..settings.stream_count() {
        outputs(&mut client);
        client.handle_stream(Instant::ZERO, StreamId::from_index(index), StreamEvent::Connected);
    }
    outputs(&mut client);
    client.handle_control(Instant::ZERO, &[1, 2]);
    outputs(&mut client);
    assert_eq!(client.phase(), Phase::Running);
    client
}

#[test]
fn jitter_of_batches_is_told_to_linerate_ends_only() {
    for offer in [None, Some(Offer::OWN)] {
        let settings = settings(Protocol::Udp, Direction::Forward, 1);
        let mut pair = Pair::new(settings, offer, offer);
        pair.client.handle_batch_jitter();
        pair.server.handle_batch_jitter();
        pair.run();
        let told = |remote: Option<&Remote>| remote.expect("results").jitter_of_batches;
        assert_eq!(told(pair.client.accounts().remote()), offer.is_some());
        assert_eq!(told(pair.server.accounts().remote()), offer.is_some());
    }
}

#[test]
fn packets_per_second_become_bits_of_the_datagrams_that_the_path_carries() {
    // 1000 a second of 1448 bytes; before the path is known, of 1460.
    let mut settings = settings(Protocol::Udp, Direction::Bidirectional, 2);
    settings.bitrate = None;
    let config =
        ClientConfig { packet_rate: Some(PacketsPerSec(1000)), ..client_config(settings, None) };
    let cookie = Cookie::from_random([7; 36]);
    let mut client = ClientSession::<N>::new(Instant::ZERO, config, cookie).expect("few streams");
    assert_eq!(client.settings().bitrate, Some(BitsPerSec(11_680_000)));
    client.handle_path(Some(1448));
    assert_eq!(client.settings().bitrate, Some(BitsPerSec(11_584_000)));
    assert_eq!(client.settings().asked_bits_per_second(), Some(4 * 11_584_000));

    client.consume_control(Cookie::LEN);
    client.handle_control(Instant::ZERO, &[9]);
    let mut sent = String::new();
    while let Some(Transmit::Bytes(bytes)) = client.poll_control() {
        let len = bytes.len();
        sent += &String::from_utf8_lossy(bytes);
        client.consume_control(len);
    }
    assert!(sent.contains(r#""len":1448,"bandwidth":11584000,"#), "{sent}");
}

fn outputs<E: Exchange<N>>(session: &mut Session<E, N>) -> (Vec<Action>, Vec<Event>) {
    let actions = core::iter::from_fn(|| session.poll_action()).collect();
    (actions, core::iter::from_fn(|| session.poll_event()).collect())
}

fn answer<E: Exchange<N>>(session: &mut Session<E, N>, now_ns: u64, bytes: u64) {
    let sample = Sample { tally: Tally { bytes, ..Tally::default() }, ..Sample::default() };
    let samples = vec![sample; session.settings().stream_count()];
    session.handle_samples(Instant::from_nanos(now_ns), &samples, CpuTimes::default());
}

const SECOND: u64 = 1_000_000_000;

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

const STREAM: StreamId = StreamId::from_index(0);

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

/// A server whose test has just begun, as [`running_client`].
fn running_server(settings: TestSettings) -> ServerSession<N, 64> {
    let mut pair = Pair::new(settings, None, None);
    while pair.server.phase() != Phase::Running {
        pair.drain();
        assert!(pair.carry(), "the exchange gets to the running test");
    }
    pair.drain();
    pair.server
}

#[test]
fn an_echo_of_a_state_while_the_output_is_collected_changes_nothing() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.server_output = true;
    let mut server = running_server(settings);
    server.handle_control(Instant::ZERO, &[4]);
    outputs(&mut server);
    answer(&mut server, SECOND, 1000);
    assert!(outputs(&mut server).0.contains(&Action::CollectOutput));
    server.handle_control(Instant::ZERO, &[1, 2]);
    assert_eq!(outputs(&mut server), (vec![], vec![]));
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

#[test]
fn a_server_waits_for_what_is_in_flight_of_an_agreed_amount() {
    let by_time = settings(Protocol::Tcp, Direction::Forward, 1);
    let limits = Limits { bytes: Some(1000), ..Limits::default() };
    let tcp = TestSettings { limits, ..by_time };
    let udp = TestSettings { limits, ..settings(Protocol::Udp, Direction::Forward, 1) };
    let both = TestSettings { limits, ..settings(Protocol::Tcp, Direction::Bidirectional, 1) };
    // How many bytes are there after each second, and which of these ends the test.
    let cases: [(TestSettings, &[u64], usize); 6] = [
        (tcp, &[400, 800, 1000, 1000], 2),
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

/// Before the parameters a reason may follow the refusal, or not.
#[test]
fn a_busy_server_may_say_why_or_not() {
    let frame = crate::protocol::explanation::explanation_frame(&"tests at once: 1");
    let refused = Event::Finished(Ending::Failed(SessionError::Refused(Refusal::Busy)));
    let denied = ControlCode::AccessDenied.byte();
    for (offer, bytes, then_closes, expected) in [
        (Some(Offer::OWN), &frame[..], false, Some("tests at once: 1")),
        (Some(Offer::OWN), &frame[..7], true, None),
        // A stock server closes at once.
        (Some(Offer::OWN), &[], true, None),
        (Some(Offer::OWN), &[], false, None),
        // No explanation is so long.
        (Some(Offer::OWN), &[0, 0, 1, 1], false, None),
        (None, &frame[..], false, None),
    ] {
        let settings = settings(Protocol::Tcp, Direction::Forward, 1);
        let mut pair = Pair::new(settings, offer, None);
        while let Some(Transmit::Bytes(cookie)) = pair.client.poll_control() {
            let len = cookie.len();
            pair.client.consume_control(len);
        }
        let mut told = Vec::new();
        let mut say = |client: &mut ClientSession<'static, N>, bytes: &[u8]| {
            client.handle_control(Instant::ZERO, bytes);
            told.extend(outputs(client).1);
        };
        say(&mut pair.client, &[denied]);
        bytes.iter().for_each(|byte| say(&mut pair.client, &[*byte]));
        if told.is_empty() {
            if then_closes {
                pair.client.handle_control_closed(Instant::ZERO);
            } else {
                let in_time = Instant::from_nanos(1_000_000_000);
                assert_eq!(pair.client.poll_timeout(), Some((Timer::Step, in_time)));
                pair.client.handle_timeout(in_time);
            }
            told.extend(outputs(&mut pair.client).1);
        }
        assert_eq!(told, [refused], "{offer:?} {bytes:?}");
        assert_eq!(pair.client.explanation(), expected);
        assert_eq!(pair.client.poll_control(), None, "nothing more is said");
    }
}
