//! What a session looks like from outside, for both ends alike. Client and server differ in their
//! [`Exchange`]; everything else is here and in `shared`.

use heapless::String;

#[cfg(feature = "host")]
use super::Denial;
use super::documents::{OwnResults, SessionDocuments};
use super::outbox::Transmit;
use super::shared::{Conclusion, Parting, Shared};
use super::{Action, Command, Ending, Event, Phase, SessionError, StreamEvent, Timer};
use crate::flow::StreamPlan;
use crate::protocol::code::ControlCode;
use crate::protocol::extension::{Features, Offer};
use crate::protocol::json::DocumentError;
use crate::protocol::results::OutputKind;
use crate::report::{StreamDetail, Verdict};
use crate::stats::{Accounts, CpuTimes, Sample};
use crate::test::{Role, StreamId, TestSettings};
use crate::time::Instant;

/// One end of a control connection, with room for `N` streams, both directions together.
#[derive(Debug)]
pub struct Session<E, const N: usize> {
    pub(super) shared: Shared<N>,
    pub(super) exchange: E,
}

/// The control exchange as one end sees it. Implemented by this crate's client and server only.
pub trait Exchange<const N: usize> {
    /// Told to the other end when this one is interrupted.
    const INTERRUPTED: ControlCode;

    /// Takes some of the bytes and says how many; a document in them may be faulty.
    fn on_control(
        &mut self,
        shared: &mut Shared<N>,
        now: Instant,
        bytes: &[u8],
        output: &mut dyn FnMut(OutputKind, &[u8]),
    ) -> Result<usize, DocumentError>;

    /// A document from the other end cannot be used.
    fn on_bad_document(&mut self, shared: &mut Shared<N>, now: Instant, error: DocumentError);

    /// The other end closed the control connection.
    fn on_control_closed(&mut self, shared: &mut Shared<N>, now: Instant);

    /// Something happened to a stream before the clock ran.
    fn on_stream(&mut self, shared: &mut Shared<N>, now: Instant, id: StreamId, event: StreamEvent);

    /// An action beside those that an input brings at once: there may be one for each stream.
    fn poll_action(&mut self, _shared: &Shared<N>) -> Option<Action> {
        None
    }

    /// The test ended as it should and is measured.
    fn on_measured(&mut self, shared: &mut Shared<N>, now: Instant);

    /// A timer of the exchange fired.
    fn on_timeout(&mut self, shared: &mut Shared<N>, now: Instant, timer: Timer);

    /// The extension as agreed with the other end.
    fn extension(&self) -> Option<Offer>;

    /// The documents that this end sends.
    fn documents<'s>(
        &'s self,
        settings: &'s TestSettings,
        results: OwnResults<'s, N>,
    ) -> SessionDocuments<'s, N>;
}

impl<E: Exchange<N>, const N: usize> Session<E, N> {
    /// Takes bytes from the control connection, cut anyhow.
    pub fn handle_control(&mut self, now: Instant, bytes: &[u8]) {
        self.handle_control_with_output(now, bytes, &mut |_, _| ());
    }

    /// As [`handle_control`](Self::handle_control); the server's own output, if its results carry
    /// it, goes to `output` as the raw JSON value, piece by piece.
    pub fn handle_control_with_output(
        &mut self,
        now: Instant,
        mut bytes: &[u8],
        output: &mut dyn FnMut(OutputKind, &[u8]),
    ) {
        self.shared.assert_drained();
        while !bytes.is_empty() && self.shared.phase != Phase::Over {
            match self.exchange.on_control(&mut self.shared, now, bytes, output) {
                Ok(consumed) => bytes = &bytes[consumed..],
                Err(error) => return self.exchange.on_bad_document(&mut self.shared, now, error),
            }
        }
    }

    /// Notes that the other end closed the control connection.
    pub fn handle_control_closed(&mut self, now: Instant) {
        self.shared.assert_drained();
        self.exchange.on_control_closed(&mut self.shared, now);
    }

    /// Notes what happened to a data stream.
    pub fn handle_stream(&mut self, now: Instant, id: StreamId, event: StreamEvent) {
        self.shared.assert_drained();
        if self.shared.phase == Phase::Running {
            self.shared.on_running_stream(now, id, event);
        } else {
            self.exchange.on_stream(&mut self.shared, now, id, event);
        }
    }

    /// Takes a sample of every stream, in order of creation, in answer to [`Action::Sample`].
    pub fn handle_samples(&mut self, now: Instant, samples: &[Sample], cpu: CpuTimes) {
        self.shared.assert_drained();
        match self.shared.on_samples(now, samples, cpu) {
            Some(Conclusion::Results) => self.exchange.on_measured(&mut self.shared, now),
            Some(Conclusion::Failure { error, parting }) => {
                self.shared.finish(Ending::Failed(error), parting);
            }
            None => {}
        }
    }

