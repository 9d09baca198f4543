//! Tokenizes JSON text as Go's scanner does, with Go's error messages.

use crate::quoting::quote_byte;

/// The maximum nesting depth of Go's scanner.
pub const MAX_DEPTH: usize = 10_000;

/// A token of a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// The start of an object or a list.
    Begin(Container),
    /// The name of a member, with its quotes and escapes. The tokens of its value follow.
    Key(&'a [u8]),
    /// A string, a number, a boolean, or null, as written.
    Scalar(&'a [u8]),
    /// The end of the innermost object or list.
    End,
}

/// The type of a value that contains other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// An object.
    Object,
    /// A list.
    Array,
}

/// Passes the tokens of a JSON document to `found`, in order, until the document ends or an error occurs.
///
/// Objects and lists may be nested up to `max_depth` levels.
///
/// # Errors
/// Returns Go's error for invalid JSON, such as `invalid character 't' after top-level value`.
///
/// Source: sigs.k8s.io/json internal/golang/encoding/json/scanner.go, a fork of Go encoding/json/scanner.go.
pub fn scan<'a>(text: &'a [u8], max_depth: usize, found: impl FnMut(Token<'a>)) -> Result<(), String> {
    Scanner { text, at: 0, open: Vec::new(), max_depth, found }.document()
}

struct Scanner<'a, F> {
    text: &'a [u8],
    at: usize,
    open: Vec<Container>,
    max_depth: usize,
    found: F,
}

#[derive(Clone, Copy)]
enum Next {
    Value,
    Key,
    AfterValue,
}

