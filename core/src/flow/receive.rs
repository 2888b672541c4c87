//! The receiving side of a stream: counts bytes, tracks sequence numbers, smooths jitter. The
//! bitmap of the tracker makes it large on hosts, so it lives with its thread or task, never inside
//! a session.

use super::StreamPlan;
use crate::protocol::datagram::Header;
use crate::protocol::greeting;
use crate::stats::detail::{FlowDetail, Seen};
use crate::stats::host::{HostAccount, HostView};
use crate::stats::{DelayMeter, Jitter, Sample, SequenceTracker, Tally};
use crate::time::Instant;

/// One receiving stream. It tells late datagrams from duplicates within `64 * (WORDS - 1)` numbers at
/// least, and has `B` buckets for each kind of percentiles; none of either where memory is dear, or for
/// TCP.
#[derive(Debug, Clone)]
pub struct ReceiveFlow<const WORDS: usize, const B: usize> {
    block_bytes: u64,
    counters_64bit: bool,
    omit_until: Option<Instant>,
    limit_left: Option<u64>,
    share_bytes: u64,
    tracker: SequenceTracker<WORDS>,
    jitter: Jitter,
    delay: DelayMeter<B>,
    host: HostAccount<B>,
    bytes: u64,
    datagrams: u64,
    omitted: Option<Tally>,
    arrived: Option<Instant>,
}

impl<const WORDS: usize, const B: usize> ReceiveFlow<WORDS, B> {
    /// A receiver that has seen nothing.
    pub fn new(plan: &StreamPlan) -> Self {
        Self {
            block_bytes: u64::from(plan.block_bytes.max(1)),
            counters_64bit: plan.counters_64bit,
            omit_until: plan.omit_until,
            limit_left: plan.limit_bytes,
            share_bytes: plan.share_bytes.unwrap_or(u64::MAX),
            tracker: SequenceTracker::new(),
            jitter: Jitter::default(),
            delay: DelayMeter::default(),
            host: HostAccount::default(),
            bytes: 0,
            datagrams: 0,
            omitted: None,
            arrived: None,
        }
    }

    /// Notes `bytes` of a TCP stream that were there at `now`. What is beyond the limit is not
    /// counted; returns how many were.
    pub fn handle_bytes(&mut self, now: Instant, bytes: u64) -> u64 {
        self.leave_omit(now);
        self.arrived = Some(now);
        let counted = self.take_of_limit(bytes);
        self.bytes += counted;
        counted
    }

