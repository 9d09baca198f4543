//! Where JSON text stops being JSON, in the words of Go's scanner.

use crate::quoting::quote_byte;

/// The deepest nesting that Go's scanner takes.
const MAX_DEPTH: usize = 10_000;

/// Says what is wrong with `text` as one JSON document.
///
/// # Errors
/// Go's text, such as `invalid character 't' after top-level value`.
///
/// Source: sigs.k8s.io/json internal/golang/encoding/json/scanner.go.
pub(super) fn check(text: &[u8]) -> Result<(), String> {
    let mut scanner = Scanner { text, at: 0, open: Vec::new() };
    scanner.document()
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    open: Vec<Container>,
}

#[derive(Clone, Copy)]
enum Container {
    Object,
    Array,
}

#[derive(Clone, Copy)]
enum Next {
    Value,
    Key,
    AfterValue,
}

impl Scanner<'_> {
    /// A loop instead of recursion, so that depth costs no stack.
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
        Ok(Next::AfterValue)
    }

    fn enter(&mut self, container: Container, end: u8, inside: Next) -> Result<Next, String> {
        if self.open.len() == MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        self.skip_space();
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(Next::AfterValue);
        }
        self.open.push(container);
        Ok(inside)
    }

    fn key(&mut self) -> Result<Next, String> {
        match self.next()? {
            b'"' => self.string()?,
            byte => return Err(unexpected(byte, "looking for beginning of object key string")),
        }
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
    use super::*;

    #[track_caller]
    fn check_text(text: &str, expect: &str) {
        assert_eq!(check(text.as_bytes()).err().unwrap_or_default(), expect, "{text}");
    }

    // The texts are those of Go 1.26's encoding/json.
    #[test]
    fn a_syntax_error_reads_as_in_go() {
        check_text(r#" {"a":[1,-2.5e+3,{}],"b":{"c":"\u00e9"},"d":null} "#, "");
        check_text("{} trailing", "invalid character 't' after top-level value");
        check_text("{", "unexpected end of JSON input");
        check_text("{x", "invalid character 'x' looking for beginning of object key string");
        check_text("{\"a\"x", "invalid character 'x' after object key");
        check_text("{\"a\":1 2", "invalid character '2' after object key:value pair");
        check_text("{\"a\":1,}", "invalid character '}' looking for beginning of object key string");
        check_text("[1 2", "invalid character '2' after array element");
        check_text("[1,]", "invalid character ']' looking for beginning of value");
        check_text("{\"a\":nul}", "invalid character '}' in literal null (expecting 'l')");
        check_text("{\"a\":\"\n\"}", "invalid character '\\n' in string literal");
        check_text("{\"a\":\"\\x\"}", "invalid character 'x' in string escape code");
        check_text("{\"a\":-x}", "invalid character 'x' in numeric literal");
        check_text("{\"a\":1.x}", "invalid character 'x' after decimal point in numeric literal");
        check_text("{'a':1}", "invalid character '\\'' looking for beginning of object key string");
    }

    #[test]
    fn nesting_costs_no_stack() {
        check_text(&"[".repeat(1_000_000), "exceeded max depth");
    }
}
