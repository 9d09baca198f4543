//! Generates random numbers that are reproducible from a seed on every machine.

/// The generator `SplitMix64`: a counter with a step of `0x9e3779b97f4a7c15`, mixed by two multiplications.
///
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 17.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Creates the generator for situation `number` of `seed`. Its numbers depend only on these two values.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let start = Self { state: seed }.next();
        Self { state: start ^ Self { state: number }.next().rotate_left(32) }
    }

    /// Returns the next value, uniformly distributed.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `end - 1`, or 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // The remainder fits, because it is less than `end`.
        let remainder = self.next().checked_rem(end as u64).unwrap_or_default();
        usize::try_from(remainder).unwrap_or_default()
    }

    /// Returns a number from `first` to `last`.
    pub(crate) fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last + 1 - first)
    }

    /// Returns true in `percent` of 100 calls.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `choices`. There must be at least one.
    pub(crate) fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        let place = self.below(choices.len());
        choices[place].clone()
    }

    /// Returns one of `choices` with a probability that is proportional to its weight.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(usize, T)]) -> T {
        let mut left = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        choices[0].1
    }

    /// Returns at least one of `choices`, in order.
    pub(crate) fn some_of<T: Clone>(&mut self, choices: &[T]) -> Vec<T> {
        let sure = self.below(choices.len());
        let mut chosen = Vec::new();
        for (place, choice) in choices.iter().enumerate() {
            if place == sure || self.chance(35) {
                chosen.push(choice.clone());
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_algorithm() {
        // The first values of the reference implementation for the seed 1234567.
        let mut random = Random { state: 1_234_567 };
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn situations_of_one_seed_differ() {
        assert_ne!(Random::new(1, 1).next(), Random::new(1, 2).next());
        assert_ne!(Random::new(1, 2).next(), Random::new(2, 1).next());
    }
}
