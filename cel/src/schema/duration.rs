//! Parses strings of the format `duration`.

use go_std::duration;
use go_std::quote::quote;

const SECOND: i64 = 1_000_000_000;

/// The units, each with its names, a prefix that also identifies it, and its length in nanoseconds.
///
/// For example, `days` and `daylight` are days, because they begin with `day`.
const UNITS: [(&[&str], &str, i64); 8] = [
    (&["ns"], "nano", 1),
    (&["us", "µs"], "micro", 1_000),
    (&["ms"], "milli", 1_000_000),
    (&["s"], "sec", SECOND),
    (&["m"], "min", 60 * SECOND),
    (&["h", "hr"], "hour", 3_600 * SECOND),
    (&["d"], "day", 24 * 3_600 * SECOND),
    (&["w", "wk"], "week", 7 * 24 * 3_600 * SECOND),
];

/// Parses a Go duration, or numbers with units such as `2 days`, into nanoseconds; other text is skipped.
///
/// Source: kube-openapi pkg/validation/strfmt/duration.go, `ParseDuration`.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    if let Some(nanoseconds) = duration::parse_duration(text) {
        return Ok(nanoseconds);
    }
    let mut total = None;
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let (_, found) = rest.split_at(start);
        let is_digit = |character: char| character.is_ascii_digit();
        let is_letter = |character: char| character.is_ascii_alphabetic() || character == 'µ';
        let (number, behind) = split(found, is_digit);
        let (_, behind) = split(behind, |character| matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0c'));
        let (unit, behind) = split(behind, is_letter);
        rest = behind;
        if unit.is_empty() {
            continue;
        }
        let Ok(number) = number.parse::<i64>() else {
            return Err(format!("strconv.Atoi: parsing {}: value out of range", quote(number)));
        };
        let unit = unit.to_ascii_lowercase();
        for (names, prefix, nanoseconds) in UNITS {
            if names.contains(&unit.as_str()) || unit.starts_with(prefix) {
                total = Some(number.wrapping_mul(nanoseconds).wrapping_add(total.unwrap_or_default()));
            }
        }
    }
    total.ok_or_else(|| format!("unable to parse {text} as duration"))
}

/// Splits off the longest prefix whose characters match `fits`.
fn split(text: &str, fits: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|character| !fits(character)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_of_several_names() {
        let cases = [
            ("1h30m", Ok(5_400 * SECOND)),
            ("2 days", Ok(2 * 24 * 3_600 * SECOND)),
            ("1 WK 3hr", Ok((7 * 24 + 3) * 3_600 * SECOND)),
            ("1microsecond and 2 µs", Ok(3_000)),
            ("in 5 minutes, or 6", Ok(300 * SECOND)),
            ("-2d", Ok(2 * 24 * 3_600 * SECOND)),
            ("1.5d", Ok(5 * 24 * 3_600 * SECOND)),
            ("99999999999 weeks", Ok(99_999_999_999_i64.wrapping_mul(604_800 * SECOND))),
            ("5 fortnights", Err("unable to parse 5 fortnights as duration")),
            ("", Err("unable to parse  as duration")),
            (
                "99999999999999999999d",
                Err(r#"strconv.Atoi: parsing "99999999999999999999": value out of range"#),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_duration(text), expected.map_err(str::to_owned), "{text}");
        }
    }
}
