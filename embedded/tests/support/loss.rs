//! Which frames a cable loses, by a seed.

/// Which frames are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    None,
    /// One of so many, by chance.
    OneOf(u64),
    All,
}

/// Decides about one frame after the other.
#[derive(Debug)]
pub(crate) struct Lottery {
    pub(crate) loss: Loss,
    seed: u64,
}

impl Lottery {
    pub(crate) const fn new() -> Self {
        Self { loss: Loss::None, seed: 1 }
    }

    pub(crate) fn loses_the_next(&mut self) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::All => true,
            Loss::OneOf(count) => next_random(&mut self.seed).is_multiple_of(count),
        }
    }
}

/// The next of a row of numbers. Knuth's multiplier; the high bits are random enough for tests.
pub(crate) fn next_random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    *seed >> 33
}
