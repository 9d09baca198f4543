//! Splits the text of an expression into tokens.
//!
//! Source: cel-go parser/gen/CEL.g4, the lexer's rules.

use crate::source::{Source, narrow};

/// The kind of a token, in the order in which the grammar defines them. Error messages list expected tokens in this
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParenthesis,
    RightParenthesis,
    Dot,
    Comma,
    Minus,
    Exclamation,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Double,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
    EscapedIdent,
    End,
}

/// A token and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// The index of the first byte.
    pub(crate) start: u32,
    /// The index after the last byte.
    pub(crate) end: u32,
    /// The index of the first code point.
    pub(crate) offset: u32,
}

/// The error for text that is not a token: the byte at which the longest attempt to read a token failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoToken {
    pub(crate) failed_at: usize,
}

/// The result of reading from a byte offset: a token, white space, or a comment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lexed {
    /// The kind of a token, and the offset of the byte after the token.
    Token(Kind, usize),
    /// White space or a comment, with the offset of the byte after it.
    Hidden(usize),
}

/// Returns all tokens of an expression, ending with [`Kind::End`], or `None` if a part of the text is not a token.
pub(crate) fn tokens(source: &Source<'_>) -> Option<Vec<Token>> {
    let text = source.text;
    let mut tokens = Vec::with_capacity(text.len() / 3 + 1);
    let mut at = 0;
    while at < text.len() {
        match next(text, at).ok()? {
            Lexed::Hidden(end) => at = end,
            Lexed::Token(kind, end) => {
                tokens.push(Token {
                    kind,
                    start: narrow(at),
                    end: narrow(end),
                    offset: source.code_point(at),
                });
                at = end;
            }
        }
    }
    let end = narrow(text.len());
    tokens.push(Token { kind: Kind::End, start: end, end, offset: source.code_point(text.len()) });
    Some(tokens)
}

/// Returns the longest token at byte `at`, as generated lexers do; `at` must be before the end of the text.
pub(crate) fn next(text: &str, at: usize) -> Result<Lexed, NoToken> {
    let bytes = text.as_bytes();
    let byte = |index: usize| bytes.get(at + index).copied().unwrap_or_default();
    let token = |kind, length: usize| Ok(Lexed::Token(kind, at + length));
    let pair = |second: u8, kind| {
        if byte(1) == second { token(kind, 2) } else { Err(NoToken { failed_at: at + 1 }) }
    };
    let either = |second: u8, long, short| {
        if byte(1) == second { token(long, 2) } else { token(short, 1) }
    };
    match byte(0) {
        b'\t' | b' ' | b'\r' | b'\n' | 0x0C => {
            Ok(Lexed::Hidden(run(bytes, at, |byte| matches!(byte, b'\t' | b' ' | b'\r' | b'\n' | 0x0C))))
        }
        b'/' if byte(1) == b'/' => Ok(Lexed::Hidden(run(bytes, at, |byte| byte != b'\n'))),
        b'=' => pair(b'=', Kind::Equals),
        b'&' => pair(b'&', Kind::And),
        b'|' => pair(b'|', Kind::Or),
        b'!' => either(b'=', Kind::NotEquals, Kind::Exclamation),
        b'<' => either(b'=', Kind::LessEquals, Kind::Less),
        b'>' => either(b'=', Kind::GreaterEquals, Kind::Greater),
        b'[' => token(Kind::LeftBracket, 1),
        b']' => token(Kind::RightBracket, 1),
        b'{' => token(Kind::LeftBrace, 1),
        b'}' => token(Kind::RightBrace, 1),
        b'(' => token(Kind::LeftParenthesis, 1),
        b')' => token(Kind::RightParenthesis, 1),
        b',' => token(Kind::Comma, 1),
        b'-' => token(Kind::Minus, 1),
        b'?' => token(Kind::Question, 1),
        b':' => token(Kind::Colon, 1),
        b'+' => token(Kind::Plus, 1),
        b'*' => token(Kind::Star, 1),
        b'/' => token(Kind::Slash, 1),
        b'%' => token(Kind::Percent, 1),
        b'.' if byte(1).is_ascii_digit() => {
            Ok(Lexed::Token(Kind::Double, exponent(bytes, run(bytes, at + 1, is_digit))))
        }
        b'.' => token(Kind::Dot, 1),
        b'0'..=b'9' => Ok(number(bytes, at)),
        b'"' | b'\'' => string(text, at, false).map(|end| Lexed::Token(Kind::String, end)),
        b'`' => escaped_ident(bytes, at),
        letter if letter.is_ascii_alphabetic() || letter == b'_' => Ok(word(text, at)),
        _ => Err(NoToken { failed_at: at }),
    }
}

