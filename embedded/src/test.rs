//! One test, as both ends run it: carries the bytes of its control connection, does what its session
//! says, and gives its streams their turns. Nothing of the protocol is decided here; what only one of
//! the ends does is its [`End`].

use heapless::Vec;
use linerate_core::session::{Action, Command, Event, Exchange, Session, Transmit};
use linerate_core::stats::{CpuTimes, Sample};
use linerate_core::test::StreamId;
use linerate_core::time::{Duration, Instant};

use crate::net::{self, Net, Received};
use crate::stream::{Stream, Streams};

/// A test, from the session's beginning to the close of its control connection.
#[derive(Debug)]
pub(crate) struct Test<E, const N: usize> {
    pub(crate) session: Session<E, N>,
    pub(crate) streams: Streams<N>,
    control: usize,
    /// The stream whose turn is first. It changes, because they share what can be sent.
    first: usize,
    samples_due: u8,
    control_ended: bool,
    /// The control connection has taken all that is to be said.
    is_silent: bool,
    /// The session is over; until then its last bytes may still leave.
    closing: Option<Instant>,
}

/// What client and server do differently, while the test is at a poll.
pub(crate) trait End<E, const N: usize> {
    /// The stack.
    type Net: Net;

    /// The time of this poll.
    fn now(&self) -> Instant;

    /// The stack.
    fn net(&mut self) -> &mut Self::Net;

    /// Does what only this end is asked to do.
    fn perform(&mut self, test: &mut Test<E, N>, action: Action);

    /// Gives one answer that the session of this end waits for; `false` if it waits for none.
    fn answer(&mut self, session: &mut Session<E, N>) -> bool;

    /// Tells whoever watches.
    fn tell(&mut self, event: Event, session: &Session<E, N>);

    /// Gives the stream's sockets back, if it has any of its own.
    fn release(&mut self, stream: Stream);
}

impl<E: Exchange<N>, const N: usize> Test<E, N> {
    pub(crate) const fn new(session: Session<E, N>, control: usize) -> Self {
        Self {
            session,
            streams: Vec::new(),
            control,
            first: 0,
            samples_due: 0,
            control_ended: false,
            is_silent: false,
            closing: None,
        }
    }

    /// Takes what came on the control connection, and lets the timers fire.
    pub(crate) fn hear(&mut self, end: &mut impl End<E, N>) {
        let now = end.now();
        while !self.control_ended {
            let session = &mut self.session;
            let received = end.net().receive(self.control, |bytes| {
                session.handle_control(now, bytes);
                bytes.len()
            });
            match received {
                Received::Bytes => {}
                Received::Nothing => break,
                Received::End => {
                    self.control_ended = true;
                    self.session.handle_control_closed(now);
                }
            }
            self.settle(end);
        }
        self.session.handle_timeout(now);
        self.settle(end);
    }

    pub(crate) fn interrupt(&mut self, end: &mut impl End<E, N>) {
        self.session.handle_command(Command::Interrupt);
        self.settle(end);
    }

    /// Gives the streams their turns and sends what the session has to say. Returns when there is
    /// more to do even if nothing comes.
    pub(crate) fn work(&mut self, end: &mut impl End<E, N>) -> Option<Instant> {
        let next_turn = self.move_data(end);
        self.speak(end);
        let deadline = self.session.poll_timeout().map(|(_, at)| at);
        [next_turn, deadline, self.closing].into_iter().flatten().min()
    }

    /// Whether everything is said and done, or the time for it is over.
    pub(crate) fn is_over(&self, end: &mut impl End<E, N>) -> bool {
        self.closing.is_some_and(|until| {
            self.is_silent || end.now() >= until || !end.net().may_send(self.control)
        })
    }

    /// The socket of the control connection.
    pub(crate) const fn control(&self) -> usize {
        self.control
    }

    /// Drains the session: does what it says and tells what happened, until it wants nothing more.
    pub(crate) fn settle(&mut self, end: &mut impl End<E, N>) {
        loop {
            while let Some(action) = self.session.poll_action() {
                self.perform(end, action);
            }
            while let Some(event) = self.session.poll_event() {
                end.tell(event, &self.session);
            }
            if self.samples_due > 0 {
                self.samples_due -= 1;
                let samples: Vec<Sample, N> = self.streams.iter().map(Stream::sample).collect();
                self.session.handle_samples(end.now(), &samples, CpuTimes::default());
            } else if !end.answer(&mut self.session) {
                return;
            }
        }
    }

    fn perform(&mut self, end: &mut impl End<E, N>, action: Action) {
        match action {
            Action::Sample => self.samples_due += 1,
            Action::CloseControl => self.closing = Some(end.now() + FAREWELL),
            Action::StartStreams => {
                end.perform(self, action);
                for (index, stream) in self.streams.iter_mut().enumerate() {
                    if let Some(plan) = self.session.plan(StreamId::from_index(index)) {
                        stream.start(end.now(), &plan);
                    }
                }
            }
            Action::StopStreams => {
                end.perform(self, action);
                let now = end.now();
                self.streams.iter_mut().for_each(|stream| stream.stop(now, end.net()));
            }
            // A TCP stream's end is sent at once: a stock client that receives reads on until it comes.
            Action::CloseStreams => {
                end.perform(self, action);
                core::mem::take(&mut self.streams).into_iter().for_each(|it| end.release(it));
            }
            _ => end.perform(self, action),
        }
    }

    fn move_data(&mut self, end: &mut impl End<E, N>) -> Option<Instant> {
        let now = end.now();
        let block_bytes = self.session.settings().block_bytes as usize;
        let count = self.streams.len();
        self.first = (self.first + 1) % count.max(1);
        let mut next = None;
        for index in (self.first..count).chain(0..self.first) {
            // An event may end the test, and the streams with it.
            let Some(stream) = self.streams.get_mut(index) else { break };
            let turn = stream.turn(now, end.net(), block_bytes);
            next = [next, turn.wait_until].into_iter().flatten().min();
            if let Some(event) = turn.event {
                self.session.handle_stream(now, StreamId::from_index(index), event);
                self.settle(end);
            }
        }
        next
    }

    /// Sends what the session has to say, as much as the control connection takes.
    fn speak(&mut self, end: &mut impl End<E, N>) {
        loop {
            let taken = match self.session.poll_control() {
                None => break self.is_silent = true,
                Some(Transmit::Bytes(bytes)) => net::send_bytes(end.net(), self.control, bytes),
                // None was announced, so nothing of it is to be sent.
                Some(Transmit::ServerOutput) => 0,
            };
            if taken == 0 {
                break self.is_silent = false;
            }
            self.session.consume_control(taken);
        }
    }
}

/// How long the last bytes may take.
const FAREWELL: Duration = Duration::from_secs(1);
