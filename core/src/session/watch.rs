//! What is watched while a test runs, with timers of its own that do not depend on the report
//! intervals: silence, where a receive time-out was asked for, rate and bytes, where the server has a
//! limit. A test that is merely quiet lives as long as its control connection.

use super::allowance::Allowance;
#[cfg(feature = "host")]
use super::policy::Policy;
use super::rate::{RateWatch, Share};
use super::shared::{Conclusion, Parting, Purpose, Shared};
use super::{Action, SessionError, Timer};
use crate::on_host::OnHost;
use crate::protocol::code::{ControlCode, ServerError, error_number};
use crate::stats::Sample;
#[cfg(feature = "host")]
use crate::test::TestSettings;
use crate::test::{End, Role};
use crate::time::Instant;

/// What a server watches of one test.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The test's rate against its own limit.
    rate: OnHost<RateWatch>,
    /// Its part of what the whole server may move.
    share: OnHost<Share>,
    /// Bytes that it may move.
    bytes: OnHost<Allowance>,
}

impl Watch {
    #[cfg(feature = "host")]
    pub(super) fn limit_to(&mut self, policy: &Policy, settings: &TestSettings) {
        *self = Self {
            rate: OnHost::new(policy.bitrate.map(|limit| RateWatch::new(limit, settings))),
            share: OnHost::new(policy.server_bitrate.map(|limit| Share::new(limit, settings))),
            bytes: OnHost::new(policy.bytes.map(|limit| Allowance::new(limit, settings))),
        };
    }

    /// The limit of bytes, if there is one.
    pub(super) const fn bytes(&self) -> Option<&Allowance> {
        self.bytes.as_ref()
    }
}

impl<const N: usize> Shared<N> {
    /// The clock runs from `now`.
    pub(super) fn begin_watch(&mut self, now: Instant) {
        if let Some(silence_ns) = self.deadlines.silence_ns
            && self.accounts.streams().iter().any(|stream| stream.role() == Role::Receiver)
        {
            self.timers.arm(Timer::Silence, now.plus_nanos(silence_ns));
        }
        let Watch { rate, share, bytes } = &mut self.watch;
        let rate_at = rate.as_mut().map(|rate| rate.begin(now));
        let share_at = share.as_mut().map(|share| share.begin(now));
        if let Some(at) = rate_at.into_iter().chain(share_at).min() {
            self.timers.arm(Timer::Rate, at);
        }
        if let Some(bytes) = bytes.as_mut() {
            self.timers.arm(Timer::Amount, bytes.begin(now));
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
        let Watch { rate, share, .. } = &mut self.watch;
        if let Some(denial) = rate.as_mut().and_then(|rate| rate.look(now, bytes)) {
            return self.deny(denial);
        }
        let weight = share.as_mut().map(|share| share.weigh(now, bytes));
        let rate_at = rate.as_ref().map(RateWatch::due);
        let share_at = share.as_mut().map(|share| share.next(now, bytes));
        if let Some(at) = rate_at.into_iter().chain(share_at).min() {
            self.timers.arm(Timer::Rate, at);
        }
        if let Some(bits_per_second) = weight {
            self.act(Action::Weigh { bits_per_second });
        }
    }

    fn on_amount_check(&mut self, now: Instant, samples: &[Sample]) {
        let is_spent = self.is_spent(samples);
        let Some(bytes) = self.watch.bytes.as_mut() else { return };
        match bytes.look(now, moved(samples), is_spent) {
            Ok(at) => self.timers.arm(Timer::Amount, at),
            Err(denial) => self.deny(denial),
        }
    }

    /// The senders have sent their shares of what is allowed. Where there is none nothing is spent.
    fn is_spent(&self, samples: &[Sample]) -> bool {
        let streams = self.accounts.streams().iter().enumerate().zip(samples);
        let senders = streams.filter(|((_, stream), _)| stream.role() == Role::Sender);
        let (mut sent, mut shares) = (0_u64, None);
        for ((index, _), sample) in senders {
            sent = sent.saturating_add(sample.tally.bytes);
            let share = self.share_of(index);
            shares = Some(share.unwrap_or(u64::MAX).saturating_add(shares.unwrap_or(0)));
        }
        shares.is_some_and(|shares| sent >= shares)
    }

    /// A stream has what falls to it, and maybe all have: time to look.
    pub(super) fn on_share(&mut self) {
        if let Some(bytes) = self.watch.bytes.as_mut() {
            bytes.hurry();
            self.want_sample(Purpose::Amount);
        }
        if !self.accounts.is_omitting()
            && let Some(awaited) = &mut self.awaited
        {
            awaited.looks.hurry();
            self.want_sample(Purpose::ReceiveCheck);
        }
    }
}

/// Bytes of all streams since the test began.
fn moved(samples: &[Sample]) -> u64 {
    samples.iter().map(|sample| sample.tally.bytes).sum()
}
