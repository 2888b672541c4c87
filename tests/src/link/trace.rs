//! The truth about one direction of a link: which frames of data entered it, and which left it when
//! and in which order. Whatever a receiver says of loss, order and delay is held against this. All of
//! it is worked out from the whole list, without the windows and buckets of a receiver.

use std::ops::Range;

use linerate_core::report::{LossBursts, Percentiles, Reordering};

/// Frames by their place in the order of sending, counted from one.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    sent: u64,
    arrived: Vec<Arrived>,
    /// Beyond so many places behind the highest a receiver knows nothing; none has no limit.
    window: Option<u64>,
}

/// A frame that left the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arrived {
    place: u64,
    delay_ns: u64,
}

/// What a receiver should have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Truth {
    /// Places up to the highest that arrived: a receiver cannot know of more.
    pub packets: u64,
    /// Those of them that never arrived.
    pub lost: u64,
    /// First arrivals after one of a higher place.
    pub out_of_order: u64,
    /// Arrivals of a place that had arrived before.
    pub duplicates: u64,
    /// Arrivals of a place behind the receiver's window: they count as lost.
    pub too_late: u64,
    /// How many of a higher place each one out of order came after.
    pub reordering: Reordering,
    /// Rows of those that never arrived.
    pub loss_bursts: LossBursts,
}

/// What a receiver should have found of the delays, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Delays {
    /// Delay beyond the shortest one since the measurement began.
    pub variation: Percentiles,
    /// Difference of delay between neighbours in order.
    pub differences: Percentiles,
    /// The mean of all of them since the measurement began.
    pub mean_ns: f64,
    /// The same smoothed as in RFC 3550, with the first one as its beginning.
    pub smoothed_ns: f64,
    /// The differences of all arrivals, in whatever order, smoothed from zero on: as iperf3 does it.
    pub iperf3_ns: f64,
}

impl Trace {
    /// A trace for a receiver that knows nothing of what is so many places behind.
    pub fn with_window(window: u64) -> Self {
        Self { window: Some(window), ..Self::default() }
    }

    /// Notes a frame that enters, and gives its place.
    pub fn send(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    /// Notes a frame that leaves, and how long it took.
    pub fn arrive(&mut self, place: u64, delay_ns: u64) {
        self.arrived.push(Arrived { place, delay_ns });
    }

    /// Frames that entered.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Arrivals so far.
    pub fn arrivals(&self) -> usize {
        self.arrived.len()
    }

    /// The place that arrived first.
    pub fn first(&self) -> Option<u64> {
        Some(self.arrived.first()?.place)
    }

    /// What arrived, and how.
    pub fn truth(&self) -> Truth {
        self.truth_of(0..self.arrived.len())
    }

    /// The arrivals before a place above `highest` came: a receiver that knows of none above it may
    /// have stopped before the rest arrived.
    pub fn until(&self, highest: u64) -> Range<usize> {
        let end = self.arrived.iter().position(|arrived| arrived.place > highest);
        0..end.unwrap_or(self.arrived.len())
    }

    /// What a stretch of the arrivals adds to what was before it.
    pub fn truth_of(&self, stretch: Range<usize>) -> Truth {
        let mut receiver = Receiver::new(self);
        for arrived in &self.arrived[..stretch.start] {
            receiver.take(arrived.place);
        }
        let first = receiver.highest;
        let mut truth = Truth::default();
        for arrived in &self.arrived[stretch] {
            match receiver.take(arrived.place) {
                Kind::Next | Kind::Ahead => {}
                Kind::TooLate => truth.too_late += 1,
                Kind::Again => truth.duplicates += 1,
                Kind::Late { extent } => {
                    truth.out_of_order += 1;
                    truth.reordering.count += 1;
                    truth.reordering.extent_sum += extent;
                    truth.reordering.max_extent = truth.reordering.max_extent.max(extent);
                }
            }
        }
        truth.packets = receiver.highest - first;
        let has_arrived = &receiver.has_arrived[first as usize + 1..=receiver.highest as usize];
        for row in has_arrived.split(|here| *here).filter(|row| !row.is_empty()) {
            truth.lost += row.len() as u64;
            truth.loss_bursts.count += 1;
            truth.loss_bursts.longest = truth.loss_bursts.longest.max(row.len() as u64);
        }
        truth
    }

    /// The delays of a stretch of the arrivals, of a measurement that began with `first` of them.
    pub fn delays_of(&self, stretch: Range<usize>, first: usize) -> Delays {
        let mut receiver = Receiver::new(self);
        let mut delays = Delays::default();
        let (mut all, mut differences) = (Vec::new(), Vec::new());
        let (mut before_ns, mut neighbour_ns, mut shortest_ns) = (None, None, u64::MAX);
        let mut smoothed_ns = None;
        let (mut count, mut sum_ns) = (0_u64, 0);
        for (index, &Arrived { place, delay_ns }) in self.arrived[..stretch.end].iter().enumerate()
        {
            let kind = receiver.take(place);
            if index < first {
                continue;
            }
            let step_ns = delay_ns.abs_diff(before_ns.replace(delay_ns).unwrap_or(delay_ns));
            delays.iperf3_ns += (step_ns as f64 - delays.iperf3_ns) / 16.0;
            if kind == Kind::Again {
                continue;
            }
            shortest_ns = shortest_ns.min(delay_ns);
            if index >= stretch.start {
                all.push(delay_ns);
            }
            if !matches!(kind, Kind::Next | Kind::Ahead) {
                continue;
            }
            let Some(neighbour_ns) = neighbour_ns.replace(delay_ns).filter(|_| kind == Kind::Next)
            else {
                continue;
            };
            let difference_ns = delay_ns.abs_diff(neighbour_ns);
            (count, sum_ns) = (count + 1, sum_ns + difference_ns);
            let before = smoothed_ns.unwrap_or(difference_ns as f64);
            smoothed_ns = Some(before + (difference_ns as f64 - before) / 16.0);
            if index >= stretch.start {
                differences.push(difference_ns);
            }
        }
        all.iter_mut().for_each(|delay_ns| *delay_ns -= shortest_ns);
        delays.smoothed_ns = smoothed_ns.unwrap_or(0.0);
        delays.mean_ns = sum_ns as f64 / count.max(1) as f64;
        (delays.variation, delays.differences) = (percentiles(all), percentiles(differences));
        delays
    }
}

/// What a receiver knows that forgets nothing within its window.
struct Receiver {
    has_arrived: Vec<bool>,
    highest: u64,
    window: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The one after the highest.
    Next,
    /// Beyond that one.
    Ahead,
    /// Overtaken by so many.
    Late {
        extent: u64,
    },
    Again,
    TooLate,
}

impl Receiver {
    fn new(trace: &Trace) -> Self {
        let has_arrived = vec![false; trace.sent as usize + 1];
        Self { has_arrived, highest: 0, window: trace.window.unwrap_or(u64::MAX) }
    }

