//! What a link in user space adds to the delays of its model, because a thread has to wake up and
//! move each frame: measured at the frames that it carries, and with round trips over it.

use std::fmt;
use std::time::Duration;

/// Samples of a delay, the most recent ones kept.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    ns: Vec<u32>,
    count: usize,
    max_ns: u32,
}

/// Where the samples of a delay lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spread {
    /// Of all samples.
    pub count: usize,
    /// Half of them are at most this.
    pub p50: Duration,
    /// All but a hundredth of them.
    pub p99: Duration,
    /// All of them.
    pub max: Duration,
}

impl Samples {
    /// Takes a sample; of those beyond four seconds it is only known that they are.
    pub fn record(&mut self, ns: u64) {
        let ns = u32::try_from(ns).unwrap_or(u32::MAX);
        if self.ns.len() < MOST_KEPT {
            self.ns.push(ns);
        } else {
            self.ns[self.count % MOST_KEPT] = ns;
        }
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Where they lie.
    pub fn spread(&self) -> Spread {
        let mut sorted = self.ns.clone();
        sorted.sort_unstable();
        let at = |percent| {
            let ns = sorted.get(sorted.len() * percent / 100).copied().unwrap_or(0);
            Duration::from_nanos(ns.into())
        };
        let max = Duration::from_nanos(self.max_ns.into());
        Spread { count: self.count, p50: at(50), p99: at(99), max }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, p50, p99, max } = self;
        write!(f, "p50 {p50:.1?}, p99 {p99:.1?}, max {max:.1?} of {count}")
    }
}

const MOST_KEPT: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_samples() {
        let mut samples = Samples::default();
        (0..200).rev().for_each(|ns| samples.record(ns));
        let spread = samples.spread();
        let expected = [100, 198, 199].map(Duration::from_nanos);
        assert_eq!([spread.p50, spread.p99, spread.max], expected);
        assert_eq!(Samples::default().spread(), Spread::default());
    }
}
