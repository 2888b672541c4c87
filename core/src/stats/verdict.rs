//! What limited one direction of a test, from the settings, the totals and what both ends know of its
//! streams. Each limit has a row in one of two tables, for bytes and for datagrams; the first row that
//! holds names it. `docs/measurement.md` has the rules in words.

use crate::report::{
    CpuUse, Evidence, Hint, Limit, StreamDetail, StreamSummary, ThreadUse, Verdict,
};
use crate::test::{Protocol, Role, TestSettings};
use crate::time::NANOS_PER_SEC;

/// A stream as both ends see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) summary: StreamSummary,
    pub(crate) local: StreamDetail,
    pub(crate) remote: Option<StreamDetail>,
}

/// What they have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Test<'a> {
    pub(crate) settings: &'a TestSettings,
    /// What this end does in the direction that is asked about.
    pub(crate) role: Role,
    /// Congestion control of the sender.
    pub(crate) congestion: Option<&'a str>,
    /// CPU use of the other end, which serves where that of its threads is not told.
    pub(crate) remote_cpu: Option<CpuUse>,
}

impl Verdict {
    /// What limited the `streams` on which this end has the test's role; `None` where there are none.
    pub(crate) fn of(test: &Test<'_>, streams: impl Iterator<Item = Ends>) -> Option<Self> {
        let mut sums = Sums::default();
        streams.filter(|ends| ends.summary.role == test.role).for_each(|ends| sums.add(&ends));
        (sums.streams > 0).then(|| {
            let facts = Facts::new(test, &sums);
            let limit = facts.limit();
            Self {
                role: test.role,
                limit,
                is_one_sided: sums.is_one_sided,
                evidence: facts.evidence,
                hint: facts.hint(limit),
            }
        })
    }
}

/// What the decision is made from: the evidence, and what is behind it.
struct Facts {
    protocol: Protocol,
    evidence: Evidence,
    /// Sent as fast as was asked for.
    has_requested_rate: bool,
    /// Nearly so: what is missing is a pause of a host that has much to do.
    has_most_of_requested_rate: bool,
    /// The sender goes slower after a loss.
    heeds_losses: bool,
    duration_ns: u64,
    streams: u64,
    /// Datagrams sent, and missing at the other end.
    packets: u64,
    lost: u64,
    /// Rows in which they are missing.
    lost_rows: u64,
    /// The receiving system may join datagrams.
    may_join: bool,
    /// Share of the bytes that found a queue on the path which stayed full.
    full_queue_share: Option<u16>,
}

impl Facts {
    fn limit(&self) -> Limit {
        let first = |rows: &[(bool, Limit)]| rows.iter().find(|(holds, _)| *holds).copied();
        let found = match self.protocol {
            Protocol::Udp => first(&self.rows_of_datagrams()),
            Protocol::Tcp | Protocol::Sctp => first(&self.rows_of_bytes()),
        };
        found.map_or(Limit::Unclear, |(_, limit)| limit)
    }

    /// A thread that hardly ever waits explains whatever else is waited for, so threads come first. A
    /// larger buffer or window does nothing for a path with a queue, so that comes before them. What is
    /// left is the path, unless a thread was rather busy and the path shows no sign of its own.
    fn rows_of_bytes(&self) -> [(bool, Limit); 15] {
        let busy_share = self.evidence.busy_share;
        let waits_for_window = self.waits_for_window();
        let had_data = busy_share.is_none_or(|share| share >= MOST);
        [
            (self.has_requested_rate, Limit::RequestedRate),
            (self.duration_ns < SHORTEST_NS, Limit::Unclear),
            (self.receiver_wants_cpu(BUSY), Limit::ReceiverCpu),
            (self.sender_wants_cpu(if had_data { BUSY } else { MOST }), Limit::SenderCpu),
            (!had_data && self.has_most_of_requested_rate, Limit::RequestedRate),
            (!had_data, Limit::Application),
            (self.has_queue(), Limit::PathRate),
            (self.waits_for_buffer(), Limit::SendBuffer),
            (waits_for_window && self.is_read_slowly(), Limit::ReceiverCpu),
            (waits_for_window, Limit::ReceiveWindow),
            (self.round_trips() < ROUND_TRIPS_OF_A_PATH, Limit::Unclear),
            (self.receiver_wants_cpu(RATHER_BUSY), Limit::ReceiverCpu),
            (self.sender_wants_cpu(RATHER_BUSY), Limit::SenderCpu),
            (self.has_losses(), Limit::PathLoss),
            (busy_share.is_some(), Limit::PathRate),
        ]
    }

