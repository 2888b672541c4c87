//! A session under observation: after every input all outputs are drained and held against the laws
//! that the session's documentation states. What the adapter owes it is remembered, not done.

use std::collections::VecDeque;

use linerate_core::report::Span;
use linerate_core::session::{
    Action, Admission, Ending, Event, Exchange, Phase, Server, Session, Transmit,
};
use linerate_core::stats::CpuTimes;
use linerate_core::test::{Protocol, StreamId};
use linerate_core::time::Instant;

use super::super::input::Chunks;
use super::test::{N, samples};

/// A session, what it has said so far, and what it waits for.
pub(super) struct Watched<E> {
    pub(super) session: Session<E, N>,
    pub(super) owed: Owed,
    pub(super) finished: Option<Ending>,
    control_closed: bool,
    agreed: bool,
    started: bool,
    stopped: bool,
    measured: bool,
    omit_ended: bool,
    last_interval: Option<(Span, bool)>,
    pub(super) said: Said,
}

/// All that a session has said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    actions: Vec<Action>,
    events: Vec<Event>,
}

/// What the adapter has been asked for and not yet answered.
#[derive(Debug, Default)]
pub(super) struct Owed {
    pub(super) samples: usize,
    pub(super) open: VecDeque<StreamId>,
    /// Streams that were asked for so far.
    pub(super) opened: usize,
    pub(super) prepare: bool,
    pub(super) output: bool,
}

impl<E: Exchange<N>> Watched<E> {
    pub(super) fn new(session: Session<E, N>) -> Self {
        let mut watched = Self {
            session,
            owed: Owed::default(),
            finished: None,
            control_closed: false,
            agreed: false,
            started: false,
            stopped: false,
            measured: false,
            omit_ended: false,
            last_interval: None,
            said: Said::default(),
        };
        watched.drain();
        watched
    }

    /// One input, and everything that follows from it.
    pub(super) fn input<R>(&mut self, input: impl FnOnce(&mut Session<E, N>) -> R) -> R {
        let answer = input(&mut self.session);
        self.drain();
        answer
    }

    /// Bytes from the peer, cut like this.
    pub(super) fn give_control(&mut self, now: Instant, mut bytes: &[u8], mut chunks: Chunks) {
        while !bytes.is_empty() {
            let chunk = chunks.next(&mut bytes);
            self.input(|session| session.handle_control(now, chunk));
        }
    }

    /// Lets the timers fire; none that is due is left.
    pub(super) fn fire(&mut self, now: Instant) {
        self.input(|session| session.handle_timeout(now));
        let next = self.session.poll_timeout();
        assert!(next.is_none_or(|(_, at)| at > now), "{next:?} is due at {now:?} and did not fire");
    }

    /// Answers one of the samples that were asked for.
    pub(super) fn give_samples(&mut self, now: Instant, total: u64) {
        self.owed.samples = self.owed.samples.saturating_sub(1);
        let samples = samples(self.session.settings().stream_count(), total);
        let cpu = CpuTimes { user_ns: total, system_ns: total / 2 };
        self.input(|session| session.handle_samples(now, &samples, cpu));
    }

    /// Takes up to `most` bytes that are to be sent; `output` stands in for the server's own.
    pub(super) fn take_control(&mut self, most: usize, output: &[u8]) -> Vec<u8> {
        let mut taken = Vec::new();
        while taken.len() < most {
            let len = match self.session.poll_control() {
                None => break,
                Some(Transmit::Bytes(bytes)) => {
                    assert!(!bytes.is_empty(), "to send nothing is no step");
                    let len = bytes.len().min(most - taken.len());
                    taken.extend_from_slice(&bytes[..len]);
                    len
                }
                Some(Transmit::ServerOutput) => {
                    taken.extend_from_slice(output);
                    output.len()
                }
            };
            self.session.consume_control(len);
        }
        taken
    }

    /// Finished, and everything it had to say is on its way.
    pub(super) fn is_done(&mut self) -> bool {
        self.finished.is_some() && self.session.poll_control().is_none()
    }

    fn drain(&mut self) {
        while let Some(action) = self.session.poll_action() {
            assert!(!self.control_closed, "{action:?} after the last action");
            self.said.actions.push(action);
            self.on_action(action);
        }
        while let Some(event) = self.session.poll_event() {
            assert!(self.finished.is_none(), "{event:?} after the last event");
            self.said.events.push(event);
            self.on_event(event);
        }
        let is_over = self.session.phase() == Phase::Over;
        assert_eq!((self.finished.is_some(), self.control_closed), (is_over, is_over));
        assert!(!is_over || self.session.poll_timeout().is_none(), "nothing is left to wait for");
        let is_running = self.session.phase() == Phase::Running;
        assert!(!is_running || (self.started && !self.measured), "running is between the two");
    }

