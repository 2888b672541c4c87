//! What is going to happen in a run, in order of time. Of two things at the same time the one that was
//! queued first comes first, so that a run depends on nothing but its setup.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use linerate_core::session::{Denial, StreamEvent};
use linerate_core::test::End;
use linerate_core::time::Instant;

use super::control::Delivery;
use super::setup::Fault;
use super::stream::Payload;

/// All that is going to happen.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    pushed: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at: Instant, what: Occurrence) {
        self.pushed += 1;
        self.heap.push(Reverse(Entry { at, order: self.pushed, what }));
    }

    /// When the next thing happens.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    pub(super) fn pop(&mut self) -> Option<Occurrence> {
        self.heap.pop().map(|Reverse(entry)| entry.what)
    }
}

/// One thing that happens.
#[derive(Debug)]
pub(super) enum Occurrence {
    /// Something comes to an end on the control connection.
    Control(End, Delivery),
    /// A TCP stream reaches the server.
    Accepted(usize),
    /// The greeting of a UDP stream reaches the server.
    Greeted(usize),
    /// The reply to it reaches the client.
    Answered(usize),
    /// An end's adapter reports this of a stream.
    Stream(End, usize, StreamEvent),
    /// A sender goes on.
    Step(usize),
    /// Data comes to a stream's receiver.
    Arrival(usize, Payload),
    /// A stream's sender learns that so many bytes are there.
    Acknowledged(usize, u64),
    /// An end answers a request for samples.
    Samples(End),
    /// The server has its output together.
    Output,
    /// The server's adapter ends the test.
    Denied(Denial),
    /// An end's control connection takes bytes again.
    Unblocked(End),
    /// A fault strikes.
    Fault(Fault),
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    order: u64,
    what: Occurrence,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
