//! Both ends wired to each other byte by byte, without streams or time: the order of the exchange.
//! Runs with data, loss and deadlines are in the workspace's `tests`.

extern crate std;

mod amounts;
mod exchange;
mod intervals;
mod streams;

use std::vec;
use std::vec::Vec;

use super::*;
use crate::protocol::code::{ControlCode, ServerError, error_number};
use crate::protocol::cookie::Cookie;
use crate::protocol::extension::Offer;
use crate::protocol::parameters::ClientText;
use crate::stats::{CpuTimes, Sample, Tally};
use crate::test::{Direction, Limits, Protocol, TestSettings};
use crate::time::Instant;

const N: usize = 8;
const SECOND: u64 = 1_000_000_000;
const STREAM: StreamId = StreamId::from_index(0);

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
        while self.step() {}
    }

    /// Carries a byte each way, or lets time pass; `false` if nothing is left.
    fn step(&mut self) -> bool {
        self.drain();
        if self.carry() {
            return true;
        }
        let timeouts = [self.client.poll_timeout(), self.server.poll_timeout()];
        let Some(at) = timeouts.into_iter().flatten().map(|(_, at)| at).min() else { return false };
        self.now = at;
        self.client.handle_timeout(at);
        self.drain();
        self.server.handle_timeout(at);
        true
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

fn outputs<E: Exchange<N>>(session: &mut Session<E, N>) -> (Vec<Action>, Vec<Event>) {
    let actions = core::iter::from_fn(|| session.poll_action()).collect();
    (actions, core::iter::from_fn(|| session.poll_event()).collect())
}

fn answer<E: Exchange<N>>(session: &mut Session<E, N>, now_ns: u64, bytes: u64) {
    let sample = Sample { tally: Tally { bytes, ..Tally::default() }, ..Sample::default() };
    let samples = vec![sample; session.settings().stream_count()];
    session.handle_samples(Instant::from_nanos(now_ns), &samples, CpuTimes::default());
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