    fn take(&mut self, place: u64) -> Kind {
        if self.highest.saturating_sub(place) > self.window {
            return Kind::TooLate;
        }
        if std::mem::replace(&mut self.has_arrived[place as usize], true) {
            return Kind::Again;
        }
        if place < self.highest {
            let above = &self.has_arrived[place as usize + 1..=self.highest as usize];
            return Kind::Late { extent: above.iter().filter(|here| **here).count() as u64 };
        }
        let before = std::mem::replace(&mut self.highest, place);
        if place == before + 1 { Kind::Next } else { Kind::Ahead }
    }
}

/// Of the whole list in order.
fn percentiles(mut durations_ns: Vec<u64>) -> Percentiles {
    durations_ns.sort_unstable();
    let at = |permille: usize| {
        let rank = (durations_ns.len() * permille).div_ceil(1000);
        durations_ns.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    };
    Percentiles {
        count: durations_ns.len() as u64,
        p50_ns: at(500),
        p90_ns: at(900),
        p99_ns: at(990),
        p999_ns: at(999),
        max_ns: at(1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(sent: u64, arrived: &[(u64, u64)]) -> Trace {
        let mut trace = Trace::default();
        (1..=sent).for_each(|place| assert_eq!(trace.send(), place));
        arrived.iter().for_each(|&(place, delay_ns)| trace.arrive(place, delay_ns));
        trace
    }

    #[test]
    fn truth_is_told_from_the_order_of_arrival() {
        // 3 and 5 never arrive, 2 is overtaken, 4 and 2 come twice, 7 and 8 are lost at the end.
        let trace = traced(8, &[1, 4, 2, 4, 6, 2].map(|place| (place, 0)));
        let truth = Truth {
            packets: 6,
            lost: 2,
            out_of_order: 1,
            duplicates: 2,
            too_late: 0,
            reordering: Reordering { count: 1, extent_sum: 1, max_extent: 1 },
            loss_bursts: LossBursts { count: 2, longest: 1 },
        };
        assert_eq!((trace.sent(), trace.truth()), (8, truth));
        let early = trace.truth_of(trace.until(5));
        assert_eq!((early.packets, early.lost, early.duplicates), (4, 1, 1), "left when 6 came");
        let late = trace.truth_of(2..6);
        assert_eq!((late.packets, late.lost), (2, 1), "3 is missing from what was before");
    }

    #[test]
    fn behind_the_window_nothing_is_known() {
        let mut trace = traced(9, &[1, 9, 5, 2, 2].map(|place| (place, 0)));
        trace.window = Some(4);
        let truth = trace.truth();
        assert_eq!((truth.lost, truth.out_of_order, truth.too_late), (6, 1, 2));
        assert_eq!(truth.loss_bursts, LossBursts { count: 2, longest: 3 });
    }

    #[test]
    fn delays_are_compared_with_the_shortest_and_the_one_before() {
        // 3 is missing, so there is no difference to 4; 2 comes again, and 5 after 6.
        let trace =
            traced(7, &[(1, 100), (2, 260), (4, 180), (2, 900), (6, 50), (5, 700), (7, 60)]);
        let delays = trace.delays_of(0..7, 0);
        let told = (delays.variation.count, delays.variation.p50_ns, delays.variation.max_ns);
        assert_eq!(told, (6, 50, 650));
        assert_eq!((delays.differences.count, delays.differences.max_ns), (2, 160));
        assert_eq!((delays.mean_ns, delays.smoothed_ns), (85.0, 160.0 - 150.0 / 16.0));
        let part = trace.delays_of(6..7, 1);
        assert_eq!((part.variation.count, part.variation.max_ns), (1, 10));
        assert_eq!((part.differences.count, part.mean_ns, part.smoothed_ns), (1, 10.0, 10.0));
    }
}
