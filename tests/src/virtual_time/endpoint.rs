//! A session of either end as the pair drives it: one interface over both types.

use linerate_core::flow::StreamPlan;
use linerate_core::session::{
    Action, Command, Event, Exchange, Phase, Session, StreamEvent, Timer, Transmit,
};
use linerate_core::stats::{Accounts, CpuTimes, Sample};
use linerate_core::test::{StreamId, TestSettings};
use linerate_core::time::Instant;

use super::STREAMS;

/// What both kinds of session can do. Each method is the session's of the same name.
#[allow(missing_docs, reason = "documented at the session")]
pub trait Endpoint {
    fn handle_control(&mut self, now: Instant, bytes: &[u8]);
    fn handle_control_closed(&mut self, now: Instant);
    fn handle_stream(&mut self, now: Instant, id: StreamId, event: StreamEvent);
    fn handle_samples(&mut self, now: Instant, samples: &[Sample], cpu: CpuTimes);
    fn handle_command(&mut self, command: Command);
    fn handle_timeout(&mut self, now: Instant);
    fn poll_control(&mut self) -> Option<Transmit<'_>>;
    fn consume_control(&mut self, bytes: usize);
    fn poll_action(&mut self) -> Option<Action>;
    fn poll_event(&mut self) -> Option<Event>;
    fn poll_timeout(&self) -> Option<(Timer, Instant)>;
    fn phase(&self) -> Phase;
    fn settings(&self) -> &TestSettings;
    fn plan(&self, id: StreamId) -> Option<StreamPlan>;
    fn accounts(&self) -> &Accounts<STREAMS>;
    fn acknowledges_greetings(&self) -> bool;
}

impl<E: Exchange<STREAMS>> Endpoint for Session<E, STREAMS> {
    fn handle_control(&mut self, now: Instant, bytes: &[u8]) {
        self.handle_control(now, bytes);
    }

    fn handle_control_closed(&mut self, now: Instant) {
        self.handle_control_closed(now);
    }

    fn handle_stream(&mut self, now: Instant, id: StreamId, event: StreamEvent) {
        self.handle_stream(now, id, event);
    }

    fn handle_samples(&mut self, now: Instant, samples: &[Sample], cpu: CpuTimes) {
        self.handle_samples(now, samples, cpu);
    }

    fn handle_command(&mut self, command: Command) {
        self.handle_command(command);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn poll_control(&mut self) -> Option<Transmit<'_>> {
        self.poll_control()
    }

    fn consume_control(&mut self, bytes: usize) {
        self.consume_control(bytes);
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.poll_action()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.poll_event()
    }

    fn poll_timeout(&self) -> Option<(Timer, Instant)> {
        self.poll_timeout()
    }

    fn phase(&self) -> Phase {
        self.phase()
    }

    fn settings(&self) -> &TestSettings {
        self.settings()
    }

    fn plan(&self, id: StreamId) -> Option<StreamPlan> {
        self.plan(id)
    }

    fn accounts(&self) -> &Accounts<STREAMS> {
        self.accounts()
    }

    fn acknowledges_greetings(&self) -> bool {
        self.acknowledges_greetings()
    }
}
