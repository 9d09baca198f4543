//! Decimal numbers of any size.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use num_traits::{One as _, Signed as _, ToPrimitive as _, Zero as _};

use super::QuantityError;

/// The maximum number of digits, and the maximum difference between the exponents of two numbers that are aligned.
///
/// For a number with more digits, kube-apiserver needs minutes and gigabytes of memory.
pub(super) const MAX_DIGITS: u32 = 100_000;

/// A decimal number: `unscaled` times ten to the power of `-scale`.
///
/// Source: gopkg.in/inf.v0 dec.go, `Dec`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    pub(super) unscaled: BigInt,
    pub(super) scale: i32,
}

impl Decimal {
    /// Parses digits with an optional sign and point, or returns `None` if the text does not contain digits.
    ///
    /// Source: gopkg.in/inf.v0 dec.go, `SetString`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = [whole, fraction].concat();
        if digits.is_empty() {
            return None;
        }
        let magnitude = number(digits.as_bytes())?;
        let unscaled = if text.starts_with('-') { -magnitude } else { magnitude };
        Some(Self { unscaled, scale: i32::try_from(fraction.len()).ok()? })
    }

    pub(super) fn sign(&self) -> i64 {
        match self.unscaled.sign() {
            Sign::Minus => -1,
            Sign::NoSign => 0,
            Sign::Plus => 1,
        }
    }

    /// Returns the sum. Its scale is the greater of the two scales.
    ///
    /// # Errors
    /// Returns an error if the exponents are too far apart.
    pub(super) fn plus(&self, other: &Self) -> Result<Self, QuantityError> {
        let scale = self.scale.max(other.scale);
        Ok(Self { unscaled: self.raised_to(scale)? + other.raised_to(scale)?, scale })
    }

    pub(super) fn negated(&self) -> Self {
        Self { unscaled: -&self.unscaled, scale: self.scale }
    }

    /// Returns the number rounded away from zero to `scale` digits after the point.
    ///
    /// # Errors
    /// Returns an error if the result has too many digits.
    pub(super) fn rounded_up(&self, scale: i32) -> Result<Self, QuantityError> {
        if self.scale <= scale {
            return Ok(Self { unscaled: self.raised_to(scale)?, scale });
        }
        let dropped = self.scale.abs_diff(scale);
        let unscaled = if u64::from(dropped) > digits_at_most(&self.unscaled) {
            self.unscaled.signum()
        } else {
            let divisor = power_of_ten(dropped);
            let quotient = &self.unscaled / &divisor;
            if (&self.unscaled % &divisor).is_zero() { quotient } else { quotient + self.unscaled.signum() }
        };
        Ok(Self { unscaled, scale })
    }

    /// Returns the number in units of ten to the power of `exponent`, rounded up. The result is truncated to the bits
    /// that kube-apiserver keeps.
    ///
    /// Source: `apimachinery pkg/api/resource/scale_int.go`, `scaledValue`.
    pub(super) fn at(&self, exponent: i32) -> i64 {
        let digits = self.scale.wrapping_add(exponent);
        let shift = digits.unsigned_abs();
        if digits <= 0 {
            // Powers beyond 64 bits become the minimum number in Go.
            let factor = 10_i64.checked_pow(shift).unwrap_or(i64::MIN);
            return low_bits(&self.unscaled).wrapping_mul(factor);
        }
        if shift < 19 && self.unscaled < i64::MAX.into() {
            let (number, divisor) = (low_bits(&self.unscaled), 10_i64.pow(shift));
            return number / divisor + i64::from(number % divisor != 0);
        }
        if u64::from(shift) > digits_at_most(&self.unscaled) {
            return i64::from(self.unscaled.is_positive());
        }
        let divisor = power_of_ten(shift);
        let rest = &self.unscaled % &divisor;
        low_bits(&(&self.unscaled / &divisor + i32::from(rest.is_positive())))
    }

    /// Returns the unscaled number for `scale`. `scale` must not be less than the number's own scale.
    fn raised_to(&self, scale: i32) -> Result<BigInt, QuantityError> {
        let shift = self.scale.abs_diff(scale);
        if shift == 0 || self.unscaled.is_zero() {
            return Ok(self.unscaled.clone());
        }
        if shift > MAX_DIGITS {
            return Err(QuantityError::TooLarge);
        }
        Ok(&self.unscaled * power_of_ten(shift))
    }

    /// Returns the same floating-point approximation as kube-apiserver.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `AsApproximateFloat64`.
    pub(super) fn approximately(&self) -> f64 {
        let base = self.unscaled.to_f64().unwrap_or(f64::INFINITY);
        approximate(base, i64::from(self.scale.wrapping_neg()))
    }
}

