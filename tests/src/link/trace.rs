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
        let mut truth = Truth::default();
        let mut has_arrived = vec![false; self.sent as usize + 1];
        for &place in &self.arrived {
            if std::mem::replace(&mut has_arrived[place as usize], true) {
                truth.duplicates += 1;
            } else if place < truth.highest {
                truth.out_of_order += 1;
            }
            truth.highest = truth.highest.max(place);
        }
        let different = self.arrived.len() as u64 - truth.duplicates;
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
        (0..8).for_each(|_| drop(trace.send()));
        // 3 and 5 never arrive, 2 is overtaken, 4 and 2 come twice, 7 and 8 are lost at the end.
        [1, 4, 2, 4, 6, 2].into_iter().for_each(|place| trace.arrive(place));
        let truth = Truth { highest: 6, lost: 2, out_of_order: 1, duplicates: 2 };
        assert_eq!((trace.sent(), trace.truth()), (8, truth));
    }
}