fn run(bytes: &[u8], from: usize, belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().skip(from).position(|byte| !belongs(*byte)).map_or(bytes.len(), |length| from + length)
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// Returns the end of an exponent, or `at` if the text does not have an exponent there.
fn exponent(bytes: &[u8], at: usize) -> usize {
    if !matches!(bytes.get(at), Some(b'e' | b'E')) {
        return at;
    }
    let digits = if matches!(bytes.get(at + 1), Some(b'+' | b'-')) { at + 2 } else { at + 1 };
    if bytes.get(digits).is_some_and(u8::is_ascii_digit) { run(bytes, digits, is_digit) } else { at }
}

fn number(bytes: &[u8], at: usize) -> Lexed {
    let hexadecimal = bytes.get(at) == Some(&b'0')
        && bytes.get(at + 1) == Some(&b'x')
        && bytes.get(at + 2).is_some_and(u8::is_ascii_hexdigit);
    let end = if hexadecimal {
        run(bytes, at + 2, |byte| byte.is_ascii_hexdigit())
    } else {
        run(bytes, at, is_digit)
    };
    if matches!(bytes.get(end), Some(b'u' | b'U')) {
        return Lexed::Token(Kind::Uint, end + 1);
    }
    if hexadecimal {
        return Lexed::Token(Kind::Int, end);
    }
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        return Lexed::Token(Kind::Double, exponent(bytes, run(bytes, end + 1, is_digit)));
    }
    let with_exponent = exponent(bytes, end);
    let kind = if with_exponent > end { Kind::Double } else { Kind::Int };
    Lexed::Token(kind, with_exponent)
}

/// Reads a name, a keyword, or a string or bytes literal with a prefix.
fn word(text: &str, at: usize) -> Lexed {
    let bytes = text.as_bytes();
    let is_quote = |index: usize| matches!(bytes.get(index), Some(b'"' | b'\''));
    let is_raw = |index: usize| matches!(bytes.get(index), Some(b'r' | b'R'));
    let prefixed = if is_raw(at) && is_quote(at + 1) {
        string(text, at + 1, true).ok().map(|end| (Kind::String, end))
    } else if matches!(bytes.get(at), Some(b'b' | b'B')) {
        let literal = if is_quote(at + 1) {
            string(text, at + 1, false).ok()
        } else if is_raw(at + 1) && is_quote(at + 2) {
            string(text, at + 2, true).ok()
        } else {
            None
        };
        literal.map(|end| (Kind::Bytes, end))
    } else {
        None
    };
    if let Some((kind, end)) = prefixed {
        return Lexed::Token(kind, end);
    }
    let end = run(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let kind = match text.get(at..end).unwrap_or_default() {
        "in" => Kind::In,
        "true" => Kind::True,
        "false" => Kind::False,
        "null" => Kind::Null,
        _ => Kind::Ident,
    };
    Lexed::Token(kind, end)
}

fn escaped_ident(bytes: &[u8], at: usize) -> Result<Lexed, NoToken> {
    let end = run(bytes, at + 1, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/' | b' ')
    });
    if end > at + 1 && bytes.get(end) == Some(&b'`') {
        Ok(Lexed::Token(Kind::EscapedIdent, end + 1))
    } else {
        Err(NoToken { failed_at: end })
    }
}

/// Returns the end of a string whose quote is at `at`. If three quotes open a string that is not closed, the
/// first two are an empty string.
fn string(text: &str, at: usize, raw: bool) -> Result<usize, NoToken> {
    let bytes = text.as_bytes();
    let quote = bytes.get(at).copied().unwrap_or_default();
    let is_triple = |index: usize| bytes.get(index..index + 3).is_some_and(|three| three == [quote; 3]);
    if is_triple(at) {
        let mut index = at + 3;
        while index < bytes.len() {
            if is_triple(index) {
                return Ok(index + 3);
            }
            match bytes.get(index) {
                Some(b'\\') if !raw => match escape(bytes, index) {
                    Ok(end) => index = end,
                    Err(_) => break,
                },
                _ => index += 1,
            }
        }
        return Ok(at + 2);
    }
    let mut index = at + 1;
    loop {
        match bytes.get(index) {
            None | Some(b'\n' | b'\r') => return Err(NoToken { failed_at: index }),
            Some(byte) if *byte == quote => return Ok(index + 1),
            Some(b'\\') if !raw => index = escape(bytes, index)?,
            Some(_) => index += 1,
        }
    }
}

/// Returns the end of an escape sequence, or an error if the sequence is invalid.
fn escape(bytes: &[u8], at: usize) -> Result<usize, NoToken> {
    let digits = |from: usize, count: usize, is_one: fn(&u8) -> bool| match (from..from + count)
        .find(|index| !bytes.get(*index).is_some_and(is_one))
    {
        Some(failed_at) => Err(NoToken { failed_at }),
        None => Ok(from + count),
    };
    match bytes.get(at + 1) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => {
            Ok(at + 2)
        }
        Some(b'x' | b'X') => digits(at + 2, 2, u8::is_ascii_hexdigit),
        Some(b'u') => digits(at + 2, 4, u8::is_ascii_hexdigit),
        Some(b'U') => digits(at + 2, 8, u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => digits(at + 2, 2, |byte| matches!(byte, b'0'..=b'7')),
        _ => Err(NoToken { failed_at: at + 1 }),
    }
}
