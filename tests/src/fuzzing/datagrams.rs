//! A receiving UDP stream, fed with datagrams that nobody would send, held against a plain list of
//! what came; and a sending one, whose network takes whatever it likes.

use std::collections::HashSet;

use linerate_core::flow::{ReceiveFlow, SendFlow, Step, StreamPlan};
use linerate_core::protocol::datagram::Header;
use linerate_core::protocol::greeting;
use linerate_core::stats::{Arrival, BUCKETS, SequenceTracker, Tally};
use linerate_core::test::{Protocol, Role, StreamId};
use linerate_core::time::Instant;
use linerate_core::units::BitsPerSec;

use super::input::Input;

/// The first bytes say what kind of stream it is, the others what happens to it.
pub fn datagrams(data: &[u8]) {
    let mut input = Input::new(data);
    let choice = input.byte();
    let plan = StreamPlan {
        id: StreamId::from_index(0),
        role: Role::Receiver,
        protocol: if choice & 8 == 0 { Protocol::Udp } else { Protocol::Tcp },
        block_bytes: 16 + u32::from(input.byte()),
        bitrate: (choice & 16 != 0).then(|| BitsPerSec((input.u64() >> 1).max(1))),
        burst: Some(1 + u16::from(input.byte() % 4)),
        joins_arrivals: false,
        may_wait: false,
        limit_bytes: None,
        share_bytes: None,
        counters_64bit: choice & 1 != 0,
        omit_until: (choice & 2 != 0).then(|| Instant::from_nanos(input.u32().into())),
    };
    if choice & 4 == 0 {
        receive(&mut input, &plan);
    } else {
        send(&mut input, &plan);
    }
}

fn receive(input: &mut Input<'_>, plan: &StreamPlan) {
    let mut flow = ReceiveFlow::<1, BUCKETS>::new(plan);
    let mut model = Model::default();
    let mut now_us = 0_u64;
    while !input.is_empty() {
        now_us = now_us.saturating_add(input.u16().into());
        let datagram = arriving(input, plan.counters_64bit, &model);
        // A receiver may look at the header only, and the datagram be longer.
        let len = datagram.len() + usize::from(input.byte() & 1) * 1000;
        let now = Instant::from_nanos(now_us.saturating_mul(1000));
        flow.handle_datagram(now, &datagram, len);
        model.handle_datagram(now, &datagram, len, plan);
        model.check(&flow.tally());
    }
}

/// A datagram: any bytes, or a header whose number is near the highest, far from it, or any.
fn arriving(input: &mut Input<'_>, counters_64bit: bool, model: &Model) -> Vec<u8> {
    let kind = input.byte();
    if kind & 3 == 0 {
        return input.bytes(usize::from(kind >> 2)).to_vec();
    }
    let sequence = match kind & 3 {
        1 => model.highest.wrapping_add(1),
        2 => model.highest.wrapping_add_signed(i64::from(input.byte() as i8)),
        _ => input.u64(),
    };
    let mut datagram = vec![0; 20];
    Header { sent_us: input.u32().into(), sequence }.write(&mut datagram, counters_64bit);
    datagram
}

/// The same arithmetic with a set of all numbers in place of a window.
#[derive(Default)]
struct Model {
    tracker: SequenceTracker<1>,
    seen: HashSet<u64>,
    highest: u64,
    /// The highest when the omitted start ended.
    omitted: Option<u64>,
    /// What was missing then and came later.
    repairs: u64,
    bytes: u64,
    datagrams: u64,
    numbered: u64,
    late: u64,
    duplicates: u64,
    too_late: u64,
}

impl Model {
    fn handle_datagram(&mut self, now: Instant, datagram: &[u8], len: usize, plan: &StreamPlan) {
        if greeting::is_no_data(datagram) {
            return;
        }
        if plan.omit_until.is_some_and(|until| now >= until) {
            self.omitted.get_or_insert(self.highest);
        }
        self.bytes += len as u64;
        self.datagrams += 1;
        let Some(header) = Header::read(datagram, plan.counters_64bit) else {
            assert!(datagram.len() < Header::len(plan.counters_64bit));
            return;
        };
        let sequence = if plan.counters_64bit { header.sequence } else { self.unwrap(&header) };
        let expected = self.expected(sequence);
        assert_eq!(self.tracker.record(sequence), expected, "{sequence} after {}", self.highest);
        self.numbered += u64::from(sequence != 0);
        self.late += u64::from(expected == Arrival::Late);
        let is_omitted = self.omitted.is_some_and(|highest| sequence <= highest);
        self.repairs += u64::from(expected == Arrival::Late && is_omitted);
        self.duplicates += u64::from(expected == Arrival::Duplicate);
        self.too_late += u64::from(expected == Arrival::TooLate);
        if matches!(expected, Arrival::InOrder | Arrival::Gap(_) | Arrival::Late) {
            self.seen.insert(sequence);
        }
        self.highest = self.highest.max(sequence);
    }

