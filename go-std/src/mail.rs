//! Parses email addresses as Go does.
//!
//! Source: Go net/mail/message.go, `ParseAddress`; mime/encodedword.go, `WordDecoder.Decode`.

use super::{base64, netip};

/// Returns whether `text` is exactly one email address, with optional comments in parentheses.
///
/// Examples are `a@example.com`, `"A B" <a@example.com>`, `a@[192.0.2.1]`, and `group: a@example.com;`.
pub fn is_address(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    parser.addresses(true) == Some(1) && parser.skip_comments().is_some() && parser.rest.is_empty()
}

/// A parser that holds the text that has not been parsed.
///
/// After a method returns `None`, either the parser is unchanged or parsing ends.
struct Parser<'t> {
    rest: &'t str,
}

/// A word of a display name.
enum Word {
    Plain,
    /// An encoded word, and whether its text is not empty.
    Encoded(bool),
}

impl Parser<'_> {
    /// Parses an address or, if `may_be_group` is set, a group, and returns the number of addresses.
    fn addresses(&mut self, may_be_group: bool) -> Option<usize> {
        self.skip_space();
        if self.rest.is_empty() {
            return None;
        }
        if self.bare().is_some() {
            self.skip_space();
            if self.take('(') {
                let comment = self.comment()?;
                comment.split([' ', '\t']).try_for_each(|word| decoded(word).map(drop))?;
            }
            return Some(1);
        }
        if !self.rest.starts_with('<') {
            self.name()?;
        }
        self.skip_space();
        if may_be_group && self.take(':') {
            return self.group();
        }
        if !self.take('<') {
            return None;
        }
        self.bare()?;
        self.take('>').then_some(1)
    }

    /// Parses the addresses of a group after its name and colon, and returns their number.
    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        if self.take(';') {
            self.skip_comments()?;
            return Some(0);
        }
        let mut count = 0;
        loop {
            count += self.addresses(false)?;
            self.skip_comments()?;
            if self.take(';') {
                self.skip_comments()?;
                return Some(count);
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// Parses an address without a display name.
    fn bare(&mut self) -> Option<()> {
        let before = self.rest;
        let found = self.local_and_domain();
        if found.is_none() {
            self.rest = before;
        }
        found
    }

    fn local_and_domain(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            self.quoted().filter(|length| *length > 0)?;
        } else {
            self.dotted()?;
        }
        if !self.take('@') {
            return None;
        }
        self.skip_space();
        if !self.take('[') {
            return self.dotted();
        }
        let (address, rest) = self.rest.split_once(']')?;
        self.rest = rest;
        let is_address = netip::parse_address(address.as_bytes()).is_ok_and(|address| address.zone.is_none());
        is_address.then_some(())
    }

    /// Parses the words of a display name; returns `None` if the text does not begin with a word.
    fn name(&mut self) -> Option<()> {
        let mut words = 0;
        // Consecutive encoded words form one word.
        let mut has_encoded = false;
        loop {
            if words > 0 {
                self.skip_comments()?;
            }
            self.skip_space();
            if self.rest.is_empty() {
                return Some(());
            }
            let word = if self.rest.starts_with('"') {
                self.quoted().map(|_| Word::Plain)
            } else {
                self.atom().and_then(decoded)
            };
            match word {
                Some(Word::Encoded(is_any)) => has_encoded |= is_any,
                Some(Word::Plain) => {
                    words += 1 + usize::from(has_encoded);
                    has_encoded = false;
                }
                None => return (words > 0 || has_encoded).then_some(()),
            }
        }
    }

    /// Parses a quoted string and returns its number of characters, or returns `None` and leaves the parser unchanged.
    fn quoted(&mut self) -> Option<usize> {
        let mut characters = self.rest.chars();
        characters.next();
        let (mut length, mut is_escaped) = (0, false);
        loop {
            match characters.next()? {
                character if is_escaped && (is_visible(character) || is_space(character)) => {
                    length += 1;
                    is_escaped = false;
                }
                _ if is_escaped => return None,
                '"' => {
                    self.rest = characters.as_str();
                    return Some(length);
                }
                '\\' => is_escaped = true,
                character if is_visible(character) || is_space(character) => length += 1,
                _ => return None,
            }
        }
    }

    /// Parses atoms separated by single dots; returns `None` for other text.
    fn dotted(&mut self) -> Option<()> {
        let atom = self.atom()?;
        let is_dotted = !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..");
        is_dotted.then_some(())
    }

    /// Parses the characters of atoms, including dots, or returns `None` and leaves the parser unchanged.
    fn atom(&mut self) -> Option<&str> {
        let is_atom = |character: char| is_visible(character) && !"()<>[]:;@\\,\"".contains(character);
        let end = self.rest.find(|character| !is_atom(character)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at_checked(end)?;
        if atom.is_empty() {
            return None;
        }
        self.rest = rest;
        Some(atom)
    }

    /// Skips spaces and comments; returns `None` if a comment is invalid.
    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while self.take('(') {
            self.comment()?;
            self.skip_space();
        }
        Some(())
    }

    /// Parses the content of a comment after its opening parenthesis, including the parentheses of nested comments.
    fn comment(&mut self) -> Option<String> {
        let mut depth = 1_usize;
        let mut text = String::new();
        let mut characters = self.rest.chars();
        while let Some(character) = characters.next() {
            let mut content = character;
            match character {
                '\\' => content = characters.next().unwrap_or(character),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = characters.as_str();
                return Some(text);
            }
            text.push(content);
        }
        None
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
    }

    fn take(&mut self, expected: char) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

/// Decodes a word. Returns `None` for an encoded word in an unknown charset.
fn decoded(word: &str) -> Option<Word> {
    let parts = word.strip_prefix("=?").and_then(|word| word.strip_suffix("?="));
    let parts: Vec<&str> =
        parts.filter(|_| word.len() >= 8).map(|parts| parts.split('?').collect()).unwrap_or_default();
    let [charset, encoding, text] = parts.as_slice() else { return Some(Word::Plain) };
    let is_decoded = match *encoding {
        "B" | "b" => base64::decode(text).is_ok(),
        "Q" | "q" => is_quoted_printable(text),
        _ => false,
    };
    if charset.is_empty() || !is_decoded {
        return Some(Word::Plain);
    }
    // Go ignores case in this comparison, and treats U+017F (`ſ`) as an `s`.
    let charset = charset.replace('\u{17f}', "s");
    let is_known =
        ["utf-8", "iso-8859-1", "us-ascii"].iter().any(|known| known.eq_ignore_ascii_case(&charset));
    is_known.then_some(Word::Encoded(!text.is_empty()))
}

fn is_quoted_printable(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_valid = match byte {
            b'=' => (0..2).all(|_| bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit())),
            _ => (b' '..=b'~').contains(&byte) || b"\n\r\t".contains(&byte),
        };
        if !is_valid {
            return false;
        }
    }
    true
}

