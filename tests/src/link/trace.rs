//! The truth about one direction of a link: which frames of data entered it, and which left it in
//! which order. Whatever a receiver says of loss and order is held against this.

/// Frames by their place in the order of sending, counted from one.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    sent: u64,
    arrived: Vec<u64>,
}

/// What a receiver should have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Truth {
    /// The highest place that arrived: a receiver cannot know of more.
    pub highest: u64,
    /// Places below it that never arrived.
    pub lost: u64,
    /// First arrivals after one of a higher place.
    pub out_of_order: u64,
    /// Arrivals of a place that had arrived before.
    pub duplicates: u64,
}

impl Trace {
    /// Notes a frame that enters, and gives its place.
    pub fn send(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    /// Notes a frame that leaves.
    pub fn arrive(&mut self, place: u64) {
        self.arrived.push(place);
    }

    /// Frames that entered.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What arrived, and how.
    pub fn truth(&self) -> Truth {
        self.truth_until(self.sent)
    }

    /// The same for a receiver that knows of no place above `highest`: it may have stopped before the
    /// rest arrived.
    pub fn truth_until(&self, highest: u64) -> Truth {
        let mut truth = Truth::default();
        let mut different = 0;
        let mut has_arrived = vec![false; self.sent as usize + 1];
        for &place in self.arrived.iter().take_while(|&&place| place <= highest) {
            different += u64::from(!has_arrived[place as usize]);
            if std::mem::replace(&mut has_arrived[place as usize], true) {
                truth.duplicates += 1;
            } else if place < truth.highest {
                truth.out_of_order += 1;
            }
            truth.highest = truth.highest.max(place);
        }
        truth.lost = truth.highest - different;
        truth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_is_told_from_the_order_of_arrival() {
        let mut trace = Trace::default();
        for place in 1..=8 {
            assert_eq!(trace.send(), place);
        }
        // 3 and 5 never arrive, 2 is overtaken, 4 and 2 come twice, 7 and 8 are lost at the end.
        [1, 4, 2, 4, 6, 2].into_iter().for_each(|place| trace.arrive(place));
        let truth = Truth { highest: 6, lost: 2, out_of_order: 1, duplicates: 2 };
        assert_eq!((trace.sent(), trace.truth()), (8, truth));
        let early = Truth { highest: 4, lost: 1, out_of_order: 1, duplicates: 1 };
        assert_eq!(trace.truth_until(5), early, "who left when 6 came");
    }
}
