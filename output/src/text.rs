//! Texts of others, for people to read on a terminal.

use std::borrow::Cow;
use std::fmt;

/// `text` in one line: control characters, line breaks among them, and characters that turn the direction of writing are
/// written as escapes such as `\n` and `\u{1b}`.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// As [`one_line`], but line breaks and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_unsafe(character) && !matches!(character, '\n' | '\t'))
}

/// Shows something as [`one_line`] does; width and alignment count as for a text.
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
    fn lines_may_stay() {
        assert_eq!(lines("a\n\tb\r\u{1b}"), "a\n\tb\\r\\u{1b}");
    }

    #[test]
    fn the_width_is_that_of_the_escaped_text() {
        assert_eq!(format!("{:6}|", OneLine("a\nb")), "a\\nb  |");
    }
}
