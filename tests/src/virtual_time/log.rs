//! What one end said about a run: its events in order, and the intervals as they could be read when
//! they were told.

use linerate_core::report::{Span, StreamInterval};
use linerate_core::session::{Action, Ending, Event};
use linerate_core::time::Instant;

use super::endpoint::Endpoint;

/// One interval of all streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// When, within its phase.
    pub span: Span,
    /// It lies in the omitted start.
    pub omitted: bool,
    /// Each stream's part.
    pub streams: Vec<StreamInterval>,
}

/// One end's events.
#[derive(Debug, Default)]
pub struct Log {
    /// All events and when they came, on the network's clock.
    pub events: Vec<(Instant, Event)>,
    /// All intervals.
    pub intervals: Vec<Interval>,
    /// How it ended, and when on the network's clock.
    pub finished: Option<(Instant, Ending)>,
    /// Whatever the session still wanted of its streams once they were measured, and whatever it
    /// wanted or told after its last event: must stay empty.
    pub too_late: Vec<String>,
}

impl Log {
    pub(super) fn record(&mut self, now: Instant, event: Event, session: &dyn Endpoint) {
        if self.finished.is_some() {
            self.too_late.push(format!("{event:?}"));
        }
        self.events.push((now, event));
        match event {
            Event::Interval { span, omitted } => {
                let accounts = session.accounts();
                let streams = (0..accounts.streams().len()).filter_map(|i| accounts.interval(i));
                self.intervals.push(Interval { span, omitted, streams: streams.collect() });
            }
            Event::Finished(ending) => self.finished = Some((now, ending)),
            Event::StillUnanswered
            | Event::Agreed
            | Event::Started
            | Event::OmitEnded
            | Event::Measured => {}
        }
    }

    /// Notes an action, in answer to an input that came once `was_finished`.
    pub(super) fn record_action(&mut self, action: Action, was_finished: bool) {
        let runs_streams =
            matches!(action, Action::StartStreams | Action::Sample | Action::StopStreams);
        if was_finished || runs_streams && self.count(Event::Measured) > 0 {
            self.too_late.push(format!("{action:?}"));
        }
    }

    /// How often `event` came.
    pub fn count(&self, event: Event) -> usize {
        self.events.iter().filter(|(_, told)| *told == event).count()
    }
}
