//! The two ends of a test and the network between them, driven by one queue of events. The pair does
//! what an adapter does for each session: it keeps the law of inputs and outputs, runs the flows,
//! answers requests for samples, and carries control bytes in chunks of any size.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use linerate_core::accept::{Greeting, GreetingReader};
use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::extension::Offer;
use linerate_core::protocol::parameters::ClientText;
use linerate_core::session::{
    Action, Admission, ClientConfig, ClientSession, Command, Deadlines, Ending, ServerConfig,
    ServerSession, StreamEvent, Transmit,
};
use linerate_core::stats::{CpuTimes, Sample};
use linerate_core::test::{End, Protocol, StreamId, TestSettings};
use linerate_core::time::{Instant, nanos};

use super::STREAMS;
use super::control::{Control, ControlFault, Delivery, other};
use super::endpoint::Endpoint;
use super::link::{Link, LinkModel};
use super::log::Log;
use super::random::Random;
use super::stream::{Payload, Stepped, Stream, Until};

/// Everything that decides how a run goes.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The test.
    pub settings: TestSettings,
    /// Report intervals of both ends.
    pub interval: Option<Duration>,
    /// The client's offer of the extension.
    pub offer: Option<Offer>,
    /// The server's answer to it.
    pub answer: Option<Offer>,
    /// Of both ends.
    pub deadlines: Deadlines,
    /// The network under each data stream. The server's clock is ahead by its offset.
    pub data: LinkModel,
    /// One way of the control connection, and of opening a stream.
    pub control_latency_ns: u64,
    /// Most bytes of control that travel together.
    pub control_chunk_bytes: usize,
    /// What goes wrong on the control connection.
    pub control_fault: Option<ControlFault>,
    /// Most bytes in flight of a TCP stream.
    pub window_bytes: u64,
    /// How long an end takes to answer a request for samples or for its output.
    pub sample_delay_ns: u64,
    /// The server's answer to the test.
    pub admission: Admission,
    /// The stream that cannot be opened, by order of creation.
    pub failing_stream: Option<usize>,
    /// The member of the results that carries the server's output.
    pub server_output: Option<String>,
    /// What every chance depends on.
    pub seed: u64,
}

impl Setup {
    /// A test over a quiet network: five milliseconds each way.
    pub fn new(settings: TestSettings) -> Self {
        Self {
            settings,
            interval: Some(Duration::from_secs(1)),
            offer: None,
            answer: None,
            deadlines: Deadlines::default(),
            data: LinkModel { latency_ns: 5_000_000, ..LinkModel::default() },
            control_latency_ns: 5_000_000,
            control_chunk_bytes: 100,
            control_fault: None,
            window_bytes: 1 << 18,
            sample_delay_ns: 0,
            admission: Admission::Accept,
            failing_stream: None,
            server_output: None,
            seed: 0,
        }
    }
}

/// Something that happens to a run from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Whoever runs this end stops it.
    Interrupt(End),
    /// This end closes its control connection without a word.
    Vanish(End),
    /// These bytes come to this end on the control connection.
    Garbage(End, Vec<u8>),
    /// This end's control connection takes no bytes for so many nanoseconds.
    Block(End, u64),
    /// All data streams break, as this end's adapter sees it.
    CloseStreams(End),
    /// This end's adapter reports this of the stream created so many places after the first.
    Stream(End, usize, StreamEvent),
}

/// Two ends of one test.
pub struct Pair {
    /// The client's session.
    pub client: Box<ClientSession<'static, STREAMS>>,
    /// The server's session, once the cookie is there.
    pub server: Option<Box<ServerSession<STREAMS, TEXT_BYTES>>>,
    /// The data streams, in order of creation.
    pub streams: Vec<Stream>,
    setup: Setup,
    now: Instant,
    clocks: Link,
    queue: BinaryHeap<Reverse<Entry>>,
    entries: u64,
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

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Instant,
    order: u64,
    what: Occurrence,
}

#[derive(Debug)]
enum Occurrence {
    Control(End, Delivery),
    /// A stream reaches the server.
    Accepted(usize),
    Stream(End, usize, StreamEvent),
    Step(usize),
    Arrival(usize, Payload),
    Acknowledged(usize, u64),
    Samples(End),
    Output,
    Unblocked(End),
    Fault(Fault),
}

