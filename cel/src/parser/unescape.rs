//! Decodes string and bytes literals.
//!
//! Source: cel-go parser/unescape.go.

const UNABLE: &str = "unable to unescape string";
const OCTAL: &str = "unable to unescape octal sequence in string";
const INVALID: &str = "invalid unicode code point";

/// Decodes a string literal with its prefix and quotes.
pub(super) fn string(literal: &str) -> Result<String, &'static str> {
    let bytes = unescape(literal, false)?;
    String::from_utf8(bytes).map_err(|_invalid| INVALID)
}

/// Decodes a bytes literal with its prefixes and quotes.
pub(super) fn bytes(literal: &str) -> Result<Vec<u8>, &'static str> {
    unescape(literal.get(1..).unwrap_or_default(), true)
}

fn unescape(literal: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let normalized;
    let literal = if literal.contains('\r') {
        normalized = literal.replace("\r\n", "\n").replace('\r', "\n");
        &normalized
    } else {
        literal
    };
    let (raw, quoted) = match literal.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, literal),
    };
    let width =
        if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\"")) { 3 } else { 1 };
    let content = quoted.len().checked_sub(width).and_then(|end| quoted.get(width..end)).ok_or(UNABLE)?;
    if raw || !content.contains('\\') {
        return Ok(content.as_bytes().to_vec());
    }
    let mut value = Vec::with_capacity(content.len());
    let mut letters = content.chars();
    while let Some(letter) = letters.next() {
        let letter =
            if letter == '\\' { escaped(&mut letters, is_bytes)? } else { Letter::CodePoint(letter) };
        match letter {
            Letter::Byte(byte) => value.push(byte),
            Letter::CodePoint(letter) => value.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Ok(value)
}

enum Letter {
    Byte(u8),
    CodePoint(char),
}

/// Decodes an escape sequence; `letters` yields the characters after the backslash.
fn escaped(letters: &mut std::str::Chars<'_>, is_bytes: bool) -> Result<Letter, &'static str> {
    let kind = letters.next().ok_or(UNABLE)?;
    let code_point = match kind {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0C,
        'n' => 0x0A,
        'r' => 0x0D,
        't' => 0x09,
        'v' => 0x0B,
        '\\' | '\'' | '"' | '`' | '?' => u32::from(kind),
        'x' | 'X' => digits(letters, 0, 2, 16).ok_or(UNABLE)?,
        'u' if !is_bytes => digits(letters, 0, 4, 16).ok_or(UNABLE)?,
        'U' if !is_bytes => digits(letters, 0, 8, 16).ok_or(UNABLE)?,
        '0'..='3' => digits(letters, u32::from(kind) - u32::from('0'), 2, 8).ok_or(OCTAL)?,
        _ => return Err(UNABLE),
    };
    match u8::try_from(code_point) {
        Ok(byte) if is_bytes => Ok(Letter::Byte(byte)),
        _ => char::from_u32(code_point).map(Letter::CodePoint).ok_or(INVALID),
    }
}

fn digits(letters: &mut std::str::Chars<'_>, first: u32, count: usize, radix: u32) -> Option<u32> {
    let mut value = first;
    for _ in 0..count {
        value = value.checked_mul(radix)?.checked_add(letters.next()?.to_digit(radix)?)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::{bytes, string};

    #[test]
    fn escape_sequences_are_code_points_in_strings() {
        assert_eq!(string(r"'a\n\x41\u00e9\U0001f431\101\'\?'").as_deref(), Ok("a\nAé🐱A'?"));
        assert_eq!(string("\"\"\"a\"b\r\nc\"\"\"").as_deref(), Ok("a\"b\nc"));
        assert_eq!(string(r"r'\n'").as_deref(), Ok(r"\n"));
        assert_eq!(string(r"'\ud800'"), Err("invalid unicode code point"));
        assert_eq!(string("''").as_deref(), Ok(""));
    }

    #[test]
    fn escape_sequences_are_bytes_in_bytes_literals() {
        assert_eq!(bytes(r"b'\xff\377é'").as_deref(), Ok(&[0xFF, 0xFF, 0xC3, 0xA9][..]));
        assert_eq!(bytes(r"bR'\xff'").as_deref(), Ok(&br"\xff"[..]));
        assert_eq!(bytes(r"b'\u0041'"), Err("unable to unescape string"));
    }
}
