//! The rate of a running test, averaged over a span that moves with time, against what it may have.
//! A test that is shorter than the span is never asked, as in iperf3.

use heapless::Deque;

use super::Denial;
use super::looks::Looks;
use super::policy::RateLimit;
use crate::test::TestSettings;
use crate::time::{Instant, NANOS_PER_SEC};
use crate::units::BitsPerSec;

/// The average over a span that moves with time, in steps of a part of it.
#[derive(Debug)]
pub(super) struct RateWatch {
    limit: RateLimit,
    began: Instant,
    /// When the next mark is due.
    due: Instant,
    /// Bytes that senders with an agreed rate may be ahead of it; none if they have no rate.
    agreed_slack: Option<u64>,
    /// Where the oldest stands at the beginning of the span.
    marks: Deque<Mark, { STEPS as usize + 1 }>,
}

/// Bytes of all streams up to a moment.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Instant,
    bytes: u64,
}

impl RateWatch {
    pub(super) fn new(limit: RateLimit, settings: &TestSettings) -> Self {
        let burst_bytes =
            u64::from(settings.block_bytes) * u64::from(settings.burst.unwrap_or(1).max(1));
        let all_bytes = burst_bytes.saturating_mul(settings.stream_count() as u64);
        let agreed_slack = settings.bitrate.map(|_| all_bytes);
        let (began, due) = (Instant::ZERO, Instant::ZERO);
        Self { limit, began, due, agreed_slack, marks: Deque::new() }
    }

    /// The test's clock runs. Returns when to look first.
    pub(super) fn begin(&mut self, now: Instant) -> Instant {
        self.began = now;
        self.due = now.plus_nanos(self.step_ns());
        self.marks.push_back(Mark { at: now, bytes: 0 }).expect("a test begins once");
        self.due
    }

    /// When to look next.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    fn step_ns(&self) -> u64 {
        match self.limit.span_ns {
            0 => NANOS_PER_SEC,
            span_ns => span_ns.div_ceil(STEPS),
        }
    }

    /// Takes a look at `now`, when `bytes` have been moved; says what is wrong with the average.
    /// Senders that keep an agreed rate catch up after a stall, which is theirs to do: of such a test
    /// the whole so far has to be above the limit, too.
    pub(super) fn look(&mut self, now: Instant, bytes: u64) -> Option<Denial> {
        let span_ns = self.limit.span_ns.max(1);
        let (measured, elapsed_ns) = self.average(now, bytes)?;
        let limit = self.limit.rate.0;
        let is_over = elapsed_ns >= span_ns && measured > limit && !self.is_kept(now, bytes);
        is_over.then_some(Denial::Measured { measured, limit })
    }

    /// The test has an agreed rate and has not exceeded it so far.
    fn is_kept(&self, now: Instant, bytes: u64) -> bool {
        self.agreed_slack.is_some_and(|slack_bytes| {
            let so_far_ns = now.nanos_since(self.began);
            bits_per_second(bytes.saturating_sub(slack_bytes), so_far_ns) <= self.limit.rate.0
        })
    }

    /// The average over the span or what there is of it, and how long that is.
    fn average(&mut self, now: Instant, bytes: u64) -> Option<(u64, u64)> {
        let span_ns = self.limit.span_ns;
        // The span begins at the last mark that is not younger than it.
        while span_ns > 0
            && self.marks.iter().nth(1).is_some_and(|mark| now.nanos_since(mark.at) >= span_ns)
        {
            self.marks.pop_front();
        }
        if now >= self.due {
            self.due = now.plus_nanos(self.step_ns());
            if span_ns > 0 {
                // Marks are at least a step apart, so there is room for all within the span.
                let _ = self.marks.push_back(Mark { at: now, bytes });
            }
        }
        let from = *self.marks.front()?;
        let elapsed_ns = now.nanos_since(from.at);
        let moved = bytes.saturating_sub(from.bytes);
        (elapsed_ns > 0).then(|| (bits_per_second(moved, elapsed_ns), elapsed_ns))
    }
}

/// What one test takes of what all tests of the server may move together.
#[derive(Debug)]
pub(super) struct Share {
    /// Measured against what the test asked for, not against what all may have.
    rate: RateWatch,
    looks: Looks,
    /// A part of what all may move in a span that one test may move between two looks.
    part_bytes: u64,
}

impl Share {
    /// The share of a test with these settings in `limit`.
    pub(super) fn new(limit: RateLimit, settings: &TestSettings) -> Self {
        let asked = settings.asked_bits_per_second().map_or(BitsPerSec(0), BitsPerSec);
        let rate = RateWatch::new(RateLimit { rate: asked, ..limit }, settings);
        let span_ns = u128::from(limit.span_ns.max(rate.step_ns()));
        let span_bytes = u128::from(limit.rate.0) * span_ns / u128::from(8 * NANOS_PER_SEC);
        let part_bytes = u64::try_from(span_bytes).unwrap_or(u64::MAX) / PARTS;
        Self { looks: Looks::new(Instant::ZERO, rate.step_ns()), rate, part_bytes }
    }

