//! A small seeded generator (SplitMix64), the same everywhere for ever: a seed that is printed by a
//! failing test repeats it on any machine.

/// A sequence of pseudo-random numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; zero if `bound` is zero.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// `true` in `per_million` of a million cases. Draws nothing for a chance of zero, so that an
    /// impairment that is off does not change what the others do.
    pub const fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.below(1_000_000) < per_million as u64
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Seeds of a suite: `LINERATE_SEED` alone if it is set, else the first `usual` numbers, or `long`
/// of them with `LINERATE_LONG=1`.
pub fn seeds(usual: u64, long: u64) -> std::ops::Range<u64> {
    let given = |name| std::env::var(name).ok();
    if let Some(text) = given("LINERATE_SEED") {
        let seed = text.parse().expect("LINERATE_SEED is a number");
        return seed..seed + 1;
    }
    0..if given("LINERATE_LONG").is_some_and(|text| text == "1") { long } else { usual }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_sequence() {
        let mut random = Random::new(1_234_567);
        let numbers: [u64; 3] = std::array::from_fn(|_| random.next());
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn chances_are_what_they_say() {
        let mut random = Random::new(3);
        let hits = (0..100_000).filter(|_| random.happens(20_000)).count();
        assert!((1800..2200).contains(&hits), "2 % of 100000, got {hits}");
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
