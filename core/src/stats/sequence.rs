//! Which datagrams of a stream are missing, late or doubled, told exactly within a window of recent
//! sequence numbers. iperf3 keeps only the highest number, so a duplicate hides a loss there.

/// What one datagram's sequence number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Arrival {
    /// The next one.
    InOrder,
    /// It is ahead: so many before it are missing for now.
    Gap(u64),
    /// One that was counted as missing.
    Late,
    /// One that had been here before, or so old that the window cannot tell.
    Duplicate,
    /// Zero is no sequence number.
    Invalid,
}

/// The highest number seen and a bitmap of the `64 * WORDS` numbers up to it.
#[derive(Debug, Clone)]
pub struct SequenceTracker<const WORDS: usize> {
    highest: u64,
    lost: u64,
    out_of_order: u64,
    duplicates: u64,
    seen: [u64; WORDS],
}

impl<const WORDS: usize> SequenceTracker<WORDS> {
    /// How far back a late datagram is told from a duplicate.
    pub const WINDOW: u64 = 64 * WORDS as u64;

    /// A tracker that has seen nothing.
    pub const fn new() -> Self {
        Self { highest: 0, lost: 0, out_of_order: 0, duplicates: 0, seen: [0; WORDS] }
    }

    /// Notes a datagram and says what its number means.
    pub fn record(&mut self, sequence: u64) -> Arrival {
        if sequence == 0 {
            return Arrival::Invalid;
        }
        if sequence > self.highest {
            return self.advance(sequence);
        }
        if self.highest - sequence >= Self::WINDOW || self.has_seen(sequence) {
            self.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.mark(sequence);
        self.out_of_order += 1;
        self.lost -= 1;
        Arrival::Late
    }

    /// Notes `count` datagrams that follow the highest, one after the other.
    pub fn record_next(&mut self, count: u64) {
        let mut left = count;
        while left > 0 {
            let (word, bit) = Self::place(self.highest + 1);
            let room = u64::from(bit.leading_zeros()) + 1;
            let part = left.min(room);
            // As many ones from the bit on as there are numbers in this word.
            self.seen[word] |= (u64::MAX >> (64 - part)) << bit.trailing_zeros();
            self.highest += part;
            left -= part;
        }
    }

    /// The full number of a datagram that carried only the low 32 bits: the one nearest to the
    /// highest seen.
    pub fn unwrap(&self, low: u32) -> u64 {
        let ahead = low.wrapping_sub(self.highest as u32) as i32;
        let full = self.highest.wrapping_add_signed(i64::from(ahead));
        // Before the first wrap there is nothing below zero to be nearest to.
        if ahead < 0 && full > self.highest { u64::from(low) } else { full }
    }

    /// Highest number seen; zero before the first.
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// Numbers below the highest that have not been seen.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Datagrams that came after a higher number.
    pub const fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Datagrams that came again.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    fn advance(&mut self, sequence: u64) -> Arrival {
        let missing = sequence - self.highest - 1;
        if missing >= Self::WINDOW {
            self.seen = [0; WORDS];
        } else {
            for skipped in self.highest + 1..sequence {
                let (word, bit) = Self::place(skipped);
                self.seen[word] &= !bit;
            }
        }
        self.mark(sequence);
        self.highest = sequence;
        self.lost = self.lost.saturating_add(missing);
        if missing == 0 { Arrival::InOrder } else { Arrival::Gap(missing) }
    }

    fn has_seen(&self, sequence: u64) -> bool {
        let (word, bit) = Self::place(sequence);
        self.seen[word] & bit != 0
    }

    fn mark(&mut self, sequence: u64) {
        let (word, bit) = Self::place(sequence);
        self.seen[word] |= bit;
    }

    const fn place(sequence: u64) -> (usize, u64) {
        let slot = sequence % Self::WINDOW;
        ((slot / 64) as usize, 1 << (slot % 64))
    }
}

impl<const WORDS: usize> Default for SequenceTracker<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn tracked(sequences: &[u64]) -> SequenceTracker<1> {
        let mut tracker = SequenceTracker::new();
        for &sequence in sequences {
            tracker.record(sequence);
        }
        tracker
    }

    #[test]
    fn a_duplicate_never_hides_a_loss() {
        // Numbers 3, 6, 7 and 9 are missing at the end; 4 came late, then twice more. iperf3 would
        // report 3 lost and 4 out of order, because each 4 cancels a loss.
        let tracker = tracked(&[1, 2, 5, 4, 4, 4, 8, 10]);
        assert_eq!((tracker.highest(), tracker.lost()), (10, 4));
        assert_eq!((tracker.out_of_order(), tracker.duplicates()), (1, 2));
    }

    #[test]
    fn late_datagram_reduces_loss() {
        let mut tracker = tracked(&[1, 4]);
        assert_eq!(tracker.lost(), 2);
        assert_eq!(tracker.record(2), Arrival::Late);
        assert_eq!(tracker.lost(), 1);
    }

    #[test]
    fn older_than_the_window_is_not_taken_for_a_repair() {
        // The window of one word reaches 64 back: 36 is the oldest that can be told from 99.
        let mut tracker = tracked(&[99]);
        assert_eq!(tracker.record(35), Arrival::Duplicate);
        assert_eq!(tracker.record(36), Arrival::Late);
        assert_eq!(tracker.lost(), 97);
    }

    #[test]
    fn counters_of_32_bits_are_unwrapped() {
        let mut tracker = SequenceTracker::<1>::new();
        assert_eq!(tracker.unwrap(u32::MAX), u64::from(u32::MAX));
        tracker.record(u64::from(u32::MAX) - 1);
        assert_eq!(tracker.unwrap(u32::MAX), u64::from(u32::MAX));
        assert_eq!(tracker.unwrap(3), (1 << 32) + 3);
        tracker.record((1 << 32) + 3);
        assert_eq!(tracker.unwrap(u32::MAX), u64::from(u32::MAX), "late, from before the wrap");
    }

    proptest! {
        #[test]
        fn counts_equal_a_set_of_numbers(sequences in prop::collection::vec(1u64..60, 0..200)) {
            let tracker = tracked(&sequences);
            let seen: HashSet<u64> = sequences.iter().copied().collect();
            let highest = sequences.iter().copied().max().unwrap_or(0);
            prop_assert_eq!(tracker.highest(), highest);
            prop_assert_eq!(tracker.lost(), highest - seen.len() as u64);
            prop_assert_eq!(tracker.duplicates(), (sequences.len() - seen.len()) as u64);
        }

        #[test]
        fn many_at_once_are_one_after_the_other(before in 1u64..200, count in 0u64..200) {
            let (mut at_once, mut each) = (tracked(&[before]), tracked(&[before]));
            at_once.record_next(count);
            for ahead in 1..=count {
                each.record(before + ahead);
            }
            prop_assert_eq!(at_once.seen, each.seen);
            prop_assert_eq!((at_once.highest, at_once.lost), (each.highest, each.lost));
        }

        #[test]
        fn any_numbers_are_survived(sequences in prop::collection::vec(any::<u64>(), 0..50)) {
            let tracker = tracked(&sequences);
            prop_assert!(tracker.lost() <= tracker.highest());
        }
    }
}
