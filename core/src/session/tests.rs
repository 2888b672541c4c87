//! Both ends wired to each other byte by byte, without streams or time: the order of the exchange.
//! Runs with data, loss and deadlines are in the workspace's `tests`.

extern crate std;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::protocol::code::ControlCode;
use crate::protocol::cookie::Cookie;
use crate::protocol::extension::Offer;
use crate::protocol::parameters::ClientText;
use crate::stats::{CpuTimes, Sample, Tally};
use crate::test::{Direction, Limits, Protocol, TestSettings};
use crate::time::Instant;

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
        let server_config =
            ServerConfig { interval, extension: answer, deadlines: Deadlines::default() };
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
            let samples = vec![Sample { tally, tcp: None }; count];
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
    let limits = Limits { seconds: None, bytes: Some(1 << 40), blocks: None };
    let reverse = settings(Protocol::Tcp, Direction::Reverse, 1);
    let cases = [
        (Timer::ReceiveCheck, TestSettings { limits, ..reverse }),
        (Timer::Omit, TestSettings { omit_secs: 1, ..reverse }),
    ];
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
    for (timer, owed) in [(Timer::Interval, 2), (Timer::Omit, 3), (Timer::ReceiveCheck, 4)] {
        let (next, at) = client.poll_timeout().expect("the test runs");
        assert_eq!(next, timer);
        client.handle_timeout(at);
        assert_eq!(count(client), owed);
    }
    client.handle_command(Command::Interrupt);
    assert_eq!(count(client), 5);
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
    assert_eq!(timer, Timer::Step);
    pair.client.handle_timeout(at);
    let actions: Vec<_> = core::iter::from_fn(|| pair.client.poll_action()).collect();
    assert_eq!(actions, [Action::CloseStreams, Action::CloseControl]);
    let error = SessionError::TimedOut(Timer::Step);
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
