//! Parses, adds, compares, and formats resource quantities, such as `500m` or `1.5Gi`, as kube-apiserver does.

mod decimal;
mod parse;
mod print;
mod scaled;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::str::FromStr;
use std::sync::Arc;

use decimal::Decimal;
use scaled::Scaled;

/// An exact resource quantity of any size, down to one nano-unit. Equality ignores the written form.
///
/// Source: apimachinery pkg/api/resource/quantity.go, `Quantity`.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The original text, if kube-apiserver would format the quantity as exactly this text.
    written: Option<Arc<str>>,
}

/// The amount in kube-apiserver's representation. Some results depend on the representation.
#[derive(Clone, Debug)]
enum Amount {
    Scaled(Scaled),
    Decimal(Decimal),
}

/// The kind of suffix in a formatted amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A decimal suffix, such as in `12M`.
    DecimalSi,
    /// A binary suffix, such as in `12Mi`.
    BinarySi,
    /// A decimal exponent, such as in `12e6`.
    DecimalExponent,
}

/// The reason why a string is not a quantity; all messages except the last are kube-apiserver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text is not a number followed by a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The text does not have a digit before the suffix `Pi`, `Ei`, or an exponent less than -9.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// kube-apiserver would need minutes and gigabytes of memory to process the digits.
    #[error("quantities with more than 100000 digits are not supported")]
    TooLarge,
}

impl Quantity {
    /// A quantity of zero.
    pub const ZERO: Self = Self {
        amount: Amount::Scaled(Scaled { value: 0, scale: 0 }),
        format: Format::DecimalSi,
        written: None,
    };

    /// Parses an amount such as `1`, `0.5`, `500m`, `1e3`, or `1.5Gi`.
    ///
    /// Fractions of a nano-unit are rounded away from zero; amounts with a binary suffix are at most 2^63-1.
    ///
    /// # Errors
    /// Returns a [`QuantityError`] with kube-apiserver's message if the text is not a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text)
    }

    /// Returns the sign of the amount: -1, 0, or 1.
    pub fn sign(&self) -> i64 {
        match &self.amount {
            Amount::Scaled(scaled) => scaled.value.signum(),
            Amount::Decimal(decimal) => decimal.sign(),
        }
    }

    /// Returns whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.sign() == 0
    }

    /// Returns the amount as an integer, or `None` if kube-apiserver's fast conversion does not support the amount.
    ///
    /// The fast conversion fails, for example, for `1000m`, which kube-apiserver stores as a decimal number.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `AsInt64`.
    pub fn as_integer(&self) -> Option<i64> {
        match &self.amount {
            Amount::Scaled(scaled) => scaled.as_integer(),
            Amount::Decimal(_) => None,
        }
    }

    /// Returns an approximation of the amount as a floating-point number.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `AsApproximateFloat64`.
    pub fn as_approximate_float(&self) -> f64 {
        match &self.amount {
            Amount::Scaled(scaled) => scaled.approximately(),
            Amount::Decimal(decimal) => decimal.approximately(),
        }
    }

    /// Returns the amount as an integer, rounded up.
    ///
    /// If the amount does not fit into 64 bits, returns the same result as kube-apiserver: 0, or some of the bits.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `Value`.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// Returns the amount in thousandths, rounded up.
    ///
    /// If the amount does not fit into 64 bits, returns the same result as kube-apiserver: 0, or some of the bits.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `MilliValue`.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(-3)
    }

    fn scaled_value(&self, exponent: i32) -> i64 {
        match &self.amount {
            Amount::Scaled(scaled) => match scaled.at(exponent) {
                Some((value, _)) => value,
                None => scaled.wrapped_at(exponent),
            },
            Amount::Decimal(decimal) => decimal.at(exponent),
        }
    }

    /// Returns the sum. It has the suffix format of the first amount, unless the first amount is zero.
    ///
    /// # Errors
    /// Returns [`QuantityError::TooLarge`] if kube-apiserver would need too much time and memory.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `Add`.
    pub fn plus(&self, other: &Self) -> Result<Self, QuantityError> {
        if let (Amount::Scaled(left), Amount::Scaled(right)) = (&self.amount, &other.amount)
            && let Some(sum) = left.plus(*right)
        {
            return Ok(self.replaced(Amount::Scaled(sum), other));
        }
        let sum = self.decimal().plus(&other.decimal())?;
        Ok(self.replaced(Amount::Decimal(sum), other))
    }

    /// Returns the difference. It has the suffix format of the first amount, unless the first amount is zero.
    ///
    /// # Errors
    /// Returns [`QuantityError::TooLarge`] if kube-apiserver would need too much time and memory.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `Sub`.
    pub fn minus(&self, other: &Self) -> Result<Self, QuantityError> {
        if let (Amount::Scaled(left), Amount::Scaled(right)) = (&self.amount, &other.amount)
            && let Some(difference) = left.plus(right.wrapping_negated())
        {
            return Ok(self.replaced(Amount::Scaled(difference), other));
        }
        let difference = self.decimal().plus(&other.decimal().negated())?;
        Ok(self.replaced(Amount::Decimal(difference), other))
    }

    /// Returns the amount in whole units of ten to the power of `exponent`, rounded away from zero.
    ///
    /// # Errors
    /// Returns [`QuantityError::TooLarge`] if kube-apiserver would need too much time and memory.
    ///
    /// Source: apimachinery pkg/api/resource/quantity.go, `RoundUp`.
    pub fn rounded_up(&self, exponent: i32) -> Result<Self, QuantityError> {
        let amount = match &self.amount {
            Amount::Scaled(scaled) if scaled.scale >= exponent => return Ok(self.clone()),
            Amount::Scaled(scaled) => {
                // The result fits into 64 bits, because rounding only removes digits.
                let (value, _) = scaled.at(exponent).unwrap_or_default();
                Amount::Scaled(Scaled { value, scale: exponent })
            }
            Amount::Decimal(decimal) => Amount::Decimal(decimal.rounded_up(-exponent)?),
        };
        Ok(Self { amount, format: self.format, written: None })
    }

    /// Returns whether the amount is stored as a decimal number. If so, the fast conversion to an integer fails.
    pub(crate) fn is_decimal(&self) -> bool {
        matches!(self.amount, Amount::Decimal(_))
    }

    /// Returns the same amount, stored as a decimal number.
    pub(crate) fn as_decimal(&self) -> Self {
        Self { amount: Amount::Decimal(self.decimal()), ..self.clone() }
    }

    fn decimal(&self) -> Decimal {
        match &self.amount {
            Amount::Scaled(scaled) => scaled.as_decimal(),
            Amount::Decimal(decimal) => decimal.clone(),
        }
    }

    fn replaced(&self, amount: Amount, operand: &Self) -> Self {
        let format = if self.is_zero() { operand.format } else { self.format };
        Self { amount, format, written: None }
    }
}

impl From<i64> for Quantity {
    /// Converts an integer to a quantity that is formatted with a decimal exponent.
    ///
    /// Source: apiserver pkg/cel/library/quantity.go, `quantityAddInt`.
    fn from(value: i64) -> Self {
        let amount = Amount::Scaled(Scaled { value, scale: 0 });
        Self { amount, format: Format::DecimalExponent, written: None }
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
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Amount::Scaled(left), Amount::Scaled(right)) = (&self.amount, &other.amount)
            && left.scale == right.scale
        {
            return left.value.cmp(&right.value);
        }
        self.decimal().cmp(&other.decimal())
    }
}
