//! Durations in buckets that are 1/32 of a doubling wide: fixed memory, and a percentile that is read
//! back is within 1/64 of the right one. Without buckets (on a chip) only the maximum is kept.

use crate::report::Percentiles;

/// Counts of durations, nanoseconds. [`BUCKETS`] hold up to 36 minutes; longer ones count as that.
#[derive(Debug, Clone)]
pub struct Histogram<const B: usize> {
    counts: [u64; B],
    max_ns: u64,
}

/// Buckets that a host has for each histogram.
pub const BUCKETS: usize = 31 * STEPS as usize;

impl<const B: usize> Histogram<B> {
    /// One that has counted nothing.
    pub const fn new() -> Self {
        Self { counts: [0; B], max_ns: 0 }
    }

    /// Counts a duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        if ns > self.max_ns {
            self.max_ns = ns;
        }
        if B > 0 {
            self.counts[bucket(ns).min(B.saturating_sub(1))] += 1;
        }
    }

    /// Counts a duration `count` times.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count > 0 {
            self.record(ns);
            if B > 0 {
                self.counts[bucket(ns).min(B.saturating_sub(1))] += count - 1;
            }
        }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The duration that `share` millionths of all do not exceed; none if there are no buckets or
    /// nothing was counted.
    pub fn percentile(&self, share: u64) -> Option<u64> {
        let wanted = (u128::from(self.count()) * u128::from(share)).div_ceil(WHOLE).max(1);
        let mut so_far = 0_u128;
        for (bucket, &count) in self.counts.iter().enumerate() {
            so_far += u128::from(count);
            if count > 0 && so_far >= wanted {
                return Some(middle(bucket).min(self.max_ns));
            }
        }
        None
    }

    /// The usual ones, less `floor_ns`: what lies below it counts as zero.
    pub fn percentiles(&self, floor_ns: u64) -> Option<Percentiles> {
        let at = |share| Some(self.percentile(share)?.saturating_sub(floor_ns));
        Some(Percentiles {
            count: self.count(),
            p50_ns: at(500_000)?,
            p90_ns: at(900_000)?,
            p99_ns: at(990_000)?,
            p999_ns: at(999_000)?,
            max_ns: self.max_ns.saturating_sub(floor_ns),
        })
    }

    /// What was counted since it was `earlier`; the maximum is that of the highest bucket.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = Self::new();
        for (bucket, count) in since.counts.iter_mut().enumerate() {
            *count = self.counts[bucket].saturating_sub(earlier.counts[bucket]);
            if *count > 0 {
                since.max_ns = middle(bucket).min(self.max_ns);
            }
        }
        if self.max_ns > earlier.max_ns {
            since.max_ns = self.max_ns;
        }
        since
    }

    /// Durations were counted from `from_ns`, and are from `to_ns`, which is earlier: every one is longer
    /// by as much. In how many moves that is done makes no difference.
    pub fn rebase(&mut self, from_ns: i64, to_ns: i64) {
        let mut moved = Self::new();
        for (bucket, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            moved.counts[rebased(bucket, B - 1, from_ns, to_ns)] += count;
        }
        moved.max_ns = self.max_ns.saturating_add(from_ns.abs_diff(to_ns));
        *self = moved;
    }
}

impl<const B: usize> Default for Histogram<B> {
    fn default() -> Self {
        Self::new()
    }
}

/// The first two doublings, from zero, are linear; each one after has as many buckets.
const fn bucket(ns: u64) -> usize {
    let units = ns / UNIT_NS;
    if units < STEPS {
        return units as usize;
    }
    let doubling = units.ilog2() - STEPS.ilog2();
    ((doubling as u64 + 1) * STEPS + ((units >> doubling) - STEPS)) as usize
}

