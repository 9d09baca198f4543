//! Parses and formats durations as Go does.
//!
//! Source: Go's time, `ParseDuration` and `Duration.String`.

/// Parses a duration such as `1h30m` or `-1.5s` into nanoseconds; returns `None` if it is invalid or does not fit.
pub fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanoseconds, remainder) = component(rest)?;
        total = total.checked_add(nanoseconds).filter(|total| *total <= LIMIT)?;
        rest = remainder;
    }
    if negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() }
}

const LIMIT: u64 = 1 << 63;

/// Parses a number and its unit at the beginning of `text`, and returns the nanoseconds with the rest of the text.
fn component(text: &str) -> Option<(u64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_length = rest.bytes().take_while(|byte| *byte != b'.' && !byte.is_ascii_digit()).count();
    let (unit, rest) = rest.split_at(unit_length);
    let unit = unit_nanoseconds(unit)?;
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok().filter(|whole| *whole <= LIMIT)? };
    let whole = whole.checked_mul(unit).filter(|whole| *whole <= LIMIT)?;
    let nanoseconds = whole.checked_add(fraction_nanoseconds(fraction, unit))?;
    (nanoseconds <= LIMIT).then_some((nanoseconds, rest))
}

fn unit_nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Multiplies the digits after the decimal point, up to 63 bits of them, by the unit, and truncates the result.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "Go calculates the fraction as a double, too"
)]
fn fraction_nanoseconds(digits: &str, unit: u64) -> u64 {
    let mut value: u64 = 0;
    let mut scale = 1.0;
    for digit in digits.bytes() {
        let Some(next) = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit - b'0')))
            .filter(|next| *next <= LIMIT)
        else {
            break;
        };
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Formats a duration as Go does, such as `1h30m0s`, `1.5s`, or `-2µs`.
pub fn format_duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    if total == 0 {
        return "0s".to_owned();
    }
    if total < 1_000_000_000 {
        let (unit, name) = match total {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            _ => (1_000_000, "ms"),
        };
        return format!("{sign}{}{name}", fixed(total, unit));
    }
    let seconds = fixed(total % 60_000_000_000, 1_000_000_000);
    let minutes = total / 60_000_000_000;
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// Formats `value / unit` with as many digits after the decimal point as needed; `unit` is a power of ten.
fn fixed(value: u64, unit: u64) -> String {
    let (whole, fraction) = (value / unit, value % unit);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{whole}.{}", format!("{fraction:0width$}").trim_end_matches('0'))
}

/// Returns a duration in nanoseconds as a number of seconds, calculated as in Go.
#[expect(clippy::cast_precision_loss, reason = "Go's Duration.Seconds rounds as well")]
pub fn seconds(nanoseconds: i64) -> f64 {
    (nanoseconds / 1_000_000_000) as f64 + (nanoseconds % 1_000_000_000) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        let cases: [(&str, Option<i64>); 22] = [
            ("1h", Some(3_600_000_000_000)),
            ("+1h", Some(3_600_000_000_000)),
            ("-1.5h", Some(-5_400_000_000_000)),
            (".5s", Some(500_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("1h2m3.5s", Some(3_723_500_000_000)),
            ("0", Some(0)),
            ("-0", Some(0)),
            ("", None),
            ("1", None),
            ("1x", None),
            ("9223372036854775807ns", Some(i64::MAX)),
            ("9223372036854775808ns", None),
            ("-9223372036854775808ns", Some(i64::MIN)),
            ("1e3s", None),
            ("3000000h", None),
            ("1µs", Some(1_000)),
            ("1us1ms", Some(1_001_000)),
            ("0.000000000000000000000000001s", Some(0)),
            (".", None),
            (" 1h", None),
            ("1 h", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_duration(text), expected, "{text:?}");
        }
    }

    #[test]
    fn durations_are_formatted_as_in_go() {
        let cases = [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (-2_000_000, "-2ms"),
            (1_000_000_000, "1s"),
            (3_723_500_000_000, "1h2m3.5s"),
            (60_000_000_000, "1m0s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ];
        for (nanoseconds, expected) in cases {
            assert_eq!(format_duration(nanoseconds), expected);
        }
    }
}
