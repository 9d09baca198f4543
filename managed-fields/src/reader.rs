//! Parses JSON and reports the same errors as json-iterator, including their positions.

use go_std::quote::quote;
use serde_json::{Map, Number, Value};

/// The maximum nesting depth of objects and lists.
///
/// Upstream accepts 10,000, but documents from the server's own decoder are never that deep.
pub(crate) const MAX_DEPTH: usize = 500;

/// Parses JSON and keeps the first error; values that are read after an error are meaningless.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    source: Source,
    at: usize,
    depth: usize,
    error: Option<String>,
    /// Whether the parser has tried to read beyond the end.
    is_at_end: bool,
}

/// The source that json-iterator reads from. It determines the text that errors show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Reads from memory: all bytes are available.
    Memory,
    /// Reads from a stream: errors show only bytes of the current chunk.
    Stream,
}

/// The size, in bytes, of json-iterator's chunks.
const CHUNK_SIZE: usize = 4096;

/// The names of json-iterator's functions in errors about objects, and how these errors quote text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    of_reader: &'static str,
    of_colon: &'static str,
    /// Whether an error about a missing colon quotes the text before the name.
    quotes_before: bool,
}

/// The names in errors from the function `ReadObjectCB`.
pub(crate) const OBJECT: Names =
    Names { of_reader: "ReadObjectCB", of_colon: "ReadObject", quotes_before: false };

/// The names in errors from the function `ReadMapCB`.
pub(crate) const MAP: Names = Names { of_reader: "ReadMapCB", of_colon: "ReadMapCB", quotes_before: true };

