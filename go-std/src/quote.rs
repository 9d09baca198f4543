//! Quotes strings as Go does.

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

/// Quotes `text` as Go's `%q` does: escapes bytes that are not valid UTF-8, and unprintable characters.
///
/// Source: Go strconv/quote.go, `Quote`.
pub fn quote(text: impl AsRef<[u8]>) -> String {
    let bytes = text.as_ref();
    let mut quoted = String::with_capacity(bytes.len() + 2);
    quoted.push('"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_character(&mut quoted, character);
        }
        for byte in chunk.invalid() {
            push_escape(&mut quoted, format_args!("\\x{byte:02x}"));
        }
    }
    quoted.push('"');
    quoted
}

fn push_character(quoted: &mut String, character: char) {
    match character {
        '"' | '\\' => quoted.extend(['\\', character]),
        '\u{7}' => quoted.push_str("\\a"),
        '\u{8}' => quoted.push_str("\\b"),
        '\u{c}' => quoted.push_str("\\f"),
        '\n' => quoted.push_str("\\n"),
        '\r' => quoted.push_str("\\r"),
        '\t' => quoted.push_str("\\t"),
        '\u{b}' => quoted.push_str("\\v"),
        _ if is_printable(character) => quoted.push(character),
        _ => match u32::from(character) {
            number @ 0..0x80 => push_escape(quoted, format_args!("\\x{number:02x}")),
            number @ 0x80..0x1_0000 => push_escape(quoted, format_args!("\\u{number:04x}")),
            number => push_escape(quoted, format_args!("\\U{number:08x}")),
        },
    }
}

fn push_escape(quoted: &mut String, escape: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _ = quoted.write_fmt(escape);
}

/// Returns whether Go 1.26 considers a character printable.
///
/// Printable characters are the space, and the letters, marks, numbers, punctuation, and symbols of Unicode 15.
///
/// Source: Go strconv/quote.go, `IsPrint`, and unicode/tables.go, `Version`.
pub fn is_printable(character: char) -> bool {
    static PRINTABLE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[[\p{L}\p{M}\p{N}\p{P}\p{S}]&&\p{Age:15.0}]$").ok());
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    PRINTABLE.as_ref().is_some_and(|printable| printable.is_match(character.encode_utf8(&mut [0; 4])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_in_go() {
        for (text, quoted) in [
            ("a b~", r#""a b~""#),
            ("it's", r#""it's""#),
            ("a\"\\", r#""a\"\\""#),
            ("\n\t\u{7}\u{b}\0\u{7f}", r#""\n\t\a\v\x00\x7f""#),
            ("\u{85}\u{a0}\u{ad}\u{2028}\u{feff}", r#""\u0085\u00a0\u00ad\u2028\ufeff""#),
            ("é😀\u{fffd}\u{300}", "\"é😀\u{fffd}\u{300}\""),
            ("\u{e0001}", r#""\U000e0001""#),
            // Assigned in Unicode 16, after Go's tables.
            ("\u{1c89}\u{1cc00}", r#""\u1c89\U0001cc00""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_escaped_one_by_one() {
        assert_eq!(quote(b"a\xff\xe2\x82b"), r#""a\xff\xe2\x82b""#);
    }
}