    fn on_action(&mut self, action: Action) {
        match action {
            Action::OpenStream(id, role) => {
                assert_eq!(id.index(), self.owed.opened, "one after the other");
                assert!(self.owed.opened < self.session.settings().stream_count());
                assert_eq!(
                    role,
                    self.session.settings().role(linerate_core::test::End::Client, id.index())
                );
                self.owed.open.push_back(id);
                self.owed.opened += 1;
            }
            Action::Greet(id) => {
                assert_eq!(self.session.settings().protocol, Protocol::Udp);
                assert!(id.index() < self.owed.opened, "only what is open is greeted again");
                assert_eq!(self.session.phase(), Phase::Streams);
            }
            Action::Prepare => {
                assert!(!self.owed.prepare);
                self.owed.prepare = true;
            }
            Action::StartStreams => {
                let count = self.session.settings().stream_count();
                assert!((0..=N).all(|index| {
                    let id = StreamId::from_index(index);
                    self.session.plan(id).is_some_and(|plan| plan.id == id) == (index < count)
                }));
            }
            Action::Sample => self.owed.samples += 1,
            Action::StopStreams => {
                assert!(!self.stopped, "streams stop once");
                self.stopped = true;
            }
            Action::CollectOutput => {
                assert!(self.session.settings().server_output && !self.owed.output);
                self.owed.output = true;
            }
            Action::CloseStreams => {}
            Action::Weigh { .. } => assert!(self.started && !self.measured, "it runs"),
            Action::CloseControl => self.control_closed = true,
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Agreed => {
                assert!(!std::mem::replace(&mut self.agreed, true), "agreed once");
                assert!(self.session.settings().stream_count() <= N);
            }
            Event::StillUnanswered => assert!(!self.agreed, "the parameters were asked for"),
            Event::Started => {
                assert!(self.agreed && !std::mem::replace(&mut self.started, true));
            }
            Event::OmitEnded => {
                assert!(self.session.settings().omit_secs > 0, "nothing was omitted");
                assert!(!std::mem::replace(&mut self.omit_ended, true), "it ends once");
            }
            Event::Interval { span, omitted } => self.on_interval(span, omitted),
            Event::Measured => {
                assert!(self.started && !std::mem::replace(&mut self.measured, true));
                let accounts = self.session.accounts();
                for index in 0..accounts.streams().len() {
                    let summary = accounts.summary(index).expect("there is such a stream");
                    assert_eq!(summary.local.duration_ns, Some(accounts.duration_ns()));
                }
            }
            Event::Finished(ending) => self.on_finished(ending),
        }
    }

    /// Intervals lie side by side; the measured part begins at zero again.
    fn on_interval(&mut self, span: Span, omitted: bool) {
        assert!(self.started && !self.measured, "intervals belong to the running test");
        assert!(span.start_ns <= span.end_ns);
        assert!(!(omitted && self.omit_ended), "the omitted start is over");
        let begins = match self.last_interval.replace((span, omitted)) {
            Some((last, was_omitted)) if was_omitted == omitted => last.end_ns,
            _ => 0,
        };
        assert_eq!(span.start_ns, begins, "no gap and no overlap");
        let accounts = self.session.accounts();
        for index in 0..accounts.streams().len() {
            let part = accounts.interval(index).expect("there is such a stream");
            assert_eq!((part.span, part.omitted), (span, omitted));
        }
    }

    fn on_finished(&mut self, ending: Ending) {
        assert_eq!(self.started, self.measured, "what was started is measured");
        match ending {
            Ending::Complete => {
                assert!(self.measured && self.session.accounts().remote().is_some());
            }
            Ending::Failed(error) => assert!(!error.to_string().is_empty()),
        }
        self.finished = Some(ending);
    }
}

impl<const T: usize> Watched<Server<N, T>> {
    pub(super) fn give_prepared(&mut self, now: Instant, admission: Admission) {
        self.owed.prepare = false;
        self.input(|session| session.handle_prepared(now, admission));
    }

    pub(super) fn give_output(&mut self, now: Instant, member_bytes: Option<u32>) {
        self.owed.output = false;
        self.input(|session| session.handle_server_output(now, member_bytes));
    }
}
