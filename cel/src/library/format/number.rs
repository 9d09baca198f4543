//! Formats doubles for the clauses `%f` and `%e` in the U.S. English format.
//!
//! Source: golang.org/x/text message/print.go and internal/number, which cel-go uses. x/text stores precisions in small
//! integers, so large precisions overflow.

use crate::value::{positional, shortest};

/// The minimum precision or width that x/text rejects.
const TOO_LARGE: usize = 10_000_010;

/// Formats a number with `precision` digits after the point, such as `1,234.500000`.
pub(super) fn fixed(value: f64, precision: usize) -> String {
    if precision >= TOO_LARGE {
        return "%!(NOVERB)".to_owned();
    }
    if let Some(text) = special(value) {
        return text;
    }
    let magnitude = value.abs();
    // The minimum and the maximum number of digits after the point; a negative maximum means no limit.
    let (least, most) = (usize::from(low_byte(precision)), low_bytes(precision));
    let digits = if let Ok(most) = usize::try_from(most) {
        format!("{magnitude:.most$}")
    } else {
        let (digits, exponent) = shortest(magnitude);
        positional(false, &digits, exponent)
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut text = sign(value);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    push_fraction(&mut text, fraction, least);
    text
}

/// Formats a number with one digit before the point and six digits after the point, such as `1.500000×10⁰⁰`,
/// right-aligned in `width` columns.
pub(super) fn scientific(value: f64, width: usize) -> String {
    if width >= TOO_LARGE {
        return "%!(NOVERB)".to_owned();
    }
    let text = special(value).unwrap_or_else(|| exponential(value));
    let columns = text.chars().count();
    let padding = usize::from(low_bytes(width).cast_unsigned()).saturating_sub(columns);
    format!("{}{text}", " ".repeat(padding))
}

fn exponential(value: f64) -> String {
    let digits = format!("{:.6e}", value.abs());
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let mut text = sign(value);
    text.push_str(mantissa);
    text.push_str("×10");
    let exponent = match exponent.strip_prefix('-') {
        Some(exponent) => {
            text.push('⁻');
            exponent
        }
        None => exponent,
    };
    if exponent.len() < 2 {
        text.push('⁰');
    }
    text.extend(exponent.chars().map(superscript));
    text
}

fn superscript(digit: char) -> char {
    match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    }
}

fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some("NaN".to_owned());
    }
    value.is_infinite().then(|| sign(value) + "∞")
}

fn sign(value: f64) -> String {
    if value < 0.0 { "-".to_owned() } else { String::new() }
}

/// Appends the decimal point and the digits after it, without trailing zeros but with at least `least` digits.
fn push_fraction(text: &mut String, fraction: &str, least: usize) {
    let kept = fraction.trim_end_matches('0');
    if kept.is_empty() && least == 0 {
        return;
    }
    text.push('.');
    text.push_str(kept);
    text.extend(std::iter::repeat_n('0', least.saturating_sub(kept.len())));
}

#[expect(clippy::cast_possible_truncation, reason = "so does x/text")]
fn low_byte(number: usize) -> u8 {
    number as u8
}

#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "so does x/text")]
fn low_bytes(number: usize) -> i16 {
    number as i16
}
