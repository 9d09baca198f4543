//! Percent-encodes and decodes the parts of URLs.

use crate::quote::quote;

/// A part of a URL. Each part allows different unescaped characters.
///
/// Source: Go `net/url/gen_encoding_table.go`, `encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Path,
    Host,
    Zone,
    UserPassword,
    QueryComponent,
    Fragment,
}

impl Mode {
    /// Returns whether `byte` must be escaped in this part.
    ///
    /// Source: Go `net/url/gen_encoding_table.go`, `shouldEscape`.
    fn must_escape(self, byte: u8) -> bool {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => false,
            b'$' | b'&' | b'+' | b',' | b';' | b'=' => self == Self::QueryComponent,
            b':' => matches!(self, Self::QueryComponent | Self::UserPassword),
            b'?' => self != Self::Fragment,
            b'/' | b'@' => !matches!(self, Self::Path | Self::Fragment),
            b'!' | b'(' | b')' | b'*' => !matches!(self, Self::Host | Self::Zone | Self::Fragment),
            b'\'' | b'[' | b']' | b'<' | b'>' | b'"' => !self.is_host(),
            _ => true,
        }
    }

    fn is_host(self) -> bool {
        matches!(self, Self::Host | Self::Zone)
    }
}

/// Unescapes a part of a URL; `mode` specifies the part.
///
/// # Errors
/// Returns Go's message if an escape sequence is invalid, such as `invalid URL escape "%z"`.
///
/// Source: Go net/url/url.go, `unescape`.
pub(super) fn unescape(text: &[u8], mode: Mode) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'%' => {
                let Some(byte) = escaped_byte(tail).filter(|byte| mode.may_be_escaped(*byte, tail)) else {
                    let escape = [b"%", tail.get(..2).unwrap_or(tail)].concat();
                    return Err(format!("invalid URL escape {}", quote(escape)));
                };
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            b'+' if mode == Mode::QueryComponent => bytes.push(b' '),
            _ if mode.is_host() && first.is_ascii() && mode.must_escape(*first) => {
                return Err(format!("invalid character {} in host name", quote([*first])));
            }
            _ => bytes.push(*first),
        }
    }
    Ok(bytes)
}

impl Mode {
    /// Returns whether this part of a URL may contain a valid escape sequence.
    ///
    /// In a host, only non-ASCII bytes and the percent sign may be escaped; in a zone, only the percent sign, the
    /// space, and the characters that a host may contain unescaped.
    fn may_be_escaped(self, byte: u8, digits: &[u8]) -> bool {
        match self {
            Self::Host => !byte.is_ascii() || digits.starts_with(b"25"),
            Self::Zone => byte == b'%' || byte == b' ' || !Self::Host.must_escape(byte),
            Self::Path | Self::UserPassword | Self::QueryComponent | Self::Fragment => true,
        }
    }
}

/// Returns the byte that the first two characters encode in hexadecimal.
fn escaped_byte(digits: &[u8]) -> Option<u8> {
    let [high, low, ..] = digits else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(*high)? << 4 | digit(*low)?)
}

/// Escapes the bytes that are not allowed in the given part of a URL.
///
/// Source: Go net/url/url.go, `escape`.
pub(super) fn escape(bytes: &[u8], mode: Mode) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if mode.must_escape(*byte) {
            text.push('%');
            text.push(hexadecimal_digit(byte >> 4));
            text.push(hexadecimal_digit(byte & 15));
        } else {
            text.push(char::from(*byte));
        }
    }
    text
}

/// Returns the uppercase hexadecimal digit for a number below 16.
fn hexadecimal_digit(number: u8) -> char {
    char::from(if number < 10 { b'0' + number } else { b'A' + (number - 10) })
}

/// Returns whether `text` does not need escaping; accepts more characters than [`escape`] leaves unescaped.
///
/// Source: Go net/url/url.go, `validEncoded`.
pub(super) fn is_valid_encoding(text: &str, mode: Mode) -> bool {
    text.bytes().all(|byte| b"!$&'()*+,;=:@[]%".contains(&byte) || !mode.must_escape(byte))
}