    fn unwrap(&self, header: &Header) -> u64 {
        let low = u32::try_from(header.sequence).expect("the short form has 32 bits");
        let full = self.tracker.unwrap(low);
        assert_eq!(full as u32, low, "the low bits are what came");
        // Half of all numbers are nearer from below, half from above; none is below zero.
        assert!(full.abs_diff(self.highest) <= 1 << 31 || full < 1 << 32, "{full} is the nearest");
        full
    }

    fn expected(&self, sequence: u64) -> Arrival {
        match sequence {
            0 => Arrival::Invalid,
            _ if Some(sequence) == self.highest.checked_add(1) => Arrival::InOrder,
            _ if sequence > self.highest => Arrival::Gap(sequence - self.highest - 1),
            // The only word of the window.
            _ if self.highest / 64 != sequence / 64 => Arrival::TooLate,
            _ if self.seen.contains(&sequence) => Arrival::Duplicate,
            _ => Arrival::Late,
        }
    }

    fn check(&self, tally: &Tally) {
        assert_eq!(tally.bytes, self.bytes);
        assert_eq!(tally.blocks, self.datagrams);
        assert_eq!(tally.packets, self.highest);
        let missing = self.highest - self.seen.len() as u64;
        assert_eq!(tally.lost, missing + self.repairs, "what did not come is lost");
        assert_eq!((tally.out_of_order, tally.duplicates), (self.late, self.duplicates));
        assert_eq!(tally.too_late, self.too_late);
        let old = tally.out_of_order + tally.duplicates + tally.too_late;
        assert!(old < self.numbered.max(1), "one was first");
        assert!(tally.jitter_ns <= 86_400_000_000_000, "no more than the largest difference");
    }
}

fn send(input: &mut Input<'_>, plan: &StreamPlan) {
    let limit_bytes = (input.byte() & 1 != 0).then(|| {
        let blocks = u64::from(input.u16());
        blocks * u64::from(plan.block_bytes)
    });
    let plan = StreamPlan { role: Role::Sender, limit_bytes, ..*plan };
    let mut now = Instant::ZERO;
    let mut flow = SendFlow::<BUCKETS>::new(now, &plan);
    while !input.is_empty() {
        now = now.plus_nanos(u64::from(input.u32()));
        let before = flow.tally();
        match flow.poll_step(now) {
            Step::Done => assert!(limit_bytes.is_some(), "without a limit there is no end"),
            Step::Wait { until } => {
                assert!(until > now && plan.bitrate.is_some());
                assert!(
                    !matches!(flow.clone().poll_step(until), Step::Wait { .. }),
                    "the wait has an end"
                );
            }
            Step::Send { bytes } => {
                assert!(bytes > 0, "to send nothing is no step");
                hand_over(input, &mut flow, now, &plan, bytes);
            }
        }
        check_sent(&before, &flow.tally(), &plan);
    }
}

/// The network takes a part of it, maybe nothing.
fn hand_over(
    input: &mut Input<'_>,
    flow: &mut SendFlow<BUCKETS>,
    now: Instant,
    plan: &StreamPlan,
    bytes: u64,
) {
    let block = u64::from(plan.block_bytes);
    match plan.protocol {
        Protocol::Tcp | Protocol::Sctp => flow.handle_sent(now, bytes.min(input.u32().into())),
        Protocol::Udp => {
            assert_eq!(bytes % block, 0, "datagrams are whole");
            let count = (bytes / block).min(u64::from(input.byte() % 16));
            let next = flow.tally().packets + 1;
            for ahead in 0..count {
                let mut datagram = vec![0; plan.block_bytes as usize];
                flow.write_header(now, ahead, &mut datagram);
                let header = Header::read(&datagram, plan.counters_64bit).expect("room for one");
                assert_eq!(header.sequence, next + ahead, "numbers follow each other");
            }
            flow.handle_datagrams_sent(now, count);
        }
    }
}

fn check_sent(before: &Tally, after: &Tally, plan: &StreamPlan) {
    assert!(after.bytes >= before.bytes && after.blocks >= before.blocks);
    assert_eq!(after.blocks, after.bytes / u64::from(plan.block_bytes));
    let packets = if plan.protocol == Protocol::Udp { after.blocks } else { 0 };
    assert_eq!(after.packets, packets);
    if let (Some(limit), None) = (plan.limit_bytes, plan.omit_until) {
        assert!(after.bytes <= limit, "a limit is kept");
    }
}
