//! Generates reproducible random numbers from a seed and the number of the call.

/// Returns the `nth` random number for a seed.
///
/// Source: the finalizer of `SplitMix64`, Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
pub(crate) const fn draw(seed: u64, nth: u64) -> u64 {
    let mut bits = seed.wrapping_add(nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Returns the `nth` random number for a seed as a fraction in [0, 1).
pub(crate) fn fraction(seed: u64, nth: u64) -> f64 {
    let high = u32::try_from(draw(seed, nth) >> 32).unwrap_or(u32::MAX);
    f64::from(high) / (f64::from(u32::MAX) + 1.0)
}

/// Returns five random letters and digits from the alphabet of generated names.
///
/// Source: apimachinery pkg/util/rand/rand.go, `alphanums`.
pub(crate) fn letters(seed: u64, nth: u64) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut bits = draw(seed, nth);
    let mut text = String::new();
    for _ in 0..5 {
        let letter = usize::try_from(bits % ALPHABET.len() as u64).ok().and_then(|index| ALPHABET.get(index));
        text.extend(letter.map(|letter| char::from(*letter)));
        bits /= ALPHABET.len() as u64;
    }
    text
}

/// Returns the entries in a random order that depends only on `seed` and `nth`.
pub(crate) fn shuffled<T>(mut entries: Vec<T>, seed: u64, nth: u64) -> Vec<T> {
    let own = draw(seed, nth);
    for last in (1..entries.len()).rev() {
        let other = usize::try_from(draw(own, last as u64) % (last as u64 + 1)).unwrap_or(last);
        entries.swap(last, other);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_uniformly_distributed() {
        for seed in [0, 1, 7, u64::MAX] {
            let heads = (0..10_000).filter(|nth| fraction(seed, *nth) < 0.5).count();
            assert!((4_800..5_200).contains(&heads), "{heads} of 10000 with seed {seed}");
        }
    }

    #[test]
    fn seeds_and_calls_are_reproducible() {
        assert_eq!(letters(1, 2), letters(1, 2));
        assert_ne!(letters(1, 2), letters(1, 3));
        assert_ne!(letters(1, 2), letters(2, 2));
        assert_eq!(letters(1, 2).len(), 5);
    }

    #[test]
    fn every_order_occurs() {
        let orders: std::collections::BTreeSet<_> =
            (0..200).map(|nth| shuffled(vec![1, 2, 3], 7, nth)).collect();
        assert_eq!(orders.len(), 6);
    }
}
