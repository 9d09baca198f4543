//! Ranges of sizes and costs, with their arithmetic.
//!
//! Source: cel-go checker/cost.go, `SizeEstimate` and `CostEstimate`.

/// The bounds of a size or a cost. Sizes are counted in code points, bytes, elements, or entries; the size of any other
/// value is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Range {
    /// The minimum size or cost.
    pub min: u64,
    /// The maximum size or cost; `u64::MAX` if unbounded.
    pub max: u64,
}

impl Range {
    /// Creates a range from its minimum and maximum.
    pub fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    /// Creates a range whose minimum and maximum are `number`.
    pub fn exactly(number: u64) -> Self {
        Self::new(number, number)
    }

    /// Creates a range from 0 to `u64::MAX`.
    pub fn unknown() -> Self {
        Self::new(0, u64::MAX)
    }

    /// Returns the empty range; combining it with another range with `or` returns the other range.
    pub(super) fn nothing() -> Self {
        Self::new(u64::MAX, 0)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self::new(self.min.saturating_add(other.min), self.max.saturating_add(other.max))
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self::new(self.min.saturating_mul(other.min), self.max.saturating_mul(other.max))
    }

    /// Returns the range with each bound multiplied by a factor and rounded up.
    pub(super) fn by(self, factor: f64) -> Self {
        Self::new(scaled(self.min, factor), scaled(self.max, factor))
    }

    /// Returns the cost of reading a string of this size: a tenth of the size, rounded up.
    pub(super) fn read(self) -> Self {
        self.by(0.1)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self::new(self.min.min(other.min), self.max.max(other.max))
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the estimate is that of a server that counts in doubles; a cast to an integer saturates"
)]
fn scaled(number: u64, factor: f64) -> u64 {
    (number as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::Range;

    #[test]
    fn bounds_saturate() {
        assert_eq!(Range::unknown().plus(Range::exactly(1)), Range::new(1, u64::MAX));
        assert_eq!(Range::unknown().times(Range::exactly(2)), Range::new(0, u64::MAX));
        assert_eq!(Range::exactly(11).read(), Range::exactly(2));
        assert_eq!(Range::exactly(u64::MAX).by(2.0), Range::exactly(u64::MAX));
        assert_eq!(Range::unknown().read(), Range::new(0, 1_844_674_407_370_955_264));
    }
}
