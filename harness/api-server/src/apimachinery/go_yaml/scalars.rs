//! Selects the styles of strings and formats numbers.

use jiff::civil::Date;
use kubernetes_cel::value::format_double;
use serde_json::Number;

/// Whether a string is a key or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Key,
    Value,
}

/// The YAML style of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

impl Style {
    /// Source: `encode.go`, `stringv`; `emitterc.go`, `yaml_emitter_analyze_scalar` and
    /// `yaml_emitter_select_scalar_style`.
    pub(super) fn for_text(text: &str, place: Place) -> Self {
        let allowed = AllowedStyles::for_text(text);
        if text.contains('\n') {
            let is_literal = allowed.literal && place == Place::Value;
            return if is_literal { Self::Literal } else { Self::DoubleQuoted };
        }
        if resolves(text) || is_base_60(text) {
            return Self::DoubleQuoted;
        }
        match (allowed.plain, allowed.single_quoted) {
            _ if allowed.is_multiline && place == Place::Key => Self::DoubleQuoted,
            (true, _) => Self::Plain,
            (false, true) => Self::SingleQuoted,
            (false, false) => Self::DoubleQuoted,
        }
    }
}

/// The styles in which a string can be written.
#[expect(clippy::struct_excessive_bools, reason = "each style is allowed or not, as upstream")]
struct AllowedStyles {
    plain: bool,
    single_quoted: bool,
    literal: bool,
    is_multiline: bool,
}

