//! Tests that end by an amount: what each stream is to move, and when the receivers have it. Senders
//! know it themselves, and so do receivers between linerate ends: each stream moves its share. What
//! a stock server sends is looked at: the sum counts, of which one stream may bring all.

use super::Timer;
use super::looks::Looks;
use super::shared::{Conclusion, Purpose, Shared};
use crate::stats::{Sample, StreamAccount, StreamState};
use crate::test::{End, Role};
use crate::time::{Instant, NANOS_PER_SEC};

/// An amount that has not all been received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaited {
    received: u64,
    /// When it grew last.
    grew: Instant,
    /// How long it may stand still.
    patience_ns: u64,
    /// A sender that goes on until each stream has its share. As long as none has, patience has no end
    /// but the control connection's.
    in_shares: bool,
    pub(super) looks: Looks,
}

impl<const N: usize> Shared<N> {
    /// What the stream at `index` is to move: its share of the amount, or of a stock server's all.
    pub(super) fn limit_of(&self, index: usize) -> Option<u64> {
        let settings = &self.settings;
        let (role, parallel) = (settings.role(self.end, index), u64::from(settings.parallel));
        let place = index as u64 % parallel;
        let is_shared = role == Role::Sender || self.receives_shares();
        let share = |amount: u64| match is_shared {
            true => amount / parallel + u64::from(place < amount % parallel),
            false => amount,
        };
        let block_bytes = u64::from(settings.block_bytes);
        let limits = settings.limits;
        let bytes = match (limits.bytes, limits.blocks) {
            (None, None) => return None,
            (None, Some(blocks)) => share(blocks).saturating_mul(block_bytes),
            (Some(bytes), _) if settings.protocol.is_stream() => share(bytes),
            (Some(bytes), _) => share(bytes.div_ceil(block_bytes)).saturating_mul(block_bytes),
        };
        match self.end {
            End::Client => Some(bytes),
            End::Server => self.server_limit(role, bytes),
        }
    }

    /// It is the client that ends a test, but stock clients look at the amount at the end of an
    /// interval only and trust that the server has stopped, which they do not see before they have
    /// the last block whole. Where the client may count less than was sent, since some was lost or
    /// omitted later than here, there is no limit: the client would wait for the rest.
    fn server_limit(&self, role: Role, bytes: u64) -> Option<u64> {
        let settings = &self.settings;
        let arrives_whole = settings.protocol.is_stream() && settings.omit_secs == 0;
        bytes
            .checked_next_multiple_of(u64::from(settings.block_bytes))
            .filter(|_| role == Role::Sender && arrives_whole)
    }

    /// What falls to the stream at `index` of all that may be moved: a sender's part of what a server
    /// allows, a receiver's of that or of what a client waits for.
    pub(super) fn share_of(&self, index: usize) -> Option<u64> {
        let settings = &self.settings;
        let role = settings.role(self.end, index);
        let (all, streams) = match (self.end, role) {
            (End::Server, Role::Sender) => {
                (self.watch.bytes()?.most_sent(), settings.parallel.into())
            }
            (End::Server, Role::Receiver) => (self.watch.bytes()?.most(), settings.stream_count()),
            (End::Client, Role::Receiver) => (self.amount()?, settings.parallel.into()),
            (End::Client, Role::Sender) => return None,
        };
        let (streams, place) = (streams as u64, index as u64 % u64::from(settings.parallel));
        let share = all / streams + u64::from(place < all % streams);
        let is_whole = role == Role::Sender && !settings.protocol.is_stream();
        Some(if is_whole { share - share % u64::from(settings.block_bytes) } else { share })
    }

