//! A whole test between two sessions, one of them measured: the largest settings and documents, and
//! every question that an adapter asks on the way.

use std::time::Duration;

use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::extension::Offer;
use linerate_core::protocol::parameters::ClientText;
use linerate_core::report::{
    Jitter3550, LossBursts, Percentiles, Reordering, SenderWaits, StreamDetail, ThreadUse,
};
use linerate_core::session::{
    Action, Admission, Client, ClientConfig, ClientSession, Deadlines, Ending, Event, Exchange,
    Phase, Server, ServerConfig, ServerSession, Session, StreamEvent, Transmit,
};
use linerate_core::stats::{CpuTimes, Sample, Tally, TcpStats};
use linerate_core::test::{Direction, End, Limits, Protocol, StreamId, TestSettings};
use linerate_core::time::Instant;

use super::Caller;

/// Streams of a host's session: 128 each way.
pub const HOST_STREAMS: usize = 256;
/// Room for texts of a host's session.
pub const HOST_TEXT_BYTES: usize = 8192;

/// Runs a bidirectional test of `N` streams; the calls of `end` are made by `caller`.
pub fn exchange<const N: usize, const T: usize>(end: End, caller: Caller) {
    let mut pair = Pair::<N, T>::new(largest(N), end, caller);
    pair.run(usize::MAX);
    let endings = (pair.client.finished, pair.server.finished);
    assert_eq!(endings, (Some(Ending::Complete), Some(Ending::Complete)));
}

fn largest(streams: usize) -> TestSettings {
    TestSettings {
        direction: Direction::Bidirectional,
        parallel: u16::try_from(streams / 2).expect("few streams"),
        ..small()
    }
}

/// A test of one stream with everything in it that makes documents long.
pub(super) fn small() -> TestSettings {
    TestSettings {
        omit_secs: 1,
        counters_64bit: true,
        server_output: true,
        limits: Limits { seconds: Some(2), bytes: Some(u64::MAX >> 1), blocks: None },
        ..TestSettings::new(Protocol::Udp)
    }
}

/// Two ends and the bytes between them.
pub(super) struct Pair<const N: usize, const T: usize> {
    pub(super) client: Driven<Client<'static, N>, N>,
    pub(super) server: Driven<Server<N, T>, N>,
    pub(super) now: Instant,
    closed: [bool; 2],
}

/// One end, and what its adapter has to do.
pub(super) struct Driven<E, const N: usize> {
    pub(super) session: Box<Session<E, N>>,
    pub(super) finished: Option<Ending>,
    caller: Caller,
    actions: Vec<Action>,
}

impl<const N: usize, const T: usize> Pair<N, T> {
    pub(super) fn new(settings: TestSettings, end: End, caller: Caller) -> Self {
        let [client, server] = [End::Client, End::Server]
            .map(|side| if side == end { caller } else { Caller::DIRECT });
        Self {
            client: Driven::new(client, new_client(settings)),
            server: Driven::new(server, new_server()),
            now: Instant::ZERO,
            closed: [false; 2],
        }
    }

    /// The calls of `end` are made by `caller` from here on.
    pub(super) fn measure(&mut self, end: End, caller: Caller) {
        match end {
            End::Client => self.client.caller = caller,
            End::Server => self.server.caller = caller,
        }
    }

    /// Until `end` is in this phase.
    pub(super) fn run_to(&mut self, end: End, phase: Phase) {
        let reached = |pair: &Self| match end {
            End::Client => pair.client.session.phase() == phase,
            End::Server => pair.server.session.phase() == phase,
        };
        while !reached(self) {
            self.step();
        }
    }

    /// At most so many times around; both ends may be done before.
    pub(super) fn run(&mut self, rounds: usize) {
        for _ in 0..rounds {
            if self.client.finished.is_some() && self.server.finished.is_some() {
                return;
            }
            self.step();
        }
    }

    /// The client's bytes go over, or the server's, or what the sessions want is done, or time passes.
    fn step(&mut self) {
        if !self.carry() && !self.act() && !self.close() {
            self.wait();
        }
    }

    fn carry(&mut self) -> bool {
        let bytes = self.client.take_control();
        if !bytes.is_empty() {
            // The server's session begins after the cookie.
            let bytes = bytes.strip_prefix(cookie().as_bytes()).unwrap_or(&bytes);
            self.server.give_control(self.now, bytes);
            return true;
        }
        let bytes = self.server.take_control();
        self.client.give_control(self.now, &bytes);
        !bytes.is_empty()
    }

