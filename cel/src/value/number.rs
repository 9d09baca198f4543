//! Compares numbers across types and formats them as Go does.

/// Returns the integer that equals a double exactly, or `None` if there is no such integer.
///
/// Source: cel-go common/types/overflow.go, `doubleToInt64Lossless`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "that is the check"
)]
pub(super) fn as_int(value: f64) -> Option<i64> {
    (value > i64::MIN as f64 && value < i64::MAX as f64 && value.trunc() == value).then_some(value as i64)
}

/// Returns the unsigned integer that equals a double exactly, or `None` if there is no such integer.
///
/// Source: cel-go common/types/overflow.go, `doubleToUint64Lossless`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "that is the check"
)]
pub(super) fn as_uint(value: f64) -> Option<u64> {
    (value >= 0.0 && value < u64::MAX as f64 && value.trunc() == value).then_some(value as u64)
}

/// Formats a double as Go's `%v` and `%g`: the shortest text that parses to the same value, with an exponent
/// below 1e-4 and from 1e6 on.
///
/// Source: Go's strconv, `FormatFloat` with format `g` and precision -1.
pub fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let (digits, exponent) = shortest(value);
    if (-4..6).contains(&exponent) {
        return positional(value.is_sign_negative(), &digits, exponent);
    }
    let (sign, minus) = (if exponent < 0 { '-' } else { '+' }, if value < 0.0 { "-" } else { "" });
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{minus}{first}{point}{rest}e{sign}{:02}", exponent.unsigned_abs())
}

/// Returns the shortest digits of a finite double that parse to the same value, and the exponent of the first digit.
///
/// If two such numbers are equally near, Go chooses the number with an even last digit; Rust would choose the greater
/// one.
pub(crate) fn shortest(value: f64) -> (String, i32) {
    let magnitude = value.abs();
    let text = format!("{magnitude:e}");
    let precision = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let even = format!("{magnitude:.*e}", precision.saturating_sub(1));
    let same = even.parse::<f64>().is_ok_and(|parsed| parsed.to_bits() == magnitude.to_bits());
    let text = if same { even } else { text };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.replace('.', ""), exponent.parse().unwrap_or_default())
}

/// Formats digits with a decimal point at the position that the exponent specifies.
pub(crate) fn positional(negative: bool, digits: &str, exponent: i32) -> String {
    let minus = if negative { "-" } else { "" };
    let Ok(whole) = usize::try_from(exponent) else {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{minus}0.{zeros}{digits}");
    };
    match digits.split_at_checked(whole + 1) {
        Some((whole, "")) => format!("{minus}{whole}"),
        Some((whole, fraction)) => format!("{minus}{whole}.{fraction}"),
        None => format!("{minus}{digits:0<width$}", width = whole + 1),
    }
}

/// Parses a double as Go does, including `inf`, `nan`, hexadecimal digits, and underscores between digits; returns
/// `None` if the text is invalid or the number is too large.
///
/// Source: Go's strconv, `ParseFloat`.
pub(super) fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.len() > 1
        && unsigned.starts_with('0')
        && unsigned.as_bytes().get(1).is_some_and(|x| x | 0x20 == b'x')
    {
        let value = hexadecimal(unsigned.get(2..)?)?;
        return Some(if text.starts_with('-') { -value } else { value });
    }
    let value: f64 = if text.contains('_') {
        let bytes = text.as_bytes();
        let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
        let between = |index: usize| index > 0 && is_digit(index - 1) && is_digit(index + 1);
        if text.match_indices('_').any(|(index, _)| !between(index)) {
            return None;
        }
        text.replace('_', "").parse().ok()?
    } else {
        text.parse().ok()?
    };
    let named = unsigned.starts_with(|letter: char| letter.is_ascii_alphabetic());
    (named || value.is_finite()).then_some(value)
}

/// Parses a hexadecimal number after its prefix, such as `1.8p1` in `0x1.8p1`.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    // An underscore separates two digits, or the prefix and a digit.
    let separates = |(at, _): (usize, &str)| {
        let is_digit = |digit: &u8| digit.is_ascii_hexdigit();
        let before = at.checked_sub(1).map(|before| mantissa.as_bytes().get(before).is_some_and(is_digit));
        before.unwrap_or(true) && mantissa.as_bytes().get(at + 1).is_some_and(is_digit)
    };
    if !mantissa.match_indices('_').all(separates) {
        return None;
    }
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()).filter(|digit| *digit != '_') {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let places = fraction.chars().filter(|digit| *digit != '_').count();
    let places = i32::try_from(places).ok()?.checked_mul(4)?;
    let value = value * f64::powi(2.0, exponent.checked_sub(places)?);
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscores_separate_digits_as_in_go() {
        for (text, expected) in [
            ("0x1.8_0p1", Some(3.0)),
            ("0x_1p1", Some(2.0)),
            ("0x1._8p1", None),
            ("0x1.8_p1", None),
            ("0x1_.8p1", None),
            ("0x1__8p1", None),
            ("0xp1", None),
        ] {
            assert_eq!(parse_double(text), expected, "{text}");
        }
    }
}