    /// Datagrams that are lost say more than those that are not sent.
    fn rows_of_datagrams(&self) -> [(bool, Limit); 9] {
        let Evidence { lost_millionths, refusals, sender_cpu_share, .. } = self.evidence;
        let loses = is_at_least(lost_millionths, LOST);
        let drops = loses && self.drops_most();
        let refused = refusals.unwrap_or(0).saturating_mul(REFUSED_ONE_IN);
        let is_refused = refused >= self.packets.max(1);
        let is_full = is_refused
            || is_at_least(self.full_queue_share, MOST)
            || is_at_least(lost_millionths, LOST_BY_RATE);
        [
            (self.duration_ns < SHORTEST_NS && !self.has_requested_rate, Limit::Unclear),
            (drops && self.receiver_wants_cpu(BUSY), Limit::ReceiverCpu),
            (drops, Limit::ReceiveBuffer),
            (loses && is_full, Limit::PathRate),
            (loses, Limit::PathLoss),
            (self.has_requested_rate, Limit::RequestedRate),
            (is_refused, Limit::PathRate),
            (self.sender_wants_cpu(RATHER_BUSY), Limit::SenderCpu),
            // What a sender waits for is its own device.
            (sender_cpu_share.is_some(), Limit::PathRate),
        ]
    }

    /// Most of what is missing had come as far as to the receiver's sockets. Datagrams that were joined
    /// are dropped as one, and each such row is one that is missing. Where the receiver does not tell, a
    /// busy one is thought to drop them.
    fn drops_most(&self) -> bool {
        let Some(drops) = self.evidence.socket_drops else { return self.receiver_wants_cpu(BUSY) };
        let doubled = drops.saturating_mul(2);
        let joined = doubled.saturating_mul(MOST_JOINED);
        doubled >= self.lost || self.may_join && doubled >= self.lost_rows && joined >= self.lost
    }

    /// Of two busy ends the busier one counts; datagrams are lost whatever the sender does.
    fn receiver_wants_cpu(&self, share: u16) -> bool {
        let Evidence { sender_cpu_share, receiver_cpu_share, .. } = self.evidence;
        let is_busier = self.protocol == Protocol::Udp || receiver_cpu_share >= sender_cpu_share;
        is_at_least(receiver_cpu_share, share) && is_busier
    }

    fn sender_wants_cpu(&self, share: u16) -> bool {
        is_at_least(self.evidence.sender_cpu_share, share)
    }

    /// The send buffer is full of what is on its way. Linux makes buffers larger than that by themselves,
    /// and does not account the wait for one before the congestion window has been reached once.
    fn waits_for_buffer(&self) -> bool {
        let Evidence { send_buffer_share, send_buffer_bytes, .. } = self.evidence;
        is_at_least(send_buffer_share, WAITED) || self.is_filled(send_buffer_bytes)
    }

    /// So is the window; a sender that paces itself to it waits little.
    fn waits_for_window(&self) -> bool {
        let Evidence { receive_window_share, window_bytes, .. } = self.evidence;
        let waited_some = receive_window_share.is_none_or(|share| share >= WAITED_SOME);
        is_at_least(receive_window_share, WAITED) || waited_some && self.is_filled(window_bytes)
    }

    /// What is on its way is most of what there is room for.
    fn is_filled(&self, room_bytes: Option<u64>) -> bool {
        self.on_its_way().zip(room_bytes).is_some_and(|(bytes, room_bytes)| {
            bytes.saturating_mul(100) >= room_bytes.saturating_mul(FILLED_PERCENT)
        })
    }

    /// The window is not full of what is on its way but of what the receiver has not read, for want of
    /// CPU: it has room for far more, or was about to close when it was looked at.
    fn is_read_slowly(&self) -> bool {
        let room_bytes = self.evidence.window_bytes;
        let is_large = self
            .on_its_way()
            .zip(room_bytes)
            .is_some_and(|(bytes, room_bytes)| room_bytes >= bytes.saturating_mul(2));
        (is_large || self.is_closing()) && self.receiver_wants_cpu(MOST)
    }

    /// More is on its way than there is room for.
    fn is_closing(&self) -> bool {
        self.on_its_way()
            .zip(self.evidence.window_bytes)
            .is_some_and(|(bytes, room_bytes)| bytes >= room_bytes.saturating_mul(2))
    }

    /// What a stream moves within a round trip, bytes.
    fn on_its_way(&self) -> Option<u64> {
        let Evidence { idle_round_trip_us, loaded_round_trip_us, rate, .. } = self.evidence;
        let us = loaded_round_trip_us.or(idle_round_trip_us)?;
        let bits = u128::from(rate / self.streams.max(1)) * u128::from(us) / MICROS_PER_SEC;
        u64::try_from(bits / 8).ok()
    }

    /// Round trips under load are so much longer than idle ones that data waits on the path.
    fn has_queue(&self) -> bool {
        let Evidence { idle_round_trip_us, loaded_round_trip_us, .. } = self.evidence;
        idle_round_trip_us.zip(loaded_round_trip_us).is_some_and(|(idle_us, loaded_us)| {
            loaded_us >= idle_us.saturating_mul(2).saturating_add(QUEUE_US)
        })
    }