    /// What both sessions want done; `false` if that is nothing.
    fn act(&mut self) -> bool {
        let (now, actions) = (self.now, [self.client.actions(), self.server.actions()]);
        for &action in &actions[0] {
            if let Action::OpenStream(id, _) = action {
                let accepted =
                    self.server.input("handle_stream_accepted", |s| s.handle_stream_accepted(now));
                assert!(accepted.is_some(), "the server waits for it");
                self.client.stream(now, id, StreamEvent::Connected);
            }
            self.client.act(now, action);
        }
        for &action in &actions[1] {
            match action {
                Action::Prepare => self.server.input("handle_prepared", |server| {
                    server.handle_prepared(now, Admission::Accept);
                }),
                Action::CollectOutput => self.server.input("handle_server_output", |server| {
                    server.handle_server_output(now, Some(OUTPUT.len() as u32));
                }),
                _ => self.server.act(now, action),
            }
        }
        !actions.concat().is_empty()
    }

    /// An end that is done closes the connection behind its last bytes.
    fn close(&mut self) -> bool {
        let (now, before) = (self.now, self.closed);
        if self.client.finished.is_some() && !std::mem::replace(&mut self.closed[1], true) {
            self.server.input("handle_control_closed", |s| s.handle_control_closed(now));
        }
        if self.server.finished.is_some() && !std::mem::replace(&mut self.closed[0], true) {
            self.client.input("handle_control_closed", |s| s.handle_control_closed(now));
        }
        self.closed != before
    }

    /// Until the next timer.
    fn wait(&mut self) {
        let timers = [self.client.session.poll_timeout(), self.server.session.poll_timeout()];
        let next = timers.into_iter().flatten().map(|(_, at)| at).min();
        self.now = next.expect("whoever is not done waits for something").max(self.now);
        self.client.fire(self.now);
        self.server.fire(self.now);
    }
}

impl<E: Exchange<N> + Send + Sync, const N: usize> Driven<E, N> {
    fn new(caller: Caller, session: Box<Session<E, N>>) -> Self {
        Self { session, finished: None, caller, actions: Vec::new() }
    }

    /// One input, and all outputs that follow.
    pub(super) fn input<R: Send>(
        &mut self,
        name: &str,
        input: impl FnOnce(&mut Session<E, N>) -> R + Send,
    ) -> R {
        let session = &mut *self.session;
        let answer = self.caller.call(name, || input(session));
        let (actions, events) = self.caller.call("poll_action and poll_event", || {
            let actions: Vec<_> = std::iter::from_fn(|| session.poll_action()).collect();
            (actions, std::iter::from_fn(|| session.poll_event()).collect::<Vec<_>>())
        });
        self.actions.extend(actions);
        for event in events {
            self.tell(event);
        }
        answer
    }

    /// What an adapter asks of the session when it reports an event.
    fn tell(&mut self, event: Event) {
        if let Event::Finished(ending) = event {
            self.finished = Some(ending);
        }
        if event == Event::Measured {
            let session = &mut *self.session;
            self.caller.call("handle_detail", || {
                for index in 0..session.accounts().streams().len() {
                    session.handle_detail(index, detail());
                }
            });
        }
        let session = &*self.session;
        self.caller.call("accounts", || {
            let accounts = session.accounts();
            for index in 0..accounts.streams().len() {
                std::hint::black_box((accounts.interval(index), accounts.summary(index)));
                std::hint::black_box((accounts.detail(index), accounts.remote_detail(index)));
                std::hint::black_box(session.plan(StreamId::from_index(index)));
            }
        });
    }

    pub(super) fn give_control(&mut self, now: Instant, bytes: &[u8]) {
        if !bytes.is_empty() {
            let name = format!("handle_control while {}", self.session.phase());
            self.input(&name, |session| session.handle_control(now, bytes));
        }
    }

    fn take_control(&mut self) -> Vec<u8> {
        let name = format!("poll_control while {}", self.session.phase());
        let session = &mut *self.session;
        self.caller.call(&name, || {
            let mut taken = Vec::new();
            while let Some(transmit) = session.poll_control() {
                let bytes = match transmit {
                    Transmit::Bytes(bytes) => bytes,
                    Transmit::ServerOutput => OUTPUT,
                };
                taken.extend_from_slice(bytes);
                let len = bytes.len();
                session.consume_control(len);
            }
            taken
        })
    }

    fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    fn act(&mut self, now: Instant, action: Action) {
        if action == Action::Sample {
            let samples = vec![sample(now.as_nanos()); self.session.settings().stream_count()];
            let cpu = CpuTimes { user_ns: now.as_nanos(), system_ns: now.as_nanos() / 2 };
            self.input("handle_samples", |session| session.handle_samples(now, &samples, cpu));
        }
    }

    pub(super) fn stream(&mut self, now: Instant, id: StreamId, event: StreamEvent) {
        self.input("handle_stream", |session| session.handle_stream(now, id, event));
    }

    /// What was asked for is answered, and what is to be sent is taken.
    pub(super) fn finish(&mut self, now: Instant) {
        for action in self.actions() {
            self.act(now, action);
        }
        self.take_control();
    }

    pub(super) fn fire(&mut self, now: Instant) {
        self.input("handle_timeout", |session| session.handle_timeout(now));
    }
}

/// Makes a client, and has nothing for it.
pub(super) fn client<const N: usize>(caller: Caller) {
    caller.call("new", || new_client::<N>(small()));
}

/// Makes a server, and has nothing for it.
pub(super) fn server<const N: usize, const T: usize>(caller: Caller) {
    caller.call("new", new_server::<N, T>);
}

fn new_client<const N: usize>(settings: TestSettings) -> Box<ClientSession<'static, N>> {
    let config = ClientConfig {
        settings,
        packet_rate: None,
        text: ClientText {
            title: Some(TEXT),
            extra_data: Some(TEXT),
            congestion: Some("cubic"),
            auth_token: Some(TEXT),
        },
        client_version: linerate_core::IPERF3_EQUIVALENT,
        interval: Some(Duration::from_secs(1)),
        offer: Some(Offer::OWN),
        deadlines: Deadlines::default(),
    };
    let session = ClientSession::new(Instant::ZERO, config, cookie()).map(Box::new);
    session.expect("room for the streams")
}

fn new_server<const N: usize, const T: usize>() -> Box<ServerSession<N, T>> {
    let config = ServerConfig {
        interval: Some(Duration::from_secs(1)),
        extension: Some(Offer::OWN),
        ..ServerConfig::default()
    };
    Box::new(ServerSession::new(Instant::ZERO, config))
}

fn cookie() -> Cookie {
    Cookie::from_random([7; Cookie::LEN - 1])
}

/// Numbers as large as they may be without an overflow of the sum of all streams.
fn sample(now_ns: u64) -> Sample {
    let large = (1 << 54) + now_ns;
    let tally = Tally {
        bytes: large,
        blocks: large,
        packets: large,
        lost: large / 2,
        out_of_order: large / 3,
        duplicates: large / 5,
        too_late: large / 7,
        jitter_ns: 999_999_999,
    };
    let tcp = TcpStats { retransmits: Some(large), rtt_us: Some(7), ..TcpStats::default() };
    Sample { tally, tcp: Some(tcp), ..Sample::default() }
}

/// All that an end can know of a stream.
fn detail() -> StreamDetail {
    let large = 1 << 53;
    let percentiles = Some(Percentiles {
        count: large,
        p50_ns: large,
        p90_ns: large,
        p99_ns: large,
        p999_ns: large,
        max_ns: large,
    });
    StreamDetail {
        jitter: Some(Jitter3550 { smoothed_ns: large, mean_ns: large }),
        delay_variation: percentiles,
        delay_differences: percentiles,
        reordering: Some(Reordering { count: large, extent_sum: large, max_extent: large }),
        loss_bursts: Some(LossBursts { count: large, longest: large }),
        socket_drops: Some(large),
        refusals: Some(large),
        gaps: percentiles,
        round_trips: percentiles,
        idle_round_trip_us: Some(u32::MAX),
        waits: Some(SenderWaits {
            busy_us: large,
            receive_window_us: large,
            send_buffer_us: large,
        }),
        resent_bytes: Some(large),
        delivery_bytes_per_sec: Some(large),
        window_bytes: Some(large),
        buffer_bytes: Some(large),
        thread: Some(ThreadUse { wall_ns: large, cpu_ns: large, queued_ns: Some(large) }),
    }
}

/// Three of it still make parameters that a server takes.
const TEXT: &str = concat!(
    "a text of a hundred characters, with \"quotes\" and \\backslashes\\ that are \u{e4}scaped, \u{20ac} and more ",
    "a text of a hundred characters, with \"quotes\" and \\backslashes\\ that are \u{e4}scaped, \u{20ac} and more ",
);

/// The server's own output as its adapter sends it.
const OUTPUT: &[u8] = b"\"server_output_text\":\"a line\\n\"";