impl<'a, F: FnMut(Token<'a>)> Scanner<'a, F> {
    /// Scans a document in a loop rather than by recursion, so that nesting does not use stack space.
    fn document(&mut self) -> Result<(), String> {
        let mut next = Next::Value;
        loop {
            self.skip_space();
            next = match next {
                Next::Value => self.value()?,
                Next::Key => self.key()?,
                Next::AfterValue => match self.open.last() {
                    Some(Container::Object) => self.after_pair()?,
                    Some(Container::Array) => self.after_element()?,
                    None => break,
                },
            };
        }
        match self.peek() {
            None => Ok(()),
            Some(byte) => Err(unexpected(byte, "after top-level value")),
        }
    }

    fn value(&mut self) -> Result<Next, String> {
        let start = self.at;
        match self.next()? {
            b'{' => return self.enter(Container::Object, b'}', Next::Key),
            b'[' => return self.enter(Container::Array, b']', Next::Value),
            b'"' => self.string()?,
            b'-' => match self.next()? {
                first @ b'0'..=b'9' => self.number(first)?,
                byte => return Err(unexpected(byte, "in numeric literal")),
            },
            first @ b'0'..=b'9' => self.number(first)?,
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            byte => return Err(unexpected(byte, "looking for beginning of value")),
        }
        let scalar = Token::Scalar(self.since(start));
        (self.found)(scalar);
        Ok(Next::AfterValue)
    }

    fn enter(&mut self, container: Container, end: u8, inside: Next) -> Result<Next, String> {
        if self.open.len() >= self.max_depth {
            return Err("exceeded max depth".to_owned());
        }
        (self.found)(Token::Begin(container));
        self.open.push(container);
        self.skip_space();
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(self.leave());
        }
        Ok(inside)
    }

    fn key(&mut self) -> Result<Next, String> {
        let start = self.at;
        match self.next()? {
            b'"' => self.string()?,
            byte => return Err(unexpected(byte, "looking for beginning of object key string")),
        }
        let key = Token::Key(self.since(start));
        (self.found)(key);
        self.skip_space();
        match self.next()? {
            b':' => Ok(Next::Value),
            byte => Err(unexpected(byte, "after object key")),
        }
    }

    fn after_pair(&mut self) -> Result<Next, String> {
        match self.next()? {
            b',' => Ok(Next::Key),
            b'}' => Ok(self.leave()),
            byte => Err(unexpected(byte, "after object key:value pair")),
        }
    }

    fn after_element(&mut self) -> Result<Next, String> {
        match self.next()? {
            b',' => Ok(Next::Value),
            b']' => Ok(self.leave()),
            byte => Err(unexpected(byte, "after array element")),
        }
    }

    fn leave(&mut self) -> Next {
        self.open.pop();
        (self.found)(Token::End);
        Next::AfterValue
    }

    fn string(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next()?;
                            if !byte.is_ascii_hexdigit() {
                                return Err(unexpected(byte, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    byte => return Err(unexpected(byte, "in string escape code")),
                },
                byte if byte < 0x20 => return Err(unexpected(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn number(&mut self, first: u8) -> Result<(), String> {
        if first != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            match self.next()? {
                b'0'..=b'9' => self.digits(),
                byte => return Err(unexpected(byte, "after decimal point in numeric literal")),
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            match self.next()? {
                b'0'..=b'9' => self.digits(),
                byte => return Err(unexpected(byte, "in exponent of numeric literal")),
            }
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.chars().skip(1) {
            let byte = self.next()?;
            if char::from(byte) != expected {
                return Err(unexpected(byte, &format!("in literal {word} (expecting '{expected}')")));
            }
        }
        Ok(())
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn since(&self, start: usize) -> &'a [u8] {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.peek().ok_or_else(|| "unexpected end of JSON input".to_owned())?;
        self.at += 1;
        Ok(byte)
    }
}

fn unexpected(byte: u8, place: &str) -> String {
    format!("invalid character {} {place}", quote_byte(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let error = scan(text.as_bytes(), MAX_DEPTH, |_| {}).err().unwrap_or_default();
        assert_eq!(error, expect, "{text}");
    }

    // Recorded from encoding/json of Go 1.26.
    #[test]
    fn invalid_json_is_rejected_with_gos_errors() {
        check(r#" {"a":[1,-2.5e+3,{}],"b":{"c":"\u00e9"},"d":null} "#, "");
        check("", "unexpected end of JSON input");
        check("  [1, ", "unexpected end of JSON input");
        check("\"a", "unexpected end of JSON input");
        check("{", "unexpected end of JSON input");
        check("{} trailing", "invalid character 't' after top-level value");
        check("01", "invalid character '1' after top-level value");
        check("x", "invalid character 'x' looking for beginning of value");
        check("[1,]", "invalid character ']' looking for beginning of value");
        check("'a'", "invalid character '\\'' looking for beginning of value");
        check("{x", "invalid character 'x' looking for beginning of object key string");
        check("{1:2}", "invalid character '1' looking for beginning of object key string");
        check("{'a':1}", "invalid character '\\'' looking for beginning of object key string");
        check("{\"a\":1,}", "invalid character '}' looking for beginning of object key string");
        check("{\"a\"x", "invalid character 'x' after object key");
        check("{\"a\":1 2", "invalid character '2' after object key:value pair");
        check("[1 2", "invalid character '2' after array element");
        check("{\"a\":nul}", "invalid character '}' in literal null (expecting 'l')");
        check("trux", "invalid character 'x' in literal true (expecting 'e')");
        check("{\"a\":\"\n\"}", "invalid character '\\n' in string literal");
        check("{\"a\":\"\\x\"}", "invalid character 'x' in string escape code");
        check("\"\\u00g0\"", "invalid character 'g' in \\u hexadecimal character escape");
        check("-x", "invalid character 'x' in numeric literal");
        check("1.x", "invalid character 'x' after decimal point in numeric literal");
        check("1e+x", "invalid character 'x' in exponent of numeric literal");
    }

    #[test]
    fn nesting_takes_no_stack() {
        check(&"[".repeat(1_000_000), "exceeded max depth");
    }

    #[test]
    fn tokens_are_in_order_with_their_source_text() {
        let mut tokens = Vec::new();
        scan(br#" {"\u0061" : [ ], "b":-1.50}"#, 2, |token| tokens.push(token)).unwrap();
        let expected = [
            Token::Begin(Container::Object),
            Token::Key(br#""\u0061""#),
            Token::Begin(Container::Array),
            Token::End,
            Token::Key(b"\"b\""),
            Token::Scalar(b"-1.50"),
            Token::End,
        ];
        assert_eq!(tokens, expected);
        assert_eq!(scan(b"[[[", 2, |_| {}), Err("exceeded max depth".to_owned()));
    }

    proptest! {
        #[test]
        fn a_text_is_valid_exactly_if_serde_accepts_it(text in "[\\[\\]{}\",:0-9eE.+\\-truefalsn\\\\ ]{0,12}") {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(scan(text.as_bytes(), MAX_DEPTH, |_| {}).is_ok(), is_json);
        }
    }
}
