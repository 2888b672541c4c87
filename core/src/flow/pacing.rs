//! Holding a rate: when the next block may leave. Departures lie on an ideal schedule from the
//! start of the stream, without drift; a sender that fell behind catches up, but never by more than
//! [`Pacer::CATCH_UP_NANOS`], so that an outage is not followed by a flood.

use crate::time::{Instant, NANOS_PER_SEC};
use crate::units::BitsPerSec;

/// The departure schedule of one stream.
#[derive(Debug, Clone)]
pub struct Pacer {
    bits_per_sec: u64,
    due: Instant,
    /// What the divisions so far left over, in bit-nanoseconds per second.
    remainder: u64,
}

impl Pacer {
    /// How much lateness is made up for: a second of data, so that a busy host or a few lost segments
    /// do not lower the average rate.
    pub const CATCH_UP_NANOS: u64 = NANOS_PER_SEC;

    /// A schedule that begins at `now`: the first block may leave at once.
    ///
    /// # Panics
    /// If the rate is zero; no rate is `Option::None`, not zero.
    pub fn new(now: Instant, rate: BitsPerSec) -> Self {
        assert!(rate.0 > 0, "a rate of zero is no rate");
        Self { bits_per_sec: rate.0, due: now, remainder: 0 }
    }

    /// When the next block may leave.
    pub const fn due(&self) -> Instant {
        self.due
    }

    /// Bytes that the schedule has become due for since the next block's own time.
    pub fn overdue_bytes(&self, now: Instant) -> u64 {
        let late_ns = now.nanos_since(self.due).min(Self::CATCH_UP_NANOS);
        late_ns.saturating_mul(self.bits_per_sec) / (8 * NANOS_PER_SEC)
    }

    /// Notes that `bytes` left, and moves the schedule on by the time they take.
    pub fn handle_sent(&mut self, now: Instant, bytes: u64) {
        let floor = now.as_nanos().saturating_sub(Self::CATCH_UP_NANOS);
        self.due = self.due.max(Instant::from_nanos(floor));
        let mut left = bytes;
        while left > 0 {
            let part = left.min(LARGEST_STEP_BYTES);
            let work = part * 8 * NANOS_PER_SEC + self.remainder;
            self.due = self.due.plus_nanos(work / self.bits_per_sec);
            self.remainder = work % self.bits_per_sec;
            left -= part;
        }
    }
}

/// Keeps `part * 8 * NANOS_PER_SEC` plus a remainder below a rate within 64 bits.
const LARGEST_STEP_BYTES: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NANOS_PER_SEC / 1000;

    #[test]
    fn the_schedule_does_not_drift() {
        // 1250 bytes at 3 Mbit/s take 3333333.33 ns; 3000 of them exactly ten seconds.
        let mut pacer = Pacer::new(Instant::ZERO, BitsPerSec(3_000_000));
        for _ in 0..3000 {
            pacer.handle_sent(pacer.due(), 1250);
        }
        assert_eq!(pacer.due().as_nanos(), 10 * NANOS_PER_SEC);
    }

    #[test]
    fn lateness_is_made_up_for() {
        let mut pacer = Pacer::new(Instant::ZERO, BitsPerSec(1_000_000));
        // 12500 bytes are 100 ms of data. 50 ms late: the next is due as if nothing had happened.
        pacer.handle_sent(Instant::from_nanos(50 * MS), 12_500);
        assert_eq!(pacer.due().as_nanos(), 100 * MS);
    }

    #[test]
    fn what_is_overdue_grows_with_lateness_up_to_a_second() {
        let pacer = Pacer::new(Instant::from_nanos(MS), BitsPerSec(8_000_000));
        for (at_ms, bytes) in [(0, 0), (1, 0), (3, 2000), (1001, 1_000_000), (9000, 1_000_000)] {
            assert_eq!(pacer.overdue_bytes(Instant::from_nanos(at_ms * MS)), bytes, "{at_ms}");
        }
    }

    #[test]
    fn an_outage_is_not_followed_by_a_flood() {
        let mut pacer = Pacer::new(Instant::ZERO, BitsPerSec(1_000_000));
        let now = Instant::from_nanos(5 * NANOS_PER_SEC);
        let mut sent = 0;
        while pacer.due() <= now {
            pacer.handle_sent(now, 1250);
            sent += 1250;
        }
        // A second of catching up and the block that is due now.
        assert_eq!(sent, 125_000 + 1250);
    }

    #[test]
    fn huge_sends_and_rates_stay_in_range() {
        let mut pacer = Pacer::new(Instant::ZERO, BitsPerSec(u64::MAX / 2));
        pacer.handle_sent(Instant::ZERO, 1 << 40);
        let mut pacer = Pacer::new(Instant::ZERO, BitsPerSec(1));
        pacer.handle_sent(Instant::ZERO, 1 << 40);
        assert_eq!(pacer.due().as_nanos(), u64::MAX);
    }
}
