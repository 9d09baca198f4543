//! A generator of numbers that gives the same for the same seed, today and on every machine.

/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (`SplitMix64`).
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The numbers of one situation of a seed.
    pub(crate) fn of(seed: u64, situation: u64) -> Self {
        let mut random = Self { state: seed };
        let mixed = random.next() ^ situation.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { state: mixed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    /// A number of `least..=most`.
    pub(crate) fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// True in `percent` of 100 times.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the choices.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut random = Random::of(1, 2);
        let numbers: Vec<usize> = (0..4).map(|_| random.below(1000)).collect();
        let mut again = Random::of(1, 2);
        assert_eq!(numbers, (0..4).map(|_| again.below(1000)).collect::<Vec<_>>());
        assert_ne!(Random::of(1, 3).below(usize::MAX), Random::of(1, 2).below(usize::MAX));
    }
}