    /// Notes one datagram that arrived at `now`; `len` is its length, of which `datagram` holds at
    /// least the header. A stray greeting is no data and is passed over.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8], len: usize) {
        if greeting::is_no_data(&datagram[..datagram.len().min(len)]) {
            return;
        }
        self.arrived = Some(now);
        let is_bounded = self.omit_until.is_some() || self.limit_left.is_some();
        if is_bounded && !self.is_within_bounds(now, len as u64) {
            return;
        }
        self.bytes += len as u64;
        self.datagrams += 1;
        let Some(header) = Header::read(datagram, self.counters_64bit) else {
            return;
        };
        let sequence = if self.counters_64bit {
            header.sequence
        } else {
            self.tracker.unwrap(header.sequence as u32)
        };
        let arrival = self.tracker.record(sequence);
        self.jitter.record(header.sent_us, now.as_nanos() / 1000);
        self.delay.record(arrival, header.sent_us, now.as_nanos());
    }

    /// Notes datagrams that arrived together at `now`, one after the other in `row`: each of so many
    /// bytes, the last maybe shorter. The same as [`Self::handle_datagram`] of each, and faster where
    /// they left together, too.
    pub fn handle_row(&mut self, now: Instant, row: &[u8], datagram_bytes: usize) {
        let mut rest = row;
        while !rest.is_empty() {
            let (first, after) = rest.split_at(datagram_bytes.clamp(1, rest.len()));
            self.handle_datagram(now, first, first.len());
            let count = self.count_following(first, after, datagram_bytes);
            self.bytes += (count * datagram_bytes) as u64;
            self.datagrams += count as u64;
            self.tracker.record_next(count as u64);
            self.jitter.record_equal(count as u64);
            if let Some(header) = Header::read(first, self.counters_64bit) {
                self.delay.record_row(count as u64, header.sent_us, now.as_nanos());
            }
            rest = &after[count * datagram_bytes..];
        }
    }

    /// Notes that the arrivals from here on are not to be compared with those before: the clock that
    /// tells them was set.
    pub const fn handle_clock_step(&mut self) {
        self.delay.skip_difference();
    }

    /// Notes what the system says at `now`; the first time before there is data.
    pub fn handle_host(&mut self, now: Instant, view: HostView) {
        self.leave_omit(now);
        self.host.record(now, view);
    }

    /// How many after the one just handled are the next in number, and differ in nothing else.
    fn count_following(&self, first: &[u8], after: &[u8], datagram_bytes: usize) -> usize {
        let highest = self.tracker.highest();
        let shown = if self.counters_64bit { highest } else { u64::from(highest as u32) };
        let is_highest = Header::read(first, self.counters_64bit)
            .is_some_and(|header| header.sequence == shown && shown != 0);
        // No number may be beyond what 64 bits hold.
        let has_room = highest.checked_add(after.len() as u64).is_some();
        if !is_highest || !has_room || self.limit_left.is_some() || greeting::is_no_data(first) {
            return 0;
        }
        Header::count_following(first, after, datagram_bytes, self.counters_64bit)
    }

    /// The limit is reached: nothing more is counted.
    pub fn is_done(&self) -> bool {
        self.omit_until.is_none() && self.limit_left == Some(0)
    }

    /// The share is here; what comes beyond it is counted.
    pub const fn has_share(&self) -> bool {
        self.bytes >= self.share_bytes
    }

    /// What has arrived since the start.
    pub fn tally(&self) -> Tally {
        Tally {
            bytes: self.bytes,
            blocks: if self.datagrams > 0 { self.datagrams } else { self.bytes / self.block_bytes },
            packets: self.tracker.highest(),
            lost: self.tracker.lost(),
            out_of_order: self.tracker.out_of_order(),
            duplicates: self.tracker.duplicates(),
            too_late: self.tracker.too_late(),
            jitter_ns: self.jitter.nanos(),
        }
    }

    /// What has arrived, for the session; the kernel's view is for the adapter to add.
    pub fn sample(&self) -> Sample {
        Sample { tally: self.tally(), omitted: self.omitted, arrived: self.arrived, tcp: None }
    }

    /// What is known beyond the tally, the omitted start left out.
    pub fn detail(&self) -> FlowDetail<B> {
        let flow = if self.datagrams > 0 {
            Seen::Received {
                delay: self.delay.clone(),
                reordering: self.tracker.reordering(),
                loss_bursts: self.tracker.loss_bursts(),
            }
        } else {
            Seen::Bytes
        };
        FlowDetail { host: self.host.clone(), flow, is_measured: self.omit_until.is_none() }
    }

    /// Whether a datagram that arrived at `now` counts.
    #[inline(never)]
    fn is_within_bounds(&mut self, now: Instant, bytes: u64) -> bool {
        self.leave_omit(now);
        let counts = !self.is_done();
        self.take_of_limit(bytes);
        counts
    }

    /// How much of `bytes` still falls within the limit, which does not count the omitted start.
    fn take_of_limit(&mut self, bytes: u64) -> u64 {
        match &mut self.limit_left {
            Some(left) if self.omit_until.is_none() => {
                let taken = bytes.min(*left);
                *left -= taken;
                taken
            }
            _ => bytes,
        }
    }

    /// Remembers where the omitted start ends, once an arrival shows it. A datagram that does begins
    /// a new jitter, as in iperf3 since 3.8.
    fn leave_omit(&mut self, now: Instant) {
        if self.omit_until.is_some_and(|until| now >= until) {
            self.omit_until = None;
            self.omitted = Some(self.tally());
            self.jitter = Jitter::default();
            self.delay = DelayMeter::default();
            self.tracker.restart();
            self.host.restart();
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::protocol::cookie::Cookie;
    use crate::protocol::greeting::NamedGreeting;
    use crate::stats::BUCKETS;
    use crate::test::{Protocol, Role, StreamId};

    fn flow(omit_until: Option<Instant>) -> ReceiveFlow<1, BUCKETS> {
        ReceiveFlow::new(&plan(omit_until))
    }

    fn plan(omit_until: Option<Instant>) -> StreamPlan {
        StreamPlan {
            id: StreamId::from_index(0),
            role: Role::Receiver,
            protocol: Protocol::Udp,
            block_bytes: 100,
            bitrate: None,
            burst: None,
            joins_arrivals: false,
            may_wait: false,
            limit_bytes: None,
            share_bytes: None,
            counters_64bit: false,
            omit_until,
        }
    }

    fn arrive(flow: &mut ReceiveFlow<1, BUCKETS>, at_us: u64, sent_us: u64, sequence: u64) {
        let mut datagram = [0; 100];
        Header { sent_us, sequence }.write(&mut datagram, false);
        flow.handle_datagram(Instant::from_nanos(at_us * 1000), &datagram, datagram.len());
    }

    #[test]
    fn counts_and_loss_follow_the_datagrams() {
        let mut flow = flow(None);
        for sequence in [1, 2, 4] {
            arrive(&mut flow, 10 * sequence, 0, sequence);
        }
        let tally = flow.tally();
        assert_eq!((tally.bytes, tally.blocks, tally.packets, tally.lost), (300, 3, 4, 1));
    }

    #[test]
    fn a_limit_is_counted_exactly_and_without_the_omitted_start() {
        let at_ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut plan = plan(Some(at_ms(10)));
        plan.limit_bytes = Some(1000);
        let mut flow = ReceiveFlow::<1, BUCKETS>::new(&plan);
        flow.handle_bytes(at_ms(9), 5000);
        assert!(!flow.is_done());
        flow.handle_bytes(at_ms(10), 700);
        assert_eq!(flow.handle_bytes(at_ms(11), 700), 300);
        assert_eq!(flow.handle_bytes(at_ms(12), 700), 0);
        assert!(flow.is_done());
        assert_eq!(
            (flow.tally().bytes, flow.sample().omitted.map(|t| t.bytes)),
            (6000, Some(5000))
        );
    }

    #[test]
    fn a_share_is_noticed_and_no_end() {
        let mut plan = plan(Some(Instant::from_nanos(10)));
        plan.share_bytes = Some(1000);
        let mut flow = ReceiveFlow::<1, BUCKETS>::new(&plan);
        flow.handle_bytes(Instant::ZERO, 999);
        assert!(!flow.has_share());
        assert_eq!(flow.handle_bytes(Instant::ZERO, 7), 7);
        assert!(flow.has_share() && !flow.is_done());
    }

    #[test]
    fn datagrams_beyond_the_limit_are_not_counted() {
        let mut plan = plan(None);
        plan.limit_bytes = Some(200);
        let mut flow = ReceiveFlow::<1, BUCKETS>::new(&plan);
        for sequence in [1, 2, 5] {
            arrive(&mut flow, 10 * sequence, 0, sequence);
        }
        assert_eq!((flow.tally().bytes, flow.tally().packets, flow.tally().lost), (200, 2, 0));
    }

    #[test]
    fn a_stray_greeting_is_no_data() {
        let mut flow = flow(None);
        let cookie = Cookie::from_random([7; 36]);
        let named = NamedGreeting { cookie, index: 3 };
        flow.handle_datagram(Instant::ZERO, &greeting::HELLO, 4);
        flow.handle_datagram(Instant::ZERO, &named.hello(), NamedGreeting::LEN);
        flow.handle_datagram(Instant::ZERO, &named.reply()[..24], NamedGreeting::LEN);
        assert_eq!(flow.tally(), Tally::default());
    }

    #[test]
    fn a_datagram_too_short_for_a_header_counts_as_bytes_only() {
        let mut flow = flow(None);
        flow.handle_datagram(Instant::ZERO, &[0; 11], 11);
        assert_eq!((flow.tally().bytes, flow.tally().packets), (11, 0));
    }

    #[test]
    fn jitter_begins_anew_after_the_omitted_start() {
        let mut flow = flow(Some(Instant::from_nanos(1_000_000)));
        arrive(&mut flow, 0, 0, 1);
        arrive(&mut flow, 900, 0, 2);
        assert!(flow.tally().jitter_ns > 0);
        arrive(&mut flow, 1000, 0, 3);
        assert_eq!(flow.tally().jitter_ns, 0);
    }

    proptest! {
        #[test]
        fn a_row_is_its_datagrams_one_by_one(
            parts in prop::collection::vec((0u8..8, any::<u64>(), 0usize..20), 1..20),
            counters_64bit: bool,
            limit in prop::option::of(0u64..3000),
            cut in 0usize..30,
        ) {
            let plan = StreamPlan {
                counters_64bit,
                limit_bytes: limit,
                ..plan(Some(Instant::from_nanos(15_000)))
            };
            let (mut at_once, mut each) = (ReceiveFlow::<1, BUCKETS>::new(&plan), ReceiveFlow::<1, BUCKETS>::new(&plan));
            let mut sequence = 0_u64;
            for (round, (kind, value, count)) in (1..).zip(parts) {
                // Mostly where the last row ended; else somewhere near, or anywhere.
                sequence = match kind {
                    0 => value,
                    1 => sequence.wrapping_sub(value % 70),
                    2 => u64::MAX - value % 20,
                    3 => u64::from(u32::MAX) - value % 20,
                    _ => sequence,
                };
                let mut row = Vec::new();
                for _ in 0..count {
                    sequence = sequence.wrapping_add(1);
                    let mut datagram = [0; 30];
                    let header = Header { sent_us: round + u64::from(value % 7 == 0), sequence };
                    header.write(&mut datagram, counters_64bit);
                    row.extend_from_slice(&datagram);
                }
                row.truncate(row.len().saturating_sub(cut));
                let now = Instant::from_nanos(round * 7000);
                at_once.handle_row(now, &row, 30);
                row.chunks(30).for_each(|datagram| each.handle_datagram(now, datagram, datagram.len()));
                prop_assert_eq!(at_once.sample(), each.sample());
                prop_assert_eq!(at_once.detail().whole(), each.detail().whole());
            }
        }
    }
}
