//! When to look next at what a running test has moved: soon at first, then at longer and longer waits,
//! but in time where it comes near to what it is held against.

use crate::time::{Instant, NANOS_PER_SEC};

/// Looks at one number of bytes, which grows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looks {
    longest_ns: u64,
    /// The last wait.
    wait_ns: u64,
    /// The last look, and what it saw.
    at: Instant,
    bytes: u64,
}

impl Looks {
    /// Looks at what moves from `began` on, at most so far apart.
    pub(super) fn new(began: Instant, longest_ns: u64) -> Self {
        Self { longest_ns, wait_ns: SHORTEST_NS, at: began, bytes: 0 }
    }

    /// When the first is due.
    pub(super) fn first(&self) -> Instant {
        self.at.plus_nanos(SHORTEST_NS)
    }

    /// When the next is due, after one at `now` that saw `bytes`: before half of the `left` bytes have
    /// come at the rate since the last look, and at most twice as far away as the last one was. What
    /// was quiet so far can be fast from here on.
    pub(super) fn next(&mut self, now: Instant, bytes: u64, left: u64) -> Instant {
        let elapsed_ns = u128::from(now.nanos_since(self.at));
        let moved = u128::from(bytes.saturating_sub(self.bytes));
        let due_ns = (u128::from(left / 2) * elapsed_ns).checked_div(moved).unwrap_or(u128::MAX);
        let due_ns = u64::try_from(due_ns).unwrap_or(u64::MAX);
        let longest_ns = self.wait_ns.saturating_mul(2).min(self.longest_ns);
        self.wait_ns = due_ns.min(longest_ns).max(SHORTEST_NS);
        (self.at, self.bytes) = (now, bytes);
        now.plus_nanos(self.wait_ns)
    }

    /// Begins with short waits again.
    pub(super) fn hurry(&mut self) {
        self.wait_ns = 0;
    }
}

/// As old as the published tallies of a busy host may be.
const SHORTEST_NS: u64 = NANOS_PER_SEC / 1000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NANOS_PER_SEC / 1000;

    /// When looks are due, in milliseconds, at a test that has moved `bytes` by a millisecond.
    fn due_ms<const COUNT: usize>(bytes: fn(u64) -> u64, limit: u64) -> [u64; COUNT] {
        let mut looks = Looks::new(Instant::ZERO, 500 * MS);
        let mut now = looks.first();
        core::array::from_fn(|_| {
            let at_ms = now.as_nanos() / MS;
            let moved = bytes(at_ms);
            now = looks.next(now, moved, limit.saturating_sub(moved));
            at_ms
        })
    }

    #[test]
    fn a_quiet_test_is_looked_at_less_and_less_often() {
        let expected = [1, 3, 7, 15, 31, 63, 127, 255, 511, 1011, 1511];
        assert_eq!(due_ms(|_| 0, 1000), expected);
    }

    #[test]
    fn looks_come_closer_as_the_limit_does() {
        // 10 bytes a millisecond: half of what is left, and half of that.
        assert_eq!(due_ms(|ms| 10 * ms, 1000), [1, 3, 7, 15, 31, 63, 81, 91, 95, 98, 99, 100]);
    }

    #[test]
    fn what_was_quiet_at_first_is_noticed_before_it_has_run_as_long_again() {
        // Nothing for a while, then 100 bytes a millisecond.
        let late = |ms: u64| 100 * ms.saturating_sub(10);
        assert_eq!(due_ms(late, 1000), [1, 3, 7, 15, 19, 20]);
    }

    #[test]
    fn a_hurry_begins_anew() {
        let mut looks = Looks::new(Instant::ZERO, 500 * MS);
        let now = Instant::from_nanos(400 * MS);
        looks.next(now, 0, 10);
        looks.hurry();
        let next = looks.next(now, 0, 10);
        assert_eq!(next.nanos_since(now), MS);
        assert_eq!(looks.next(next, 0, 10).nanos_since(next), 2 * MS);
    }
}
