//! Base64 as Go's JSON decoder reads it: line breaks are skipped, an error says where it is.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Padding is checked before it; the bits that it cuts off may be anything.
const LETTERS: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// The bytes of `text`.
///
/// # Errors
/// Go's text, with the offset of the byte that it blames: `illegal base64 data at input byte 3`.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    decode_or_blame(text).map_err(|at| format!("illegal base64 data at input byte {at}"))
}

/// Source: Go encoding/base64/base64.go, `decodeQuantum`.
fn decode_or_blame(text: &str) -> Result<Vec<u8>, usize> {
    let bytes = text.as_bytes();
    let mut letters: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        at += 1;
        match byte {
            b'\r' | b'\n' => {}
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => letters.push(byte),
            b'=' => {
                padding(bytes, at, letters.len() % 4)?;
                break;
            }
            _ => return Err(at - 1),
        }
        if at == bytes.len() && !letters.len().is_multiple_of(4) {
            return Err(at - letters.len() % 4);
        }
    }
    LETTERS.decode(&letters).or(Err(bytes.len()))
}

/// Whether what follows the first `=`, which stands before `at`, ends the text well.
fn padding(bytes: &[u8], mut at: usize, letters_in_quantum: usize) -> Result<(), usize> {
    let skip = |mut at: usize| {
        while bytes.get(at).is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
            at += 1;
        }
        at
    };
    match letters_in_quantum {
        2 => {
            at = skip(at);
            match bytes.get(at) {
                None => return Err(bytes.len()),
                Some(b'=') => at += 1,
                Some(_) => return Err(at - 1),
            }
        }
        3 => {}
        _ => return Err(at - 1),
    }
    at = skip(at);
    if at < bytes.len() { Err(at) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<&[u8], usize>) {
        assert_eq!(decode_or_blame(text), expect.map(<[u8]>::to_vec), "{text:?}");
    }

    // The offsets are those of Go 1.26's base64.StdEncoding.
    #[test]
    fn text_is_decoded_or_blamed_as_in_go() {
        check("", Ok(b""));
        check("W10=", Ok(b"[]"));
        check("W1\n0=\n", Ok(b"[]"));
        check("YQ==", Ok(b"a"));
        check("W10", Err(0));
        check("YWJjW10", Err(4));
        check("W10=x", Err(4));
        check("YQ=", Err(3));
        check("YQ=x", Err(2));
        check("!!!", Err(0));
        check("ab-_", Err(2));
        check("=", Err(0));
    }
}
