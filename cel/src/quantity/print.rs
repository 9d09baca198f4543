//! Formats quantities as kube-apiserver does.

use std::fmt;

use num_bigint::BigInt;

use super::decimal::{Decimal, without_factors};
use super::{Amount, Format, Quantity};

const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Writes the original text if it looks canonical; otherwise, writes an integer with the largest suffix that does not
/// lose precision.
///
/// As in kube-apiserver, powers beyond `E` and below `n` do not have a suffix: `1000E` is printed as `1`.
///
/// Source: apimachinery pkg/api/resource/quantity.go, `String` and `CanonicalizeBytes`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(written) = &self.written {
            return f.write_str(written);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        if let Some(integer) = self.integer_for_binary_suffixes() {
            // kube-apiserver does not factor the minimum 64-bit integer, which has no positive counterpart.
            let is_least = matches!(self.amount, Amount::Scaled(_)) && integer == i64::MIN.into();
            let (number, power) = if is_least { (integer, 0) } else { without_factors(integer, 1024) };
            let suffix = usize::try_from(power).ok().and_then(|power| BINARY_SUFFIXES.get(power));
            return write!(f, "{number}{}", suffix.unwrap_or(&""));
        }
        let (number, exponent) = canonical(&self.decimal());
        write!(f, "{number}")?;
        match self.format {
            Format::DecimalExponent if exponent == 0 => Ok(()),
            Format::DecimalExponent => write!(f, "e{exponent}"),
            Format::DecimalSi | Format::BinarySi => {
                let index = usize::try_from(exponent.wrapping_div(3).wrapping_add(3));
                f.write_str(index.ok().and_then(|index| DECIMAL_SUFFIXES.get(index)).unwrap_or(&""))
            }
        }
    }
}

impl Quantity {
    /// Returns the integer to write with a binary suffix, or `None` if a decimal suffix is better because the amount is
    /// below 1024 or not an integer.
    fn integer_for_binary_suffixes(&self) -> Option<BigInt> {
        if self.format != Format::BinarySi {
            return None;
        }
        let decimal = self.decimal();
        let limit = Decimal { unscaled: 1024.into(), scale: 0 };
        if decimal > limit.negated() && decimal < limit {
            return None;
        }
        match &self.amount {
            Amount::Scaled(scaled) => match scaled.at(0) {
                Some((integer, exact)) => exact.then(|| integer.into()),
                None => Some(decimal.rounded_up(0).ok()?.unscaled),
            },
            Amount::Decimal(_) => {
                let rounded = decimal.rounded_up(0).ok()?;
                (rounded == decimal).then_some(rounded.unscaled)
            }
        }
    }
}

/// Returns the number without trailing zeros and its power of ten, a multiple of three.
///
/// Source: apimachinery pkg/api/resource/amount.go, `AsCanonicalBytes`.
fn canonical(decimal: &Decimal) -> (BigInt, i32) {
    let (mut number, times) = without_factors(decimal.unscaled.clone(), 10);
    let mut exponent = decimal.scale.wrapping_neg().wrapping_add(times);
    while exponent % 3 != 0 {
        number *= 10;
        exponent = exponent.wrapping_sub(1);
    }
    (number, exponent)
}
