//! Parses characters and character classes in expressions.
//!
//! Source: Go regexp/syntax/parse.go, `parseClass`, `parseEscape` and their siblings.

use super::class::{self, Class};

/// Go's message for an invalid escape.
pub(super) const INVALID_ESCAPE: &str = "invalid escape sequence";
const INVALID_RANGE: &str = "invalid character class range";

/// Returns an error with Go's message `what` for the text `at`.
pub(super) fn error<T>(what: &str, at: &str) -> Result<T, String> {
    Err(format!("{what}: `{at}`"))
}

/// Returns the part of `text` before its suffix `rest`.
pub(super) fn before<'e>(text: &'e str, rest: &str) -> &'e str {
    text.get(..text.len().saturating_sub(rest.len())).unwrap_or_default()
}

/// Returns the text without its first `bytes` bytes.
pub(super) fn skip(text: &str, bytes: usize) -> &str {
    text.get(bytes..).unwrap_or_default()
}

/// Returns the first character and the rest of the text, or `None` if the text is empty.
pub(super) fn split_first(text: &str) -> Option<(char, &str)> {
    let first = text.chars().next()?;
    Some((first, skip(text, first.len_utf8())))
}

/// Parses the bracketed class at the beginning of `text`, and returns the class with the rest of the text.
pub(super) fn bracketed_class(text: &str, fold: bool) -> Result<(String, &str), String> {
    let mut class = Class::default();
    let mut rest = skip(text, 1);
    let negated = rest.starts_with('^');
    if negated {
        rest = skip(rest, 1);
    }
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some((name, behind)) = rest.strip_prefix("[:").and_then(|name| name.split_once(":]")) {
            let Some(named) = class::posix(name) else {
                return error(INVALID_RANGE, before(rest, behind));
            };
            class.add(&named);
            rest = behind;
            continue;
        }
        if let Some((escaped, behind)) = escaped_class(rest)? {
            class.add(&escaped);
            rest = behind;
            continue;
        }
        let range = rest;
        let (low, behind) = class_character(rest, text)?;
        let mut high = low;
        rest = behind;
        // A hyphen before the end is literal.
        if let Some(behind) = rest.strip_prefix('-')
            && !behind.is_empty()
            && !behind.starts_with(']')
        {
            (high, rest) = class_character(behind, text)?;
            if high < low {
                return error(INVALID_RANGE, before(range, rest));
            }
        }
        class.add_range(low, high);
    }
    Ok((class.finish(negated, fold), skip(rest, 1)))
}

/// Parses a class such as `\pL`, `\p{Greek}`, or `\d` at the beginning of `text`.
///
/// Returns the class with the rest of the text, or `None` if the text does not begin with such a class.
pub(super) fn escaped_class(text: &str) -> Result<Option<(String, &str)>, String> {
    let Some(letter) = text.strip_prefix('\\').and_then(|rest| rest.bytes().next()) else { return Ok(None) };
    if !matches!(letter, b'p' | b'P') {
        return Ok(class::perl(letter).map(|class| (class, skip(text, 2))));
    }
    let Some((first, behind)) = split_first(skip(text, 2)) else { return error(INVALID_RANGE, text) };
    let (name, behind) = if first == '{' {
        match behind.split_once('}') {
            Some(found) => found,
            None => return error(INVALID_RANGE, text),
        }
    } else {
        (before(skip(text, 2), behind), behind)
    };
    match class::property(name, letter == b'P') {
        Some(class) => Ok(Some((class, behind))),
        None => error(INVALID_RANGE, before(text, behind)),
    }
}

/// Parses a character of a class, and returns the code of the character with the rest of the text.
fn class_character<'e>(text: &'e str, class: &str) -> Result<(u32, &'e str), String> {
    match split_first(text) {
        None => error("missing closing ]", class),
        Some(('\\', _)) => escape(text),
        Some((character, behind)) => Ok((u32::from(character), behind)),
    }
}

/// Parses an escape sequence, and returns the code of the character with the rest of the text.
pub(super) fn escape(text: &str) -> Result<(u32, &str), String> {
    let Some((letter, behind)) = split_first(skip(text, 1)) else {
        return error("trailing backslash at end of expression", "");
    };
    let is_octal = |byte: &u8| (b'0'..=b'7').contains(byte);
    let number = match letter {
        'a' => 7,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        'x' => return hexadecimal(text, behind),
        '1'..='7' if !behind.as_bytes().first().is_some_and(is_octal) => {
            // This would be a back reference.
            return error(INVALID_ESCAPE, before(text, behind));
        }
        '0'..='7' => {
            let more = behind.bytes().take(2).take_while(is_octal).count();
            let (digits, rest) = skip(text, 1).split_at(1 + more);
            return Ok((u32::from_str_radix(digits, 8).unwrap_or_default(), rest));
        }
        other if other.is_ascii() && !other.is_ascii_alphanumeric() => u32::from(other),
        _ => return error(INVALID_ESCAPE, before(text, behind)),
    };
    Ok((number, behind))
}

/// Parses `\x7F` or `\x{10FFFF}`; `behind` is the text after the `x`.
fn hexadecimal<'e>(text: &'e str, behind: &'e str) -> Result<(u32, &'e str), String> {
    let wrong = |rest: &str| error(INVALID_ESCAPE, before(text, rest));
    let Some((first, mut rest)) = split_first(behind) else { return wrong(behind) };
    if first == '{' {
        let (mut number, mut digits) = (0_u32, 0);
        while let Some((letter, behind)) = split_first(rest) {
            rest = behind;
            if letter == '}' {
                return if digits == 0 { wrong(rest) } else { Ok((number, rest)) };
            }
            let Some(digit) = letter.to_digit(16) else { return wrong(rest) };
            number = number * 16 + digit;
            if number > u32::from(char::MAX) {
                return wrong(rest);
            }
            digits += 1;
        }
        return wrong(rest);
    }
    let Some((second, rest)) = split_first(rest) else { return wrong("") };
    match (first.to_digit(16), second.to_digit(16)) {
        (Some(first), Some(second)) => Ok((first * 16 + second, rest)),
        _ => wrong(rest),
    }
}