    /// Losses that the sender goes slower for.
    fn has_losses(&self) -> bool {
        self.heeds_losses && is_at_least(self.evidence.resent_millionths, RESENT)
    }

    /// How many of them the test had time for.
    fn round_trips(&self) -> u64 {
        let Evidence { idle_round_trip_us, loaded_round_trip_us, .. } = self.evidence;
        let longest_us = idle_round_trip_us.max(loaded_round_trip_us).unwrap_or(u32::MAX);
        self.duration_ns / 1000 / u64::from(longest_us.max(1))
    }

    fn hint(&self, limit: Limit) -> Option<Hint> {
        let evidence = &self.evidence;
        match limit {
            Limit::ReceiveWindow if self.is_closing() => None,
            Limit::ReceiveWindow => self.larger_window(evidence.window_bytes),
            Limit::SendBuffer => self.larger_window(evidence.send_buffer_bytes),
            Limit::ReceiveBuffer => {
                let bytes = evidence.receive_buffer_bytes?.saturating_mul(2);
                Some(Hint::LargerReceiveBuffer { bytes })
            }
            Limit::SenderCpu | Limit::ReceiverCpu => Some(Hint::MoreStreams),
            Limit::RequestedRate => Some(Hint::HigherRate),
            Limit::PathRate if self.lost > 0 => Some(Hint::LowerRate { rate: evidence.rate }),
            Limit::PathLoss if self.protocol == Protocol::Tcp => Some(Hint::OtherCongestionControl),
            Limit::PathRate | Limit::PathLoss | Limit::Application | Limit::Unclear => None,
        }
    }

    /// Room for twice the rate, but twice what there is at least: a window that is not used to its end
    /// would else be called large enough.
    fn larger_window(&self, present_bytes: Option<u64>) -> Option<Hint> {
        let needed = self.on_its_way().map(|bytes| bytes.saturating_mul(2));
        let doubled = present_bytes.map(|bytes| bytes.saturating_mul(2));
        Some(Hint::LargerWindow { bytes: needed.max(doubled)? })
    }

    fn new(test: &Test<'_>, sums: &Sums) -> Self {
        let Test { settings, role, congestion, remote_cpu } = *test;
        let duration_ns = sums.duration_ns;
        let rates = [settings.bitrate, settings.fq_rate].into_iter().flatten();
        let requested = rates.map(|rate| rate.0).min();
        let requested = requested.map(|rate| rate.saturating_mul(sums.streams));
        let process = remote_cpu.map(|cpu| {
            let each = cpu.total_micropercent / settings.stream_count().max(1) as u64;
            u16::try_from(each / MICROPERCENT_PER_THOUSANDTH).unwrap_or(1000).min(1000)
        });
        let (sender_guess, receiver_guess) = match role {
            Role::Sender => (None, process),
            Role::Receiver => (process, None),
        };
        let is_udp = settings.protocol == Protocol::Udp;
        let evidence = Evidence {
            rate: rate(sums.received_bytes, sums.received_ns),
            requested_rate: requested,
            receive_window_share: sums.receive_window.mean(),
            send_buffer_share: sums.send_buffer.mean(),
            busy_share: sums.busy.mean(),
            sender_cpu_share: sums.sender_cpu.mean().or(sender_guess),
            receiver_cpu_share: sums.receiver_cpu.mean().or(receiver_guess),
            resent_millionths: sums.resent_bytes.map(|bytes| millionths(bytes, sums.sent_bytes)),
            lost_millionths: sums
                .lost
                .filter(|_| is_udp)
                .map(|lost| millionths(lost, sums.packets)),
            socket_drops: sums.socket_drops,
            refusals: sums.refusals,
            idle_round_trip_us: sums.idle_round_trip_us,
            loaded_round_trip_us: sums.loaded_round_trip_us,
            window_bytes: sums.window_bytes,
            send_buffer_bytes: sums.send_buffer_bytes,
            receive_buffer_bytes: sums.receive_buffer_bytes,
        };
        let reached = |percent| requested.is_some_and(|rate| sums.reached(percent, rate, settings));
        Self {
            protocol: settings.protocol,
            has_requested_rate: reached(REACHED_PERCENT),
            has_most_of_requested_rate: reached(NEARLY_REACHED_PERCENT),
            heeds_losses: !congestion.is_some_and(|name| name.starts_with("bbr")),
            evidence,
            duration_ns,
            streams: sums.streams,
            packets: sums.packets,
            lost: sums.lost.unwrap_or(0),
            lost_rows: sums.lost_rows,
            may_join: settings.joins_arrivals(),
            full_queue_share: sums.full_queue.mean(),
        }
    }
}

