//! The two ends of a test and the network between them, driven by one queue of events. The pair does
//! what an adapter does for each session: it keeps the law of inputs and outputs, runs the flows,
//! answers requests for samples, and carries control bytes in chunks of any size.

mod adapter;
mod happening;

use std::collections::VecDeque;

use linerate_core::accept::GreetingReader;
use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::parameters::ClientText;
use linerate_core::session::{
    Action, ClientConfig, ClientSession, Ending, ServerSession, Transmit,
};
use linerate_core::test::{End, StreamId};
use linerate_core::time::Instant;

use super::STREAMS;
use super::control::{Control, Delivery};
use super::endpoint::Endpoint;
use super::greetings::Greetings;
use super::log::Log;
use super::queue::{Occurrence, Queue};
use super::random::Random;
use super::setup::{Fault, Setup};
use super::stream::Stream;
use crate::link::model::{Link, LinkModel};

/// Two ends of one test.
pub struct Pair {
    /// The client's session.
    pub client: Box<ClientSession<'static, STREAMS>>,
    /// The server's session, once the cookie is there.
    pub server: Option<Box<ServerSession<STREAMS, TEXT_BYTES>>>,
    /// The data streams, in order of creation.
    pub streams: Vec<Stream>,
    /// The greetings of UDP streams.
    pub greetings: Greetings,
    setup: Setup,
    now: Instant,
    clocks: Link,
    queue: Queue,
    todo: VecDeque<(End, Action)>,
    control: Control,
    greeting: GreetingReader,
    random: Random,
    logs: [Log; 2],
    /// Whose data sockets are closed.
    closed: [bool; 2],
    /// Until when whose control connection takes no bytes.
    blocked_until: [Instant; 2],
    /// Who closes the control connection once it has taken everything.
    is_closing: [bool; 2],
}

/// Room for the free texts of a client's parameters.
pub const TEXT_BYTES: usize = 128;

impl Pair {
    /// Both ends at the beginning: the control connection is there and the client is about to speak.
    pub fn new(setup: Setup) -> Self {
        let config = ClientConfig {
            settings: setup.settings,
            packet_rate: None,
            text: ClientText { title: Some("virtual"), ..ClientText::default() },
            client_version: linerate_core::IPERF3_EQUIVALENT,
            interval: setup.interval,
            offer: setup.offer,
            deadlines: setup.deadlines,
        };
        let mut random = Random::new(setup.seed);
        let cookie = Cookie::from_random(std::array::from_fn(|_| random.next() as u8));
        let settings = &setup.settings;
        let streams = (0..settings.stream_count()).map(|index| {
            let sends = |end| settings.role(end, index) == linerate_core::test::Role::Sender;
            let sender = if sends(End::Client) { End::Client } else { End::Server };
            let id = StreamId::from_index(index);
            Stream::new(
                id,
                sender,
                settings.protocol,
                setup.data,
                setup.window_bytes,
                random.next(),
            )
        });
        let streams = streams.collect();
        let client = ClientSession::new(START, config, cookie).expect("few streams");
        let plain = LinkModel { latency_ns: setup.control_latency_ns, ..LinkModel::default() };
        let lost = setup.lost_greetings.clone();
        // Of the seed alone: what else is left to chance does not depend on greetings.
        let seeds = [setup.seed ^ 1, setup.seed ^ 2].map(|seed| Random::new(seed).next());
        let greetings = Greetings::new(setup.greetings.unwrap_or(plain), seeds, lost);
        Self {
            client: Box::new(client),
            server: None,
            streams,
            greetings,
            now: START,
            clocks: Link::new(setup.data, 0),
            queue: Queue::default(),
            todo: VecDeque::new(),
            control: Control::new(setup.control_latency_ns, random.next(), setup.control_fault),
            greeting: GreetingReader::new(),
            random,
            logs: [Log::default(), Log::default()],
            closed: [false; 2],
            blocked_until: [Instant::ZERO; 2],
            is_closing: [false; 2],
            setup,
        }
    }

    /// Lets `fault` happen `after_ns` after the beginning.
    pub fn schedule(&mut self, after_ns: u64, fault: Fault) {
        self.enqueue(START.plus_nanos(after_ns), Occurrence::Fault(fault));
    }

