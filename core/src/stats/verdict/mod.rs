//! What limited one direction of a test, from the settings, the totals and what both ends know of its
//! streams. Each limit has a row in one of two tables, for bytes and for datagrams; the first row that
//! holds names it. `docs/measurement.md` has the rules in words.

mod sums;
#[cfg(test)]
mod tests;

use crate::report::{CpuUse, Evidence, Hint, Limit, StreamDetail, StreamSummary, Verdict};
use crate::test::{Protocol, Role, TestSettings};
use sums::{Sums, millionths, rate};

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
    block_bytes: u32,
    /// Share of the time for which threads of either end had no CPU.
    queued_share: Option<u16>,
    /// Copies of the data can be left out that were not.
    may_copy_less: bool,
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
        if self.duration_ns == 0 {
            return Limit::Unclear;
        }
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
    fn rows_of_bytes(&self) -> [(bool, Limit); 16] {
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
            (self.has_losses() && self.has_short_queue(), Limit::PathRate),
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
            || is_at_least(lost_millionths, LOST_BY_RATE) && self.evidence.rate > 0;
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
        (self.is_large(room_bytes) || self.is_closing()) && self.receiver_wants_cpu(MOST)
    }

    /// Less than half of the room is filled by what is on its way.
    fn is_large(&self, room_bytes: Option<u64>) -> bool {
        self.on_its_way()
            .zip(room_bytes)
            .is_some_and(|(bytes, room_bytes)| room_bytes >= bytes.saturating_mul(2))
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

    /// They are somewhat longer: with losses, a queue that holds less than a round trip takes.
    fn has_short_queue(&self) -> bool {
        let Evidence { idle_round_trip_us, loaded_round_trip_us, .. } = self.evidence;
        idle_round_trip_us.zip(loaded_round_trip_us).is_some_and(|(idle_us, loaded_us)| {
            loaded_us >= idle_us.saturating_add(idle_us / 4).saturating_add(QUEUE_US)
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
            // What the receiver does not read fills a larger window, too.
            Limit::ReceiveWindow if self.is_closing() || self.is_large(evidence.window_bytes) => {
                None
            }
            Limit::ReceiveWindow => self.larger_window(evidence.window_bytes),
            Limit::SendBuffer => self.larger_window(evidence.send_buffer_bytes),
            Limit::ReceiveBuffer => {
                let bytes = evidence.receive_buffer_bytes?.saturating_mul(2);
                Some(Hint::LargerReceiveBuffer { bytes })
            }
            Limit::SenderCpu | Limit::ReceiverCpu
                if self.protocol != Protocol::Udp && self.block_bytes < SMALL_BLOCK =>
            {
                Some(Hint::LargerBlocks)
            }
            // There is no CPU left for more streams.
            Limit::SenderCpu | Limit::ReceiverCpu if is_at_least(self.queued_share, QUEUED) => {
                self.may_copy_less.then_some(Hint::FewerCopies)
            }
            Limit::SenderCpu | Limit::ReceiverCpu => Some(Hint::MoreStreams),
            Limit::RequestedRate => Some(Hint::HigherRate),
            // The option is that of each stream.
            Limit::PathRate if self.protocol == Protocol::Udp => {
                let rate = evidence.rate / self.streams.max(1);
                let is_less = self.lost > 0 || evidence.requested_rate.is_some();
                (is_less && rate > 0).then_some(Hint::LowerRate { rate })
            }
            Limit::PathLoss if self.protocol == Protocol::Tcp => Some(Hint::OtherCongestionControl),
            Limit::PathRate | Limit::PathLoss | Limit::Application | Limit::Unclear => None,
        }
    }

    /// Room for twice the rate, but twice what there is at least: a window that is not used to its end
    /// would else be called large enough.
    fn larger_window(&self, present_bytes: Option<u64>) -> Option<Hint> {
        let needed = self.on_its_way().map(|bytes| bytes.saturating_mul(2));
        let doubled = present_bytes.map(|bytes| bytes.saturating_mul(2));
        needed
            .max(doubled)
            .filter(|&bytes| bytes <= LARGEST_WINDOW)
            .map(|bytes| Hint::LargerWindow { bytes })
    }

    fn new(test: &Test<'_>, sums: &Sums) -> Self {
        let Test { settings, role, congestion, remote_cpu } = *test;
        let duration_ns = sums.duration_ns;
        // Pacing by the kernel may be asked for where there is none.
        let pacing = settings.fq_rate.filter(|rate| {
            !sums.reached(EXCEEDED_PERCENT, rate.0.saturating_mul(sums.streams), settings)
        });
        let rates = [settings.bitrate, pacing].into_iter().flatten();
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
            resent_millionths: sums
                .resent_bytes
                .map(|bytes| millionths(bytes, sums.sent_bytes.saturating_add(bytes))),
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
            block_bytes: settings.block_bytes,
            queued_share: sums.queued.mean(),
            may_copy_less: !(is_udp || settings.zero_copy && settings.skip_rx_copy),
            packets: sums.packets,
            lost: sums.lost.unwrap_or(0),
            lost_rows: sums.lost_rows,
            may_join: settings.joins_arrivals(),
            full_queue_share: sums.full_queue.mean(),
        }
    }
}

fn is_at_least<T: PartialOrd>(value: Option<T>, threshold: T) -> bool {
    value.is_some_and(|value| value >= threshold)
}

/// Of a rate that something holds a test to, no more than this passes.
const EXCEEDED_PERCENT: u128 = 200;
/// The rate that was asked for counts as reached from here on.
const REACHED_PERCENT: u128 = 95;
/// And from here on where the sender had nothing else to do.
const NEARLY_REACHED_PERCENT: u128 = 75;
/// A thread that ran or could have run so much of the time limits its stream, thousandths.
const BUSY: u16 = 850;
/// The same where nothing else explains it.
const RATHER_BUSY: u16 = 700;
/// Threads that had no CPU for so much of the time would be worse off with more of them, thousandths.
const QUEUED: u16 = 200;
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
/// Most datagrams that Linux joins, its `UDP_MAX_SEGMENTS`; older ones join 64.
const MOST_JOINED: u64 = 128;
/// A shorter test tells little, and few looks were taken of it.
const SHORTEST_NS: u64 = 100_000_000;
/// A test that is shorter is over before its streams have found out what the path takes.
const ROUND_TRIPS_OF_A_PATH: u64 = 20;
/// TCP: calls that move less than this are most of the work.
const SMALL_BLOCK: u32 = 16 << 10;
/// The most that `-w` takes, bytes.
const LARGEST_WINDOW: u64 = 512 << 20;
const MICROS_PER_SEC: u128 = 1_000_000;
/// A thousandth of one CPU.
const MICROPERCENT_PER_THOUSANDTH: u64 = 100_000;
