//! What is watched while a test runs, with timers of its own that do not depend on the report
//! intervals: silence, where a receive time-out was asked for, rate and bytes, where the server has a
//! limit. A test that is merely quiet lives as long as its control connection.

use heapless::Deque;

use super::policy::{Policy, RateLimit};
use super::shared::{Conclusion, Parting, Purpose, Shared};
use super::{Action, Denial, SessionError, Timer};
use crate::protocol::code::{ControlCode, ServerError, error_number};
use crate::stats::Sample;
use crate::test::{End, Role, TestSettings};
use crate::time::{Instant, NANOS_PER_SEC};
use crate::units::BitsPerSec;

/// What a server watches of one test.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The test's rate against its own limit.
    rate: Option<RateWatch>,
    /// Its part of what the whole server may move.
    share: Option<RateWatch>,
    /// Bytes that it may move.
    bytes: Option<u64>,
}

impl Watch {
    pub(super) fn new(policy: &Policy, settings: &TestSettings) -> Self {
        let rate_watch = |limit| RateWatch::new(limit, settings);
        let share = policy.server_bitrate.map(|limit| {
            // It is measured against what it asked for, not against what all may have.
            let asked = settings.asked_bits_per_second().map(BitsPerSec);
            RateLimit { rate: asked.unwrap_or(BitsPerSec(0)), ..limit }
        });
        Self {
            rate: policy.bitrate.map(rate_watch),
            share: share.map(rate_watch),
            bytes: policy.bytes,
        }
    }

    fn rates(&mut self) -> impl Iterator<Item = &mut RateWatch> {
        self.rate.iter_mut().chain(&mut self.share)
    }
}

/// The average over a span that moves with time, in steps of a part of it.
#[derive(Debug)]
struct RateWatch {
    limit: RateLimit,
    began: Instant,
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
    fn new(limit: RateLimit, settings: &TestSettings) -> Self {
        let burst_bytes =
            u64::from(settings.block_bytes) * u64::from(settings.burst.unwrap_or(1).max(1));
        let all_bytes = burst_bytes.saturating_mul(settings.stream_count() as u64);
        let agreed_slack = settings.bitrate.map(|_| all_bytes);
        Self { limit, began: Instant::ZERO, agreed_slack, marks: Deque::new() }
    }

