//! What a process holds of its system, and whether that grows over many tests.

use std::fmt;

/// What a process holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Memory that is in use, KiB.
    pub rss_kib: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

impl Footprint {
    /// Of this process.
    ///
    /// # Panics
    ///
    /// When the system does not tell.
    pub fn of(process: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.expect("the process runs");
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).expect("a number")
        };
        let descriptors = std::fs::read_dir(format!("/proc/{process}/fd"));
        Self {
            rss_kib: number("VmRSS:"),
            descriptors: descriptors.expect("the process runs").count() as u64,
            threads: number("Threads:"),
        }
    }

    /// The middle of each number.
    pub fn median(samples: &[Self]) -> Self {
        let middle = |number: fn(&Self) -> u64| {
            let mut numbers: Vec<_> = samples.iter().map(number).collect();
            numbers.sort_unstable();
            numbers.get(numbers.len() / 2).copied().unwrap_or(0)
        };
        Self {
            rss_kib: middle(|sample| sample.rss_kib),
            descriptors: middle(|sample| sample.descriptors),
            threads: middle(|sample| sample.threads),
        }
    }

    /// What has grown from `self` to `later` by more than chance.
    pub fn growth(&self, later: &Self) -> Vec<String> {
        let most = Self {
            rss_kib: self.rss_kib + RSS_SLACK_KIB,
            // One connection that winds down, and the threads of tests that have just ended.
            descriptors: self.descriptors + 4,
            threads: self.threads + 4,
        };
        [
            ("memory in KiB", self.rss_kib, later.rss_kib, most.rss_kib),
            ("descriptors", self.descriptors, later.descriptors, most.descriptors),
            ("threads", self.threads, later.threads, most.threads),
        ]
        .into_iter()
        .filter(|&(_, _, later, most)| later > most)
        .map(|(what, first, later, _)| format!("{what}: from {first} to {later}"))
        .collect()
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rss_kib, descriptors, threads } = self;
        write!(f, "{rss_kib:>8} KiB {descriptors:>6} descriptors {threads:>6} threads")
    }
}

/// What an allocator keeps for threads that come and go, once it has seen the most of them at once.
const RSS_SLACK_KIB: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_what_exceeds_chance() {
        let first = Footprint { rss_kib: 10_000, descriptors: 20, threads: 5 };
        let later = Footprint { rss_kib: 14_096, descriptors: 24, threads: 9 };
        assert!(first.growth(&later).is_empty());
        let later = Footprint { rss_kib: 14_097, descriptors: 25, threads: 10 };
        assert_eq!(first.growth(&later).len(), 3);
    }

    #[test]
    fn a_median_is_taken_number_by_number() {
        let sample = |rss_kib, threads| Footprint { rss_kib, descriptors: 3, threads };
        let median = Footprint::median(&[sample(1, 9), sample(3, 8), sample(2, 7)]);
        assert_eq!(median, sample(2, 8));
    }
}
