//! How many lines a server writes about strangers.

use std::time::Instant;

/// Lets the lines of a bad minute through and a few a second of a bad day, and counts the rest: who
/// was refused and why is to be read, and a port scan must not fill a disk.
#[derive(Debug)]
pub(super) struct Throttle {
    left: u32,
    refilled: Option<Instant>,
    unsaid: u64,
}

impl Throttle {
    pub(super) const fn new() -> Self {
        Self { left: MOST_LINES_AT_ONCE, refilled: None, unsaid: 0 }
    }

    /// Whether a line may be printed, and how many were held back before it.
    pub(super) fn admit(&mut self, now: Instant) -> Option<u64> {
        let passed = now - *self.refilled.get_or_insert(now);
        let more = u32::try_from(passed.as_millis() / MILLIS_A_LINE).unwrap_or(u32::MAX);
        if more > 0 {
            self.left = self.left.saturating_add(more).min(MOST_LINES_AT_ONCE);
            self.refilled = Some(now);
        }
        let Some(left) = self.left.checked_sub(1) else {
            self.unsaid += 1;
            return None;
        };
        self.left = left;
        Some(std::mem::take(&mut self.unsaid))
    }
}

const MOST_LINES_AT_ONCE: u32 = 100;
/// Five lines a second in the long run.
const MILLIS_A_LINE: u128 = 200;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_flood_of_lines_is_counted_instead() {
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut throttle = Throttle::new();
        let mut said = |count: u64, at| (0..count).filter_map(|_| throttle.admit(at)).count();
        assert_eq!(said(120, at(0)), 100);
        // The first of them tells of the 20 before it.
        assert_eq!(said(120, at(1000)), 5);
        assert_eq!(throttle.admit(at(1300)), Some(115));
        assert_eq!(throttle.admit(at(1301)), None);
        assert_eq!(throttle.admit(at(3_600_000)), Some(1));
    }
}
