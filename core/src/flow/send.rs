//! The sending side of a stream: how much may leave now, when it may go on, when it is done. Knows
//! no socket: the adapter says what the network took.

use super::{Pacer, StreamPlan};
use crate::protocol::datagram::Header;
use crate::stats::detail::{FlowDetail, Seen};
use crate::stats::host::{HostAccount, HostView};
use crate::stats::{Histogram, Sample, Tally};
use crate::test::Protocol;
use crate::time::Instant;

/// What a sender does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Step {
    /// Send up to this many bytes, then report how many the network took. For UDP a multiple of
    /// the datagram size.
    Send {
        /// Most bytes to send before asking again.
        bytes: u64,
    },
    /// Send nothing before this time.
    Wait {
        /// When to ask again.
        until: Instant,
    },
    /// The limit or the share is reached, or there is no more data: nothing more is to be sent.
    Done,
}

/// One sending stream, with `B` buckets for each kind of percentiles; none where memory is dear.
#[derive(Debug, Clone)]
pub struct SendFlow<const B: usize> {
    protocol: Protocol,
    block_bytes: u64,
    counters_64bit: bool,
    omit_until: Option<Instant>,
    pacer: Option<Pacer>,
    limit_left: Option<u64>,
    share_bytes: u64,
    is_exhausted: bool,
    tally: Tally,
    omitted: Option<Tally>,
    /// When the last datagrams left.
    departed: Option<Instant>,
    gaps: Histogram<B>,
    refusals: u64,
    host: HostAccount<B>,
}

impl<const B: usize> SendFlow<B> {
    /// A sender that begins at `now`.
    pub fn new(now: Instant, plan: &StreamPlan) -> Self {
        let block_bytes = u64::from(plan.block_bytes.max(1));
        let rate = plan.bitrate.filter(|rate| rate.0 > 0);
        Self {
            protocol: plan.protocol,
            block_bytes,
            counters_64bit: plan.counters_64bit,
            omit_until: plan.omit_until,
            pacer: rate.map(|rate| Pacer::new(now, rate, block_bytes, plan.burst)),
            limit_left: plan.limit_bytes,
            share_bytes: plan.share_bytes.unwrap_or(u64::MAX),
            is_exhausted: false,
            tally: Tally::default(),
            omitted: None,
            departed: None,
            gaps: Histogram::new(),
            refusals: 0,
            host: HostAccount::default(),
        }
    }

    /// What to do at `now`.
    pub fn poll_step(&mut self, now: Instant) -> Step {
        self.leave_omit(now);
        let limit = self.limit_left.filter(|_| self.omit_until.is_none()).unwrap_or(u64::MAX);
        let limit = limit.min(self.share_bytes.saturating_sub(self.tally.bytes));
        if limit == 0 || self.is_exhausted {
            return Step::Done;
        }
        let Some(pacer) = &mut self.pacer else {
            return Step::Send { bytes: self.whole_blocks(limit) };
        };
        match pacer.poll(now) {
            Ok(bytes) => Step::Send { bytes: bytes.min(limit) },
            Err(until) => Step::Wait { until },
        }
    }

    /// Notes that the network took `bytes` more of a TCP stream.
    pub fn handle_sent(&mut self, now: Instant, bytes: u64) {
        self.leave_omit(now);
        self.tally.bytes += bytes;
        self.tally.blocks = self.tally.bytes / self.block_bytes;
        self.advance(now, bytes);
    }

    /// Notes that the network took `count` more datagrams, in the order of their numbers.
    pub fn handle_datagrams_sent(&mut self, now: Instant, count: u64) {
        self.leave_omit(now);
        if count > 0
            && let Some(departed) = self.departed.replace(now)
        {
            self.gaps.record(now.nanos_since(departed));
            self.gaps.record_many(0, count - 1);
        }
        let bytes = count * self.block_bytes;
        self.tally.bytes += bytes;
        self.tally.blocks += count;
        self.tally.packets += count;
        self.advance(now, bytes);
    }

