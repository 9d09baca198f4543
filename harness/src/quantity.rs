//! An amount of a resource, such as `500m` or `1536Mi`: parsed, compared and printed as the API does.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// An amount of a resource: exact down to one nano-unit. Equal amounts are equal however they were written.
///
/// Source: apimachinery pkg/api/resource/quantity.go.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Which suffixes an amount is printed with: those it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    DecimalSi,
    BinarySi,
    DecimalExponent,
}

/// Why a text is no quantity. The texts are the API server's, but for the last one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text is not a number followed by a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The suffix is not known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The API has amounts that large; this crate does not.
    #[error("quantities beyond 10^29 are not supported")]
    TooLarge,
}

const NANOS: i128 = 1_000_000_000;
const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };

    /// Reads an amount such as `1`, `0.5`, `500m`, `1e3` or `1.5Gi`.
    ///
    /// What is smaller than a nano-unit is rounded away from zero; a binary suffix cannot go beyond 2^63-1.
    ///
    /// # Errors
    /// [`QuantityError`] with the API server's text.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::split(text)?;
        let (magnitude, format) = match suffix(parts.suffix)? {
            Suffix::Decimal(exponent, format) => (parts.times_power_of_ten(exponent)?, format),
            Suffix::Binary(shift) => {
                let nanos = parts.times_power_of_two(shift)?.min(i128::from(i64::MAX) * NANOS);
                let below_one = nanos > 0 && nanos < NANOS;
                (nanos, if below_one { Format::DecimalSi } else { Format::BinarySi })
            }
        };
        Ok(Self { nanos: if parts.negative { -magnitude } else { magnitude }, format })
    }

    /// Whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// The amount in thousandths, rounded up.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `MilliValue`.
    pub fn milli_value(self) -> i128 {
        const NANOS_IN_MILLI: i128 = NANOS / 1000;
        let whole = self.nanos.div_euclid(NANOS_IN_MILLI);
        if self.nanos.rem_euclid(NANOS_IN_MILLI) == 0 { whole } else { whole + 1 }
    }
}

/// The sum keeps the first amount's suffixes, unless that amount is zero.
///
/// Source: apimachinery pkg/api/resource/quantity.go, `Add`.
impl std::ops::Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_add(other.nanos), format }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// The canonical form: no fraction, the largest suffix that loses nothing.
///
/// Source: apimachinery pkg/api/resource/quantity.go, `CanonicalizeBytes`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let whole = self.nanos % NANOS == 0;
        match self.format {
            Format::BinarySi if whole && self.nanos.abs() >= 1024 * NANOS => {
                let (number, power) = without_factors(self.nanos / NANOS, 1024, BINARY_SUFFIXES.len());
                let suffix = power.checked_sub(1).map_or("", |index| BINARY_SUFFIXES[index].0);
                write!(f, "{number}{suffix}")
            }
            Format::BinarySi | Format::DecimalSi => {
                let (number, power) = without_factors(self.nanos, 1000, DECIMAL_SUFFIXES.len() - 1);
                write!(f, "{number}{}", DECIMAL_SUFFIXES[power].0)
            }
            Format::DecimalExponent => {
                let (number, power) = without_factors(self.nanos, 1000, usize::MAX);
                match DECIMAL_SUFFIXES.get(power) {
                    Some((_, 0)) => write!(f, "{number}"),
                    Some((_, exponent)) => write!(f, "{number}e{exponent}"),
                    None => write!(f, "{number}e{}", power.saturating_mul(3).saturating_sub(9)),
                }
            }
        }
    }
}

/// `number` divided by `factor` as often as it goes, at most `limit` times, and how often that was.
fn without_factors(mut number: i128, factor: i128, limit: usize) -> (i128, usize) {
    let mut times = 0;
    while times < limit && number % factor == 0 {
        number /= factor;
        times += 1;
    }
    (number, times)
}

enum Suffix {
    Decimal(i32, Format),
    Binary(u32),
}

fn suffix(text: &str) -> Result<Suffix, QuantityError> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(suffix, _)| *suffix == text) {
        return Ok(Suffix::Decimal(*exponent, Format::DecimalSi));
    }
    if let Some((_, shift)) = BINARY_SUFFIXES.iter().find(|(suffix, _)| *suffix == text) {
        return Ok(Suffix::Binary(*shift));
    }
    text.strip_prefix(['e', 'E'])
        .and_then(|exponent| exponent.parse().ok())
        .map(|exponent| Suffix::Decimal(exponent, Format::DecimalExponent))
        .ok_or(QuantityError::Suffix)
}

