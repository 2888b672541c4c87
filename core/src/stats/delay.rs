//! How the delay of datagrams varies, on two clocks that have nothing to do with each other: against
//! the fastest (PDV of RFC 5481), from one datagram to the next (IPDV of RFC 3393), and smoothed
//! (jitter of RFC 3550). Differences are taken between datagrams that follow each other in number and
//! in order only: a gap, a late one and a double are no variation of delay.

use super::{Arrival, Histogram};
use crate::report::{Jitter3550, Percentiles};

/// The delays of one stream; `B` buckets for each kind of percentiles.
#[derive(Debug, Clone)]
pub struct DelayMeter<const B: usize> {
    /// Of the datagram with the highest number, while the next may follow it; else [`NONE`]. Nanoseconds,
    /// and off by what lies between the clocks, as all transits are.
    previous_ns: i64,
    fastest_ns: i64,
    /// The transits are counted from here, which is below the fastest one.
    base_ns: i64,
    moves: u32,
    transits: Histogram<B>,
    differences: Histogram<B>,
    sixteenfold_ns: u64,
    difference_count: u64,
    sum_ns: u64,
}

impl<const B: usize> Default for DelayMeter<B> {
    fn default() -> Self {
        Self {
            previous_ns: NONE,
            fastest_ns: NONE,
            base_ns: 0,
            moves: 0,
            transits: Histogram::new(),
            differences: Histogram::new(),
            sixteenfold_ns: 0,
            difference_count: 0,
            sum_ns: 0,
        }
    }
}

impl<const B: usize> DelayMeter<B> {
    /// Notes a datagram by its two stamps, each on its own end's clock.
    #[inline]
    pub fn record(&mut self, arrival: Arrival, sent_us: u64, arrived_ns: u64) {
        let transit_ns = arrived_ns.wrapping_sub(sent_us.wrapping_mul(1000)) as i64;
        if arrival == Arrival::InOrder {
            let previous_ns = core::mem::replace(&mut self.previous_ns, transit_ns);
            if previous_ns != NONE {
                self.record_difference(transit_ns.abs_diff(previous_ns));
            }
        } else if !self.record_other(arrival, transit_ns) {
            return;
        }
        self.record_transit(transit_ns);
    }

    /// Notes `count` datagrams in order that have the same stamps.
    pub fn record_row(&mut self, count: u64, sent_us: u64, arrived_ns: u64) {
        let Some(equal) = count.checked_sub(1) else { return };
        self.record(Arrival::InOrder, sent_us, arrived_ns);
        let offset_ns = self.previous_ns.wrapping_sub(self.base_ns) as u64;
        self.transits.record_many(offset_ns, equal);
        self.differences.record_many(0, equal);
        self.difference_count += equal;
        for _ in 0..equal {
            if self.sixteenfold_ns < 16 {
                break;
            }
            self.sixteenfold_ns -= self.sixteenfold_ns / 16;
        }
    }

    /// What comes next is not to be compared with what came: one of the clocks has been set.
    pub const fn skip_difference(&mut self) {
        self.previous_ns = NONE;
    }

    /// Variation against the fastest datagram.
    pub fn variation(&self) -> Option<Percentiles> {
        self.transits.percentiles(self.floor_ns())
    }

    /// Absolute difference of a datagram to the one before it.
    pub fn differences(&self) -> Option<Percentiles> {
        self.differences.percentiles(0)
    }

    /// The smoothed difference and the mean one; none before the first.
    pub fn jitter(&self) -> Option<Jitter3550> {
        let mean_ns = self.sum_ns.checked_div(self.difference_count)?;
        Some(Jitter3550 { smoothed_ns: self.sixteenfold_ns / 16, mean_ns })
    }

    /// Both kinds of percentiles since this meter was `earlier`.
    pub fn since(&self, earlier: &Self) -> (Option<Percentiles>, Option<Percentiles>) {
        let mut before = earlier.transits.clone();
        if earlier.fastest_ns != NONE {
            before.shift(earlier.base_ns.abs_diff(self.base_ns));
        }
        (
            self.transits.since(&before).percentiles(self.floor_ns()),
            self.differences.since(&earlier.differences).percentiles(0),
        )
    }

