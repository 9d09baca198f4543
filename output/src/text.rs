//! Escapes text from other sources: webhooks, files, and clusters.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;

/// Escapes `text` so that it is on one line and safe to print on a terminal.
///
/// Control characters (including line breaks) and characters that change the direction of writing become escape
/// sequences such as `\n` and `\u{1b}`.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// Escapes `text` as [`one_line`] does, but keeps line breaks and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_unsafe(character) && !matches!(character, '\n' | '\t'))
}

/// Escapes `text` as [`lines`] does, but keeps styles: escape sequences of the form `ESC [ digits and semicolons m`.
pub fn styled(text: &str) -> Cow<'_, str> {
    if !text.contains(|character| is_unsafe(character) && character != '\n') {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        kept.push_str(&lines(before));
        let parameters = after.strip_prefix('[').map_or("", |sequence| {
            let end = sequence.find(|character: char| !(character.is_ascii_digit() || character == ';'));
            end.filter(|end| sequence.get(*end..).is_some_and(|rest| rest.starts_with('m')))
                .and_then(|end| after.get(..end + 2))
                .unwrap_or_default()
        });
        let escape = if parameters.is_empty() { "\\u{1b}" } else { "\u{1b}" };
        kept.push_str(escape);
        kept.push_str(parameters);
        rest = after.get(parameters.len()..).unwrap_or_default();
    }
    kept.push_str(&lines(rest));
    Cow::Owned(kept)
}

/// Removes the numbers that Rust appends to system errors: ` (os error 2)`.
///
/// The text before a number says the same, and users do not know the numbers.
pub fn without_error_numbers(text: &str) -> Cow<'_, str> {
    const START: &str = " (os error ";
    let mut parts = text.split(START);
    let Some(first) = parts.next().filter(|first| first.len() < text.len()) else {
        return Cow::Borrowed(text);
    };
    let mut kept = first.to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => kept.push_str(rest),
            Some(_) | None => {
                kept.push_str(START);
                kept.push_str(part);
            }
        }
    }
    Cow::Owned(kept)
}

/// Escapes a JSON document so that it is safe to print on a terminal and to embed in YAML. Its value does not change.
///
/// JSON escapes only some of the characters that can control a terminal or that YAML does not allow. The others occur
/// only in strings, where each can be written as `\uXXXX`.
pub fn json(document: &str) -> Cow<'_, str> {
    let is_unsafe = |character| match character {
        '\n' | '\t' => false,
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => true,
        character => is_unsafe(character),
    };
    if !document.contains(is_unsafe) {
        return Cow::Borrowed(document);
    }
    let mut escaped = String::with_capacity(document.len() + 16);
    for character in document.chars() {
        if is_unsafe(character) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Replaces each character that XML 1.0 does not allow with U+FFFD.
///
/// Source: XML 1.0 (Fifth Edition), production 2, `Char`
pub fn xml(text: &str) -> Cow<'_, str> {
    let is_char = |character| matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    if text.chars().all(is_char) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|character| if is_char(character) { character } else { '\u{fffd}' }).collect()
}

/// Displays a value as [`one_line`] does. Width and alignment apply as for any string.
#[derive(Clone, Copy, Debug)]
pub struct OneLine<T>(pub T);

impl<T: fmt::Display> fmt::Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&one_line(&self.0.to_string()))
    }
}

fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe(character) {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether `character` can control a terminal or the direction of text.
///
/// Source: Unicode Standard Annex #9, "Directional Formatting Characters"; U+2028 and U+2029 break lines.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped() {
        for (text, expected) in [
            ("plain, ü and 日本", "plain, ü and 日本"),
            ("\u{1b}[2J\u{7}", r"\u{1b}[2J\u{7}"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("a\r\n\tb", r"a\r\n\tb"),
            ("\u{202e}txt.exe\u{2066}", r"\u{202e}txt.exe\u{2066}"),
            ("a\u{2028}b\u{7f}", r"a\u{2028}b\u{7f}"),
        ] {
            assert_eq!(one_line(text), expected);
        }
    }

    #[test]
    fn only_the_numbers_of_system_errors_are_removed() {
        for (text, expected) in [
            (
                "a.yaml: No such file or directory (os error 2): did you mean b?",
                "a.yaml: No such file or directory: did you mean b?",
            ),
            ("a (os error 2), b (os error 13)", "a, b"),
            ("an error (os error x)", "an error (os error x)"),
            ("an error (os error 2", "an error (os error 2"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_error_numbers(text), expected);
        }
    }

    #[test]
    fn styled_text_keeps_styles_only() {
        for (text, expected) in [
            ("\u{1b}[1m\u{1b}[31mred\u{1b}[0m\n", "\u{1b}[1m\u{1b}[31mred\u{1b}[0m\n"),
            ("\u{1b}[2;7m", "\u{1b}[2;7m"),
            ("\u{1b}[2J\u{1b}[31", r"\u{1b}[2J\u{1b}[31"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("\u{1b}\u{1b}[m\u{202e}", "\\u{1b}\u{1b}[m\\u{202e}"),
        ] {
            assert_eq!(styled(text), expected);
        }
    }

    #[test]
    fn escaped_json_is_the_same_json() {
        assert_eq!(
            json("{\n  \"a\": \"\u{9b}31m\u{202e}\u{7f}\"}"),
            r#"{
  "a": "\u009b31m\u202e\u007f"}"#
        );
    }

    #[test]
    fn characters_that_xml_forbids_are_replaced() {
        assert_eq!(
            xml("a\u{0}\u{1b}\u{fffe}\u{ffff}\u{fffd}\t\u{10ffff}"),
            "a\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\t\u{10ffff}"
        );
    }

    #[test]
    fn lines_may_stay() {
        assert_eq!(lines("a\n\tb\r\u{1b}"), "a\n\tb\\r\\u{1b}");
    }

    #[test]
    fn the_width_is_that_of_the_escaped_text() {
        assert_eq!(format!("{:6}|", OneLine("a\nb")), "a\\nb  |");
    }
}
