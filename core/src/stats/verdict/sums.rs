//! What is known of the streams of a direction, brought together.

use super::Ends;
use crate::report::{SideSummary, StreamDetail, ThreadUse};
use crate::test::{Protocol, Role, TestSettings};
use crate::time::NANOS_PER_SEC;

/// All streams of the direction together. Counts are sums, shares are means weighted by the bytes of
/// the streams, sizes and round trips are those of the worst stream.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) streams: u64,
    pub(super) is_one_sided: bool,
    pub(super) duration_ns: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) received_ns: u64,
    pub(super) packets: u64,
    pub(super) lost: Option<u64>,
    pub(super) lost_rows: u64,
    pub(super) busy: Mean,
    pub(super) receive_window: Mean,
    pub(super) send_buffer: Mean,
    pub(super) sender_cpu: Mean,
    pub(super) receiver_cpu: Mean,
    /// Threads of either end that had no CPU.
    pub(super) queued: Mean,
    pub(super) full_queue: Mean,
    pub(super) resent_bytes: Option<u64>,
    pub(super) socket_drops: Option<u64>,
    pub(super) refusals: Option<u64>,
    pub(super) idle_round_trip_us: Option<u32>,
    pub(super) loaded_round_trip_us: Option<u32>,
    pub(super) window_bytes: Option<u64>,
    pub(super) send_buffer_bytes: Option<u64>,
    pub(super) receive_buffer_bytes: Option<u64>,
}

impl Sums {
    pub(super) fn add(&mut self, ends: &Ends) {
        let Ends { summary, local, remote } = ends;
        let (sent, received) = (summary.sent(), summary.received());
        let arrived = received.or(sent);
        let bytes = arrived.map_or(0, |side| side.bytes);
        let packets = sent.or(received).map_or(0, |side| side.datagrams.packets);
        let duration_ns = summary.local.duration_ns.unwrap_or(0);
        let arrived_ns = arrived.and_then(|side| side.duration_ns).unwrap_or(duration_ns);
        self.streams += 1;
        self.is_one_sided |= remote.is_none();
        self.duration_ns = self.duration_ns.max(duration_ns);
        self.received_ns = self.received_ns.max(arrived_ns);
        self.received_bytes = self.received_bytes.saturating_add(bytes);
        self.sent_bytes = self.sent_bytes.saturating_add(sent.map_or(bytes, |side| side.bytes));
        self.packets = self.packets.saturating_add(packets);
        let lost = received.and_then(|side| side.datagrams.lost);
        let at_end = sent.zip(received).and_then(|(sent, received)| lost_at_end(sent, received));
        self.lost = sum(self.lost, sum(lost, at_end));
        let unknown = StreamDetail::default();
        let remote = remote.as_ref().unwrap_or(&unknown);
        let (sender, receiver) = match summary.role {
            Role::Sender => (local, remote),
            Role::Receiver => (remote, local),
        };
        self.add_sender(sender, bytes, duration_ns);
        self.add_receiver(receiver, bytes);
    }

    /// Whether so much of the bytes of this rate arrived, but for what is on its way and the last block of
    /// each stream: what a sender's buffer took may have got no further. Of datagrams, those sent count
    /// where they came in the time in which they were sent; the lost ones have rows of their own.
    pub(super) fn reached(&self, percent: u128, rate: u64, settings: &TestSettings) -> bool {
        let bytes_in = |nanos: u64| u128::from(rate) * u128::from(nanos) / BIT_NANOS;
        let blocks = u128::from(self.streams) * u128::from(settings.block_bytes);
        let moved = match settings.protocol {
            Protocol::Udp if self.is_late() => u128::from(self.received_bytes),
            Protocol::Udp => u128::from(self.sent_bytes),
            Protocol::Tcp | Protocol::Sctp => {
                let round_trip_ns = u64::from(self.idle_round_trip_us.unwrap_or(0)) * 1000;
                u128::from(self.received_bytes) + 2 * bytes_in(round_trip_ns)
            }
        };
        let is_late = settings.protocol == Protocol::Udp && self.is_late();
        let duration_ns = if is_late { self.received_ns } else { self.duration_ns };
        (moved + blocks) * 100 >= bytes_in(duration_ns) * percent
    }

    /// What was sent took longer to come than to be sent: it waited on the path.
    fn is_late(&self) -> bool {
        self.received_ns > self.duration_ns.saturating_add(self.duration_ns / 10 + LATE_NS)
    }