impl<'a> Reader<'a> {
    /// Creates a parser with the errors that json-iterator reports when it reads from memory.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, source: Source::Memory, at: 0, depth: 0, error: None, is_at_end: false }
    }

    /// Creates a parser with the errors that json-iterator reports when it reads from a stream.
    pub(crate) fn from_stream(bytes: &'a [u8]) -> Self {
        Self { source: Source::Stream, ..Self::new(bytes) }
    }

    /// Returns whether an error occurred. After an error, the caller can stop reading.
    pub(crate) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Records an error at the current position, unless an error has already been recorded.
    ///
    /// Source: json-iterator iter.go, `ReportError`.
    pub(crate) fn fail(&mut self, operation: &str, message: &str) {
        if self.error.is_some() {
            return;
        }
        let (start, end) = match self.source {
            Source::Memory => (0, self.bytes.len()),
            Source::Stream => {
                let start = self.at.saturating_sub(1) / CHUNK_SIZE * CHUNK_SIZE;
                (start, self.bytes.len().min(start + CHUNK_SIZE))
            }
        };
        let around = |reach: usize| {
            let part = self.at.saturating_sub(reach).max(start)..end.min(self.at + reach);
            String::from_utf8_lossy(self.bytes.get(part).unwrap_or_default()).into_owned()
        };
        self.error = Some(format!(
            "{operation}: {message}, error found in #{} byte of ...|{}|..., bigger context ...|{}|...",
            (self.at - start).min(10),
            around(10),
            around(50),
        ));
    }

    /// Returns the first error, if any; text after the document is also an error.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        if !self.has_failed() && self.token() != 0 {
            self.at -= 1;
            self.fail("managedFields parsing", "unexpected trailing data after JSON object");
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Reads the next byte that is not whitespace; returns 0 at the end.
    fn token(&mut self) -> u8 {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let is_token = |byte: &u8| !matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
        let Some(index) = rest.iter().position(is_token) else {
            if self.source == Source::Memory {
                self.at = self.bytes.len();
            }
            self.is_at_end = true;
            return 0;
        };
        self.at += index + 1;
        rest.get(index).copied().unwrap_or_default()
    }

    fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied();
        match byte {
            Some(_) => self.at += 1,
            None => self.is_at_end = true,
        }
        byte.unwrap_or_default()
    }

    fn unread(&mut self) {
        if !self.is_at_end && !self.has_failed() {
            self.at = self.at.saturating_sub(1);
        }
    }

    fn word(&mut self, rest: &str, operation: &str) {
        for expected in rest.bytes() {
            if self.byte() != expected {
                self.fail(operation, &format!("expect {rest}"));
                return;
            }
        }
    }

    /// Reads an object or `null`; `member` reads the value of the member with this name.
    ///
    /// Source: json-iterator `iter_object.go`, `ReadMapCB` and `ReadObjectCB`.
    pub(crate) fn object(&mut self, names: Names, mut member: impl FnMut(&mut Self, String)) {
        match self.token() {
            b'{' => {}
            b'n' => return self.word("ull", "skipThreeBytes"),
            other => {
                return self.fail(names.of_reader, &format!("expect {{ or n, but found {}", shown(other)));
            }
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("incrementDepth", "exceeded max depth");
        }
        match self.token() {
            b'"' => self.unread(),
            b'}' => {
                self.depth -= 1;
                return;
            }
            other => {
                let message = format!("expect \" after {{, but found {}", shown(other));
                return self.fail(names.of_reader, &message);
            }
        }
        let mut before = b'"';
        loop {
            let name = self.text();
            let colon = self.token();
            if colon != b':' {
                let found = shown(if names.quotes_before { before } else { colon });
                self.fail(names.of_colon, &format!("expect : after object field, but found {found}"));
            }
            if self.has_failed() {
                return;
            }
            member(self, name);
            if self.has_failed() {
                return;
            }
            match self.token() {
                b',' => before = b',',
                b'}' => break,
                _ => return self.fail(names.of_reader, "object not ended with }"),
            }
        }
        self.depth -= 1;
    }

    /// Reads a value; all numbers become floats.
    ///
    /// Source: json-iterator iter.go, `Read`.
    pub(crate) fn value(&mut self) -> Value {
        let first = self.token();
        self.unread();
        match first {
            b'"' => self.text().into(),
            b'-' | b'0'..=b'9' => self.number(),
            b'n' => {
                self.word("null", "skipFourBytes");
                Value::Null
            }
            b't' => {
                self.at += 1;
                self.word("rue", "skipThreeBytes");
                true.into()
            }
            b'f' => {
                self.at += 1;
                self.word("alse", "skipFourBytes");
                false.into()
            }
            b'[' => {
                let mut items = Vec::new();
                self.list(|reader| items.push(reader.value()));
                items.into()
            }
            b'{' => {
                let mut members = Map::new();
                self.object(MAP, |reader, name| {
                    let value = reader.value();
                    members.insert(name, value);
                });
                members.into()
            }
            _ => {
                self.fail("Read", "unexpected value type: 0");
                Value::Null
            }
        }
    }

    /// Skips a value without decoding it.
    ///
    /// Source: json-iterator `iter_skip.go`, `Skip`.
    pub(crate) fn skip(&mut self) {
        let first = self.token();
        self.unread();
        match first {
            b'{' => self.object(OBJECT, |reader, _| reader.skip()),
            b'[' => self.list(Self::skip),
            b'n' => {
                self.at += 1;
                self.word("ull", "skipThreeBytes");
            }
            b'"' | b'-' | b'0'..=b'9' | b't' | b'f' => {
                self.value();
            }
            other => {
                self.at = self.bytes.len().min(self.at + 1);
                self.fail("Skip", &format!("do not know how to skip: {other}"));
            }
        }
    }

    /// Reads a list; `item` reads each item.
    ///
    /// Source: json-iterator `iter_array.go`, `ReadArrayCB`.
    fn list(&mut self, mut item: impl FnMut(&mut Self)) {
        self.token();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("incrementDepth", "exceeded max depth");
        }
        if self.token() != b']' {
            self.unread();
            loop {
                item(self);
                if self.has_failed() {
                    return;
                }
                match self.token() {
                    b',' => {}
                    b']' => break,
                    other => {
                        let message = format!("expect ] in the end, but found {}", shown(other));
                        return self.fail("ReadArrayCB", &message);
                    }
                }
            }
        }
        self.depth -= 1;
    }

    /// Reads a number as a float.
    ///
    /// Source: json-iterator `iter_float.go`, `ReadFloat64`, and `iter_float.go`, `validateFloat`.
    fn number(&mut self) -> Value {
        let is_negative = self.bytes.get(self.at) == Some(&b'-');
        self.at += usize::from(is_negative);
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let early = match rest {
            [b' ' | b',' | b']' | b'}' | b'\t' | b'\n', ..] => Some("empty number"),
            [b'.', ..] => Some("leading dot is invalid"),
            [b'0', b'0'..=b'9', ..] => Some("leading zero is invalid"),
            _ => None,
        };
        if let Some(message) = early {
            self.fail("readFloat64", message);
            return Value::Null;
        }
        let is_digit = |byte: &u8| matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9');
        let digits = rest.split(|byte| !is_digit(byte)).next().unwrap_or_default();
        self.at += digits.len();
        let text = String::from_utf8_lossy(digits);
        let after_dot = text.split_once('.').map(|(_, fraction)| fraction.bytes().next());
        let error = match (text.as_bytes(), after_dot) {
            ([], _) => Some(("readNumberAsString", "invalid number")),
            ([b'-', ..], _) => Some(("readFloat64SlowPath", "-- is not valid")),
            (_, Some(None)) => Some(("readFloat64SlowPath", "dot can not be last character")),
            (_, Some(Some(digit))) if !digit.is_ascii_digit() => {
                Some(("readFloat64SlowPath", "missing digit after dot"))
            }
            _ => None,
        };
        if let Some((operation, message)) = error {
            self.fail(operation, message);
            return Value::Null;
        }
        let parsed = text.parse::<f64>();
        let why = if parsed.is_ok() { "value out of range" } else { "invalid syntax" };
        let number = parsed.ok().map(|float| if is_negative { -float } else { float });
        if let Some(number) = number.and_then(Number::from_f64) {
            return Value::Number(number);
        }
        let error = format!("strconv.ParseFloat: parsing {}: {why}", quote(&*text));
        self.error.get_or_insert(error);
        Value::Null
    }

    /// Reads a string in double quotes; `null` becomes an empty string.
    ///
    /// Source: json-iterator `iter_str.go`, `ReadString`.
    fn text(&mut self) -> String {
        match self.token() {
            b'"' => {}
            b'n' => {
                self.word("ull", "skipThreeBytes");
                return String::new();
            }
            other => {
                self.fail("ReadString", &format!("expects \" or n, but found {}", shown(other)));
                return String::new();
            }
        }
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let Some(end) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) else {
            self.at = self.bytes.len();
            self.fail("readStringSlowPath", "unexpected end of input");
            return String::new();
        };
        let plain = rest.get(..end).unwrap_or_default();
        match rest.get(end) {
            Some(b'"') => {
                self.at += end + 1;
                String::from_utf8_lossy(plain).into_owned()
            }
            Some(b'\\') => self.escaped_text(),
            other => {
                let code = other.copied().unwrap_or_default();
                self.fail("ReadString", &format!("invalid control character found: {code}"));
                String::new()
            }
        }
    }

    fn escaped_text(&mut self) -> String {
        let mut bytes = Vec::new();
        loop {
            match self.byte() {
                b'"' => return String::from_utf8_lossy(&bytes).into_owned(),
                b'\\' => {
                    let escape = self.byte();
                    self.escape(escape, &mut bytes);
                }
                _ if self.is_at_end => self.fail("readStringSlowPath", "unexpected end of input"),
                byte => bytes.push(byte),
            }
            if self.has_failed() {
                return String::new();
            }
        }
    }

    fn escape(&mut self, escape: u8, bytes: &mut Vec<u8>) {
        let plain = match escape {
            b'"' | b'\\' | b'/' => escape,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode(bytes),
            _ => return self.fail("readEscapedChar", "invalid escape char after \\"),
        };
        bytes.push(plain);
    }

    fn unicode(&mut self, bytes: &mut Vec<u8>) {
        let mut first = self.four_digits();
        // An unpaired surrogate is replaced.
        while (0xd800..0xdc00).contains(&first)
            && self.bytes.get(self.at..self.at + 2) == Some(b"\\u".as_slice())
        {
            self.at += 2;
            let second = self.four_digits();
            if (0xdc00..0xe000).contains(&second) {
                first = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                break;
            }
            push(bytes, char::REPLACEMENT_CHARACTER);
            first = second;
        }
        push(bytes, char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
    }

    fn four_digits(&mut self) -> u32 {
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.byte();
            let Some(digit) = char::from(byte).to_digit(16) else {
                if self.is_at_end {
                    self.fail("readStringSlowPath", "unexpected end of input");
                }
                self.fail("readU4", &format!("expects 0~9 or a~f, but found {}", shown(byte)));
                return 0;
            };
            code = code * 16 + digit;
        }
        code
    }
}

fn push(bytes: &mut Vec<u8>, letter: char) {
    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

fn shown(byte: u8) -> String {
    String::from_utf8_lossy(&[byte]).into_owned()
}
