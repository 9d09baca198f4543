//! Reads JSON as Go's `encoding/json` does, and says in its words why a text is none.

use std::collections::BTreeMap;

use super::DecodeError;
use super::node::{Node, string};
use crate::quoting::quote_byte;

/// How deep a document may be. Go's own limit is ten times as deep, and has the same text.
pub(super) const MAX_DEPTH: usize = 1000;

/// Reads one JSON document.
///
/// Source: Go encoding/json/scanner.go.
///
/// # Errors
/// [`DecodeError`] with Go's text, such as `invalid character 'x' looking for beginning of value`.
pub(super) fn read(bytes: &[u8]) -> Result<Node, DecodeError> {
    let mut reader = Reader { rest: bytes };
    let node = reader.value(0)?;
    match reader.skip_blanks() {
        None => Ok(node),
        Some(byte) => Err(unexpected(byte, "after top-level value")),
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Node, DecodeError> {
        let begin = "looking for beginning of value";
        match self.skip_blanks() {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => Err(DecodeError("exceeded max depth".to_owned())),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string_text().map(Node::Scalar),
            Some(b't') => self.literal("true").map(Node::Scalar),
            Some(b'f') => self.literal("false").map(Node::Scalar),
            Some(b'n') => self.literal("null").map(|_| Node::Null),
            Some(b'-' | b'0'..=b'9') => self.number().map(Node::Scalar),
            Some(byte) => Err(unexpected(byte, begin)),
            None => Err(ended()),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node, DecodeError> {
        let mut members = BTreeMap::new();
        self.advance();
        if self.skip_blanks() == Some(b'}') {
            self.advance();
            return Ok(Node::Object(members));
        }
        loop {
            let key = match self.skip_blanks() {
                Some(b'"') => string(&self.string_text()?),
                Some(byte) => return Err(unexpected(byte, "looking for beginning of object key string")),
                None => return Err(ended()),
            };
            match self.skip_blanks() {
                Some(b':') => self.advance(),
                Some(byte) => return Err(unexpected(byte, "after object key")),
                None => return Err(ended()),
            }
            members.insert(key, self.value(depth + 1)?);
            match self.skip_blanks() {
                Some(b',') => self.advance(),
                Some(b'}') => {
                    self.advance();
                    return Ok(Node::Object(members));
                }
                Some(byte) => return Err(unexpected(byte, "after object key:value pair")),
                None => return Err(ended()),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Node, DecodeError> {
        let mut nodes = Vec::new();
        self.advance();
        if self.skip_blanks() == Some(b']') {
            self.advance();
            return Ok(Node::Array(nodes));
        }
        loop {
            nodes.push(self.value(depth + 1)?);
            match self.skip_blanks() {
                Some(b',') => self.advance(),
                Some(b']') => {
                    self.advance();
                    return Ok(Node::Array(nodes));
                }
                Some(byte) => return Err(unexpected(byte, "after array element")),
                None => return Err(ended()),
            }
        }
    }

    /// A string with its quotes and escapes.
    fn string_text(&mut self) -> Result<String, DecodeError> {
        let start = self.rest;
        self.advance();
        loop {
            match self.next()? {
                b'"' => return Ok(self.text_since(start)),
                b'\\' => self.escape()?,
                byte @ 0..0x20 => return Err(unexpected(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Result<(), DecodeError> {
        match self.next()? {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    let byte = self.next()?;
                    if !byte.is_ascii_hexdigit() {
                        return Err(unexpected(byte, "in \\u hexadecimal character escape"));
                    }
                }
                Ok(())
            }
            byte => Err(unexpected(byte, "in string escape code")),
        }
    }

    fn number(&mut self) -> Result<String, DecodeError> {
        let start = self.rest;
        if self.peek() == Some(b'-') {
            self.advance();
        }
        match self.peek() {
            Some(b'0') => self.advance(),
            _ => self.digits("in numeric literal")?,
        }
        if self.peek() == Some(b'.') {
            self.advance();
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.advance();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.advance();
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(self.text_since(start))
    }

    /// At least one digit.
    fn digits(&mut self, place: &str) -> Result<(), DecodeError> {
        let byte = self.next()?;
        if !byte.is_ascii_digit() {
            return Err(unexpected(byte, place));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.advance();
        }
        Ok(())
    }

    fn literal(&mut self, literal: &str) -> Result<String, DecodeError> {
        self.advance();
        for expected in literal.bytes().skip(1) {
            let byte = self.next()?;
            if byte != expected {
                let place = format!("in literal {literal} (expecting {})", quote_byte(expected));
                return Err(unexpected(byte, &place));
            }
        }
        Ok(literal.to_owned())
    }

    fn skip_blanks(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.advance();
        }
        self.peek()
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn advance(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn next(&mut self) -> Result<u8, DecodeError> {
        let byte = self.peek().ok_or_else(ended)?;
        self.advance();
        Ok(byte)
    }

    fn text_since(&self, start: &'a [u8]) -> String {
        let length = start.len() - self.rest.len();
        String::from_utf8_lossy(start.get(..length).unwrap_or_default()).into_owned()
    }
}

fn unexpected(byte: u8, place: &str) -> DecodeError {
    DecodeError(format!("invalid character {} {place}", quote_byte(byte)))
}

fn ended() -> DecodeError {
    DecodeError("unexpected end of JSON input".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, error: &str) {
        assert_eq!(read(text.as_bytes()), Err(DecodeError(error.to_owned())), "{text}");
    }

    #[test]
    fn what_is_no_json_is_refused_in_gos_words() {
        for (text, error) in [
            ("", "unexpected end of JSON input"),
            ("  [1, ", "unexpected end of JSON input"),
            ("\"a", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{1:2}", "invalid character '1' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[] x", "invalid character 'x' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1e+x", "invalid character 'x' in exponent of numeric literal"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u00g0\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
        ] {
            check(text, error);
        }
        check(&"[".repeat(100_000), "exceeded max depth");
    }

    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_character() {
        assert_eq!(string(r#""a\ud83d\ude00b\ud800c""#), "a😀b\u{fffd}c");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]{}\",:0-9eE.+\\-truefalsn\\\\ ]{0,40}") {
            let _ = read(text.as_bytes());
        }

        #[test]
        fn every_text_that_serde_reads_is_read_to_the_same_value(text in "[\\[\\]{}\",:0-9e.\\-\\\\ ]{0,12}") {
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
                prop_assert_eq!(read(text.as_bytes()).unwrap().to_value().unwrap(), value);
            }
        }
    }
}
