//! Which datagrams of a stream are missing, late or doubled, told exactly within a window of recent
//! sequence numbers, how late the late ones were, and in how long rows the missing ones are missing.
//! iperf3 keeps only the highest number, so a duplicate hides a loss there.

use crate::report::{LossBursts, Reordering};

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
    /// One that had been here before.
    Duplicate,
    /// One so old that nothing is known of it any more: it repairs no loss.
    TooLate,
    /// Zero is no sequence number.
    Invalid,
}

/// The highest number seen and a bitmap of numbers up to it, 64 a word: those of the word that the
/// highest lies in, and of the `WORDS - 1` before it.
#[derive(Debug, Clone)]
pub struct SequenceTracker<const WORDS: usize> {
    highest: u64,
    lost: u64,
    out_of_order: u64,
    duplicates: u64,
    too_late: u64,
    extent: Reordering,
    bursts: Bursts,
    /// A word's bits beyond the highest number are zero.
    seen: [u64; WORDS],
}

impl<const WORDS: usize> SequenceTracker<WORDS> {
    /// A tracker that has seen nothing.
    pub const fn new() -> Self {
        Self {
            highest: 0,
            lost: 0,
            out_of_order: 0,
            duplicates: 0,
            too_late: 0,
            extent: Reordering { count: 0, extent_sum: 0, max_extent: 0 },
            bursts: Bursts { from: 1, open: 0, count: 0, longest: 0 },
            seen: [0; WORDS],
        }
    }

    /// Notes a datagram and says what its number means.
    #[inline]
    pub fn record(&mut self, sequence: u64) -> Arrival {
        // Nearly all are the next, and in the same word as the one before.
        if sequence == self.highest.wrapping_add(1) && !sequence.is_multiple_of(64) {
            self.mark(sequence);
            self.highest = sequence;
            return Arrival::InOrder;
        }
        self.record_other(sequence)
    }

