//! A client and a server wired to each other, byte by byte.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_core::protocol::cookie::Cookie;
use linerate_core::session::{
    Admission, Client, ClientSession, Command, Ending, Exchange, Phase, Server, ServerSession,
    StreamEvent,
};
use linerate_core::test::{End, StreamId};
use linerate_core::time::Instant;

use super::super::input::Input;
use super::test::{self, N};
use super::watched::Watched;

/// What may happen between the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// Bytes are cut and delayed, no more.
    Fair,
    /// Bytes are also lost, changed and made up, connections break, people interrupt.
    Faulty,
}

/// Runs a test between them; in fair weather it completes at both ends.
pub(super) fn run(input: &mut Input<'_>, weather: Weather) {
    let mut pair = Pair::new(input, weather);
    for _ in 0..MOST_OPERATIONS {
        if input.is_empty() {
            break;
        }
        pair.happen(input);
    }
    pair.run_to_end();
    let endings = (pair.client.finished, pair.server.finished);
    if weather == Weather::Fair {
        assert_eq!(endings, (Some(Ending::Complete), Some(Ending::Complete)));
        let (asked, agreed) = (pair.client.session.settings(), pair.server.session.settings());
        assert_eq!(asked, agreed, "both ends mean the same test");
        assert_eq!(pair.client.session.extension(), pair.server.session.extension());
    }
}

/// So that fair weather stays within every deadline, the second for the reply to a greeting, too:
/// 6.5 ms each.
const MOST_OPERATIONS: u32 = 100;

struct Pair {
    client: Watched<Client<'static, N>>,
    server: Watched<Server<N, 64>>,
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    /// Each end knows that the other has closed.
    closed: [bool; 2],
    accepted: usize,
    weather: Weather,
    now: Instant,
}

impl Pair {
    fn new(input: &mut Input<'_>, weather: Weather) -> Self {
        let mut settings = test::settings(input);
        if settings.limits == Default::default() {
            settings.limits.seconds = Some(1);
        }
        let intervals = [None, Some(Duration::from_millis(100)), Some(Duration::from_secs(1))];
        let interval = intervals[usize::from(input.below(3))];
        let config = test::client(settings, interval);
        let cookie = Cookie::from_random([7; Cookie::LEN - 1]);
        let client = ClientSession::new(Instant::ZERO, config, cookie).expect("few streams");
        let mut client = Watched::new(client);
        assert_eq!(client.take_control(Cookie::LEN, b""), cookie.as_bytes(), "the greeting");
        let server = ServerSession::new(Instant::ZERO, test::server(input, interval));
        Self {
            client,
            server: Watched::new(server),
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            closed: [false; 2],
            accepted: 0,
            weather,
            now: Instant::ZERO,
        }
    }

    fn happen(&mut self, input: &mut Input<'_>) {
        let choice = input.byte();
        match choice % 16 {
            0 | 1 => self.carry_to_server(usize::from(choice >> 4) + 1),
            2 | 3 => self.carry_to_client(usize::from(choice >> 4) + 1),
            4 => {
                self.carry_to_server(usize::MAX);
                self.carry_to_client(usize::MAX);
            }
            5 => self.accept(),
            6 => self.connect(),
            7 => self.answer_client(),
            8 => self.answer_server(),
            9 | 10 => {
                let unit_ns = if self.weather == Weather::Fair { 100 } else { 1000 };
                self.now = self.now.plus_nanos(u64::from(input.u16()) * unit_ns);
                self.client.fire(self.now);
                self.server.fire(self.now);
            }
            _ if self.weather == Weather::Fair => {}
            11 => self.damage(input, choice),
            12 => self.jump(),
            13 => self.disturb_stream(input, choice),
            14 if choice >> 6 == 0 => self.close_control(choice),
            15 if choice >> 6 == 0 => self.interrupt(choice),
            _ => {}
        }
    }

    fn carry_to_server(&mut self, most: usize) {
        self.to_server.extend(self.client.take_control(most, b""));
        let len = most.min(self.to_server.len());
        let bytes: Vec<u8> = self.to_server.drain(..len).collect();
        if !self.closed[1] && !bytes.is_empty() {
            self.server.input(|server| server.handle_control(self.now, &bytes));
        }
    }

    fn carry_to_client(&mut self, most: usize) {
        self.to_client.extend(self.server.take_control(most, OUTPUT));
        let len = most.min(self.to_client.len());
        let bytes: Vec<u8> = self.to_client.drain(..len).collect();
        if !self.closed[0] && !bytes.is_empty() {
            self.client.input(|client| client.handle_control(self.now, &bytes));
        }
    }

    /// The server's side of a connection that the client has begun.
    fn accept(&mut self) {
        if self.accepted < self.client.owed.opened {
            let accepted = self.server.input(|server| server.handle_stream_accepted(self.now));
            self.accepted += 1;
            if self.weather == Weather::Fair {
                let (id, role) = accepted.expect("the server waits for it");
                let settings = self.client.session.settings();
                assert_eq!(role.opposite(), settings.role(End::Client, id.index()));
            }
        }
    }

