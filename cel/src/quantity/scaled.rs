//! 64-bit numbers with an exponent.

use super::decimal::{Decimal, approximate};

/// A number: `value` times ten to the power of `scale`.
///
/// Source: apimachinery pkg/api/resource/amount.go, `int64Amount`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scaled {
    pub(super) value: i64,
    pub(super) scale: i32,
}

impl Scaled {
    /// Returns the integer, or `None` if the number has a fractional part or does not fit into 64 bits.
    ///
    /// Source: apimachinery pkg/api/resource/amount.go, `AsInt64`.
    pub(super) fn as_integer(self) -> Option<i64> {
        if self.scale < 0 { None } else { scaled_up(self.value, self.scale) }
    }

    /// Returns the sum, or `None` if it does not fit into 64 bits.
    ///
    /// Source: apimachinery pkg/api/resource/amount.go, `Add`.
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        if other.value == 0 {
            return Some(self);
        }
        if self.value == 0 {
            return Some(other);
        }
        let (high, low) = if self.scale > other.scale { (self, other) } else { (other, self) };
        let raised = scaled_up(high.value, high.scale.wrapping_sub(low.scale))?;
        Some(Self { value: raised.checked_add(low.value)?, scale: low.scale })
    }

    /// Returns the negated number; the minimum value stays unchanged.
    pub(super) fn wrapping_negated(self) -> Self {
        Self { value: self.value.wrapping_neg(), scale: self.scale }
    }

    /// Returns the number in units of ten to the power of `exponent`, and whether the result is exact. The result is
    /// rounded away from zero. Returns `None` if the result does not fit into 64 bits.
    ///
    /// Source: apimachinery pkg/api/resource/amount.go, `AsScaledInt64`, and math.go, `negativeScaleInt64`.
    pub(super) fn at(self, exponent: i32) -> Option<(i64, bool)> {
        let shift = self.scale.wrapping_sub(exponent);
        if self.scale >= exponent {
            return Some((scaled_up(self.value, shift)?, true));
        }
        let divisor = 10_i64.checked_pow(shift.unsigned_abs());
        let (quotient, rest) =
            divisor.map_or((0, self.value), |divisor| (self.value / divisor, self.value % divisor));
        Some((quotient + rest.signum(), rest == 0))
    }

    /// Returns kube-apiserver's result if the number of units does not fit into 64 bits.
    ///
    /// If kube-apiserver multiplies by the power of ten in one step, the result is the low 64 bits; otherwise, it is 0.
    pub(super) fn wrapped_at(self, exponent: i32) -> i64 {
        match (self.value, self.scale.wrapping_sub(exponent)) {
            (i64::MIN, _) => 0,
            (value, shift @ (1 | 2 | 3 | 6 | 9)) => value.wrapping_mul(10_i64.pow(shift.unsigned_abs())),
            _ => 0,
        }
    }

    pub(super) fn as_decimal(self) -> Decimal {
        Decimal { unscaled: self.value.into(), scale: self.scale.wrapping_neg() }
    }

    /// Returns an approximation of the number as a floating-point number.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `AsApproximateFloat64`.
    #[expect(clippy::cast_precision_loss, reason = "it is an approximation")]
    pub(super) fn approximately(self) -> f64 {
        approximate(self.value as f64, i64::from(self.scale))
    }
}

/// Returns `value` times ten to the power of `scale`, or `None` if the result does not fit into 64 bits. If `scale` is
/// negative, because a difference between scales exceeded 2^31, returns `value`.
///
/// Source: apimachinery pkg/api/resource/math.go, `positiveScaleInt64`.
fn scaled_up(value: i64, scale: i32) -> Option<i64> {
    match u32::try_from(scale) {
        Err(_) => Some(value),
        Ok(_) if value == 0 => Some(0),
        Ok(scale) => value.checked_mul(10_i64.checked_pow(scale)?),
    }
}
