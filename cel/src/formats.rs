//! Validates string formats; each validation function returns kube-apiserver's error messages.

use std::borrow::Cow;
use std::sync::LazyLock;

use go_std::url::Url;
use jiff::civil::Date;
use regex::Regex;

/// Replaces a trailing hyphen and the character before it with a letter, as kube-apiserver does to validate the prefix
/// of a generated name.
///
/// Source: apimachinery pkg/api/validation/generic.go, `maskTrailingDash`.
pub(crate) fn completed(name: &str) -> Cow<'_, str> {
    let Some(kept) = name.strip_suffix('-').filter(|rest| !rest.is_empty()) else {
        return Cow::Borrowed(name);
    };
    let mut completed = kept.to_owned();
    if let Some(last) = completed.pop() {
        // kube-apiserver removes only one byte. The other bytes of a multi-byte character are never valid, and neither
        // are the spaces that replace them here.
        completed.extend(std::iter::repeat_n(' ', last.len_utf8() - 1));
    }
    completed.push('a');
    Cow::Owned(completed)
}

/// Validates an absolute URL or path, and returns the error messages.
///
/// Source: apiserver pkg/cel/library/format.go.
pub(crate) fn uri(text: &str) -> Vec<String> {
    Url::parse_request_uri(text).err().into_iter().collect()
}

/// Validates a UUID, and returns the error messages.
///
/// Source: kube-openapi pkg/validation/strfmt/default.go, `UUIDPattern`.
pub(crate) fn uuid(text: &str) -> Vec<String> {
    let mut rest = text;
    let is_valid = [8, 4, 4, 4, 12].iter().enumerate().all(|(index, length)| {
        let group = if index == 0 { rest } else { rest.strip_prefix('-').unwrap_or(rest) };
        let Some((digits, after)) = group.split_at_checked(*length) else { return false };
        rest = after;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    wrong_unless(is_valid && rest.is_empty(), "does not match the UUID format")
}

/// Validates base64 with padding, and returns the error messages.
///
/// Source: `kube-openapi pkg/internal/third_party/govalidator/patterns.go`, `Base64`.
pub(crate) fn byte(text: &str) -> Vec<String> {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_valid = !digits.is_empty()
        && text.len().is_multiple_of(4)
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    wrong_unless(is_valid, "invalid base64")
}

/// Validates a date, such as `2024-01-02`, and returns the error messages.
///
/// Source: kube-openapi pkg/validation/strfmt/date.go, `IsDate`.
pub(crate) fn date(text: &str) -> Vec<String> {
    wrong_unless(is_date(text), "invalid date")
}

/// Validates a date and time, such as `2024-01-02T03:04:05Z`, and returns the error messages.
///
/// Source: kube-openapi pkg/validation/strfmt/time.go, `IsDateTime`.
pub(crate) fn date_time(text: &str) -> Vec<String> {
    wrong_unless(is_date_time(text), "invalid datetime")
}

fn wrong_unless(is_valid: bool, wrong: &str) -> Vec<String> {
    if is_valid { vec![] } else { vec![wrong.to_owned()] }
}

fn is_date(text: &str) -> bool {
    let is_shaped = text.len() == 10
        && text.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let number = |range: std::ops::Range<usize>| text.get(range).and_then(|digits| digits.parse().ok());
    let (Some(year), Some(month), Some(day)) = (
        number(0..4),
        number(5..7).and_then(|month| i8::try_from(month).ok()),
        number(8..10).and_then(|day| i8::try_from(day).ok()),
    ) else {
        return false;
    };
    is_shaped && Date::new(year, month, day).is_ok()
}

/// Returns whether the text is a date, a `t`, and a time with its zone. Text after a second `t` is ignored.
fn is_date_time(text: &str) -> bool {
    static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$").ok()
    });
    // This is the fast path for the most common form.
    if let [day @ .., b'T', hour, h, b':', minute, m, b':', second, s, b'Z'] = text.as_bytes()
        && [hour, h, minute, m, second, s].into_iter().all(u8::is_ascii_digit)
        && !day.contains(&b'T')
        && !day.contains(&b't')
    {
        let is_time = (*hour, *h) <= (b'2', b'3') && *minute <= b'5' && *second <= b'5';
        return is_time && text.get(..day.len()).is_some_and(is_date);
    }
    // Go maps each character to one lower-case character.
    let lower: String = text.chars().filter_map(|character| character.to_lowercase().next()).collect();
    let mut parts = lower.split('t');
    let (Some(day), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(time) = TIME.as_ref().and_then(|expression| expression.captures(time)) else { return false };
    let part = |index: usize| time.get(index).map_or("", |part| part.as_str());
    is_date(day) && part(1) <= "23" && part(2) <= "59" && part(3) <= "59"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: fn(&str) -> Vec<String>, valid: &[&str], invalid: &[&str]) {
        for text in valid {
            assert_eq!(format(text), Vec::<String>::new(), "{text:?}");
        }
        for text in invalid {
            assert_eq!(format(text).len(), 1, "{text:?}");
        }
    }

    #[test]
    fn trailing_hyphen_of_a_prefix_is_masked() {
        for (name, expected) in [("ab-", "aa"), ("a-", "a"), ("-", "-"), ("", ""), ("a", "a"), ("aé-", "a a")]
        {
            assert_eq!(completed(name), expected, "{name}");
        }
    }

    #[test]
    fn uuid_hyphens_are_optional() {
        let uuid_ = "123e4567-E89B-12d3-a456-426614174000";
        let too_short = "23e4567-E89B-12d3-a456-426614174000";
        check(
            uuid,
            &[uuid_, "123e4567e89b12d3a456426614174000"],
            &["", "-", too_short, "123e4567--e89b12d3a45642661417400"],
        );
    }

    #[test]
    fn base64_requires_padding() {
        check(
            byte,
            &["aGVsbG8=", "YQ==", "abcd", "+/+/"],
            &["", "a", "ab", "abc", "a===", "====", "ab-_", "abcd=", "aGVsbG8=\n"],
        );
    }

    #[test]
    fn date_must_exist_in_the_calendar() {
        check(
            date,
            &["2024-02-29", "0000-02-29", "0000-01-01", "9999-12-31"],
            &[
                "2023-02-29",
                "2024-13-01",
                "2024-00-01",
                "2024-1-1",
                "+202-01-01",
                "2024-01-01 ",
                "",
                "２０24-01",
            ],
        );
    }

    #[test]
    fn any_character_may_precede_the_fraction_of_a_time() {
        check(
            date_time,
            &[
                "2024-01-02T03:04:05Z",
                "2024-01-02t03:04:05.123+01:00",
                "2024-01-02T23:59:59İ1z",
                "2024-01-02T03:04:05Zthe rest",
                "2024-01-02T03:04:0507Z",
                "2024-01-02T19:59:59Z",
                "2024-01-02t23:00:00z",
            ],
            &[
                "2024-01-02",
                "2024-01-02T24:04:05Z",
                "2024-01-02T30:04:05Z",
                "2024-01-02T03:0a:05Z",
                "2024-02-30T03:04:05Z",
                "T2024-01-0T03:04:05Z",
                "2024-01-02T03:60:05Z",
                "2024-01-02T03:04:60Z",
                "2024-01-02T03:04:05",
                "",
                "é",
            ],
        );
    }
}
