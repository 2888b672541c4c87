//! What a network does to packets of one direction: delays, loses, doubles, overtakes and drops
//! them, by chance but from a seed. It does not know what it carries, and counts what it did, so that
//! a measurement can be held against the truth.

use linerate_core::time::{Instant, NANOS_PER_SEC};

use crate::virtual_time::random::Random;

/// The properties of one direction of a link. Chances are in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkModel {
    /// Every packet takes at least so long.
    pub latency_ns: u64,
    /// And up to so much longer, without overtaking.
    pub jitter_ns: u64,
    /// And longer still by a pattern, without overtaking.
    pub pattern: Option<Pattern>,
    /// Chance of a packet to be lost, each on its own.
    pub loss_ppm: u32,
    /// Loss in bursts.
    pub burst: Option<Burst>,
    /// Loss at places that are known before.
    pub holes: Option<Holes>,
    /// Chance of a packet to arrive twice.
    pub duplicate_ppm: u32,
    /// Packets that are overtaken.
    pub reorder: Option<Reorder>,
    /// How fast packets go onto the link, bits a second; none means at once.
    pub rate: Option<u64>,
    /// Most bytes that wait for the link; more are dropped. None means without end.
    pub queue_bytes: Option<u64>,
    /// How far the clock of the receiving end is ahead of the sending one's; negative is behind.
    pub clock_offset_ns: i64,
}

impl LinkModel {
    /// A link that does nothing to packets.
    pub const STILL: Self = Self {
        latency_ns: 0,
        jitter_ns: 0,
        pattern: None,
        loss_ppm: 0,
        burst: None,
        holes: None,
        duplicate_ppm: 0,
        reorder: None,
        rate: None,
        queue_bytes: None,
        clock_offset_ns: 0,
    };
}

/// Gilbert's model of loss: in the bad state packets are lost, and the state changes by chance with
/// each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Chance to get into the bad state.
    pub begin_ppm: u32,
    /// Chance to get out of it; the mean burst is a million divided by this.
    pub end_ppm: u32,
}

/// Rows of losses of one length: after each `every` packets that pass, the next `length` are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holes {
    /// Packets between two rows.
    pub every: u64,
    /// Packets of a row.
    pub length: u64,
}

/// A delay that has a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Now and then a packet is held up, and those behind it with it.
    Spikes {
        /// Chance of a packet to be held up.
        ppm: u32,
        /// How long.
        by_ns: u64,
    },
    /// A queue that others fill in the first half of each period and that drains in the second.
    Queue {
        /// From empty to empty.
        period_ns: u64,
        /// What the queue delays when it is deepest.
        deepest_ns: u64,
    },
    /// A device that hands on all it has at once, and then nothing for a while.
    Lumps {
        /// From one lump to the next.
        every_ns: u64,
    },
    /// Jitter that ends.
    Early {
        /// As long after the first packet.
        until_ns: u64,
        /// Each packet takes up to so much longer until then.
        jitter_ns: u64,
    },
}

/// Packets held back so that others overtake them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// Chance of a packet to be held back.
    pub ppm: u32,
    /// How long.
    pub by_ns: u64,
}

/// What a link did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounts {
    /// Packets that were sent.
    pub sent: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Dropped because the queue was full.
    pub overflowed: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Overtaken by a packet that was sent later.
    pub reordered: u64,
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub struct Link {
    model: LinkModel,
    random: Random,
    counts: LinkCounts,
    in_burst: bool,
    /// When the first packet went onto it.
    began: Option<Instant>,
    /// When the last packet has gone onto the link.
    busy_until: Instant,
    /// The latest arrival of packets that keep their order.
    latest: Instant,
    /// Arrivals of packets that were held back since the last one in order.
    held: Vec<Instant>,
}

impl Link {
    /// An idle link.
    pub const fn new(model: LinkModel, seed: u64) -> Self {
        Self {
            model,
            random: Random::new(seed),
            counts: LinkCounts { sent: 0, lost: 0, overflowed: 0, duplicated: 0, reordered: 0 },
            in_burst: false,
            began: None,
            busy_until: Instant::ZERO,
            latest: Instant::ZERO,
            held: Vec::new(),
        }
    }

    /// Sends a packet of `bytes` at `now`; says when it arrives: never, once or twice.
    pub fn send(&mut self, now: Instant, bytes: u64) -> impl Iterator<Item = Instant> + use<> {
        self.counts.sent += 1;
        let arrivals = self.departure(now, bytes).filter(|_| !self.is_lost()).map(|departed| {
            let first = self.arrival(departed);
            let second = self.random.happens(self.model.duplicate_ppm).then(|| {
                self.counts.duplicated += 1;
                first.plus_nanos(self.random.below(self.model.jitter_ns + 1))
            });
            std::iter::once(first).chain(second)
        });
        arrivals.into_iter().flatten()
    }