    /// Notes that this host refused datagrams for want of buffers; they are still to be sent.
    pub const fn handle_refusal(&mut self) {
        self.refusals += 1;
    }

    /// Notes what the system says at `now`; the first time before there is data.
    pub fn handle_host(&mut self, now: Instant, view: HostView) {
        self.leave_omit(now);
        self.host.record(now, view);
    }

    /// Notes that what is sent comes from somewhere that has no more of it.
    pub fn handle_source_end(&mut self) {
        self.is_exhausted = true;
    }

    /// Writes the header of the datagram that will leave after `ahead` others that have not been
    /// reported as sent yet. A number counts as used only once it is reported, so a failed send
    /// never leaves a gap.
    pub fn write_header(&self, now: Instant, ahead: u64, datagram: &mut [u8]) {
        let sequence = self.tally.packets + 1 + ahead;
        Header::new(now, sequence).write(datagram, self.counters_64bit);
    }

    /// What has been sent since the start.
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    /// What has been sent, for the session; the kernel's view is for the adapter to add.
    pub const fn sample(&self) -> Sample {
        Sample { tally: self.tally, omitted: self.omitted, arrived: None, tcp: None }
    }

    /// What is known beyond the tally, the omitted start left out.
    pub fn detail(&self) -> FlowDetail<B> {
        let flow = match self.protocol {
            Protocol::Udp => Seen::Sent { gaps: self.gaps.clone(), refusals: self.refusals },
            Protocol::Tcp | Protocol::Sctp => Seen::Bytes,
        };
        FlowDetail { host: self.host.clone(), flow, is_measured: self.omit_until.is_none() }
    }

    fn advance(&mut self, now: Instant, bytes: u64) {
        if let Some(pacer) = &mut self.pacer {
            pacer.handle_sent(now, bytes);
        }
        if self.omit_until.is_none()
            && let Some(left) = &mut self.limit_left
        {
            *left = left.saturating_sub(bytes);
        }
    }

    /// Remembers where the omitted start ends, once it does.
    fn leave_omit(&mut self, now: Instant) {
        if self.omit_until.is_some_and(|until| now >= until) {
            self.omit_until = None;
            self.omitted = Some(self.tally);
            (self.gaps, self.refusals) = (Histogram::new(), 0);
            self.host.restart();
        }
    }