    fn add_sender(&mut self, detail: &StreamDetail, bytes: u64, duration_ns: u64) {
        let wall_ns = detail.thread.map_or(duration_ns, |thread| thread.wall_ns);
        if let Some(waits) = detail.waits {
            let share = |us: u64| thousandths(us.saturating_mul(1000), wall_ns);
            self.busy.add(share(waits.busy_us), bytes);
            self.receive_window.add(share(waits.receive_window_us), bytes);
            self.send_buffer.add(share(waits.send_buffer_us), bytes);
        }
        if let Some(thread) = detail.thread {
            self.sender_cpu.add(wanted_cpu(&thread), bytes);
            self.queued.add(had_no_cpu(&thread), bytes);
        }
        let in_us = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX);
        let loaded_us = detail.round_trips.map(|rtt| in_us(rtt.p50_ns));
        self.loaded_round_trip_us = self.loaded_round_trip_us.max(loaded_us);
        self.idle_round_trip_us = smaller(self.idle_round_trip_us, detail.idle_round_trip_us);
        self.window_bytes = smaller(self.window_bytes, detail.window_bytes);
        self.send_buffer_bytes = smaller(self.send_buffer_bytes, detail.buffer_bytes);
        self.resent_bytes = sum(self.resent_bytes, detail.resent_bytes);
        self.refusals = sum(self.refusals, detail.refusals);
    }

    fn add_receiver(&mut self, detail: &StreamDetail, bytes: u64) {
        if let Some(thread) = detail.thread {
            self.receiver_cpu.add(wanted_cpu(&thread), bytes);
            self.queued.add(had_no_cpu(&thread), bytes);
        }
        // Where a queue stays full, datagrams wait long, and all about as long as each other.
        if let Some(delay) = detail.delay_variation {
            let is_long = delay.p50_ns >= QUEUE_NS;
            let is_level = delay.p50_ns / 3 >= delay.p90_ns / 4;
            self.full_queue.add(if is_long && is_level { 1000 } else { 0 }, bytes);
        }
        let rows = detail.loss_bursts.map_or(0, |rows| rows.count);
        self.lost_rows = self.lost_rows.saturating_add(rows);
        self.receive_buffer_bytes = smaller(self.receive_buffer_bytes, detail.buffer_bytes);
        self.socket_drops = sum(self.socket_drops, detail.socket_drops);
    }
}

/// Datagrams that a receiver cannot miss, since none came behind them. A few may have been on their way
/// when it stopped; a quarter of all is more than that.
fn lost_at_end(sent: &SideSummary, received: &SideSummary) -> Option<u64> {
    let packets = sent.datagrams.packets;
    let at_end = packets.checked_sub(received.datagrams.packets)?;
    (at_end > 0 && at_end >= packets / 4).then_some(at_end)
}

/// A mean of shares that are known of some streams only.
#[derive(Debug, Default)]
pub(super) struct Mean {
    sum: u128,
    weight: u128,
}

impl Mean {
    fn add(&mut self, share: u16, bytes: u64) {
        // Streams that moved nothing count too, if there are no others.
        let weight = u128::from(bytes) + 1;
        self.sum += u128::from(share) * weight;
        self.weight += weight;
    }

    pub(super) fn mean(&self) -> Option<u16> {
        self.sum.checked_div(self.weight).map(|mean| mean as u16)
    }
}

/// Share of the time in which a thread ran or could have run.
fn wanted_cpu(thread: &ThreadUse) -> u16 {
    thousandths(thread.cpu_ns.saturating_add(thread.queued_ns.unwrap_or(0)), thread.wall_ns)
}

/// Share of the time in which it could have run, and others did.
fn had_no_cpu(thread: &ThreadUse) -> u16 {
    thousandths(thread.queued_ns.unwrap_or(0), thread.wall_ns)
}

fn thousandths(part: u64, whole: u64) -> u16 {
    (u128::from(part) * 1000 / u128::from(whole.max(1))).min(1000) as u16
}

pub(super) fn millionths(part: u64, whole: u64) -> u32 {
    (u128::from(part) * 1_000_000 / u128::from(whole.max(1))).min(1_000_000) as u32
}

/// Bits a second.
pub(super) fn rate(bytes: u64, duration_ns: u64) -> u64 {
    let bits = u128::from(bytes) * 8 * u128::from(NANOS_PER_SEC);
    u64::try_from(bits / u128::from(duration_ns.max(1))).unwrap_or(u64::MAX)
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).reduce(u64::saturating_add)
}

fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

/// UDP: datagrams that wait less than this may do so at the ends.
const QUEUE_NS: u64 = 2_000_000;
/// A receiver hears of the end a little later than the sender says it.
const LATE_NS: u64 = 200_000_000;
/// Nanoseconds that a byte takes at one bit a second.
const BIT_NANOS: u128 = 8 * NANOS_PER_SEC as u128;