/// The order of entries is that of their time and number; what they hold has none.
impl PartialEq for Occurrence {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Occurrence {}

impl PartialOrd for Occurrence {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Occurrence {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Pair {
    /// Both ends at the beginning: the control connection is there and the client is about to speak.
    pub fn new(setup: Setup) -> Self {
        let config = ClientConfig {
            settings: setup.settings,
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
        Self {
            client: Box::new(client),
            server: None,
            streams,
            now: START,
            clocks: Link::new(setup.data, 0),
            queue: BinaryHeap::new(),
            entries: 0,
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
            let next = self.queue.peek().map(|Reverse(entry)| entry.at);
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
            } else if let Some(Reverse(entry)) = self.queue.pop() {
                self.occur(entry.what);
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

    /// Nanoseconds from the beginning to the end of `end`'s session.
    pub fn finished_after_ns(&self, end: End) -> Option<u64> {
        self.log(end).finished.map(|(at, _)| at.nanos_since(START))
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
        self.entries += 1;
        self.queue.push(Reverse(Entry { at, order: self.entries, what }));
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
        let Self { client, server, logs, todo, streams, .. } = self;
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
            log.record(now, streams, event, session);
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

    fn perform(&mut self, end: End, action: Action) {
        let own = self.clock(end);
        match action {
            Action::OpenStream(id, role) => {
                assert_eq!(role, self.setup.settings.role(end, id.index()));
                self.open(id.index());
            }
            Action::Prepare => {
                let admission = self.setup.admission;
                let server = self.server.as_mut().expect("only a server prepares");
                server.handle_prepared(own, admission);
            }
            Action::StartStreams => self.start_streams(end),
            Action::Sample if self.setup.sample_delay_ns > 0 => {
                let at = self.now.plus_nanos(self.setup.sample_delay_ns);
                self.enqueue(at, Occurrence::Samples(end));
            }
            Action::Sample => self.answer_samples(end),
            Action::StopStreams => self.streams.iter_mut().for_each(|stream| stream.stop(end)),
            Action::CloseStreams => self.close_streams(end),
            Action::CollectOutput => {
                let at = self.now.plus_nanos(self.setup.sample_delay_ns);
                self.enqueue(at, Occurrence::Output);
            }
            Action::CloseControl => {
                self.is_closing[end as usize] = true;
                self.close_if_sent(end);
            }
        }
    }

    fn close_if_sent(&mut self, end: End) {
        if self.is_closing[end as usize] && !self.is_blocked(end) {
            let deliveries = self.control.close(self.now, end);
            self.deliver(deliveries);
        }
    }

    fn is_blocked(&self, end: End) -> bool {
        self.now < self.blocked_until[end as usize]
    }

    /// The client opens a stream: TCP shows its cookie after the handshake, UDP a greeting at once.
    fn open(&mut self, index: usize) {
        let latency_ns = self.setup.control_latency_ns;
        let after = |trips: u64| self.now.plus_nanos(trips * latency_ns);
        let (back, there) = match self.setup.settings.protocol {
            Protocol::Tcp => (after(2), after(3)),
            Protocol::Udp => (after(2), after(1)),
        };
        if self.setup.failing_stream == Some(index) {
            let failed = StreamEvent::Failed { code: 111 };
            return self.enqueue(back, Occurrence::Stream(End::Client, index, failed));
        }
        self.enqueue(there, Occurrence::Accepted(index));
        self.enqueue(back, Occurrence::Stream(End::Client, index, StreamEvent::Connected));
    }

    fn start_streams(&mut self, end: End) {
        let own = self.clock(end);
        for index in 0..self.streams.len() {
            let id = self.streams[index].id;
            let plan = self.endpoint(end).and_then(|session| session.plan(id));
            let plan = plan.expect("known once the clock runs");
            self.streams[index].start(end, own, plan);
            if self.streams[index].sender == end {
                self.enqueue_step(self.now, index);
            }
        }
    }

    fn close_streams(&mut self, end: End) {
        if std::mem::replace(&mut self.closed[end as usize], true) {
            return;
        }
        let at = self.now.plus_nanos(self.setup.data.latency_ns);
        for index in 0..self.streams.len() {
            self.streams[index].stop(end);
            if self.setup.settings.protocol == Protocol::Tcp {
                self.enqueue(at, Occurrence::Stream(other(end), index, StreamEvent::Closed));
            }
        }
    }

    fn answer_samples(&mut self, end: End) {
        let own = self.clock(end);
        let samples: Vec<Sample> = self.streams.iter().map(|stream| stream.sample(end)).collect();
        let used_ns = own.nanos_since(Instant::ZERO);
        let cpu = CpuTimes { user_ns: used_ns / 10, system_ns: used_ns / 20 };
        self.input(end, |session| session.handle_samples(own, &samples, cpu));
    }

    fn occur(&mut self, what: Occurrence) {
        match what {
            Occurrence::Control(to, Delivery::Bytes(bytes)) => self.take_control(to, &bytes),
            Occurrence::Control(to, Delivery::Closed) => {
                let own = self.clock(to);
                self.input(to, |session| session.handle_control_closed(own));
            }
            Occurrence::Accepted(index) => self.accept(index),
            Occurrence::Stream(end, index, event) => self.tell_stream(end, index, event),
            Occurrence::Step(index) => self.step(index),
            Occurrence::Arrival(index, payload) => {
                let receiver = other(self.streams[index].sender);
                let own = self.clock(receiver);
                self.streams[index].arrive(own, payload);
            }
            Occurrence::Acknowledged(index, bytes) => {
                self.streams[index].acknowledge(bytes);
                self.enqueue_step(self.now, index);
            }
            Occurrence::Samples(end) => self.answer_samples(end),
            Occurrence::Output => {
                let own = self.clock(End::Server);
                let bytes = self.setup.server_output.as_ref().map(|text| text.len() as u32);
                let server = self.server.as_mut().expect("only a server collects its output");
                server.handle_server_output(own, bytes);
            }
            Occurrence::Unblocked(end) => {
                self.send_control(end);
                self.close_if_sent(end);
            }
            Occurrence::Fault(fault) => self.strike(fault),
        }
    }

    fn take_control(&mut self, to: End, bytes: &[u8]) {
        let own = self.clock(to);
        if to == End::Client || self.server.is_some() {
            return self.input(to, |session| session.handle_control(own, bytes));
        }
        let (consumed, greeting) = self.greeting.read(bytes);
        match greeting {
            Greeting::Incomplete => {}
            Greeting::Foreign(_) => {
                let deliveries = self.control.close(self.now, to);
                self.deliver(deliveries);
            }
            Greeting::Cookie(_) => {
                let config = ServerConfig {
                    interval: self.setup.interval,
                    extension: self.setup.answer,
                    deadlines: self.setup.deadlines,
                };
                self.server = Some(Box::new(ServerSession::new(own, config)));
                self.settle();
                self.input(to, |session| session.handle_control(own, &bytes[consumed..]));
            }
        }
    }

    fn accept(&mut self, index: usize) {
        let own = self.clock(End::Server);
        let Some(server) = &mut self.server else { return };
        if let Some((id, role)) = server.handle_stream_accepted(own) {
            assert_eq!(id.index(), index, "streams are numbered in the order they come");
            assert_eq!(role, self.setup.settings.role(End::Server, index));
        }
    }

    fn tell_stream(&mut self, end: End, index: usize, event: StreamEvent) {
        let own = self.clock(end);
        if event == StreamEvent::Closed {
            // An adapter reports nothing of sockets that it has closed itself.
            if self.closed[end as usize] {
                return;
            }
            self.streams[index].stop(end);
        }
        let id = StreamId::from_index(index);
        self.input(end, |session| session.handle_stream(own, id, event));
    }

    fn enqueue_step(&mut self, at: Instant, index: usize) {
        if !std::mem::replace(&mut self.streams[index].is_step_queued, true) {
            self.enqueue(at, Occurrence::Step(index));
        }
    }

    fn step(&mut self, index: usize) {
        let sender = self.streams[index].sender;
        let own = self.clock(sender);
        self.streams[index].is_step_queued = false;
        let stepped = self.streams[index].step(self.now, own);
        match stepped {
            Stepped::Idle | Stepped::Blocked => {}
            Stepped::Wait(Until::Sender(until)) => {
                self.enqueue_step(self.network_time(sender, until), index);
            }
            Stepped::Wait(Until::Network(until)) => self.enqueue_step(until, index),
            Stepped::LimitReached => self.tell_stream(sender, index, StreamEvent::LimitReached),
            Stepped::Sent(payload, arrivals) => {
                for at in arrivals {
                    if let Payload::Bytes(bytes) = payload {
                        let acknowledged = at.plus_nanos(self.setup.data.latency_ns);
                        self.enqueue(acknowledged, Occurrence::Acknowledged(index, bytes));
                    }
                    self.enqueue(at, Occurrence::Arrival(index, payload.clone()));
                }
                self.enqueue_step(self.now, index);
            }
        }
    }

    fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Interrupt(end) => {
                self.input(end, |session| session.handle_command(Command::Interrupt));
            }
            Fault::Vanish(end) => {
                let deliveries = self.control.close(self.now, end);
                self.deliver(deliveries);
            }
            Fault::Block(end, nanos) => {
                let until = self.now.plus_nanos(nanos).max(self.blocked_until[end as usize]);
                self.blocked_until[end as usize] = until;
                self.enqueue(until, Occurrence::Unblocked(end));
            }
            Fault::Garbage(to, bytes) => self.take_control(to, &bytes),
            Fault::CloseStreams(end) => {
                for index in 0..self.streams.len() {
                    self.tell_stream(end, index, StreamEvent::Closed);
                    self.settle();
                }
            }
            Fault::Stream(end, index, event) => {
                if index < self.streams.len() {
                    self.tell_stream(end, index, event);
                }
            }
        }
    }

    /// What a client that offers `settings` is bound by, see [`longest_session_ns`].
    pub fn longest_ns(&self) -> u64 {
        longest_session_ns(&self.setup)
    }
}

/// By when both sessions of a test that ends by time are over, whatever happens: every wait of the
/// exchange at its longest, one after the other.
pub fn longest_session_ns(setup: &Setup) -> u64 {
    let Deadlines { greeting_ns, step_ns, streams_ns, grace_ns, linger_ns } = setup.deadlines;
    let seconds = setup.settings.omit_secs + setup.settings.limits.seconds.unwrap_or(0);
    let test_ns = nanos(Duration::from_secs(seconds.into()));
    // Steps: parameters, preparing, start, end, results of each end. Answers: three samples, the output.
    greeting_ns
        + 6 * step_ns
        + streams_ns
        + test_ns
        + grace_ns
        + linger_ns
        + 4 * setup.sample_delay_ns
        + 20 * setup.control_latency_ns
}

/// Far enough from zero for a clock that is behind.
const START: Instant = Instant::from_nanos(1_000_000_000_000);