fn is_visible(character: char) -> bool {
    character.is_ascii_graphic() || !character.is_ascii()
}

fn is_space(character: char) -> bool {
    [' ', '\t'].contains(&character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_in_go() {
        for text in [
            "a@b",
            " a.b@example.com ",
            "a@ b",
            "\"a b\"@c",
            "\"a\\\"\"@c",
            "a@[192.0.2.1]",
            "a@[::1]",
            "a@b (c (d) \\))",
            "A B <a@b>",
            "\"A, B\" <a@b>",
            "A.B. <a@b>",
            "A (c) B <a@b>",
            "<a@b>",
            "=?utf-8?q?A?= <a@b>",
            "=?nope?x?A?= <a@b>",
            "A =?nope?q?B?= <a@b>",
            "=?u\u{17f}-ascii?b?QQ==?= <a@b>",
            "group: a@b;",
            "group: A <a@b>; (c)",
            "ä@ö",
            "ä <a@b>",
        ] {
            assert!(is_address(text), "{text}");
        }
        for text in [
            "",
            " ",
            "a",
            "@b",
            "a@",
            "a..b@c",
            ".a@b",
            "a.@b",
            "a@b.",
            "a@b@c",
            "\"\"@b",
            "\"a@b",
            "a b@c",
            "a@[b]",
            "a@[fe80::1%eth0]",
            "a@[1.2.3.4",
            "a@b (c",
            "a@b (=?nope?q?A?=)",
            "a@b, c@d",
            "A <a@b",
            "A <a@b> c",
            "A B",
            "=?nope?q?A?= <a@b>",
            "=?utf-8?q??= =?nope?q?A?= <a@b>",
            "group: a@b, c@d;",
            "group:;",
            "group: other: a@b;;",
            "a@b\n",
            "\u{7f}@b",
        ] {
            assert!(!is_address(text), "{text}");
        }
    }
}