/// All streams of the direction together. Counts are sums, shares are means weighted by the bytes of
/// the streams, sizes and round trips are those of the worst stream.
#[derive(Debug, Default)]
struct Sums {
    streams: u64,
    is_one_sided: bool,
    duration_ns: u64,
    sent_bytes: u64,
    received_bytes: u64,
    received_ns: u64,
    packets: u64,
    lost: Option<u64>,
    lost_rows: u64,
    busy: Mean,
    receive_window: Mean,
    send_buffer: Mean,
    sender_cpu: Mean,
    receiver_cpu: Mean,
    full_queue: Mean,
    resent_bytes: Option<u64>,
    socket_drops: Option<u64>,
    refusals: Option<u64>,
    idle_round_trip_us: Option<u32>,
    loaded_round_trip_us: Option<u32>,
    window_bytes: Option<u64>,
    send_buffer_bytes: Option<u64>,
    receive_buffer_bytes: Option<u64>,
}

impl Sums {
    fn add(&mut self, ends: &Ends) {
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
        self.lost = sum(self.lost, received.and_then(|side| side.datagrams.lost));
        let unknown = StreamDetail::default();
        let remote = remote.as_ref().unwrap_or(&unknown);
        let (sender, receiver) = match summary.role {
            Role::Sender => (local, remote),
            Role::Receiver => (remote, local),
        };
        self.add_sender(sender, bytes, duration_ns);
        self.add_receiver(receiver, bytes);
    }

    /// Whether the sender sent datagrams at so much of this rate, or so much of the bytes arrived, but for
    /// what is on its way and the last block of each stream. What a sender's buffer took may have got no
    /// further.
    fn reached(&self, percent: u128, rate: u64, settings: &TestSettings) -> bool {
        let bytes_in = |nanos: u64| u128::from(rate) * u128::from(nanos) / BIT_NANOS;
        let blocks = u128::from(self.streams) * u128::from(settings.block_bytes);
        let moved = match settings.protocol {
            Protocol::Udp => u128::from(self.sent_bytes),
            Protocol::Tcp | Protocol::Sctp => {
                let round_trip_ns = u64::from(self.idle_round_trip_us.unwrap_or(0)) * 1000;
                u128::from(self.received_bytes) + 2 * bytes_in(round_trip_ns)
            }
        };
        (moved + blocks) * 100 >= bytes_in(self.duration_ns) * percent
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

/// A mean of shares that are known of some streams only.
#[derive(Debug, Default)]
struct Mean {
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

    fn mean(&self) -> Option<u16> {
        self.sum.checked_div(self.weight).map(|mean| mean as u16)
    }
}

/// Share of the time in which a thread ran or could have run.
fn wanted_cpu(thread: &ThreadUse) -> u16 {
    thousandths(thread.cpu_ns.saturating_add(thread.queued_ns.unwrap_or(0)), thread.wall_ns)
}

fn thousandths(part: u64, whole: u64) -> u16 {
    (u128::from(part) * 1000 / u128::from(whole.max(1))).min(1000) as u16
}

fn millionths(part: u64, whole: u64) -> u32 {
    (u128::from(part) * 1_000_000 / u128::from(whole.max(1))).min(1_000_000) as u32
}

/// Bits a second.
fn rate(bytes: u64, duration_ns: u64) -> u64 {
    let bits = u128::from(bytes) * 8 * u128::from(NANOS_PER_SEC);
    u64::try_from(bits / u128::from(duration_ns.max(1))).unwrap_or(u64::MAX)
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).reduce(u64::saturating_add)
}

fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

fn is_at_least<T: PartialOrd>(value: Option<T>, threshold: T) -> bool {
    value.is_some_and(|value| value >= threshold)
}

/// The rate that was asked for counts as reached from here on.
const REACHED_PERCENT: u128 = 95;
/// And from here on where the sender had nothing else to do.
const NEARLY_REACHED_PERCENT: u128 = 75;
/// A thread that ran or could have run so much of the time limits its stream, thousandths.
const BUSY: u16 = 850;
/// The same where nothing else explains it.
const RATHER_BUSY: u16 = 700;
/// A buffer or a window that was waited for so much of the time limits the stream, thousandths.
const WAITED: u16 = 300;
/// The same of a window that is filled, too.
const WAITED_SOME: u16 = 100;
/// A buffer or a window is filled by so much on its way. Buffers that Linux sizes are filled to 63 % at
/// most, windows to a half.
const FILLED_PERCENT: u64 = 75;
/// Half of the time, or of the bytes, thousandths.
const MOST: u16 = 500;
/// TCP: less than this is sent again on any path that is full now and then, millionths.
const RESENT: u32 = 100;
/// UDP: loss below this is not worth a word, millionths.
const LOST: u32 = 1000;
/// UDP: so much is lost where more is sent than the path takes, hardly ever by chance, millionths.
const LOST_BY_RATE: u32 = 100_000;
/// UDP: one refused call in so many datagrams shows that the device was full.
const REFUSED_ONE_IN: u64 = 100;
/// Round trips longer by less than this may be noise of the ends, microseconds.
const QUEUE_US: u32 = 1000;
/// UDP: datagrams that wait less than this may do so at the ends.
const QUEUE_NS: u64 = 2_000_000;
/// Most datagrams that Linux joins; its `UDP_MAX_SEGMENTS` since 6.9, 64 before.
const MOST_JOINED: u64 = 128;
/// A shorter test tells little, and few looks were taken of it.
const SHORTEST_NS: u64 = 100_000_000;
/// A test that is shorter is over before its streams have found out what the path takes.
const ROUND_TRIPS_OF_A_PATH: u64 = 20;
const MICROS_PER_SEC: u128 = 1_000_000;
/// Nanoseconds that a byte takes at one bit a second.
const BIT_NANOS: u128 = 8 * NANOS_PER_SEC as u128;
/// A thousandth of one CPU.
const MICROPERCENT_PER_THOUSANDTH: u64 = 100_000;

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use crate::report::{Datagrams, LossBursts, Percentiles, SenderWaits, SideSummary};
    use crate::test::{Direction, StreamId};
    use crate::units::BitsPerSec;