    #[inline(never)]
    fn record_other(&mut self, sequence: u64) -> Arrival {
        if sequence == 0 {
            return Arrival::Invalid;
        }
        if sequence > self.highest {
            return self.advance(sequence);
        }
        if self.highest / 64 - sequence / 64 >= WORDS as u64 {
            self.too_late += 1;
            return Arrival::TooLate;
        }
        if self.has_seen(sequence) {
            self.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.mark(sequence);
        self.out_of_order += 1;
        self.lost -= 1;
        let extent = self.seen_above(sequence);
        self.extent.count += 1;
        self.extent.extent_sum = self.extent.extent_sum.saturating_add(extent);
        self.extent.max_extent = self.extent.max_extent.max(extent);
        Arrival::Late
    }

    /// Notes `count` datagrams that follow the highest, one after the other.
    pub fn record_next(&mut self, count: u64) {
        let mut left = count;
        while left > 0 {
            let next = self.highest + 1;
            if next.is_multiple_of(64) {
                self.enter(next / 64);
            }
            let (word, bit) = Self::place(next);
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

    /// The highest number seen.
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

    /// Datagrams so old that they may have been missing or not.
    pub const fn too_late(&self) -> u64 {
        self.too_late
    }

    /// How late those out of order were since the last [`restart`](Self::restart).
    pub fn reordering(&self) -> Reordering {
        self.extent
    }

    /// The rows of missing numbers since the last [`restart`](Self::restart), as it looks now.
    pub fn loss_bursts(&self) -> LossBursts {
        let mut bursts = self.bursts;
        let last = self.highest / 64;
        for number in (last + 1).saturating_sub(WORDS as u64)..=last {
            let part = if number == last { self.highest % 64 + 1 } else { 64 };
            if WORDS > 0 {
                bursts.judge(number, self.seen[(number % WORDS as u64) as usize], part as u32);
            }
        }
        LossBursts { count: bursts.count, longest: bursts.longest }
    }

    /// Extents and rows of missing numbers are counted anew, from the next number on.
    pub fn restart(&mut self) {
        self.extent = Reordering::default();
        self.bursts =
            Bursts { from: self.highest.saturating_add(1), open: 0, count: 0, longest: 0 };
    }

    fn advance(&mut self, sequence: u64) -> Arrival {
        let missing = sequence - self.highest - 1;
        let (from, to) = (self.highest / 64, sequence / 64);
        if to != from {
            let entered = (to - from).min(WORDS as u64);
            for number in from + 1..=from + entered {
                self.enter(number);
            }
            // What lies between all that was kept and all that is kept now.
            self.bursts.miss(from + 1, (to - from - entered).saturating_mul(64));
        }
        self.mark(sequence);
        self.highest = sequence;
        self.lost = self.lost.saturating_add(missing);
        if missing == 0 { Arrival::InOrder } else { Arrival::Gap(missing) }
    }

    /// Makes room for the word of this number; what was in its place is too old to be repaired.
    fn enter(&mut self, number: u64) {
        let slot = (number % WORDS as u64) as usize;
        if let Some(old) = number.checked_sub(WORDS as u64) {
            self.bursts.judge(old, self.seen[slot], 64);
        }
        self.seen[slot] = 0;
    }

    /// How many with higher numbers have been seen.
    fn seen_above(&self, sequence: u64) -> u64 {
        let (word, bit) = Self::place(sequence);
        let in_word = (self.seen[word] & !(bit | (bit - 1))).count_ones();
        let later = sequence / 64 + 1..=self.highest / 64;
        let in_later = later.map(|number| self.seen[(number % WORDS as u64) as usize].count_ones());
        u64::from(in_word) + in_later.map(u64::from).sum::<u64>()
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
        ((sequence / 64 % WORDS as u64) as usize, 1 << (sequence % 64))
    }
}

impl<const WORDS: usize> Default for SequenceTracker<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

/// Rows of missing numbers, found where they are too old to be repaired.
#[derive(Debug, Clone, Copy)]
struct Bursts {
    /// Earlier numbers are not judged.
    from: u64,
    /// Missing ones at the end of what was judged.
    open: u64,
    count: u64,
    longest: u64,
}

impl Bursts {
    /// Judges the first `part` numbers of a word.
    fn judge(&mut self, number: u64, seen: u64, part: u32) {
        if seen == u64::MAX && part == 64 {
            self.close();
            return;
        }
        let first = number.saturating_mul(64);
        let mut left = part;
        let mut seen = seen;
        if let Some(skipped @ 1..) = self.from.checked_sub(first) {
            let skipped = skipped.min(u64::from(part)) as u32;
            left -= skipped;
            if left == 0 {
                return;
            }
            seen >>= skipped;
        }
        while left > 0 {
            let missing = seen.trailing_zeros().min(left);
            self.open += u64::from(missing);
            left -= missing;
            if left == 0 {
                return;
            }
            seen >>= missing;
            self.close();
            let there = seen.trailing_ones().min(left);
            left -= there;
            if left > 0 {
                seen >>= there;
            }
        }
    }

    /// Notes that `count` numbers of words from `number` on are missing.
    fn miss(&mut self, number: u64, count: u64) {
        let skipped = self.from.saturating_sub(number.saturating_mul(64));
        self.open = self.open.saturating_add(count.saturating_sub(skipped));
    }

    fn close(&mut self) {
        if self.open > 0 {
            self.longest = self.longest.max(self.open);
            self.count += 1;
            self.open = 0;
        }
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
        // The only word holds 64 to 127.
        let mut tracker = tracked(&[99]);
        assert_eq!(tracker.record(63), Arrival::TooLate);
        assert_eq!(tracker.record(64), Arrival::Late);
        assert_eq!((tracker.lost(), tracker.too_late(), tracker.duplicates()), (97, 1, 0));
    }

    #[test]
    fn extents_count_what_came_before() {
        // 2 comes after 3 and 5; 4 after 5 and 70.
        let mut tracker = SequenceTracker::<2>::new();
        for sequence in [1, 3, 5, 2, 70, 4] {
            tracker.record(sequence);
        }
        let told = Reordering { count: 2, extent_sum: 4, max_extent: 2 };
        assert_eq!(tracker.reordering(), told);
        tracker.restart();
        assert_eq!(tracker.reordering(), Reordering::default());
    }

    #[test]
    fn rows_of_losses_are_told_across_words_and_beyond_the_window() {
        for (sequences, count, longest) in [
            (&[1_u64, 2, 3][..], 0, 0),
            (&[3], 1, 2),
            (&[1, 3, 6, 7, 8, 10], 3, 2),
            (&[60, 70], 2, 59),
            (&[1, 64, 129], 2, 64),
            (&[1, 1_000_000, 1_000_002], 2, 999_998),
            (&[1, 5, 4, 3, 2], 0, 0),
        ] {
            assert_eq!(tracked(sequences).loss_bursts(), LossBursts { count, longest });
        }
        let mut tracker = tracked(&[1, 10]);
        tracker.restart();
        tracker.record(13);
        assert_eq!(tracker.loss_bursts(), LossBursts { count: 1, longest: 2 });
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

    /// For each late one, how many with higher numbers came before it.
    fn extent_sum(sequences: &[u64]) -> u64 {
        let mut seen = HashSet::new();
        let late = sequences.iter().map(|&sequence| {
            let is_new = seen.insert(sequence);
            let above = seen.iter().filter(|&&other| other > sequence).count() as u64;
            if is_new { above } else { 0 }
        });
        late.sum()
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
            prop_assert_eq!(tracker.reordering().extent_sum, extent_sum(&sequences));
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
        fn rows_of_losses_equal_a_set_of_numbers(
            steps in prop::collection::vec((0u64..3, 1u64..90), 1..60),
        ) {
            // Repairs come at once or not at all, so that none is beyond the window.
            let (mut tracker, mut seen) = (SequenceTracker::<2>::new(), HashSet::new());
            let mut highest = 0;
            for (back, ahead) in steps {
                highest += ahead;
                for sequence in [highest, highest.saturating_sub(back).max(1)] {
                    tracker.record(sequence);
                    seen.insert(sequence);
                }
            }
            let (mut count, mut longest, mut open) = (0, 0, 0);
            for sequence in 1..=highest {
                open = if seen.contains(&sequence) { 0 } else { open + 1 };
                count += u64::from(open == 1);
                longest = longest.max(open);
            }
            prop_assert_eq!(tracker.loss_bursts(), LossBursts { count, longest });
        }

        #[test]
        fn any_numbers_are_survived(sequences in prop::collection::vec(any::<u64>(), 0..50)) {
            let tracker = tracked(&sequences);
            prop_assert!(tracker.lost() <= tracker.highest());
            prop_assert!(tracker.loss_bursts().longest <= tracker.highest());
        }
    }
}