    /// The client's side of it, which may learn of it before or after the server.
    fn connect(&mut self) {
        if let Some(id) = self.client.owed.open.pop_front() {
            let connected = StreamEvent::Connected;
            self.client.input(|client| client.handle_stream(self.now, id, connected));
        }
    }

    fn answer_client(&mut self) {
        if self.client.owed.samples > 0 {
            self.client.give_samples(self.now, self.now.as_nanos());
        }
    }

    fn answer_server(&mut self) {
        if self.server.owed.prepare {
            self.server.give_prepared(self.now, Admission::Accept);
        } else if self.server.owed.output {
            self.server.give_output(self.now, Some(OUTPUT.len() as u32));
        } else if self.server.owed.samples > 0 {
            self.server.give_samples(self.now, self.now.as_nanos());
        }
    }

    /// Changes, drops or makes up a byte on the way.
    fn damage(&mut self, input: &mut Input<'_>, choice: u8) {
        let way = if choice & 16 == 0 { &mut self.to_server } else { &mut self.to_client };
        match (choice >> 5 & 3, way.front_mut()) {
            (0, Some(first)) => *first ^= input.byte(),
            (1, Some(_)) => drop(way.pop_front()),
            _ => way.push_back(input.byte()),
        }
    }

    /// Nothing happens until the next timer.
    fn jump(&mut self) {
        let timeouts = [self.client.session.poll_timeout(), self.server.session.poll_timeout()];
        let Some(at) = timeouts.into_iter().flatten().map(|(_, at)| at).min() else { return };
        self.now = at.max(self.now);
        self.client.fire(self.now);
        self.server.fire(self.now);
    }

    fn disturb_stream(&mut self, input: &mut Input<'_>, choice: u8) {
        let id = StreamId::from_index(usize::from(input.byte() % 10));
        let event =
            if choice & 16 == 0 { StreamEvent::Closed } else { StreamEvent::Failed { code: 1 } };
        match choice & 32 {
            0 => self.client.input(|client| client.handle_stream(self.now, id, event)),
            _ => self.server.input(|server| server.handle_stream(self.now, id, event)),
        }
    }

    fn close_control(&mut self, choice: u8) {
        match choice & 16 {
            0 => close(&mut self.client, &mut self.closed[0], self.now),
            _ => close(&mut self.server, &mut self.closed[1], self.now),
        }
    }

    fn interrupt(&mut self, choice: u8) {
        match choice & 16 {
            0 => self.client.input(|client| client.handle_command(Command::Interrupt)),
            _ => self.server.input(|server| server.handle_command(Command::Interrupt)),
        }
    }

    /// Everything arrives and everybody does his duty, until both ends are done.
    fn run_to_end(&mut self) {
        for _ in 0..MOST_STEPS {
            self.carry_to_server(usize::MAX);
            self.carry_to_client(usize::MAX);
            self.accept();
            self.connect();
            self.answer_client();
            self.answer_server();
            self.reach_limits();
            self.close_finished();
            match (self.client.finished, self.server.finished) {
                (Some(_), Some(_)) => return,
                _ if self.is_idle() => self.jump(),
                _ => {}
            }
        }
        let phases = (self.client.session.phase(), self.server.session.phase());
        panic!("it goes on for ever: {phases:?}");
    }

    /// An end that is done closes the control connection behind its last bytes.
    fn close_finished(&mut self) {
        if self.client.is_done() && self.to_server.is_empty() {
            close(&mut self.server, &mut self.closed[1], self.now);
        }
        if self.server.is_done() && self.to_client.is_empty() {
            close(&mut self.client, &mut self.closed[0], self.now);
        }
    }

    fn is_idle(&mut self) -> bool {
        let owed = [&self.client.owed, &self.server.owed];
        let answered = |owed: &super::watched::Owed| {
            owed.samples == 0 && owed.open.is_empty() && !owed.prepare && !owed.output
        };
        owed.into_iter().all(answered)
            && self.client.session.poll_control().is_none()
            && self.server.session.poll_control().is_none()
            && self.accepted >= self.client.owed.opened
    }

    /// The client's streams have moved what they should once the omitted start is over.
    fn reach_limits(&mut self) {
        let settings = *self.client.session.settings();
        let limited = settings.limits.bytes.is_some() || settings.limits.blocks.is_some();
        if !limited || self.client.session.phase() != Phase::Running {
            return;
        }
        for index in 0..settings.stream_count() {
            let (id, reached) = (StreamId::from_index(index), StreamEvent::LimitReached);
            self.client.input(|client| client.handle_stream(self.now, id, reached));
        }
    }
}

/// The server's own output, as its adapter sends it.
const OUTPUT: &[u8] = b"\"server_output_text\":\"a line\\n\"";

/// Two seconds omitted, two measured, an interval each 100 ms at both ends, and some.
const MOST_STEPS: u32 = 1000;

/// Tells an end, once, that the other has closed the control connection.
fn close<E: Exchange<N>>(end: &mut Watched<E>, closed: &mut bool, now: Instant) {
    if !std::mem::replace(closed, true) {
        end.input(|session| session.handle_control_closed(now));
    }
}