    /// Runs until nothing is left to happen, or until `longest_ns` after the beginning.
    pub fn run(&mut self, longest_ns: u64) {
        let end = START.plus_nanos(longest_ns);
        self.settle();
        loop {
            let timeout = [End::Client, End::Server]
                .into_iter()
                .filter_map(|side| Some((self.timeout_of(side)?, side)))
                .min_by_key(|&(at, _)| at);
            let next = self.queue.next_at();
            // Of two at the same time the timer comes first: a cut at a time is before what arrives
            // at that time.
            let (at, side) = match (timeout, next) {
                (Some((at, side)), Some(next)) if at <= next => (at, Some(side)),
                (_, Some(next)) => (next, None),
                (Some((at, side)), None) => (at, Some(side)),
                (None, None) => return,
            };
            if at > end {
                return;
            }
            self.now = self.now.max(at);
            if let Some(side) = side {
                let own = self.clock(side);
                self.input(side, |session| session.handle_timeout(own));
            } else if let Some(what) = self.queue.pop() {
                self.occur(what);
            }
            self.settle();
        }
    }

    /// What happened at `end`.
    pub const fn log(&self, end: End) -> &Log {
        &self.logs[end as usize]
    }

    /// The session of `end`, if there is one.
    pub fn endpoint(&self, end: End) -> Option<&dyn Endpoint> {
        match end {
            End::Client => Some(&*self.client),
            End::Server => self.server.as_deref().map(|server| server as &dyn Endpoint),
        }
    }

    /// How the run was set up.
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// How `end`'s session ended, if it did.
    pub fn ending(&self, end: End) -> Option<Ending> {
        self.log(end).finished.map(|(_, ending)| ending)
    }

    fn endpoint_mut(&mut self, end: End) -> Option<&mut dyn Endpoint> {
        match end {
            End::Client => Some(&mut *self.client),
            End::Server => self.server.as_deref_mut().map(|server| server as &mut dyn Endpoint),
        }
    }

    fn input(&mut self, end: End, handle: impl FnOnce(&mut dyn Endpoint)) {
        if let Some(session) = self.endpoint_mut(end) {
            handle(session);
        }
    }

    /// What `end`'s clock shows.
    fn clock(&self, end: End) -> Instant {
        match end {
            End::Client => self.now,
            End::Server => self.clocks.far_clock(self.now),
        }
    }

    /// The network's time when `end`'s clock shows `own`.
    fn network_time(&self, end: End, own: Instant) -> Instant {
        match end {
            End::Client => own,
            End::Server => {
                let offset_ns = self.setup.data.clock_offset_ns;
                Instant::from_nanos(own.as_nanos().saturating_add_signed(-offset_ns))
            }
        }
    }

    fn timeout_of(&self, end: End) -> Option<Instant> {
        let (_, own) = self.endpoint(end)?.poll_timeout()?;
        Some(self.network_time(end, own))
    }

    fn enqueue(&mut self, at: Instant, what: Occurrence) {
        self.queue.push(at, what);
    }

    fn deliver(&mut self, deliveries: Vec<(Instant, End, Delivery)>) {
        for (at, to, delivery) in deliveries {
            self.enqueue(at, Occurrence::Control(to, delivery));
        }
    }

    /// Drains all outputs and does what they say, until there are none.
    fn settle(&mut self) {
        loop {
            for end in [End::Client, End::Server] {
                self.drain(end);
            }
            let Some((end, action)) = self.todo.pop_front() else { return };
            self.perform(end, action);
        }
    }

    fn drain(&mut self, end: End) {
        self.send_control(end);
        let now = self.now;
        let Self { client, server, logs, todo, .. } = self;
        let session: &mut dyn Endpoint = match (end, server) {
            (End::Client, _) => &mut **client,
            (End::Server, Some(server)) => &mut **server,
            (End::Server, None) => return,
        };
        let log = &mut logs[end as usize];
        // Actions and events of one input are drained together, so that an end is marked as finished
        // only after the last actions.
        let was_finished = log.finished.is_some();
        while let Some(action) = session.poll_action() {
            log.record_action(action, was_finished);
            todo.push_back((end, action));
        }
        while let Some(event) = session.poll_event() {
            log.record(now, event, session);
        }
    }

    fn send_control(&mut self, end: End) {
        let (now, most) = (self.now, self.setup.control_chunk_bytes.max(1) as u64);
        while !self.is_blocked(end) {
            let chunk = 1 + self.random.below(most) as usize;
            let output = self.setup.server_output.clone();
            let Some(session) = self.endpoint_mut(end) else { return };
            let bytes = match session.poll_control() {
                None => return,
                Some(Transmit::Bytes(bytes)) => bytes[..bytes.len().min(chunk)].to_vec(),
                Some(Transmit::ServerOutput) => output.expect("it was announced").into_bytes(),
            };
            session.consume_control(bytes.len());
            let deliveries = self.control.send(now, end, &bytes);
            self.deliver(deliveries);
        }
    }
}

/// Far enough from zero for a clock that is behind.
const START: Instant = Instant::from_nanos(1_000_000_000_000);
