//! Parses dates and times in a layout as Go does.

use super::zone::{days_in_month, days_since_1970};
use super::{Timestamp, timestamp};

pub(super) const DATE: &str = "2006-01-02";
/// The layout of a date with a time of day, but without a zone.
pub(super) const DATE_AND_TIME: &str = "2006-01-02T15:04:05";

/// The numeric parts of a layout: placeholder, name, minimum number of digits, minimum, and maximum. Days are checked
/// again when the month is known.
const PARTS: [(&str, &str, usize, i64, i64); 6] = [
    ("2006", "year", 4, 0, 9999),
    ("01", "month", 2, 1, 12),
    ("02", "day", 2, 0, 99),
    ("15", "hour", 1, 0, 23),
    ("04", "minute", 2, 0, 59),
    ("05", "second", 2, 0, 59),
];

/// Parses `text` according to a layout, and returns the time in UTC; the seconds may have a fraction.
///
/// # Errors
///
/// Returns Go's message if the text does not match the layout.
///
/// Source: Go time/format.go, `parse`.
pub(super) fn parse(layout: &str, text: &str) -> Result<Timestamp, String> {
    let wrong = |value: &str, part: &str| {
        let (whole, layout, value, part) = (quote(text), quote(layout), quote(value), quote(part));
        format!("parsing time {whole} as {layout}: cannot parse {value} as {part}")
    };
    let refused = |what: &str| format!("parsing time {}: {what}", quote(text));
    let mut numbers = [0, 1, 1, 0, 0, 0];
    let mut nanoseconds = 0;
    let (mut layout_left, mut left) = (layout, text);
    while !layout_left.is_empty() {
        let found = PARTS.iter().zip(&mut numbers).find(|((part, ..), _)| layout_left.starts_with(part));
        let Some(((part, name, digits, least, most), number)) = found else {
            let (separator, rest) = layout_left.split_at(1);
            left = left.strip_prefix(separator).ok_or_else(|| wrong(left, separator))?;
            layout_left = rest;
            continue;
        };
        layout_left = layout_left.strip_prefix(part).unwrap_or_default();
        let length = left.bytes().take(part.len()).take_while(u8::is_ascii_digit).count();
        if length < *digits {
            return Err(wrong(left, part));
        }
        let (value, behind) = left.split_at(length);
        *number = value.parse().unwrap_or_default();
        left = behind;
        if !(*least..=*most).contains(number) {
            return Err(refused(&format!("{name} out of range")));
        }
        if *name == "second" {
            let (fraction, behind) = timestamp::fraction(left.as_bytes());
            nanoseconds = fraction;
            left = left.get(left.len() - behind.len()..).unwrap_or_default();
        }
    }
    if !left.is_empty() {
        return Err(refused(&format!("extra text: {}", quote(left))));
    }
    let [year, month, day, hour, minute, second] = numbers;
    if day < 1 || day > days_in_month(year, month) {
        return Err(refused("day out of range"));
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Ok(Timestamp::of_any_year(seconds, nanoseconds))
}

/// Quotes a string as Go's `time` package does in errors.
///
/// Source: Go time/format.go, `quote`.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='\u{7f}' => quoted.push(character),
            _ => {
                let mut buffer = [0; 4];
                let bytes = character.encode_utf8(&mut buffer).bytes();
                quoted.extend(bytes.map(|byte| format!("\\x{byte:02x}")));
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_a_layout_are_parsed_as_in_go() {
        let cases = [
            (DATE, "2024-02-29", Ok("2024-02-29T00:00:00Z")),
            (DATE, "0000-01-01", Ok("0000-01-01T00:00:00Z")),
            (DATE, "2023-02-29", Err(r#"parsing time "2023-02-29": day out of range"#)),
            (DATE, "2023-13-01", Err(r#"parsing time "2023-13-01": month out of range"#)),
            (DATE, "", Err(r#"parsing time "" as "2006-01-02": cannot parse "" as "2006""#)),
            (
                DATE,
                "20\"4é",
                Err(
                    r#"parsing time "20\"4\xc3\xa9" as "2006-01-02": cannot parse "20\"4\xc3\xa9" as "2006""#,
                ),
            ),
            (DATE, "2024-1-2", Err(r#"parsing time "2024-1-2" as "2006-01-02": cannot parse "1-2" as "01""#)),
            (
                DATE,
                "2024/01/02",
                Err(r#"parsing time "2024/01/02" as "2006-01-02": cannot parse "/01/02" as "-""#),
            ),
            (DATE, "2024-01-02Z", Err(r#"parsing time "2024-01-02Z": extra text: "Z""#)),
            (DATE_AND_TIME, "2024-01-02T3:04:05.25", Ok("2024-01-02T03:04:05.25Z")),
            (
                DATE_AND_TIME,
                "2024-01-02T24:04:05",
                Err(r#"parsing time "2024-01-02T24:04:05": hour out of range"#),
            ),
            (
                DATE_AND_TIME,
                "2024-01-02T03:04:05.",
                Err(r#"parsing time "2024-01-02T03:04:05.": extra text: ".""#),
            ),
        ];
        for (layout, text, expected) in cases {
            let time = parse(layout, text).map(|time| time.rfc3339());
            assert_eq!(time, expected.map(str::to_owned).map_err(str::to_owned), "{text:?}");
        }
    }
}