impl AllowedStyles {
    fn for_text(text: &str) -> Self {
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut breaks, mut special, mut break_space, mut space_break) = (false, false, false, false);
        let (mut after_space, mut after_break, mut after_blank) = (false, false, true);
        let mut characters = text.chars().enumerate().peekable();
        while let Some((at, character)) = characters.next() {
            let before_blank = characters.peek().is_none_or(|(_, next)| is_blank(*next));
            indicators |= match character {
                '#' if at > 0 => after_blank,
                ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`' => at == 0,
                ':' => before_blank,
                '?' | '-' if at == 0 => before_blank,
                _ => false,
            };
            special |= !is_printable(character);
            if character == ' ' {
                break_space |= after_break;
            } else if is_break(character) {
                breaks = true;
                space_break |= after_space;
            }
            after_space = character == ' ';
            after_break = is_break(character);
            after_blank = is_blank(character) || is_break(character) || character == '\0';
        }
        let is_edge = |character: char| character == ' ' || is_break(character);
        let has_edges = text.starts_with(is_edge) || text.ends_with(is_edge);
        let is_hard = space_break || special;
        Self {
            plain: !(indicators || has_edges || breaks || break_space || is_hard),
            single_quoted: !(break_space || is_hard),
            literal: !(text.ends_with(' ') || is_hard),
            is_multiline: breaks,
        }
    }
}

pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// Source: `yamlprivateh.go`, `is_printable`.
pub(super) fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && character != '\u{feff}'
}

pub(super) fn escaped(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        other => {
            let code = u32::from(other);
            return match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

/// Formats a number as Go does: integers in full, other numbers with the shortest precision.
pub(super) fn number(value: &Number) -> String {
    if value.is_i64() || value.is_u64() {
        return value.to_string();
    }
    format_double(value.as_f64().unwrap_or_default())
}

/// Returns whether a string without quotes would be decoded as a different type, such as a number.
///
/// Source: `resolve.go`, `resolve`.
fn resolves(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "yes", "true", "on", "n", "no", "false", "off", "null"];
    match text.as_bytes().first() {
        None => true,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => {
            let mut rest = text.chars();
            let first = rest.next().into_iter();
            let capitalized: String = first.chain(rest.flat_map(char::to_lowercase)).collect();
            let is_case = text == text.to_lowercase() || text == text.to_uppercase() || text == capitalized;
            text == "~" || (is_case && WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)))
        }
        Some(b'.') => {
            [".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF"].contains(&text) || text.parse::<f64>().is_ok()
        }
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let infinities = ["+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"];
            infinities.contains(&text) || is_timestamp(text) || is_number(&text.replace('_', ""))
        }
        Some(_) => false,
    }
}

fn is_number(text: &str) -> bool {
    let (is_negative, unsigned) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let prefixed = |prefixes: [&str; 2], radix: u32| {
        let digits = prefixes.iter().find_map(|prefix| unsigned.strip_prefix(prefix))?;
        let is_digits = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        Some(is_digits && in_range(digits, radix, is_negative))
    };
    let radix = [(["0x", "0X"], 16), (["0o", "0O"], 8), (["0b", "0B"], 2)];
    if let Some(found) = radix.into_iter().find_map(|(prefixes, radix)| prefixed(prefixes, radix)) {
        return found;
    }
    is_decimal(unsigned)
}

/// Returns whether the number with these digits fits into 64 bits.
fn in_range(digits: &str, radix: u32, is_negative: bool) -> bool {
    let value = u128::from_str_radix(digits, radix).ok();
    let max = if is_negative { 1 << 63 } else { u128::from(u64::MAX) };
    value.is_some_and(|value| value <= max)
}

/// Source: `resolve.go`, `yamlStyleFloat`.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        None => is_digits(mantissa),
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
    };
    let is_exponent =
        exponent.is_none_or(|exponent| is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    is_mantissa && is_exponent && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Source: `resolve.go`, `parseTimestamp`.
fn is_timestamp(text: &str) -> bool {
    let digits = |text: &str, max: usize| {
        let is_digits = (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_digits.then(|| text.parse::<i8>().ok()).flatten()
    };
    let Some((year, rest)) = text.split_once('-').filter(|(year, _)| year.len() == 4) else { return false };
    let Some(year) =
        year.bytes().all(|byte| byte.is_ascii_digit()).then(|| year.parse::<i16>().ok()).flatten()
    else {
        return false;
    };
    let Some((month, rest)) = rest.split_once('-') else { return false };
    let end = rest.find(['T', 't', ' ']).unwrap_or(rest.len());
    let (day, rest) = rest.split_at(end);
    let (Some(month), Some(day)) = (digits(month, 2), digits(day, 2)) else { return false };
    if Date::new(year, month, day).is_err() {
        return false;
    }
    let (has_zone, time) = match rest.split_at_checked(1) {
        None => return true,
        Some((" ", time)) => (false, time),
        Some((_, time)) => (true, time),
    };
    let time = if has_zone {
        let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
        let (time, zone) = time.split_at(zone);
        let is_offset = zone.len() == 6
            && zone.get(1..3).is_some_and(|hours| digits(hours, 2).is_some_and(|hours| hours <= 24))
            && zone.get(3..4) == Some(":")
            && zone.get(4..6).is_some_and(|minutes| digits(minutes, 2).is_some_and(|minutes| minutes < 60));
        if zone != "Z" && !is_offset {
            return false;
        }
        time
    } else {
        time
    };
    let mut parts = time.split(':');
    let (Some(hour), Some(minute), Some(second), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (second, fraction) = match second.split_once(['.', ',']) {
        Some((second, fraction)) => (second, Some(fraction)),
        None => (second, None),
    };
    let in_range = |text: &str, max: i8| digits(text, 2).is_some_and(|value| value <= max);
    let is_fraction = fraction
        .is_none_or(|fraction| !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit()));
    in_range(hour, 23) && in_range(minute, 59) && in_range(second, 59) && is_fraction
}

/// Returns whether a string is a base-60 number such as `1:30`. Other parsers decode such a string as a number.
///
/// Source: `encode.go`, `base60float`.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut parts = whole.split(':');
    let is_run = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let first = parts.next().unwrap_or_default();
    let is_first = first.starts_with(|c: char| c.is_ascii_digit()) && is_run(first);
    let is_sixtieth = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u8>().is_ok_and(|part| part < 60)
            && part.len() <= 2
    };
    is_first && whole.contains(':') && parts.all(is_sixtieth) && is_run(fraction)
}
