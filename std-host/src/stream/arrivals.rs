//! Kernels say by the wall clock when datagrams came. Here that becomes the time of this process, which
//! nobody can set; a wall clock that is set in between tells nothing of what is still in the socket.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use linerate_core::time::Instant;

/// Both clocks at the last call that received.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    last: Option<Reading>,
    was_set: bool,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    now: Instant,
    wall_ns: i128,
}

impl Reading {
    /// How far the wall clock is ahead.
    const fn ahead_ns(self) -> i128 {
        self.wall_ns - self.now.as_nanos() as i128
    }
}

/// The times of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    reading: Reading,
    /// The wall clock was set since the last call.
    is_set: bool,
    /// Times of this call are not to be compared with those of the last.
    pub(super) is_new_time: bool,
}

impl Arrivals {
    /// Notes what both clocks show at a call.
    pub(super) fn call(&mut self, now: Instant, wall: SystemTime) -> Call {
        let wall_ns = wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        let reading = Reading { now, wall_ns };
        let is_set = self.last.replace(reading).is_some_and(|last| {
            let passed = now - last.now;
            let drift_ns = (reading.ahead_ns() - last.ahead_ns()).unsigned_abs();
            drift_ns > (AT_ONCE + passed / LARGEST_SLEW).as_nanos()
        });
        let was_set = std::mem::replace(&mut self.was_set, is_set);
        Call { reading, is_set, is_new_time: is_set || was_set }
    }
}

impl Call {
    /// When something came that came at `stamp` by the wall clock.
    pub(super) fn moved(self, stamp: Option<SystemTime>) -> Instant {
        let now = self.reading.now;
        let Some(stamp) = stamp.filter(|_| !self.is_set) else { return now };
        let stamp_ns = stamp.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        match u64::try_from(self.reading.wall_ns - stamp_ns) {
            Ok(age_ns) if age_ns < LONGEST_AGE_NS => {
                Instant::from_nanos(now.as_nanos().saturating_sub(age_ns))
            }
            _ => now,
        }
    }
}

/// Both clocks are read within this, unless the thread was interrupted.
const AT_ONCE: Duration = Duration::from_micros(200);
/// A clock that is not set, only slewed, gains or loses no more than one part in so many.
const LARGEST_SLEW: u32 = 1000;
/// Nothing waits longer in a socket.
const LONGEST_AGE_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> (Instant, SystemTime) {
        let wall = UNIX_EPOCH + Duration::from_secs(1_000_000) + Duration::from_millis(ms);
        (Instant::from_nanos(ms * 1_000_000), wall)
    }

    #[test]
    fn stamps_are_moved_to_the_own_clock() {
        let (now, wall) = at_ms(500);
        let call = Arrivals::default().call(now, wall);
        let stamp = wall - Duration::from_millis(3);
        assert_eq!(call.moved(Some(stamp)), at_ms(497).0);
        assert_eq!((call.moved(None), call.is_new_time), (now, false));
        let nonsense = [wall + Duration::from_secs(1), UNIX_EPOCH];
        assert!(nonsense.iter().all(|&stamp| call.moved(Some(stamp)) == now));
    }

    #[test]
    fn a_clock_that_is_set_tells_nothing_of_what_waits() {
        for (set_ms, forward) in [(1, true), (3_600_000, true), (2, false)] {
            let set = Duration::from_millis(set_ms);
            let shown = |wall: SystemTime| if forward { wall + set } else { wall - set };
            let mut arrivals = Arrivals::default();
            let (now, wall) = at_ms(100);
            arrivals.call(now, wall);
            let (now, wall) = at_ms(120);
            let call = arrivals.call(now, shown(wall));
            assert_eq!(call.moved(Some(wall - Duration::from_millis(5))), now, "{set_ms} ms");
            assert!(call.is_new_time);
            let (now, wall) = at_ms(140);
            let call = arrivals.call(now, shown(wall));
            let stamp = shown(wall) - Duration::from_millis(5);
            assert_eq!((call.moved(Some(stamp)), call.is_new_time), (at_ms(135).0, true));
            let (now, wall) = at_ms(160);
            assert!(!arrivals.call(now, shown(wall)).is_new_time);
        }
    }

    #[test]
    fn a_clock_that_is_slewed_is_followed() {
        let mut arrivals = Arrivals::default();
        let (now, wall) = at_ms(0);
        arrivals.call(now, wall);
        let (now, wall) = at_ms(60_000);
        let call = arrivals.call(now, wall + Duration::from_millis(30));
        assert!(!call.is_new_time);
    }
}
