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

    /// The longest.
    pub const fn max_ns(&self) -> u64 {
        self.max_ns
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

    /// Makes every duration `ns` longer.
    pub fn shift(&mut self, ns: u64) {
        let mut shifted = Self::new();
        for (bucket, &count) in self.counts.iter().enumerate() {
            if count > 0 {
                shifted.counts[self::bucket(middle(bucket).saturating_add(ns)).min(B - 1)] += count;
            }
        }
        shifted.max_ns = self.max_ns.saturating_add(ns);
        *self = shifted;
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
        assert_eq!((bare.count(), bare.max_ns(), bare.percentiles(0)), (0, 70, None));
    }

    #[test]
    fn the_widest_fits() {
        assert_eq!(bucket(2_190_000_000_000), BUCKETS - 1);
        let histogram = of(&[u64::MAX]);
        assert_eq!(histogram.max_ns(), u64::MAX);
        assert!(histogram.percentile(500_000).is_some());
    }

    #[test]
    fn an_interval_is_a_difference() {
        let earlier = of(&[1_000, 90_000]);
        let mut now = earlier.clone();
        now.record_many(5_000, 3);
        let since = now.since(&earlier);
        assert_eq!(since.count(), 3);
        assert!(since.max_ns().abs_diff(5_000) < 200, "{}", since.max_ns());
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
        fn shifted_durations_stay_near(
            durations in prop::collection::vec(0_u64..(1 << 30), 1..100),
            by in 0_u64..(1 << 30),
        ) {
            let mut shifted = of(&durations);
            shifted.shift(by);
            let right = of(&durations.iter().map(|ns| ns + by).collect::<Vec<_>>());
            prop_assert_eq!((shifted.count(), shifted.max_ns()), (right.count(), right.max_ns()));
            let (told, right) = (shifted.percentile(500_000), right.percentile(500_000));
            let (told, right) = (told.expect("counted"), right.expect("counted"));
            prop_assert!(told.abs_diff(right) <= right / 25 + 2 * UNIT_NS, "{} for {}", told, right);
        }
    }
}
