//! Which frames a cable loses, by a seed.

use linerate_tests::virtual_time::random::Random;

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
    random: Random,
}

impl Lottery {
    pub(crate) const fn new() -> Self {
        Self { loss: Loss::None, random: Random::new(1) }
    }

    pub(crate) fn loses_the_next(&mut self) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::All => true,
            Loss::OneOf(count) => self.random.below(count) == 0,
        }
    }
}