/// Returns `base` times ten to the power of `exponent`.
pub(super) fn approximate(base: f64, exponent: i64) -> f64 {
    if exponent == 0 { base } else { base * float_power_of_ten(exponent) }
}

/// Returns a power of ten as a product or quotient of two powers. The result is not always the nearest number.
///
/// Source: Go math/pow10.go, `Pow10`.
fn float_power_of_ten(exponent: i64) -> f64 {
    let exactly = |exponent: u64| format!("1e{exponent}").parse::<f64>().unwrap_or(f64::INFINITY);
    let inverse = |exponent: u64| format!("1e-{exponent}").parse::<f64>().unwrap_or(0.0);
    let magnitude = exponent.unsigned_abs();
    let (whole, rest) = (magnitude / 32 * 32, magnitude % 32);
    match exponent {
        0..=308 => exactly(whole) * exactly(rest),
        -323..0 => inverse(whole) / exactly(rest),
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.sign().cmp(&other.sign());
        if signs.is_ne() || self.unscaled.is_zero() {
            return signs;
        }
        // Numbers of very different sizes are not aligned, which could take gigabytes.
        let (low, high) = self.exponent_range();
        let (other_low, other_high) = other.exponent_range();
        let magnitudes = if high < other_low {
            Ordering::Less
        } else if other_high < low {
            Ordering::Greater
        } else {
            let scale = self.scale.max(other.scale);
            self.magnitude_at(scale).cmp(&other.magnitude_at(scale))
        };
        if self.unscaled.is_negative() { magnitudes.reverse() } else { magnitudes }
    }
}

impl Decimal {
    /// Returns the minimum and maximum possible number of digits before the point. The number is negative for zeros
    /// after the point.
    fn exponent_range(&self) -> (i64, i64) {
        let high = i64::try_from(digits_at_most(&self.unscaled)).unwrap_or(i64::MAX);
        let exponent = high.saturating_sub(i64::from(self.scale));
        (exponent.saturating_sub(1), exponent)
    }

    fn magnitude_at(&self, scale: i32) -> BigInt {
        self.unscaled.abs() * power_of_ten(self.scale.abs_diff(scale))
    }
}

/// Returns the lowest 64 bits of a number.
fn low_bits(number: &BigInt) -> i64 {
    let low = number.iter_u64_digits().next().unwrap_or(0);
    let signed = if number.is_negative() { low.wrapping_neg() } else { low };
    signed.cast_signed()
}

/// Returns the number of decimal digits. The result can be one too high.
fn digits_at_most(number: &BigInt) -> u64 {
    // log10(2), rounded up; 2^64 bits do not fit into memory.
    (u128::from(number.bits()) * 30_103 / 100_000 + 1).try_into().unwrap_or(u64::MAX)
}

pub(super) fn power_of_ten(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

/// Parses digits by recursive halving, because parsing one digit at a time takes quadratic time.
fn number(digits: &[u8]) -> Option<BigInt> {
    const AT_ONCE: usize = 1000;
    if digits.len() <= AT_ONCE {
        return BigInt::parse_bytes(digits, 10);
    }
    let low = digits.len() / 2;
    let (front, back) = digits.split_at_checked(digits.len() - low)?;
    Some(number(front)? * power_of_ten(u32::try_from(low).ok()?) + number(back)?)
}

/// Divides `number` by `factor` as often as possible, and returns the quotient and the number of divisions.
///
/// Source: apimachinery pkg/api/resource/math.go, `removeBigIntFactors`.
pub(super) fn without_factors(mut number: BigInt, factor: u32) -> (BigInt, i32) {
    if number.is_zero() {
        return (number, 0);
    }
    // Divides by repeated squares of the factor: dividing by the factor itself each time takes quadratic time.
    let mut power = BigInt::from(factor);
    let mut powers = Vec::new();
    while (&number % &power).is_zero() {
        let square = &power * &power;
        powers.push(std::mem::replace(&mut power, square));
    }
    let mut times = 0;
    for (doublings, power) in powers.iter().enumerate().rev() {
        if (&number % power).is_zero() {
            number /= power;
            times += 1 << doublings;
        }
    }
    (number, times)
}

/// Returns 2^63-1, the maximum amount with a binary suffix.
pub(super) fn largest_binary() -> Decimal {
    Decimal { unscaled: i64::MAX.into(), scale: 0 }
}

pub(super) fn one() -> Decimal {
    Decimal { unscaled: BigInt::one(), scale: 0 }
}
