//! Parses quantities as kube-apiserver does.

use super::decimal::{Decimal, MAX_DIGITS, largest_binary, one};
use super::scaled::Scaled;
use super::{Amount, Format, Quantity, QuantityError};

/// The minimum power of ten of an amount: amounts are multiples of a nano-unit.
const NANO: i32 = -9;

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Parses a quantity, as [`Quantity::parse`] does.
///
/// Source: apimachinery pkg/api/resource/quantity.go, `ParseQuantity`.
pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    let parts = Parts::split(text)?;
    let suffix = Suffix::parse(parts.suffix)?;
    if let Some(quantity) = parts.as_scaled(suffix, text) {
        return Ok(quantity);
    }
    if parts.whole.len() + parts.fraction.len() > MAX_DIGITS as usize {
        return Err(QuantityError::TooLarge);
    }
    let number = Decimal::parse(parts.number).ok_or(QuantityError::Numeric)?;
    let (amount, format) = match suffix {
        Suffix::Decimal(exponent, format) => {
            let scale = number.scale.wrapping_sub(exponent);
            (nano_units(Decimal { unscaled: number.unscaled, scale })?, format)
        }
        Suffix::Binary(shift) => {
            let amount = nano_units(Decimal { unscaled: number.unscaled << shift, scale: number.scale })?;
            bounded(amount)
        }
    };
    Ok(Quantity { amount: Amount::Decimal(amount), format, written: None })
}

/// Returns the amount in nano-units, rounded away from zero; zero stays zero.
fn nano_units(amount: Decimal) -> Result<Decimal, QuantityError> {
    if amount.sign() == 0 { Ok(amount) } else { amount.rounded_up(-NANO) }
}

/// Returns an amount with a binary suffix, limited to ±(2^63-1), and its format: decimal for an amount below one.
fn bounded(amount: Decimal) -> (Decimal, Format) {
    let largest = largest_binary();
    if amount > largest {
        (largest, Format::BinarySi)
    } else if amount < largest.negated() {
        (largest.negated(), Format::BinarySi)
    } else if amount.sign() != 0 && amount < one() && amount > one().negated() {
        (amount, Format::DecimalSi)
    } else {
        (amount, Format::BinarySi)
    }
}

/// The parts of a quantity's text.
struct Parts<'t> {
    negative: bool,
    /// The digits before the point, without leading zeros, but at least one digit.
    whole: &'t str,
    /// The digits after the point.
    fraction: &'t str,
    /// The text before the suffix.
    number: &'t str,
    suffix: &'t str,
}

impl<'t> Parts<'t> {
    /// Splits `text` into the number and the suffix.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `parseQuantityString`.
    fn split(text: &'t str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = split_digits(unsigned.trim_start_matches('0'));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if !is_suffix(suffix) {
            return Err(QuantityError::Format);
        }
        let only_zeros = unsigned.bytes().all(|byte| byte == b'0');
        Ok(Self {
            negative: text.starts_with('-'),
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            number: if only_zeros { "0" } else { text.strip_suffix(suffix).unwrap_or(text) },
            suffix,
        })
    }

    /// Returns the quantity as a 64-bit number if kube-apiserver uses that representation.
    fn as_scaled(&self, suffix: Suffix, text: &str) -> Option<Quantity> {
        let digits = [self.whole, self.fraction].concat();
        let (factor, exponent, most_digits) = match suffix {
            Suffix::Decimal(exponent, _) => (1, exponent, 18),
            // 2^10 has about three digits.
            Suffix::Binary(shift) if self.fraction.is_empty() => {
                (1_i64.checked_shl(shift)?, 0, 14_usize.checked_sub(usize::try_from(shift).ok()? * 3 / 10)?)
            }
            Suffix::Binary(_) => return None,
        };
        if digits.len() > most_digits {
            return None;
        }
        let scale = exponent.wrapping_sub(i32::try_from(self.fraction.len()).ok()?);
        if scale < NANO {
            return None;
        }
        let number = digits.parse::<i64>().ok()?;
        let magnitude = number.checked_mul(factor)?;
        let value = if self.negative { -magnitude } else { magnitude };
        let (format, is_canonical) = match suffix {
            Suffix::Binary(_) => (Format::BinarySi, number % 8 != 0),
            Suffix::Decimal(_, format) => {
                (format, scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'))
            }
        };
        let written = (is_canonical || text == "0").then(|| text.into());
        Some(Quantity { amount: Amount::Scaled(Scaled { value, scale }), format, written })
    }
}

#[derive(Clone, Copy)]
enum Suffix {
    /// A suffix that is a power of ten.
    Decimal(i32, Format),
    /// A suffix that is a power of two.
    Binary(u32),
}

impl Suffix {
    /// Parses a suffix, such as `Ki`, `m`, or `e3`.
    ///
    /// Source: apimachinery pkg/api/resource/suffix.go, `interpret`.
    fn parse(text: &str) -> Result<Self, QuantityError> {
        if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(suffix, _)| *suffix == text) {
            return Ok(Self::Decimal(*exponent, Format::DecimalSi));
        }
        if let Some((_, shift)) = BINARY_SUFFIXES.iter().find(|(suffix, _)| *suffix == text) {
            return Ok(Self::Binary(*shift));
        }
        let exponent = text.strip_prefix(['e', 'E']).and_then(|exponent| exponent.parse::<i64>().ok());
        // Beyond 32 bits, kube-apiserver drops the excess bits.
        #[expect(clippy::cast_possible_truncation, reason = "as kube-apiserver does")]
        exponent
            .map(|exponent| Self::Decimal(exponent as i32, Format::DecimalExponent))
            .ok_or(QuantityError::Suffix)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

/// Returns whether the text consists of optional suffix letters, an optional sign, and optional digits.
fn is_suffix(text: &str) -> bool {
    let rest = text.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.bytes().all(|byte| byte.is_ascii_digit())
}