    /// A test of ten seconds that this end sends, and all that is known of it.
    #[derive(Clone)]
    struct Case {
        settings: TestSettings,
        congestion: Option<&'static str>,
        remote_cpu: Option<CpuUse>,
        streams: Vec<Ends>,
    }

    const SECONDS: u64 = 10;

    impl Case {
        /// 100 Mbit/s over a path of 10 ms; nothing at the ends is short.
        fn tcp() -> Self {
            let local = StreamDetail {
                waits: Some(SenderWaits { busy_us: SECONDS * 1_000_000, ..Default::default() }),
                round_trips: Some(Percentiles { p50_ns: 11_000_000, ..Default::default() }),
                idle_round_trip_us: Some(10_000),
                resent_bytes: Some(0),
                window_bytes: Some(1_000_000),
                buffer_bytes: Some(1_000_000),
                thread: Some(thread(100)),
                ..StreamDetail::default()
            };
            Self::new(TestSettings::new(Protocol::Tcp), local, StreamDetail::default())
        }

        /// 100 Mbit/s, as asked for, of which nothing is lost.
        fn udp() -> Self {
            let mut settings = TestSettings::new(Protocol::Udp);
            settings.bitrate = Some(BitsPerSec(100_000_000));
            let local = StreamDetail {
                refusals: Some(0),
                thread: Some(thread(100)),
                ..StreamDetail::default()
            };
            let remote = StreamDetail {
                socket_drops: Some(0),
                loss_bursts: Some(LossBursts::default()),
                delay_variation: Some(waits_of_ms(1, 2)),
                ..StreamDetail::default()
            };
            Self::new(settings, local, remote)
        }

        fn new(settings: TestSettings, local: StreamDetail, remote: StreamDetail) -> Self {
            let side = SideSummary {
                bytes: SECONDS * 12_500_000,
                duration_ns: Some(SECONDS * NANOS_PER_SEC),
                datagrams: Datagrams { packets: PACKETS, lost: Some(0), ..Default::default() },
                retransmits: None,
            };
            let remote =
                StreamDetail { thread: Some(thread(100)), buffer_bytes: Some(500_000), ..remote };
            let summary = StreamSummary {
                id: StreamId::from_index(0),
                role: Role::Sender,
                local: side,
                remote: Some(side),
                tcp: None,
            };
            let streams = Vec::from([Ends { summary, local, remote: Some(remote) }]);
            Self { settings, congestion: Some("cubic"), remote_cpu: None, streams }
        }

        fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
            change(&mut self);
            self
        }

        fn sender(&mut self) -> &mut StreamDetail {
            &mut self.streams[0].local
        }

        fn receiver(&mut self) -> &mut StreamDetail {
            self.streams[0].remote.as_mut().expect("it was told")
        }

        fn waits(&mut self) -> &mut SenderWaits {
            self.sender().waits.as_mut().expect("TCP tells them")
        }

        fn round_trips_us(&mut self, idle_us: u32, loaded_us: u32) {
            self.sender().idle_round_trip_us = Some(idle_us);
            let p50_ns = u64::from(loaded_us) * 1000;
            self.sender().round_trips = Some(Percentiles { p50_ns, ..Default::default() });
        }

        fn received(&mut self) -> &mut SideSummary {
            self.streams[0].summary.remote.as_mut().expect("it was told")
        }

        fn loses(&mut self, packets: u64) {
            self.received().datagrams.lost = Some(packets);
            self.receiver().loss_bursts = Some(LossBursts { count: packets, longest: 1 });
        }

        fn verdict_for(&self, role: Role) -> Option<Verdict> {
            let Self { settings, congestion, remote_cpu, streams } = self;
            let test = Test { settings, role, congestion: *congestion, remote_cpu: *remote_cpu };
            Verdict::of(&test, streams.iter().copied())
        }