    /// The test's clock runs. Returns when to look first.
    pub(super) fn begin(&mut self, now: Instant) -> Instant {
        self.rate.begin(now);
        self.looks = Looks::new(now, self.rate.step_ns());
        self.looks.first()
    }

    /// When to look next, after a look at `now` that saw `bytes`.
    pub(super) fn next(&mut self, now: Instant, bytes: u64) -> Instant {
        self.looks.next(now, bytes, self.part_bytes).min(self.rate.due())
    }

    /// What the test moved over the span, and at least what it asked for.
    pub(super) fn weigh(&mut self, now: Instant, bytes: u64) -> u64 {
        let (measured, elapsed_ns) = self.rate.average(now, bytes).unwrap_or((0, 1));
        let asked = self.rate.limit.rate.0;
        if self.rate.is_kept(now, bytes) {
            return asked;
        }
        // What is younger than the span moved nothing in the rest of it.
        let span_ns = u128::from(self.rate.limit.span_ns.max(elapsed_ns));
        asked.max((u128::from(measured) * u128::from(elapsed_ns) / span_ns) as u64)
    }
}

/// The rate of so many bytes in a time that is not zero.
fn bits_per_second(bytes: u64, elapsed_ns: u64) -> u64 {
    let rate = u128::from(bytes) * 8 * u128::from(NANOS_PER_SEC) / u128::from(elapsed_ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Marks within the span of a limit: so fine is the beginning of the average.
const STEPS: u64 = 10;
/// Looks while a test alone moves what all may move in a span, at least.
const PARTS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::Protocol;

    const SPAN_NS: u64 = 5 * NANOS_PER_SEC;

    fn watch(span_ns: u64, bitrate: Option<u64>) -> RateWatch {
        let mut settings = TestSettings::new(Protocol::Tcp);
        settings.block_bytes = 100;
        settings.bitrate = bitrate.map(BitsPerSec);
        let mut watch = RateWatch::new(RateLimit { rate: BitsPerSec(8000), span_ns }, &settings);
        watch.begin(Instant::ZERO);
        watch
    }

    /// In which half second a test that moves so many bytes in each second is ended, and what was
    /// measured.
    fn ended_at(watch: &mut RateWatch, bytes_a_second: &[u64]) -> Option<(u64, u64)> {
        let (mut now_ns, mut bytes) = (0, 0);
        for moved in bytes_a_second {
            for _ in 0..2 {
                now_ns += NANOS_PER_SEC / 2;
                bytes += moved / 2;
                if let Some(Denial::Measured { measured, .. }) =
                    watch.look(Instant::from_nanos(now_ns), bytes)
                {
                    return Some((now_ns / (NANOS_PER_SEC / 2), measured));
                }
            }
        }
        None
    }

    #[test]
    fn the_average_of_the_last_span_counts() {
        // 1000 bytes a second are the limit.
        for (moved, expected) in [
            (&[1000; 20][..], None),
            // One that is over before the first span is never asked, as in iperf3.
            (&[9000; 4], None),
            (&[2000; 9], Some((10, 16_000))),
            // 4000 bytes in a second are too much with 400 in each of those around it, as soon as
            // the span holds 5001.
            (&[400, 400, 400, 400, 400, 4000, 400], Some((12, 8960))),
            // Three seconds of nothing make room for twice the rate.
            (&[1000, 1000, 1000, 0, 0, 0, 2000, 2000, 0, 0, 0], None),
        ] {
            assert_eq!(ended_at(&mut watch(SPAN_NS, None), moved), expected, "{moved:?}");
        }
    }

    #[test]
    fn without_a_span_the_whole_test_counts() {
        // 4700 bytes after four seconds and a half are the first that are too many.
        assert_eq!(ended_at(&mut watch(0, None), &[400, 900, 1200, 1500, 1400]), Some((9, 8355)));
    }

    #[test]
    fn a_sender_that_keeps_its_agreed_rate_is_left_alone() {
        for (moved, expected) in [
            // The first block leaves at once: 100 bytes more than five seconds at the limit.
            ([1100, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000], Some((10, 8160))),
            // It stalls for a second and catches up: 5500 bytes in five seconds.
            ([1000, 0, 2000, 1000, 1000, 1000, 1000, 1000, 1000], Some((13, 8800))),
        ] {
            assert_eq!(ended_at(&mut watch(SPAN_NS, Some(8000)), &moved), None);
            assert_eq!(ended_at(&mut watch(SPAN_NS, None), &moved), expected);
        }
        // What is agreed and not kept is as bad as what nobody agreed.
        assert_eq!(ended_at(&mut watch(SPAN_NS, Some(8000)), &[1200; 9]), Some((10, 9600)));
    }

    #[test]
    fn late_looks_count_the_time_that_passed() {
        let mut watch = watch(SPAN_NS, None);
        let at = |secs: u64| Instant::from_nanos(secs * NANOS_PER_SEC);
        assert_eq!(watch.look(at(4), 4000), None);
        // 11000 bytes in 12 seconds, and 7000 in the last 8.
        assert_eq!(watch.look(at(12), 11_000), None);
        let expected = Denial::Measured { measured: 8800, limit: 8000 };
        assert_eq!(watch.look(at(22), 22_000), Some(expected));
    }
}