    fn begin(&mut self, now: Instant) {
        self.began = now;
        self.marks.push_back(Mark { at: now, bytes: 0 }).expect("a test begins once");
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
    fn look(&mut self, now: Instant, bytes: u64) -> Option<Denial> {
        let span_ns = self.limit.span_ns.max(1);
        let (measured, elapsed_ns) = self.average(now, bytes)?;
        let limit = self.limit.rate.0;
        let is_over = elapsed_ns >= span_ns && measured > limit && !self.is_kept(now, bytes);
        is_over.then_some(Denial::Measured { measured, limit })
    }

    /// As [`look`](Self::look), where nothing is wrong: what the test moved over the span, by
    /// agreement or measured.
    fn weigh(&mut self, now: Instant, bytes: u64) -> u64 {
        let (measured, elapsed_ns) = self.average(now, bytes).unwrap_or((0, 1));
        if self.is_kept(now, bytes) {
            return self.limit.rate.0;
        }
        // What is younger than the span moved nothing in the rest of it.
        let span_ns = u128::from(self.limit.span_ns.max(elapsed_ns));
        (u128::from(measured) * u128::from(elapsed_ns) / span_ns) as u64
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
        if span_ns > 0 {
            // The span begins at the last mark that is not younger than it. Looks are at least a step
            // apart, so there is room for all marks within it.
            while self.marks.iter().nth(1).is_some_and(|mark| now.nanos_since(mark.at) >= span_ns) {
                self.marks.pop_front();
            }
            let _ = self.marks.push_back(Mark { at: now, bytes });
        }
        let from = *self.marks.front()?;
        let elapsed_ns = now.nanos_since(from.at);
        let moved = bytes.saturating_sub(from.bytes);
        (elapsed_ns > 0).then(|| (bits_per_second(moved, elapsed_ns), elapsed_ns))
    }
}

/// The rate of so many bytes in a time that is not zero.
fn bits_per_second(bytes: u64, elapsed_ns: u64) -> u64 {
    let rate = u128::from(bytes) * 8 * u128::from(NANOS_PER_SEC) / u128::from(elapsed_ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

impl<const N: usize> Shared<N> {
    /// The clock runs from `now`.
    pub(super) fn begin_watch(&mut self, now: Instant) {
        if let Some(silence_ns) = self.deadlines.silence_ns
            && self.accounts.streams().iter().any(|stream| stream.role() == Role::Receiver)
        {
            self.timers.arm(Timer::Silence, now.plus_nanos(silence_ns));
        }
        let Self { watch, timers, .. } = self;
        for rate in watch.rates() {
            rate.begin(now);
            timers.arm(Timer::Rate, now.plus_nanos(rate.step_ns()));
        }
        if watch.bytes.is_some() {
            timers.arm(Timer::Amount, now.plus_nanos(SHORTEST_LOOK_NS));
        }
    }

    pub(super) fn on_watch(&mut self, now: Instant, purpose: Purpose, samples: &[Sample]) {
        match purpose {
            Purpose::Silence => self.on_silence_check(now, samples),
            Purpose::Amount => self.on_amount_check(now, samples),
            _ => self.on_rate_check(now, samples),
        }
    }

    /// Waits on from the last arrival, if that is not too long ago.
    fn on_silence_check(&mut self, now: Instant, samples: &[Sample]) {
        let (Some(silence_ns), Some(began)) = (self.deadlines.silence_ns, self.began) else {
            return;
        };
        let arrived = samples.iter().filter_map(|sample| sample.arrived).max().unwrap_or(began);
        let due = arrived.plus_nanos(silence_ns);
        if due > now {
            return self.timers.arm(Timer::Silence, due);
        }
        let parting = match self.end {
            End::Client => Parting::Code(ControlCode::IperfDone),
            End::Server => Parting::Error(ServerError::new(error_number::NO_DATA)),
        };
        let error = SessionError::TimedOut(Timer::Silence);
        self.stop(Conclusion::Failure { error, parting });
    }

    fn on_rate_check(&mut self, now: Instant, samples: &[Sample]) {
        let bytes = moved(samples);
        let Self { watch, timers, .. } = self;
        for rate in watch.rates() {
            timers.arm(Timer::Rate, now.plus_nanos(rate.step_ns()));
        }
        if let Some(denial) = watch.rate.as_mut().and_then(|rate| rate.look(now, bytes)) {
            return self.deny(denial);
        }
        if let Some(share) = &mut watch.share {
            let bits_per_second = share.weigh(now, bytes);
            self.act(Action::Weigh { bits_per_second });
        }
    }

    /// Looks again when the limit will be reached at the rate so far.
    fn on_amount_check(&mut self, now: Instant, samples: &[Sample]) {
        let (Some(limit), Some(began)) = (self.watch.bytes, self.began) else { return };
        let measured = moved(samples);
        if measured > limit {
            return self.deny(Denial::MeasuredBytes { measured, limit });
        }
        let elapsed_ns = u128::from(now.nanos_since(began));
        let left_ns = elapsed_ns * u128::from(limit - measured) / u128::from(measured.max(1));
        let left_ns = u64::try_from(left_ns).unwrap_or(u64::MAX);
        let due = now.plus_nanos(left_ns.clamp(SHORTEST_LOOK_NS, LONGEST_LOOK_NS));
        self.timers.arm(Timer::Amount, due);
    }
}

/// Bytes of all streams since the test began.
fn moved(samples: &[Sample]) -> u64 {
    samples.iter().map(|sample| sample.tally.bytes).sum()
}

/// Times between two looks at the bytes.
const SHORTEST_LOOK_NS: u64 = NANOS_PER_SEC / 100;
const LONGEST_LOOK_NS: u64 = NANOS_PER_SEC / 2;
/// Looks within the span of a limit: so fine is the beginning of the average.
const STEPS: u64 = 10;

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
