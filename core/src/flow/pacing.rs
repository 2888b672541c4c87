//! Holding a rate: when the next burst may leave. Departures lie on an ideal schedule from the start
//! of the stream, without drift. A sender that fell behind catches up at no more than twice its rate,
//! and makes up for a second at most: neither a busy host nor an outage is followed by a flood.

use crate::time::{Instant, NANOS_PER_SEC};
use crate::units::BitsPerSec;

/// The departure schedule of one stream.
#[derive(Debug, Clone)]
pub struct Pacer {
    bits_per_sec: u64,
    /// When the next burst is to leave.
    due: Instant,
    /// What the divisions so far left over, in bit-nanoseconds per second.
    remainder: u64,
    /// Bytes of a burst, and how long they take.
    burst_bytes: u64,
    burst_ns: u64,
    /// What of the bursts that may leave now has not left yet.
    left: u64,
    /// When the last ones were let go.
    departed: Instant,
    /// The longest waits of late, which fade with each that follows.
    longest_ns: u64,
    second_ns: u64,
}

impl Pacer {
    /// How much lateness is made up for: a second of data, so that a busy host or a few lost segments
    /// do not lower the average rate.
    pub const CATCH_UP_NANOS: u64 = NANOS_PER_SEC;
    /// Blocks that are closer to each other leave in groups: no system sleeps for so short a time.
    pub const SHORTEST_GAP_NANOS: u64 = 50_000;
    /// Data of a group is that of so much time: what a router's queue sees as a burst.
    pub const GROUP_NANOS: u64 = 100_000;

    /// A schedule that begins at `now`: the first burst may leave at once. Bursts are of `burst` blocks,
    /// or, where nobody asked for a number, of one unless they come too fast one after another.
    ///
    /// # Panics
    /// If the rate is zero; no rate is `Option::None`, not zero.
    pub fn new(now: Instant, rate: BitsPerSec, block_bytes: u64, burst: Option<u16>) -> Self {
        assert!(rate.0 > 0, "a rate of zero is no rate");
        let blocks = burst.map_or_else(|| blocks_of_a_group(rate, block_bytes), u64::from);
        let burst_bytes = block_bytes.max(1).saturating_mul(blocks.max(1));
        Self {
            bits_per_sec: rate.0,
            due: now,
            remainder: 0,
            burst_bytes,
            burst_ns: rate.nanos_for(burst_bytes),
            left: 0,
            departed: now,
            longest_ns: 0,
            second_ns: 0,
        }
    }

    /// Bytes that may leave now.
    ///
    /// # Errors
    /// When to ask again, if nothing may leave yet.
    pub fn poll(&mut self, now: Instant) -> Result<u64, Instant> {
        if self.left == 0 {
            self.left = self.bursts_at(now)?;
            self.remember(now.nanos_since(self.departed));
            self.departed = now;
        }
        Ok(self.left)
    }

    /// Notes that `bytes` left, and moves the schedule on by the time they take.
    pub fn handle_sent(&mut self, now: Instant, bytes: u64) {
        let floor = now.as_nanos().saturating_sub(Self::CATCH_UP_NANOS);
        self.due = self.due.max(Instant::from_nanos(floor));
        self.left = self.left.saturating_sub(bytes);
        let mut rest = bytes;
        while rest > 0 {
            let part = rest.min(LARGEST_STEP_BYTES);
            let work = part * 8 * NANOS_PER_SEC + self.remainder;
            self.due = self.due.plus_nanos(work / self.bits_per_sec);
            self.remainder = work % self.bits_per_sec;
            rest -= part;
        }
    }

    fn bursts_at(&self, now: Instant) -> Result<u64, Instant> {
        if now < self.due {
            return Err(self.due);
        }
        let late_ns = now.nanos_since(self.due).min(Self::CATCH_UP_NANOS);
        let overdue = self.bytes_of(late_ns);
        if overdue < self.burst_bytes {
            return Ok(self.burst_bytes);
        }
        let earliest = self.departed.plus_nanos(self.burst_ns / 2);
        if now < earliest {
            return Err(earliest);
        }
        // Where waits are long again and again, as with coarse timers, so much is due each time. After one
        // long wait only what others allow: the rest comes step by step.
        let gap_ns = now.nanos_since(self.departed).min(self.second_ns);
        let most = self.bytes_of(gap_ns.saturating_mul(2)) + self.burst_bytes / 2;
        let bytes = (overdue + self.burst_bytes).min(most).max(self.burst_bytes);
        Ok(bytes - bytes % self.burst_bytes)
    }

    fn remember(&mut self, gap_ns: u64) {
        self.second_ns = faded(self.second_ns).max(gap_ns.min(self.longest_ns));
        self.longest_ns = faded(self.longest_ns).max(gap_ns);
    }

    fn bytes_of(&self, nanos: u64) -> u64 {
        nanos.saturating_mul(self.bits_per_sec) / (8 * NANOS_PER_SEC)
    }
}

/// Half of a wait is forgotten after five others.
const fn faded(nanos: u64) -> u64 {
    nanos - nanos / 8
}

fn blocks_of_a_group(rate: BitsPerSec, block_bytes: u64) -> u64 {
    let gap_ns = rate.nanos_for(block_bytes).max(1);
    if gap_ns < Pacer::SHORTEST_GAP_NANOS { Pacer::GROUP_NANOS / gap_ns } else { 1 }
}