    fn whole_blocks(&self, limit: u64) -> u64 {
        match self.protocol {
            Protocol::Tcp | Protocol::Sctp => limit,
            Protocol::Udp => limit - limit % self.block_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::{Role, StreamId};
    use crate::units::BitsPerSec;

    type Flow = SendFlow<0>;

    fn plan(protocol: Protocol) -> StreamPlan {
        StreamPlan {
            id: StreamId::from_index(0),
            role: Role::Sender,
            protocol,
            block_bytes: 1000,
            bitrate: None,
            burst: Some(1),
            joins_arrivals: false,
            may_wait: false,
            limit_bytes: None,
            share_bytes: None,
            counters_64bit: false,
            omit_until: None,
        }
    }

    const AT_MS: fn(u64) -> Instant = |ms| Instant::from_nanos(ms * 1_000_000);

    #[test]
    fn a_limit_ends_exactly() {
        let mut flow = Flow::new(
            Instant::ZERO,
            &StreamPlan { limit_bytes: Some(2500), ..plan(Protocol::Tcp) },
        );
        assert_eq!(flow.poll_step(Instant::ZERO), Step::Send { bytes: 2500 });
        flow.handle_sent(Instant::ZERO, 2400);
        assert_eq!(flow.poll_step(Instant::ZERO), Step::Send { bytes: 100 });
        flow.handle_sent(Instant::ZERO, 100);
        assert_eq!(flow.poll_step(Instant::ZERO), Step::Done);
        assert_eq!(flow.tally().bytes, 2500);
    }

    #[test]
    fn what_is_omitted_does_not_count_for_the_limit() {
        let plan = StreamPlan {
            limit_bytes: Some(1000),
            omit_until: Some(AT_MS(10)),
            ..plan(Protocol::Tcp)
        };
        let mut flow = Flow::new(Instant::ZERO, &plan);
        flow.handle_sent(AT_MS(9), 50_000);
        assert_eq!(flow.poll_step(AT_MS(10)), Step::Send { bytes: 1000 });
        flow.handle_sent(AT_MS(10), 1000);
        assert_eq!(flow.poll_step(AT_MS(10)), Step::Done);
        let sample = flow.sample();
        assert_eq!(sample.omitted.map(|tally| tally.bytes), Some(50_000));
        assert_eq!(sample.tally.bytes, 51_000);
    }

    #[test]
    fn a_share_is_the_end_in_the_omitted_start_too() {
        for (protocol, omit_until) in [(Protocol::Tcp, None), (Protocol::Udp, Some(AT_MS(10)))] {
            let plan = StreamPlan {
                limit_bytes: Some(9000),
                share_bytes: Some(3000),
                omit_until,
                ..plan(protocol)
            };
            let mut flow = Flow::new(Instant::ZERO, &plan);
            assert_eq!(flow.poll_step(Instant::ZERO), Step::Send { bytes: 3000 });
            flow.handle_sent(Instant::ZERO, 2000);
            assert_eq!(flow.poll_step(AT_MS(9)), Step::Send { bytes: 1000 });
            flow.handle_sent(AT_MS(9), 1000);
            assert_eq!(flow.poll_step(AT_MS(9)), Step::Done);
        }
    }

    #[test]
    fn a_rate_spaces_single_blocks_and_bursts() {
        // 1000 bytes at 1 Mbit/s take 8 ms, three of them 24 ms.
        for (burst, gap_ms) in [(1, 8), (3, 24)] {
            let plan = StreamPlan {
                bitrate: Some(BitsPerSec(1_000_000)),
                burst: Some(burst),
                ..plan(Protocol::Udp)
            };
            let mut flow = Flow::new(Instant::ZERO, &plan);
            let bytes = u64::from(burst) * 1000;
            assert_eq!(flow.poll_step(Instant::ZERO), Step::Send { bytes });
            flow.handle_datagrams_sent(Instant::ZERO, u64::from(burst));
            assert_eq!(flow.poll_step(Instant::ZERO), Step::Wait { until: AT_MS(gap_ms) });
            assert_eq!(flow.poll_step(AT_MS(gap_ms)), Step::Send { bytes });
        }
    }

    #[test]
    fn a_partial_write_is_finished_before_the_schedule_is_asked_again() {
        let plan = StreamPlan { bitrate: Some(BitsPerSec(1_000_000)), ..plan(Protocol::Tcp) };
        let mut flow = Flow::new(Instant::ZERO, &plan);
        flow.poll_step(Instant::ZERO);
        flow.handle_sent(Instant::ZERO, 300);
        assert_eq!(flow.poll_step(Instant::ZERO), Step::Send { bytes: 700 });
    }

    #[test]
    fn the_end_of_the_source_is_the_end_even_in_the_omitted_start() {
        let plan = StreamPlan { omit_until: Some(AT_MS(10)), ..plan(Protocol::Tcp) };
        let mut flow = Flow::new(Instant::ZERO, &plan);
        flow.handle_sent(AT_MS(1), 700);
        flow.handle_source_end();
        assert_eq!(flow.poll_step(AT_MS(1)), Step::Done);
        assert_eq!(flow.tally().bytes, 700);
    }

    #[test]
    fn numbers_are_used_only_once_they_are_reported() {
        let mut flow = Flow::new(Instant::ZERO, &plan(Protocol::Udp));
        let sequence = |flow: &Flow, ahead| {
            let mut datagram = [0; 16];
            flow.write_header(Instant::ZERO, ahead, &mut datagram);
            Header::read(&datagram, false).expect("long enough").sequence
        };
        assert_eq!((sequence(&flow, 0), sequence(&flow, 2)), (1, 3));
        flow.handle_datagrams_sent(Instant::ZERO, 1);
        assert_eq!(sequence(&flow, 0), 2);
    }
}