    fn floor_ns(&self) -> u64 {
        if self.fastest_ns == NONE { 0 } else { self.fastest_ns.abs_diff(self.base_ns) }
    }

    /// A datagram out of the row; whether its delay counts.
    #[inline(never)]
    fn record_other(&mut self, arrival: Arrival, transit_ns: i64) -> bool {
        match arrival {
            Arrival::InOrder | Arrival::Gap(_) => self.previous_ns = transit_ns,
            Arrival::Late | Arrival::TooLate => {}
            Arrival::Duplicate | Arrival::Invalid => return false,
        }
        true
    }

    #[inline]
    fn record_difference(&mut self, difference_ns: u64) {
        let difference_ns = difference_ns.min(LARGEST_NS);
        if self.difference_count == 0 {
            self.sixteenfold_ns = difference_ns * 16;
        }
        self.difference_count += 1;
        self.sixteenfold_ns -= self.sixteenfold_ns / 16;
        self.sixteenfold_ns += difference_ns;
        self.sum_ns = self.sum_ns.wrapping_add(difference_ns);
        self.differences.record(difference_ns);
    }

    #[inline]
    fn record_transit(&mut self, transit_ns: i64) {
        if transit_ns < self.fastest_ns {
            self.record_fastest(transit_ns);
        }
        self.transits.record(transit_ns.wrapping_sub(self.base_ns) as u64);
    }

    #[inline(never)]
    fn record_fastest(&mut self, transit_ns: i64) {
        if self.fastest_ns == NONE {
            self.base_ns = transit_ns.saturating_sub_unsigned(SLACK_NS);
        }
        self.fastest_ns = transit_ns;
        if transit_ns < self.base_ns {
            self.move_base(transit_ns);
        }
    }

    /// A new fastest one: all others took longer than it by so much more. Moves are by a bucket of the
    /// median at least, so that buckets do not smear, and by ever more after many, so that clocks that
    /// drift apart do not make every datagram one.
    fn move_base(&mut self, transit_ns: i64) {
        self.moves += 1;
        let median_ns = self.transits.percentile(500_000).unwrap_or(0);
        let slack_ns = (median_ns / 32).max(SLACK_NS) << self.moves.saturating_sub(OFTEN).min(20);
        let base_ns = transit_ns.saturating_sub_unsigned(slack_ns);
        self.transits.shift(self.base_ns.abs_diff(base_ns));
        self.base_ns = base_ns;
    }
}