    /// What the link has done so far.
    pub const fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// What it is like.
    pub const fn model(&self) -> &LinkModel {
        &self.model
    }

    /// When the link is free for the next packet.
    pub const fn busy_until(&self) -> Instant {
        self.busy_until
    }

    /// What the receiving end's clock shows when the sending end's shows `near`.
    pub const fn far_clock(&self, near: Instant) -> Instant {
        Instant::from_nanos(near.as_nanos().saturating_add_signed(self.model.clock_offset_ns))
    }

    /// When the packet has gone onto the link; `None` if there is no room for it.
    fn departure(&mut self, now: Instant, bytes: u64) -> Option<Instant> {
        let Some(rate) = self.model.rate else { return Some(now) };
        let scaled = |amount: u64, by: u64, per: u64| {
            u64::try_from(u128::from(amount) * u128::from(by) / u128::from(per)).unwrap_or(u64::MAX)
        };
        let waiting_ns = self.busy_until.nanos_since(now);
        let queued_bytes = scaled(waiting_ns, rate, 8 * NANOS_PER_SEC);
        if self.model.queue_bytes.is_some_and(|most| queued_bytes + bytes > most) {
            self.counts.overflowed += 1;
            return None;
        }
        let begin = self.busy_until.max(now);
        self.busy_until = begin.plus_nanos(scaled(bytes, 8 * NANOS_PER_SEC, rate));
        Some(self.busy_until)
    }

    fn is_lost(&mut self) -> bool {
        if let Some(burst) = self.model.burst {
            let change_ppm = if self.in_burst { burst.end_ppm } else { burst.begin_ppm };
            self.in_burst ^= self.random.happens(change_ppm);
        }
        let in_hole = self.model.holes.is_some_and(|Holes { every, length }| {
            (self.counts.sent - 1) % (every + length) >= every
        });
        let lost = self.random.happens(self.model.loss_ppm) || self.in_burst || in_hole;
        self.counts.lost += u64::from(lost);
        lost
    }

    fn arrival(&mut self, departed: Instant) -> Instant {
        let delay_ns = self.model.latency_ns + self.random.below(self.model.jitter_ns + 1);
        let delay_ns = delay_ns + self.pattern_ns(departed);
        let in_order = departed.plus_nanos(delay_ns).max(self.latest);
        if let Some(reorder) = self.model.reorder
            && self.random.happens(reorder.ppm)
        {
            let late = in_order.plus_nanos(reorder.by_ns);
            self.held.push(late);
            return late;
        }
        self.latest = in_order;
        // Packets in order never arrive before this one, so what is held back is decided by it.
        let overtaken = self.held.iter().filter(|&&late| late > in_order).count();
        self.held.clear();
        self.counts.reordered += overtaken as u64;
        in_order
    }