/// Keeps `part * 8 * NANOS_PER_SEC` plus a remainder below a rate within 64 bits.
const LARGEST_STEP_BYTES: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    const MS: u64 = NANOS_PER_SEC / 1000;

    fn at_us(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    fn pacer(rate: u64, block_bytes: u64) -> Pacer {
        Pacer::new(Instant::ZERO, BitsPerSec(rate), block_bytes, Some(1))
    }

    /// Sends whatever may leave whenever the clock, which is looked at every `tick_us`, says so, and
    /// returns each departure.
    fn departures(pacer: &mut Pacer, from_us: u64, to_us: u64, tick_us: u64) -> Vec<(u64, u64)> {
        let mut departures = Vec::new();
        for us in (from_us..to_us).step_by(tick_us as usize) {
            while let Ok(bytes) = pacer.poll(at_us(us)) {
                pacer.handle_sent(at_us(us), bytes);
                departures.push((us, bytes));
            }
        }
        departures
    }

    #[test]
    fn the_schedule_does_not_drift() {
        // 1250 bytes at 3 Mbit/s take 3333333.33 ns; 3000 of them exactly ten seconds.
        let mut pacer = pacer(3_000_000, 1250);
        for _ in 0..3000 {
            pacer.handle_sent(pacer.due, 1250);
        }
        assert_eq!(pacer.due.as_nanos(), 10 * NANOS_PER_SEC);
    }

    #[test]
    fn blocks_that_come_fast_leave_in_groups_of_100_microseconds() {
        // 1250 bytes are 10,000 bits.
        for (rate, burst, blocks) in [
            (1_000_000_000, None, 10),
            (10_000_000_000, None, 100),
            (210_000_000, None, 2),
            (200_000_000, None, 1),
            (1_000_000, None, 1),
            (1_000_000_000, Some(1), 1),
            (1_000_000, Some(7), 7),
        ] {
            let mut pacer = Pacer::new(Instant::ZERO, BitsPerSec(rate), 1250, burst);
            assert_eq!(pacer.poll(Instant::ZERO), Ok(blocks * 1250), "{rate} {burst:?}");
        }
    }

    #[test]
    fn lateness_is_made_up_for_at_twice_the_rate() {
        // A block a millisecond; nothing can leave for 10 ms.
        let mut pacer = pacer(10_000_000, 1250);
        assert_eq!(departures(&mut pacer, 0, 5_000, 10).len(), 5);
        let late = departures(&mut pacer, 15_000, 40_000, 10);
        let until = |us| late.iter().filter(|(at, _)| *at < us).map(|(_, b)| b / 1250).sum::<u64>();
        assert_eq!((until(15_400), until(16_400), until(20_400)), (2, 4, 12));
        assert_eq!(until(40_000), 35, "nothing is lost");
    }

    #[test]
    fn a_coarse_clock_holds_the_rate_all_the_same() {
        // Groups of 100 microseconds, but the clock wakes every 15 ms.
        let mut pacer = Pacer::new(Instant::ZERO, BitsPerSec(1_000_000_000), 1250, None);
        let sent: u64 = departures(&mut pacer, 0, 1_500_001, 15_000).iter().map(|(_, b)| b).sum();
        let ideal = 187_500_000;
        assert!(sent.abs_diff(ideal) < ideal / 40, "{sent} of {ideal}");
    }

    #[test]
    fn coarse_sleeps_between_slow_sends_hold_the_rate_all_the_same() {
        // Every sleep ends 1.1 ms late, and the first datagram after it takes longer than those that
        // follow: a short wait comes after each long one.
        for (rate, first_us, next_us) in [(60, 100, 70), (80, 80, 60), (100, 60, 50), (20, 300, 70)]
        {
            let rate = rate * 1_000_000;
            let mut pacer = Pacer::new(Instant::ZERO, BitsPerSec(rate), 1400, None);
            let (mut now, mut sent, mut costs_us) = (Instant::ZERO, 0, first_us);
            while now < Instant::from_nanos(2 * NANOS_PER_SEC) {
                match pacer.poll(now) {
                    Ok(bytes) => {
                        pacer.handle_sent(now, bytes);
                        sent += bytes;
                        now = now.plus_nanos(bytes / 1400 * costs_us * 1000);
                        costs_us = next_us;
                    }
                    Err(until) => (now, costs_us) = (until.plus_nanos(1_100_000), first_us),
                }
            }
            let ideal = 2 * rate / 8;
            assert!(sent.abs_diff(ideal) < ideal / 40, "{rate}: {sent} of {ideal}");
        }
    }

    #[test]
    fn an_outage_is_not_followed_by_a_flood() {
        let mut pacer = pacer(1_000_000, 1250);
        departures(&mut pacer, 0, 20_000, 1000);
        // Five seconds later: a second is made up for within the next, and that is all.
        let after = departures(&mut pacer, 5_000_000, 8_000_000, 1000);
        let within = |us| after.iter().filter(|(at, _)| *at < us).map(|(_, b)| b).sum::<u64>();
        assert!(within(5_100_000) <= 2 * 12_500 + 2 * 1250, "{}", within(5_100_000));
        assert_eq!(within(8_000_000), (1 + 3) * 125_000);
    }

    #[test]
    fn huge_sends_and_rates_stay_in_range() {
        let mut pacer = Pacer::new(Instant::ZERO, BitsPerSec(u64::MAX / 2), 1 << 20, None);
        assert!(pacer.poll(Instant::from_nanos(9 * NANOS_PER_SEC)).is_ok());
        pacer.handle_sent(Instant::ZERO, 1 << 40);
        let mut pacer = Pacer::new(Instant::ZERO, BitsPerSec(1), 1 << 20, Some(1000));
        pacer.handle_sent(Instant::ZERO, 1 << 40);
        assert_eq!(pacer.due.as_nanos(), u64::MAX);
        assert_eq!(pacer.poll(Instant::from_nanos(MS)), Err(pacer.due));
    }
}