/// A bucket moves to the next when the beginning comes to a multiple of its width. Were it moved by what
/// the beginning moves, wide ones would never move while that moves by little.
const fn rebased(mut bucket: usize, last: usize, mut from_ns: i64, to_ns: i64) -> usize {
    while bucket < last {
        let width_ns = width(bucket);
        let multiple = from_ns.div_euclid(width_ns);
        let passed = multiple.abs_diff(to_ns.div_euclid(width_ns));
        let to_wider = STEPS - bucket as u64 % STEPS;
        if passed < to_wider {
            bucket += passed as usize;
            break;
        }
        bucket += to_wider as usize;
        from_ns = (multiple - to_wider.cast_signed() + 1) * width_ns - 1;
    }
    if bucket < last { bucket } else { last }
}

const fn width(bucket: usize) -> i64 {
    let doubling = (bucket as u64 / STEPS).saturating_sub(1);
    (UNIT_NS << doubling).cast_signed()
}

const fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        // A duration of nothing is the most frequent of these.
        return bucket * UNIT_NS;
    }
    let doubling = bucket / STEPS - 1;
    ((STEPS + bucket % STEPS) << doubling) * UNIT_NS + ((UNIT_NS << doubling) / 2)
}

const STEPS: u64 = 32;
/// What is told apart at best.
const UNIT_NS: u64 = 64;
const WHOLE: u128 = 1_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    extern crate std;
    use std::vec::Vec;

    type Whole = Histogram<BUCKETS>;

    fn of(durations: &[u64]) -> Whole {
        let mut histogram = Whole::new();
        durations.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Whole::new().percentiles(0), None);
        let mut bare = Histogram::<0>::new();
        bare.record(70);
        assert_eq!((bare.count(), bare.max_ns, bare.percentiles(0)), (0, 70, None));
    }

    #[test]
    fn the_widest_fits() {
        assert_eq!(bucket(2_190_000_000_000), BUCKETS - 1);
        let histogram = of(&[u64::MAX]);
        assert_eq!(histogram.max_ns, u64::MAX);
        assert!(histogram.percentile(500_000).is_some());
    }

    #[test]
    fn an_interval_is_a_difference() {
        let earlier = of(&[1_000, 90_000]);
        let mut now = earlier.clone();
        now.record_many(5_000, 3);
        let since = now.since(&earlier);
        assert_eq!(since.count(), 3);
        assert!(since.max_ns.abs_diff(5_000) < 200, "{}", since.max_ns);
        assert_eq!(now.since(&now).percentiles(0), None);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_a_sixtyfourth(
            mut durations in prop::collection::vec(0_u64..(1 << 40), 1..300),
            share in 1_u64..=1_000_000,
        ) {
            let histogram = of(&durations);
            durations.sort_unstable();
            let rank = (durations.len() as u128 * u128::from(share)).div_ceil(WHOLE) as usize;
            let right = durations[rank - 1];
            let told = histogram.percentile(share).expect("counted");
            prop_assert!(told.abs_diff(right) <= right / 64 + UNIT_NS, "{} for {}", told, right);
        }

        #[test]
        fn durations_from_an_earlier_beginning_stay_near(
            durations in prop::collection::vec(0_u64..(1 << 30), 1..100),
            by in 0_u64..(1 << 30),
            steps in 1_i64..100,
        ) {
            let mut moved = of(&durations);
            let to_ns = |step: i64| -(by.cast_signed() * step / steps);
            (0..steps).for_each(|step| moved.rebase(to_ns(step), to_ns(step + 1)));
            let mut at_once = of(&durations);
            at_once.rebase(0, to_ns(steps));
            prop_assert_eq!(at_once.counts, moved.counts);
            let right = of(&durations.iter().map(|ns| ns + by).collect::<Vec<_>>());
            prop_assert_eq!((moved.count(), moved.max_ns), (right.count(), right.max_ns));
            let (told, right) = (moved.percentile(500_000), right.percentile(500_000));
            let (told, right) = (told.expect("counted"), right.expect("counted"));
            prop_assert!(told.abs_diff(right) <= right / 12 + 2 * UNIT_NS, "{} for {}", told, right);
        }
    }
}