        fn verdict(&self) -> Verdict {
            self.verdict_for(Role::Sender).expect("this end sends")
        }
    }

    const PACKETS: u64 = 100_000;

    /// A thread that ran so many thousandths of the time.
    fn thread(share: u64) -> ThreadUse {
        let wall_ns = SECONDS * NANOS_PER_SEC;
        ThreadUse { wall_ns, cpu_ns: wall_ns / 1000 * share, queued_ns: Some(0) }
    }

    fn waits_of_ms(p50_ms: u64, p90_ms: u64) -> Percentiles {
        let (p50_ns, p90_ns) = (p50_ms * 1_000_000, p90_ms * 1_000_000);
        Percentiles { p50_ns, p90_ns, ..Percentiles::default() }
    }

    type Row = (&'static str, fn(&mut Case), Limit);

    fn check(base: &Case, rows: &[Row]) {
        for (name, change, limit) in rows {
            let case = base.clone().with(change);
            let verdict = case.verdict();
            assert_eq!(verdict.limit, *limit, "{name}: {verdict:#?}");
        }
    }

    #[test]
    fn what_limits_bytes() {
        let rows: [Row; 24] = [
            ("nothing at the ends", |_| {}, Limit::PathRate),
            (
                "96 of 100 Mbit/s were asked for and came",
                |case| case.settings.bitrate = Some(BitsPerSec(104_000_000)),
                Limit::RequestedRate,
            ),
            (
                "more was asked for than came",
                |case| case.settings.bitrate = Some(BitsPerSec(120_000_000)),
                Limit::PathRate,
            ),
            (
                "the kernel's pacing was asked for",
                |case| case.settings.fq_rate = Some(BitsPerSec(100_000_000)),
                Limit::RequestedRate,
            ),
            (
                "what was asked for is in the sender's buffer",
                |case| {
                    case.settings.bitrate = Some(BitsPerSec(100_000_000));
                    case.received().bytes /= 2;
                },
                Limit::PathRate,
            ),
            (
                "a short test",
                |case| case.streams[0].summary.local.duration_ns = Some(90_000_000),
                Limit::Unclear,
            ),
            (
                "a busy receiver closes its window",
                |case| {
                    case.receiver().thread = Some(thread(900));
                    case.waits().receive_window_us = SECONDS * 800_000;
                },
                Limit::ReceiverCpu,
            ),
            (
                "a receiver that waits for a CPU",
                |case| {
                    let wall_ns = SECONDS * NANOS_PER_SEC;
                    let queued_ns = Some(wall_ns / 10 * 8);
                    case.receiver().thread =
                        Some(ThreadUse { wall_ns, cpu_ns: wall_ns / 10, queued_ns });
                },
                Limit::ReceiverCpu,
            ),
            (
                "the sender is busier than a busy receiver",
                |case| {
                    case.receiver().thread = Some(thread(900));
                    case.sender().thread = Some(thread(950));
                },
                Limit::SenderCpu,
            ),
            (
                "a sender that has nothing to send because it lacks the CPU",
                |case| {
                    case.sender().thread = Some(thread(600));
                    case.waits().busy_us = SECONDS * 300_000;
                },
                Limit::SenderCpu,
            ),
            (
                "a sender that has nothing to send and is idle",
                |case| case.waits().busy_us = SECONDS * 300_000,
                Limit::Application,
            ),
            (
                "a sender that has nothing to send but what was asked for, which it was late with",
                |case| {
                    case.settings.bitrate = Some(BitsPerSec(120_000_000));
                    case.waits().busy_us = SECONDS * 300_000;
                },
                Limit::RequestedRate,
            ),
            (
                "waits for room in the send buffer",
                |case| case.waits().send_buffer_us = SECONDS * 310_000,
                Limit::SendBuffer,
            ),
            (
                // 100 Mbit/s in 11 ms are 137.5 KB.
                "a send buffer that is full without a wait that is accounted",
                |case| case.sender().buffer_bytes = Some(150_000),
                Limit::SendBuffer,
            ),
            (
                "waits for the window",
                |case| case.waits().receive_window_us = SECONDS * 310_000,
                Limit::ReceiveWindow,
            ),
            (
                "some waits for a window that is full",
                |case| {
                    case.waits().receive_window_us = SECONDS * 110_000;
                    case.sender().window_bytes = Some(150_000);
                },
                Limit::ReceiveWindow,
            ),
            (
                "waits for a large window whose reader is rather busy",
                |case| {
                    case.waits().receive_window_us = SECONDS * 310_000;
                    case.receiver().thread = Some(thread(600));
                },
                Limit::ReceiverCpu,
            ),
            (
                "waits for a window that a reader who is rather busy lets close",
                |case| {
                    case.waits().receive_window_us = SECONDS * 310_000;
                    case.sender().window_bytes = Some(5000);
                    case.receiver().thread = Some(thread(600));
                },
                Limit::ReceiverCpu,
            ),
            (
                "a queue, whatever the window",
                |case| {
                    case.round_trips_us(10_000, 30_000);
                    case.waits().receive_window_us = SECONDS * 800_000;
                },
                Limit::PathRate,
            ),
            (
                "losses of a full queue",
                |case| {
                    case.round_trips_us(10_000, 30_000);
                    case.sender().resent_bytes = Some(SECONDS * 125_000);
                },
                Limit::PathRate,
            ),
            (
                "losses without a queue",
                |case| case.sender().resent_bytes = Some(SECONDS * 125_000),
                Limit::PathLoss,
            ),
            (
                "losses that the sender does not heed",
                |case| {
                    case.sender().resent_bytes = Some(SECONDS * 125_000);
                    case.congestion = Some("bbr");
                },
                Limit::PathRate,
            ),
            (
                "a thread that is rather busy, and no sign of the path",
                |case| case.receiver().thread = Some(thread(750)),
                Limit::ReceiverCpu,
            ),
            (
                "few round trips",
                |case| {
                    case.round_trips_us(600_000, 600_000);
                    case.sender().buffer_bytes = Some(20_000_000);
                },
                Limit::Unclear,
            ),
        ];
        check(&Case::tcp(), &rows);
    }

    #[test]
    fn what_limits_datagrams() {
        let rows: [Row; 15] = [
            ("what was asked for", |_| {}, Limit::RequestedRate),
            ("a few are lost", |case| case.loses(PACKETS / 1001), Limit::RequestedRate),
            ("they are lost by chance", |case| case.loses(PACKETS / 100), Limit::PathLoss),
            (
                "they are lost and delayed by chance",
                |case| {
                    case.loses(PACKETS / 100);
                    case.receiver().delay_variation = Some(waits_of_ms(5, 9));
                },
                Limit::PathLoss,
            ),
            (
                "they are lost in a queue that is full",
                |case| {
                    case.loses(PACKETS / 100);
                    case.receiver().delay_variation = Some(waits_of_ms(19, 20));
                },
                Limit::PathRate,
            ),
            ("too many are lost", |case| case.loses(PACKETS / 10), Limit::PathRate),
            (
                "the socket drops them",
                |case| {
                    case.loses(PACKETS / 10);
                    case.receiver().socket_drops = Some(PACKETS / 15);
                },
                Limit::ReceiveBuffer,
            ),
            (
                "the socket of a busy receiver drops them",
                |case| {
                    case.loses(PACKETS / 10);
                    case.receiver().socket_drops = Some(PACKETS / 10);
                    case.receiver().thread = Some(thread(900));
                },
                Limit::ReceiverCpu,
            ),
            (
                "the socket drops joined ones",
                |case| {
                    case.settings.offload.gro = true;
                    case.loses(PACKETS / 10);
                    case.receiver().socket_drops = Some(PACKETS / 400);
                    case.receiver().loss_bursts =
                        Some(LossBursts { count: PACKETS / 500, longest: 90 });
                },
                Limit::ReceiveBuffer,
            ),
            (
                "the socket drops some, the path most",
                |case| {
                    case.loses(PACKETS / 100);
                    case.receiver().socket_drops = Some(PACKETS / 400);
                },
                Limit::PathLoss,
            ),
            (
                "a busy receiver does not tell what its socket drops",
                |case| {
                    case.loses(PACKETS / 100);
                    case.receiver().socket_drops = None;
                    case.receiver().thread = Some(thread(900));
                },
                Limit::ReceiverCpu,
            ),
            (
                "a busy sender",
                |case| {
                    case.settings.bitrate = None;
                    case.sender().thread = Some(thread(990));
                },
                Limit::SenderCpu,
            ),
            (
                "a sender that its host refuses",
                |case| {
                    case.settings.bitrate = None;
                    case.sender().thread = Some(thread(600));
                    case.sender().refusals = Some(PACKETS);
                },
                Limit::PathRate,
            ),
            (
                "a sender that its device holds up",
                |case| case.settings.bitrate = None,
                Limit::PathRate,
            ),
            (
                "a sender of which nothing is known",
                |case| {
                    case.settings.bitrate = None;
                    case.sender().thread = None;
                },
                Limit::Unclear,
            ),
        ];
        check(&Case::udp(), &rows);
    }

    #[test]
    fn hints_have_numbers() {
        let hint = |case: Case| case.verdict().hint;
        // 100 Mbit/s in 11 ms are 137.5 KB.
        let window = |window_bytes: u64| {
            hint(Case::tcp().with(|case| {
                case.waits().receive_window_us = SECONDS * 500_000;
                case.sender().window_bytes = Some(window_bytes);
            }))
        };
        assert_eq!(window(130_000), Some(Hint::LargerWindow { bytes: 275_000 }));
        assert_eq!(window(200_000), Some(Hint::LargerWindow { bytes: 400_000 }));
        assert_eq!(window(60_000), None, "it is not small, it is not read");
        let buffer = Case::tcp().with(|case| case.sender().buffer_bytes = Some(100_000));
        assert_eq!(hint(buffer), Some(Hint::LargerWindow { bytes: 275_000 }));
        let dropped = Case::udp().with(|case| {
            case.loses(PACKETS / 10);
            case.receiver().socket_drops = Some(PACKETS / 10);
        });
        assert_eq!(hint(dropped), Some(Hint::LargerReceiveBuffer { bytes: 1_000_000 }));
        let full = Case::udp().with(|case| {
            case.loses(PACKETS / 2);
            case.received().bytes /= 2;
        });
        assert_eq!(hint(full), Some(Hint::LowerRate { rate: 50_000_000 }));
        assert_eq!(hint(Case::udp()), Some(Hint::HigherRate));
        assert_eq!(hint(Case::tcp()), None);
        let lossy = Case::tcp().with(|case| case.sender().resent_bytes = Some(5_000_000));
        assert_eq!(hint(lossy), Some(Hint::OtherCongestionControl));
        let busy = Case::tcp().with(|case| case.sender().thread = Some(thread(900)));
        assert_eq!(hint(busy), Some(Hint::MoreStreams));
    }

    #[test]
    fn streams_count_by_their_bytes() {
        let mut case = Case::tcp();
        let mut other = case.streams[0];
        other.summary.local.bytes /= 4;
        other.summary.remote = Some(other.summary.local);
        other.local.thread = Some(thread(900));
        other.local.window_bytes = Some(1000);
        other.local.idle_round_trip_us = Some(9000);
        other.local.round_trips = Some(Percentiles { p50_ns: 20_000_000, ..Default::default() });
        case.streams.push(other);
        let evidence = case.verdict().evidence;
        assert_eq!(evidence.rate, 125_000_000, "of both");
        // (4 * 100 + 1 * 900) / 5
        assert_eq!(evidence.sender_cpu_share, Some(260));
        assert_eq!(evidence.window_bytes, Some(1000), "the smaller");
        assert_eq!(evidence.idle_round_trip_us, Some(9000), "the shorter");
        assert_eq!(evidence.loaded_round_trip_us, Some(20_000), "the longer");
    }

    #[test]
    fn each_direction_has_its_own_verdict() {
        let mut case = Case::tcp().with(|case| case.settings.direction = Direction::Bidirectional);
        assert_eq!(case.verdict_for(Role::Receiver), None);
        let mut back = case.streams[0];
        back.summary.role = Role::Receiver;
        back.local = StreamDetail { thread: Some(thread(990)), ..StreamDetail::default() };
        back.remote = None;
        case.streams.push(back);
        let received = case.verdict_for(Role::Receiver).expect("it has a stream");
        assert_eq!((received.limit, received.is_one_sided), (Limit::ReceiverCpu, true));
        let sent = case.verdict();
        assert_eq!((sent.limit, sent.is_one_sided), (Limit::PathRate, false));
    }

    #[test]
    fn the_process_of_a_stock_peer_stands_for_its_thread() {
        let case = Case::tcp().with(|case| {
            case.streams[0].remote = None;
            let total_micropercent = 97_000_000;
            case.remote_cpu = Some(CpuUse { total_micropercent, ..CpuUse::default() });
        });
        let verdict = case.verdict();
        assert_eq!(verdict.evidence.receiver_cpu_share, Some(970));
        assert_eq!((verdict.limit, verdict.is_one_sided), (Limit::ReceiverCpu, true));
    }

    #[test]
    fn nonsense_of_a_peer_is_only_nonsense() {
        for base in [Case::tcp(), Case::udp()] {
            let case = base.with(|case| {
                let most = u64::MAX;
                let percentiles =
                    Some(Percentiles { p50_ns: most, p90_ns: most, ..Default::default() });
                let detail = StreamDetail {
                    waits: Some(SenderWaits {
                        busy_us: most,
                        receive_window_us: most,
                        send_buffer_us: most,
                    }),
                    thread: Some(ThreadUse { wall_ns: 0, cpu_ns: most, queued_ns: Some(most) }),
                    loss_bursts: Some(LossBursts { count: most, longest: most }),
                    delay_variation: percentiles,
                    round_trips: percentiles,
                    idle_round_trip_us: Some(u32::MAX),
                    socket_drops: Some(most),
                    refusals: Some(most),
                    resent_bytes: Some(most),
                    window_bytes: Some(most),
                    buffer_bytes: Some(most),
                    ..StreamDetail::default()
                };
                let datagrams =
                    Datagrams { packets: most, lost: Some(most), ..Datagrams::default() };
                let side =
                    SideSummary { bytes: most, duration_ns: Some(0), datagrams, retransmits: None };
                case.settings.bitrate = Some(BitsPerSec(most));
                case.streams[0].remote = Some(detail);
                case.streams[0].summary.remote = Some(side);
                case.streams.push(case.streams[0]);
                let mut back = case.streams[0];
                back.summary.role = Role::Receiver;
                case.streams.extend([back, back]);
            });
            for role in [Role::Sender, Role::Receiver] {
                assert!(case.verdict_for(role).is_some(), "{role:?}");
            }
        }
    }
}
