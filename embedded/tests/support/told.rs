//! What the two ends told of their tests.

use std::net::SocketAddr;

use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::report::{SideSummary, StreamSummary};
use linerate_embedded::engine::session::{Ending, Event};
use linerate_embedded::{NotReached, Observer, Progress, TurnedAway};

/// What a server told. The events and summaries are those of its last test.
#[derive(Debug, Default)]
pub(crate) struct ServerTold {
    pub(crate) events: Vec<Event>,
    pub(crate) endings: Vec<Ending>,
    pub(crate) summaries: Vec<StreamSummary>,
    pub(crate) turned_away: Vec<TurnedAway>,
}

/// What a client told.
#[derive(Debug, Default)]
pub(crate) struct ClientTold {
    pub(crate) ending: Option<Ending>,
    pub(crate) not_reached: Option<NotReached>,
    pub(crate) summaries: Vec<StreamSummary>,
}

impl ClientTold {
    pub(crate) fn is_over(&self) -> bool {
        self.ending.is_some() || self.not_reached.is_some()
    }

    /// What was sent and what was received on a stream, in bytes and packets.
    pub(crate) fn counted(&self, index: usize) -> ((u64, u64), (u64, u64)) {
        let summary = &self.summaries[index];
        let side = |side: Option<&SideSummary>| {
            side.map_or((0, 0), |side| (side.bytes, side.datagrams.packets))
        };
        (side(summary.sent()), side(summary.received()))
    }
}

impl<const N: usize> Observer<N> for ServerTold {
    fn test_began(&mut self, _peer: SocketAddr, _cookie: Cookie) {
        self.events.clear();
        self.summaries.clear();
    }

    fn test_event(&mut self, event: Event, test: Progress<'_, N>) {
        self.events.push(event);
        if let Event::Finished(ending) = event {
            self.endings.push(ending);
            self.summaries = summaries(test);
        }
    }

    fn turned_away(&mut self, _peer: Option<SocketAddr>, why: TurnedAway) {
        self.turned_away.push(why);
    }
}

impl<const N: usize> Observer<N> for ClientTold {
    fn test_event(&mut self, event: Event, test: Progress<'_, N>) {
        if let Event::Finished(ending) = event {
            self.ending = Some(ending);
            self.summaries = summaries(test);
        }
    }

    fn not_reached(&mut self, _server: SocketAddr, why: NotReached) {
        self.not_reached = Some(why);
    }
}

fn summaries<const N: usize>(test: Progress<'_, N>) -> Vec<StreamSummary> {
    (0..N).filter_map(|index| test.accounts.summary(index)).collect()
}