/// No datagram is as slow.
const NONE: i64 = i64::MAX;
/// Larger differences are a peer's nonsense.
const LARGEST_NS: u64 = 86_400_000_000_000;
/// So far below the fastest transit the base is, at least: little beside what can be told apart, since
/// senders stamp with whole microseconds.
const SLACK_NS: u64 = 2048;
/// So many times the base moves by little.
const OFTEN: u32 = 8;

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use crate::stats::BUCKETS;

    type Meter = DelayMeter<BUCKETS>;

    /// Datagrams sent every millisecond, with these delays and this offset of the clocks.
    fn met(delays_us: &[u64], offset_us: u64) -> Meter {
        let mut meter = Meter::default();
        for (at, delay) in (0..).zip(delays_us) {
            let sent_us = 1_000_000 + 1000 * at;
            meter.record(Arrival::InOrder, sent_us, (sent_us + delay + offset_us) * 1000);
        }
        meter
    }

    fn near(told: u64, right: u64, by: u64) {
        assert!(told.abs_diff(right) <= right / by + 64, "{told} for {right}");
    }

    fn some_delays() -> Vec<u64> {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        (0..20_000)
            .map(|_| 5_000 + next() % 800 + if next() % 50 == 0 { 9_000 } else { 0 })
            .collect()
    }

    #[test]
    fn the_first_difference_seeds_the_jitter() {
        let meter = met(&[100, 260], 7);
        let jitter = meter.jitter().expect("a difference");
        assert_eq!((jitter.smoothed_ns, jitter.mean_ns), (160_000, 160_000));
        assert_eq!(met(&[100], 0).jitter(), None);
        // 160 + (0 - 160) / 16
        assert_eq!(met(&[100, 260, 260], 7).jitter().expect("differences").smoothed_ns, 150_000);
    }

    #[test]
    fn an_offset_of_the_clocks_changes_nothing() {
        let delays = some_delays();
        let (one, other) = (met(&delays, 0), met(&delays, 86_400_000_000));
        assert_eq!(one.jitter(), other.jitter());
        assert_eq!(one.variation(), other.variation());
        assert_eq!(one.differences(), other.differences());
    }

    #[test]
    fn percentiles_are_those_of_the_delays() {
        let mut delays = some_delays();
        let meter = met(&delays, 0);
        let told = meter.variation().expect("counted");
        delays.sort_unstable();
        let right = |share: usize| (delays[delays.len() * share / 1000 - 1] - delays[0]) * 1000;
        for (told, share) in
            [(told.p50_ns, 500), (told.p90_ns, 900), (told.p99_ns, 990), (told.p999_ns, 999)]
        {
            near(told, right(share), 20);
        }
        assert_eq!(told.max_ns, (delays[delays.len() - 1] - delays[0]) * 1000);
    }

    #[test]
    fn no_difference_is_taken_across_a_gap_a_late_one_or_a_double() {
        let mut meter = Meter::default();
        let at = |us: u64| us * 1000;
        meter.record(Arrival::InOrder, 0, at(100));
        meter.record(Arrival::Gap(1), 2000, at(2900));
        meter.record(Arrival::Late, 1000, at(3100));
        meter.record(Arrival::Duplicate, 1000, at(8000));
        assert_eq!(meter.jitter(), None);
        meter.record(Arrival::InOrder, 3000, at(3910));
        assert_eq!(meter.jitter().expect("one").mean_ns, 10_000);
        meter.skip_difference();
        meter.record(Arrival::InOrder, 4000, at(4100));
        assert_eq!(meter.differences().expect("one").count, 1);
        let told = meter.variation().expect("five");
        assert_eq!((told.count, told.max_ns), (5, 2_000_000));
    }

    #[test]
    fn equal_ones_are_counted_as_if_one_by_one() {
        let mut at_once = met(&[100, 260], 0);
        let mut each = at_once.clone();
        at_once.record_row(5, 1_001_000, (1_001_000 + 260) * 1000);
        for _ in 0..5 {
            each.record(Arrival::InOrder, 1_001_000, (1_001_000 + 260) * 1000);
        }
        assert_eq!(at_once.jitter(), each.jitter());
        assert_eq!(at_once.variation(), each.variation());
        assert_eq!(at_once.differences(), each.differences());
    }

    #[test]
    fn an_interval_has_its_own_percentiles() {
        let delays = some_delays();
        let before = met(&delays, 0);
        let mut meter = before.clone();
        // All of these are 2 ms above the fastest, which comes only now.
        meter.record(Arrival::Gap(1), 50_000_000, (50_000_000 + 4_000) * 1000);
        for at in 1..2000 {
            let sent_us = 50_000_000 + 1000 * at;
            meter.record(Arrival::InOrder, sent_us, (sent_us + 6_000) * 1000);
        }
        let (variation, differences) = meter.since(&before);
        near(variation.expect("counted").p50_ns, 2_000_000, 20);
        assert_eq!(differences.expect("counted").p90_ns, 0);
    }

    #[test]
    fn clocks_that_drift_apart_cost_little_and_blur_little() {
        // 20 millionths over 100 s: 2 ms in all, by which each datagram is faster than the last.
        let mut meter = Meter::default();
        for at in 0..100_000_u64 {
            meter.record(Arrival::InOrder, 1000 * at, 5_000_000 + 1_000_000 * at - 20 * at);
        }
        near(meter.variation().expect("counted").p50_ns, 1_000_000, 20);
        assert!(meter.moves < 30, "{}", meter.moves);
    }

    #[test]
    fn nonsense_stamps_are_survived() {
        let mut meter = Meter::default();
        for at in 0..1000_u64 {
            let sent_us = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            meter.record(Arrival::InOrder, sent_us, at);
            meter.record_row(at % 3, sent_us, at);
        }
        assert!(meter.jitter().expect("counted").smoothed_ns <= LARGEST_NS);
        assert!(meter.variation().is_some() && meter.since(&Meter::default()).0.is_some());
    }
}
