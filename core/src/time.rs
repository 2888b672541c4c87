//! Points in time, as the caller counts them. The engine has no clock: every input carries `now`,
//! and only differences between two instants of the same caller mean anything.

use core::ops::{Add, Sub};
pub use core::time::Duration;

/// Nanoseconds since any fixed start of the caller's choosing, on a clock that never steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Instant(u64);

impl Instant {
    /// The caller's start of counting.
    pub const ZERO: Self = Self(0);

    /// The instant `nanos` nanoseconds after the caller's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the caller's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to here; zero if `earlier` is later.
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `nanos` later, held at the end of time.
    pub const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.plus_nanos(nanos(duration))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// The time from `earlier` to here; zero if `earlier` is later.
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }
}

/// A duration in nanoseconds, held at `u64::MAX` (584 years).
pub const fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(NANOS_PER_SEC).saturating_add(duration.subsec_nanos() as u64)
}

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        let end = Instant::from_nanos(u64::MAX);
        assert_eq!(end + Duration::from_secs(1), end);
        assert_eq!(Instant::ZERO - end, Duration::ZERO);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
    }
}