    fn pattern_ns(&mut self, departed: Instant) -> u64 {
        let began = *self.began.get_or_insert(departed);
        let age_ns = departed.nanos_since(began);
        match self.model.pattern {
            Some(Pattern::Spikes { ppm, by_ns }) if self.random.happens(ppm) => by_ns,
            Some(Pattern::Queue { period_ns, deepest_ns }) => {
                let phase_ns = age_ns % period_ns;
                let from_empty_ns = phase_ns.min(period_ns - phase_ns);
                deepest_ns * from_empty_ns / (period_ns / 2)
            }
            Some(Pattern::Lumps { every_ns }) => every_ns - age_ns % every_ns,
            Some(Pattern::Early { until_ns, jitter_ns }) if age_ns < until_ns => {
                self.random.below(jitter_ns + 1)
            }
            Some(Pattern::Spikes { .. } | Pattern::Early { .. }) | None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sends 1000-byte packets each millisecond; gives the arrivals of each.
    fn sent(model: LinkModel, packets: u64) -> (Vec<Vec<u64>>, LinkCounts) {
        let mut link = Link::new(model, 11);
        let arrivals = (0..packets)
            .map(|index| link.send(Instant::from_nanos(index * MS), 1000))
            .map(|at| at.map(Instant::as_nanos).collect())
            .collect();
        (arrivals, link.counts())
    }

    #[test]
    fn a_plain_link_only_delays() {
        let (arrivals, counts) = sent(LinkModel { latency_ns: 5 * MS, ..Default::default() }, 3);
        assert_eq!(arrivals, [[5 * MS], [6 * MS], [7 * MS]]);
        assert_eq!(counts, LinkCounts { sent: 3, ..Default::default() });
    }

    #[test]
    fn jitter_does_not_reorder() {
        let model = LinkModel { jitter_ns: 50 * MS, ..Default::default() };
        let (arrivals, counts) = sent(model, 200);
        assert!(arrivals.iter().flatten().is_sorted());
        assert_eq!(counts.reordered, 0);
    }

    #[test]
    fn what_is_counted_is_what_happened() {
        let model = LinkModel {
            loss_ppm: 50_000,
            burst: Some(Burst { begin_ppm: 10_000, end_ppm: 300_000 }),
            duplicate_ppm: 30_000,
            reorder: Some(Reorder { ppm: 40_000, by_ns: 3 * MS }),
            ..Default::default()
        };
        let (arrivals, counts) = sent(model, 5000);
        let of_len = |len| arrivals.iter().filter(|at| at.len() == len).count() as u64;
        assert_eq!((of_len(0), of_len(2)), (counts.lost, counts.duplicated));
        let overtaken = (0..arrivals.len()).filter(|&index| {
            let Some(at) = arrivals[index].first() else { return false };
            arrivals[index + 1..]
                .iter()
                .take(10)
                .any(|later| later.first() < Some(at) && !later.is_empty())
        });
        assert_eq!(overtaken.count() as u64, counts.reordered);
        assert!(
            counts.lost > 300 && counts.duplicated > 80 && counts.reordered > 100,
            "{counts:?}"
        );
    }

    #[test]
    fn losses_come_in_bursts_of_the_mean_length() {
        let burst = Some(Burst { begin_ppm: 10_000, end_ppm: 250_000 });
        let (arrivals, counts) = sent(LinkModel { burst, ..Default::default() }, 50_000);
        let bursts = arrivals.windows(2).filter(|w| !w[0].is_empty() && w[1].is_empty()).count();
        let mean = counts.lost as f64 / bursts as f64;
        assert!((3.5..4.5).contains(&mean), "a million by 250000 is 4, got {mean}");
    }

    #[test]
    fn holes_are_where_they_should_be() {
        let holes = Some(Holes { every: 7, length: 3 });
        let (arrivals, counts) = sent(LinkModel { holes, ..Default::default() }, 100);
        let lost = (0..100).filter(|&index| arrivals[index].is_empty());
        assert!(lost.eq((0..100).filter(|index| index % 10 >= 7)));
        assert_eq!(counts.lost, 30);
    }

    #[test]
    fn patterns_delay_by_their_shape() {
        let delays = |pattern, packets: u64| {
            let (arrivals, _) =
                sent(LinkModel { pattern: Some(pattern), ..Default::default() }, packets);
            let delays = (0..).zip(arrivals).map(|(index, at)| at[0] - index * MS);
            delays.collect::<Vec<u64>>()
        };
        let queue = Pattern::Queue { period_ns: 8 * MS, deepest_ns: 2 * MS };
        let expected = [0, 500, 1000, 1500, 2000, 1500, 1000, 500, 0, 500].map(|us| us * 1000);
        assert_eq!(delays(queue, 10), expected);
        let spikes = delays(Pattern::Spikes { ppm: 10_000, by_ns: 3 * MS }, 5000);
        assert_eq!(spikes.iter().max(), Some(&(3 * MS)));
        let behind = spikes.windows(2).filter(|pair| pair[0] == 3 * MS && pair[1] < 3 * MS);
        assert!(behind.clone().count() > 20 && behind.clone().all(|pair| pair[1] == 2 * MS));
        let lumps = delays(Pattern::Lumps { every_ns: 4 * MS }, 6);
        assert_eq!(lumps, [4, 3, 2, 1, 4, 3].map(|ms| ms * MS));
        let early = delays(Pattern::Early { until_ns: 50 * MS, jitter_ns: MS / 2 }, 100);
        assert!(early[..50].iter().any(|delay| *delay > MS / 4) && early[50..] == [0; 50]);
    }

    #[test]
    fn a_rate_spaces_packets_and_a_full_queue_drops_them() {
        // 1000 bytes at 4 Mbit/s take 2 ms, but one comes each millisecond; three fit the queue.
        let model =
            LinkModel { rate: Some(4_000_000), queue_bytes: Some(3000), ..Default::default() };
        let (arrivals, counts) = sent(model, 100);
        let times: Vec<u64> = arrivals.into_iter().flatten().collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 2 * MS));
        assert_eq!(counts.overflowed + times.len() as u64, 100);
        assert!(counts.overflowed > 40);
    }

    #[test]
    fn clocks_differ_by_the_offset() {
        let link = Link::new(LinkModel { clock_offset_ns: -7, ..Default::default() }, 0);
        assert_eq!(link.far_clock(Instant::from_nanos(10)), Instant::from_nanos(3));
    }
}
