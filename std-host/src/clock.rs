//! The clock of this process, as the engine counts time. It reads like the wall clock when it is
//! made and runs monotonically from there.

use std::time::{Duration, Instant as StdInstant, SystemTime, UNIX_EPOCH};

use linerate_core::time::{Instant, nanos};

/// A monotonic clock whose zero is the Unix epoch as the wall clock showed it when the clock was
/// made.
///
/// Datagrams carry the sender's time. Receivers since iperf3 3.8 use its differences only, older
/// ones compare it with their wall clock; a stepping clock would spoil the jitter of both. This
/// clock serves all of them, and 64 bits of nanoseconds last until the year 2554.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: StdInstant,
    start_nanos: u64,
}

impl Clock {
    /// A clock that agrees with the wall clock at this moment.
    pub(crate) fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { start: StdInstant::now(), start_nanos: nanos(since_epoch) }
    }

    /// The time.
    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(self.start_nanos) + self.start.elapsed()
    }

    /// This moment, as this clock and as the wall clock show it.
    pub(crate) fn with_wall(self) -> (Instant, SystemTime) {
        for _ in 0..3 {
            let (before, wall, after) = (self.now(), SystemTime::now(), self.now());
            // Whoever was interrupted between the two looks again.
            if after - before < AT_ONCE {
                return (after, wall);
            }
        }
        (self.now(), SystemTime::now())
    }

    /// How many nanoseconds more this clock shows than `other`.
    pub(crate) fn ahead_of(self, other: Self) -> i64 {
        let at = |clock: Self, start: StdInstant| {
            i128::from(clock.start_nanos) + (start - clock.start).as_nanos() as i128
        };
        let later = self.start.max(other.start);
        (at(self, later) - at(other, later)) as i64
    }

    /// The moment `instant` as the standard library and tokio count; the start of this clock for
    /// anything before it.
    pub(crate) fn to_std(self, instant: Instant) -> StdInstant {
        self.start + (instant - Instant::from_nanos(self.start_nanos))
    }
}

/// Longer than two clocks take to read.
const AT_ONCE: Duration = Duration::from_micros(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_the_wall_clock() {
        let clock = Clock::new();
        let wall = nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap());
        assert!(wall.abs_diff(clock.now().as_nanos()) < 3_600_000_000_000, "within an hour");
    }

    #[test]
    fn clocks_are_as_far_apart_as_they_show() {
        let first = Clock::new();
        let set =
            Clock { start: StdInstant::now(), start_nanos: first.start_nanos + 5_000_000_000 };
        for (one, other) in [(first, set), (set, first), (first, first)] {
            let ahead = one.ahead_of(other);
            let (here, there) = (one.now(), other.now());
            let shown = there.as_nanos().saturating_add_signed(ahead);
            assert!(shown.abs_diff(here.as_nanos()) < 1_000_000_000, "{ahead}");
            assert_eq!(ahead, -other.ahead_of(one));
        }
    }

    #[test]
    fn instants_convert_to_the_library_and_back() {
        let clock = Clock::new();
        let now = clock.now();
        assert_eq!(
            clock.to_std(now + Duration::from_secs(5)),
            clock.to_std(now) + Duration::from_secs(5)
        );
        assert_eq!(clock.to_std(Instant::ZERO), clock.start);
    }
}
