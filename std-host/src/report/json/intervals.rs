//! The intervals that a document is made of, while its test runs. A server does not choose how long
//! its tests last, so what it keeps of one has a bound: above it, neighbours are joined, and the
//! document still covers the whole test in equal steps, only wider ones.

use linerate_core::stats::TcpStats;

use crate::report::{Datagrams, Interval, Span, StreamInterval};

/// The intervals of one test, in order.
#[derive(Debug)]
pub(super) struct Intervals {
    kept: Vec<Interval>,
    /// Stream intervals that may be kept; none keeps all.
    most: Option<usize>,
    /// How many intervals of the test each one that is kept stands for.
    joined: u32,
    /// How many of them the last one has.
    in_last: u32,
}

impl Intervals {
    pub(super) const fn new() -> Self {
        Self { kept: Vec::new(), most: None, joined: 1, in_last: 0 }
    }

    /// Sets the bound of a server.
    pub(super) const fn bound(&mut self) {
        self.most = Some(MOST_OF_A_SERVER);
    }

    pub(super) fn push(&mut self, interval: &Interval) {
        match self.kept.last_mut() {
            Some(last) if self.in_last < self.joined && last.omitted == interval.omitted => {
                join(last, interval);
                self.in_last += 1;
            }
            _ => {
                self.kept.push(interval.clone());
                self.in_last = 1;
            }
        }
        let count = self.kept.len() * interval.streams.len().max(1);
        if self.most.is_some_and(|most| count > most) {
            self.join_neighbours();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Interval> {
        self.kept.iter()
    }

    /// How many intervals of the test each of the document stands for, where that is not one.
    pub(super) fn joined(&self) -> Option<u32> {
        (self.joined > 1).then_some(self.joined)
    }

    fn join_neighbours(&mut self) {
        let mut halved: Vec<Interval> = Vec::with_capacity(self.kept.len() / 2 + 1);
        let mut is_whole = true;
        for interval in self.kept.drain(..) {
            match halved.last_mut() {
                Some(last) if !is_whole && last.omitted == interval.omitted => {
                    join(last, &interval);
                    is_whole = true;
                }
                _ => {
                    halved.push(interval);
                    is_whole = false;
                }
            }
        }
        self.in_last += if is_whole { self.joined } else { 0 };
        self.joined = self.joined.saturating_mul(2);
        self.kept = halved;
    }
}

/// Lengthens an interval by the one after it.
fn join(interval: &mut Interval, next: &Interval) {
    interval.span.end_ns = next.span.end_ns;
    interval.concurrent_tests = interval.concurrent_tests.max(next.concurrent_tests);
    for (stream, next) in interval.streams.iter_mut().zip(&next.streams) {
        stream.span = Span { end_ns: next.span.end_ns, ..stream.span };
        stream.bytes += next.bytes;
        stream.datagrams = sum(&stream.datagrams, &next.datagrams);
        stream.tcp = tcp(stream, next);
    }
    // Percentiles of two intervals are not those of both.
    interval.details.clear();
}

/// Counts are added; the jitter is that of the end.
fn sum(one: &Datagrams, next: &Datagrams) -> Datagrams {
    let add = |one: Option<u64>, next: Option<u64>| Some(one? + next?);
    Datagrams {
        packets: one.packets + next.packets,
        lost: add(one.lost, next.lost),
        out_of_order: add(one.out_of_order, next.out_of_order),
        duplicates: add(one.duplicates, next.duplicates),
        too_late: add(one.too_late, next.too_late),
        jitter_ns: next.jitter_ns,
    }
}

/// The kernel's view at the end, with the retransmits of both.
fn tcp(one: &StreamInterval, next: &StreamInterval) -> Option<TcpStats> {
    let (before, mut last) = (one.tcp?, next.tcp?);
    last.retransmits = before.retransmits.zip(last.retransmits).map(|(one, next)| one + next);
    Some(last)
}

/// Intervals of single streams: nearly three hours of one stream with an interval of a second.
pub(super) const MOST_OF_A_SERVER: usize = 10_000;

#[cfg(test)]
mod tests {
    use linerate_core::test::{Role, StreamId};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn second(number: u64, omitted: bool, streams: usize) -> Interval {
        let span = Span { start_ns: number * SECOND_NS, end_ns: (number + 1) * SECOND_NS };
        let stream = |index| StreamInterval {
            id: StreamId::from_index(index),
            role: Role::Receiver,
            span,
            omitted,
            bytes: number,
            datagrams: Datagrams { packets: 1, lost: Some(1), ..Datagrams::default() },
            tcp: None,
        };
        let streams = (0..streams).map(stream).collect();
        Interval { span, omitted, streams, details: Vec::new(), concurrent_tests: 0 }
    }

    #[test]
    fn a_servers_intervals_are_bounded_and_lose_nothing() {
        for (streams, seconds) in [(1, 86_400), (2, 5_001), (256, 3_600), (256, 40)] {
            let mut intervals = Intervals::new();
            intervals.bound();
            for number in 0..seconds {
                intervals.push(&second(number, false, streams));
                assert!(intervals.kept.len() * streams <= MOST_OF_A_SERVER);
            }
            let steps = u64::from(intervals.joined().expect("there were too many"));
            let mut at_ns = 0;
            for interval in intervals.iter() {
                let left = seconds - at_ns / SECOND_NS;
                assert_eq!(interval.span.start_ns, at_ns);
                assert_eq!(interval.span.nanos(), steps.min(left) * SECOND_NS, "{streams}");
                at_ns = interval.span.end_ns;
            }
            assert_eq!(at_ns, seconds * SECOND_NS);
            let parts = intervals.iter().flat_map(|interval| &interval.streams);
            let bytes: u64 = parts.map(|stream| stream.bytes).sum();
            assert_eq!(bytes, streams as u64 * seconds * (seconds - 1) / 2);
        }
    }

    #[test]
    fn clients_keep_all_and_servers_keep_all_of_a_usual_test() {
        let (mut of_client, mut of_server) = (Intervals::new(), Intervals::new());
        of_server.bound();
        for number in 0..20_000 {
            of_client.push(&second(number, false, 1));
            if number < MOST_OF_A_SERVER as u64 {
                of_server.push(&second(number, false, 1));
            }
        }
        assert_eq!((of_client.kept.len(), of_client.joined()), (20_000, None));
        assert_eq!((of_server.kept.len(), of_server.joined()), (MOST_OF_A_SERVER, None));
    }

    #[test]
    fn an_omitted_start_is_not_joined_with_what_is_measured() {
        let mut intervals = Intervals::new();
        intervals.bound();
        for number in 0..3 {
            intervals.push(&second(number, true, 128));
        }
        for number in 0..200 {
            intervals.push(&second(number, false, 128));
        }
        let omitted = intervals.iter().filter(|interval| interval.omitted);
        assert_eq!(omitted.map(|interval| interval.span.nanos()).sum::<u64>(), 3 * SECOND_NS);
        let measured = intervals.iter().filter(|interval| !interval.omitted);
        assert_eq!(measured.map(|interval| interval.span.nanos()).sum::<u64>(), 200 * SECOND_NS);
    }
}