    /// Names the congestion control of this end's data sockets, for the results.
    pub fn handle_congestion(&mut self, name: &str) {
        self.shared.congestion = String::try_from(name).ok();
    }

    /// Server: notes how many other tests have run beside this one, for the results of a linerate
    /// client. In time before [`Event::Measured`] is answered.
    pub fn handle_concurrent_tests(&mut self, count: u32) {
        self.shared.concurrent_tests = count;
    }

    /// Server: what [`handle_concurrent_tests`](Self::handle_concurrent_tests) said.
    pub const fn concurrent_tests(&self) -> u32 {
        self.shared.concurrent_tests
    }

    /// Notes that the jitter of this end is that of batches of datagrams, for the results of a linerate
    /// peer. In time before [`Event::Measured`] is answered.
    pub fn handle_batch_jitter(&mut self) {
        self.shared.jitter_of_batches = true;
    }

    /// Notes what this end knows of the stream at this place beyond its counts, for the results of a linerate
    /// peer. In time before [`Event::Measured`] is answered.
    pub fn handle_detail(&mut self, index: usize, detail: StreamDetail) {
        self.shared.accounts.set_detail(index, detail);
    }

    /// Server: ends the test for what only its adapter can see, such as what all tests take
    /// together.
    #[cfg(feature = "host")]
    pub fn handle_denied(&mut self, denial: Denial) {
        self.shared.assert_drained();
        self.shared.deny(denial);
    }

    /// Takes a command of whoever runs this end.
    pub fn handle_command(&mut self, command: Command) {
        self.shared.assert_drained();
        let Command::Interrupt = command;
        self.shared.fail(SessionError::Interrupted, Parting::Code(E::INTERRUPTED));
    }

    /// Lets the timers fire that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.shared.assert_drained();
        while let Some(timer) = self.shared.timers.take_due(now) {
            if !self.shared.on_test_timer(now, timer) {
                self.exchange.on_timeout(&mut self.shared, now, timer);
            }
        }
    }

    /// What to send next on the control connection, if anything.
    pub fn poll_control(&mut self) -> Option<Transmit<'_>> {
        // Most often there is nothing, and adapters ask at every turn.
        if self.shared.outbox.is_empty() {
            return None;
        }
        let Shared {
            outbox,
            settings,
            accounts,
            congestion,
            concurrent_tests,
            jitter_of_batches,
            refused,
            ..
        } = &mut self.shared;
        let is_extended = self.exchange.extension().is_some();
        let results = OwnResults {
            accounts,
            congestion: congestion.as_deref(),
            server_output_bytes: None,
            concurrent_tests: Some(*concurrent_tests),
            jitter_of_batches: *jitter_of_batches,
            is_extended,
        };
        let documents = self.exchange.documents(settings, results);
        outbox.poll(&SessionDocuments { refused: refused.get(), ..documents })
    }

    /// Notes that `bytes` of what [`poll_control`](Self::poll_control) returned went out.
    pub fn consume_control(&mut self, bytes: usize) {
        self.shared.outbox.consume(bytes);
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.shared.poll_action().or_else(|| self.exchange.poll_action(&self.shared))
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.poll_event()
    }

    /// When `handle_timeout` is to be called, and why.
    pub fn poll_timeout(&self) -> Option<(Timer, Instant)> {
        self.shared.timers.next()
    }

    /// Where the exchange is.
    pub const fn phase(&self) -> Phase {
        self.shared.phase
    }

    /// The test; on a server complete from [`Event::Agreed`] on.
    pub const fn settings(&self) -> &TestSettings {
        &self.shared.settings
    }

    /// What a stream is to do; known from [`Action::StartStreams`] on.
    pub fn plan(&self, id: StreamId) -> Option<StreamPlan> {
        self.shared.plan(id)
    }

    /// What was measured.
    pub const fn accounts(&self) -> &Accounts<N> {
        &self.shared.accounts
    }

    /// What limited the direction in which this end is `role`, as far as it can be told: only this end's
    /// view until the other's results are here. `None` if no data was to go that way.
    pub fn verdict(&self, role: Role) -> Option<Verdict> {
        let Shared { accounts, settings, congestion, .. } = &self.shared;
        accounts.verdict(settings, role, congestion.as_deref())
    }

    /// The extension as agreed with another linerate.
    pub fn extension(&self) -> Option<Offer> {
        self.exchange.extension()
    }

    /// UDP greetings name their test, are repeated and acknowledged, as agreed with another linerate.
    pub fn acknowledges_greetings(&self) -> bool {
        let agreed = self.extension();
        agreed.is_some_and(|agreed| agreed.features.contains(Features::ACKNOWLEDGED_GREETINGS))
    }
}