    /// Client: begins to look how much its receivers have. Some stock servers stop by themselves when
    /// they have sent the amount, of which some may have been lost or omitted: where the server does not
    /// go on until each stream has its share, standing still for a while is the end.
    pub(super) fn await_amount(&mut self, measured_from: Instant, in_shares: bool) {
        let receives = self.accounts.streams().iter().any(|s| s.role() == Role::Receiver);
        if self.amount().is_none() || !receives {
            return;
        }
        let settings = &self.settings;
        let burst_bytes =
            u64::from(settings.block_bytes) * u64::from(settings.burst.unwrap_or(1).max(1));
        let burst_ns = settings.bitrate.map_or(0, |rate| rate.nanos_for(burst_bytes));
        let patience_ns = STANDSTILL.saturating_add(burst_ns.saturating_mul(4));
        let looks = Looks::new(measured_from, LONGEST_CHECK);
        let (received, grew) = (0, measured_from);
        self.awaited = Some(Awaited { received, grew, patience_ns, in_shares, looks });
        self.timers.arm(Timer::ReceiveCheck, looks.first());
    }

    /// Server: the client has sent everything. Its word overtakes what TCP still carries, and a stock
    /// client gives it before that has arrived; of an agreed amount it is known how much has to come.
    /// UDP may have lost it, and with data both ways the other way may have ended the test.
    pub(super) fn on_test_end(&mut self, now: Instant) {
        let settings = &self.settings;
        let is_awaited = settings.protocol.is_stream()
            && self.amount().is_some()
            && settings.omit_secs == 0
            && self.accounts.streams().iter().all(|stream| stream.role() == Role::Receiver)
            && self.accounts.streams().iter().any(|s| s.state() == StreamState::Flowing);
        if !is_awaited {
            return self.stop(Conclusion::Results);
        }
        if self.awaited.is_none() && self.stopping.is_none() {
            let (received, patience_ns, in_shares) = (0, LONGEST_GAP, false);
            let looks = Looks::new(now, LONGEST_CHECK);
            self.awaited = Some(Awaited { received, grew: now, patience_ns, in_shares, looks });
            self.want_sample(Purpose::ReceiveCheck);
        }
    }

    /// Ends the test when the amount is here, or does not come; else looks again.
    pub(super) fn on_receive_check(&mut self, now: Instant, samples: &[Sample]) {
        // The sample may come after another reason to stop.
        let (None, Some(mut awaited), Some(amount)) = (self.stopping, self.awaited, self.amount())
        else {
            return;
        };
        let received = self.accounts.received_bytes(samples);
        if received > awaited.received {
            awaited = Awaited { received, grew: now, ..awaited };
        }
        // The last streams may have lost their path.
        let is_given_up = now.nanos_since(awaited.grew) >= awaited.patience_ns
            && (!awaited.in_shares || self.receivers().any(StreamAccount::has_all));
        if received >= amount && !self.accounts.is_omitting() || is_given_up {
            return self.stop(Conclusion::Results);
        }
        let at = awaited.looks.next(now, received, amount.saturating_sub(received));
        self.awaited = Some(awaited);
        self.timers.arm(Timer::ReceiveCheck, at);
    }

    /// Each receiver waits for its share of the amount.
    fn receives_shares(&self) -> bool {
        self.awaited.is_some_and(|awaited| awaited.in_shares)
    }

    /// The receivers have what they wait for.
    pub(super) fn is_all_here(&self) -> bool {
        let some_have_all = self.receivers().any(StreamAccount::has_all);
        let is_flowing = |stream: &StreamAccount| stream.state() == StreamState::Flowing;
        some_have_all && !(self.receives_shares() && self.receivers().any(is_flowing))
    }

    fn receivers(&self) -> impl Iterator<Item = &StreamAccount> {
        self.accounts.streams().iter().filter(|stream| stream.role() == Role::Receiver)
    }

    /// The amount of one direction, bytes.
    fn amount(&self) -> Option<u64> {
        let limits = self.settings.limits;
        let of_blocks = |blocks: u64| blocks.saturating_mul(u64::from(self.settings.block_bytes));
        limits.bytes.or(limits.blocks.map(of_blocks))
    }
}

/// How far apart the looks at received bytes are while some are awaited, at most.
const LONGEST_CHECK: u64 = NANOS_PER_SEC / 50;
/// How long nothing may arrive of what is in flight: a few retransmission time-outs.
const LONGEST_GAP: u64 = NANOS_PER_SEC;
/// How long nothing may arrive from a server that may have stopped by itself.
const STANDSTILL: u64 = 3 * NANOS_PER_SEC;