/// A quantity's text, taken apart: `-1.5Gi` is negative, `1`, `5` and `Gi`.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        if !is_suffix(suffix) {
            return Err(QuantityError::Format);
        }
        Ok(Self { negative, whole, fraction, suffix })
    }

    /// The digits as one number, without trailing zeros of the fraction, and how many of them are behind the point.
    fn number(&self) -> Result<(i128, i32), QuantityError> {
        let fraction = self.fraction.trim_end_matches('0');
        // More than this many decimal places are below a nano-unit whatever the suffix; one digit stands for all.
        let kept = fraction.get(..36).unwrap_or(fraction);
        let number =
            self.whole.bytes().chain(kept.bytes()).try_fold(0_i128, |number, digit| {
                number.checked_mul(10)?.checked_add(i128::from(digit - b'0'))
            });
        let places = i32::try_from(kept.len()).map_or(i32::MAX, |places| places);
        Ok((number.ok_or(QuantityError::TooLarge)?, places))
    }

    fn times_power_of_ten(&self, exponent: i32) -> Result<i128, QuantityError> {
        let (number, places) = self.number()?;
        scaled(number, exponent.saturating_sub(places).saturating_add(9))
    }

    fn times_power_of_two(&self, shift: u32) -> Result<i128, QuantityError> {
        let (number, places) = self.number()?;
        let limit = i128::from(i64::MAX);
        match number.checked_mul(1_i128 << shift) {
            Some(product) => scaled(product, 9 - places),
            // Only the cap can be meant: the product without its fraction is beyond it already.
            None if places < 20 => Ok(limit * NANOS),
            None => Err(QuantityError::TooLarge),
        }
    }
}

/// `number` times a power of ten, rounded away from zero.
fn scaled(number: i128, exponent: i32) -> Result<i128, QuantityError> {
    if number == 0 {
        return Ok(0);
    }
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        power.and_then(|power| number.checked_mul(power)).ok_or(QuantityError::TooLarge)
    } else {
        Ok(power.map_or(1, |power| number / power + i128::from(number % power != 0)))
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

/// Letters of suffixes, a sign, digits: each of them may be missing.
fn is_suffix(text: &str) -> bool {
    let rest = text.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, canonical: &str) {
        assert_eq!(
            Quantity::parse(text).map(|quantity| quantity.to_string()),
            Ok(canonical.to_owned()),
            "{text}"
        );
    }

    #[test]
    fn the_canonical_form_has_no_fraction_and_the_largest_suffix() {
        for (text, canonical) in [
            ("0", "0"),
            ("0Gi", "0"),
            // The API server sees no digits as a zero.
            (".", "0"),
            ("m", "0"),
            ("1", "1"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1.5Gi", "1536Mi"),
            ("1024Ki", "1Mi"),
            ("1000Ki", "1000Ki"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("1e2", "100"),
            ("1E", "1E"),
            ("1E3", "1e3"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("-1.5", "-1500m"),
            ("+1", "1"),
            ("9Ei", "9223372036854775807"),
            ("1048576", "1048576"),
        ] {
            check(text, canonical);
        }
    }

    #[test]
    fn what_is_no_quantity_has_the_servers_text() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("a", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("1.2.3", QuantityError::Format),
            ("1i", QuantityError::Suffix),
            ("1GiB", QuantityError::Format),
            ("1e", QuantityError::Suffix),
            ("1ki", QuantityError::Suffix),
            ("1e40", QuantityError::TooLarge),
        ] {
            assert_eq!(Quantity::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn amounts_compare_by_value() {
        assert_eq!(Quantity::parse("1Gi"), Quantity::parse("1073741824"));
        assert_eq!(Quantity::parse("1"), Quantity::parse("1000m"));
        assert!(Quantity::parse("1M").unwrap() < Quantity::parse("1Mi").unwrap());
        assert!(Quantity::parse("-1").unwrap() < Quantity::ZERO);
    }

    proptest! {
        #[test]
        fn printing_and_parsing_again_loses_nothing(number in any::<i32>(), suffix in prop::sample::select(vec![
            "n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "e3", "e-3", "e5",
        ])) {
            let quantity = Quantity::parse(&format!("{number}{suffix}")).unwrap();
            let printed = quantity.to_string();
            prop_assert_eq!(Quantity::parse(&printed), Ok(quantity));
            prop_assert_eq!(Quantity::parse(&printed).unwrap().to_string(), printed);
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = Quantity::parse(&text);
        }

        #[test]
        fn no_number_panics(text in "[+-]?[0-9.]{0,60}[eEinumkKMGTP]{0,3}[+-]?[0-9]{0,12}") {
            let _ = Quantity::parse(&text);
        }
    }
}
