//! Decodes base64 as Go does.

/// Decodes base64 in the standard alphabet with padding. Skips line breaks.
///
/// # Errors
///
/// Returns Go's message if the text is not valid base64.
///
/// Source: Go encoding/base64/base64.go, `decodeQuantum`.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let source = text.as_bytes();
    let mut bytes = Vec::with_capacity(source.len() / 4 * 3);
    let mut at = 0;
    loop {
        let (mut bits, mut digits) = (0_u32, 0_usize);
        while digits < 4 {
            let Some(byte) = source.get(at) else {
                // The text may end only at the end of a group.
                return if digits == 0 { Ok(bytes) } else { Err(corrupt(at.saturating_sub(digits))) };
            };
            at += 1;
            match byte {
                b'\n' | b'\r' => {}
                b'=' => {
                    padding(source, at, digits)?;
                    let last = bits << (6 * (4 - digits));
                    bytes.extend_from_slice(last.to_be_bytes().get(1..digits).unwrap_or_default());
                    return Ok(bytes);
                }
                _ => {
                    let Some(digit) = value(*byte) else { return Err(corrupt(at - 1)) };
                    bits = bits << 6 | digit;
                    digits += 1;
                }
            }
        }
        bytes.extend_from_slice(bits.to_be_bytes().get(1..).unwrap_or_default());
    }
}

/// Checks the padding of the last group, which has `digits` characters; `at` is the index after the first `=`.
fn padding(source: &[u8], mut at: usize, digits: usize) -> Result<(), String> {
    let skip = |at: usize| {
        let rest = source.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count()
    };
    if digits < 2 {
        return Err(corrupt(at - 1));
    }
    if digits == 2 {
        at = skip(at);
        match source.get(at) {
            Some(b'=') => at += 1,
            Some(_) => return Err(corrupt(at - 1)),
            None => return Err(corrupt(source.len())),
        }
    }
    at = skip(at);
    if at < source.len() { Err(corrupt(at)) } else { Ok(()) }
}

fn corrupt(at: usize) -> String {
    format!("illegal base64 data at input byte {at}")
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_as_in_go() {
        let cases: [(&str, Result<&str, &str>); 17] = [
            ("", Ok("")),
            ("YQ==", Ok("a")),
            ("YWI=", Ok("ab")),
            ("YWJj", Ok("abc")),
            ("YW\nJj\r\n", Ok("abc")),
            ("YWJjZA=\n=\n", Ok("abcd")),
            ("YQ", Err("0")),
            ("YWJjW10", Err("4")),
            ("YQ=", Err("3")),
            ("W1\n0=\n", Ok("[]")),
            ("YWJjYQ=", Err("7")),
            ("YQ=a", Err("2")),
            ("Y===", Err("1")),
            ("=", Err("0")),
            ("YQ==YQ==", Err("4")),
            ("YW-_", Err("2")),
            ("é", Err("0")),
        ];
        for (text, expected) in cases {
            let expected = expected
                .map(|text| text.as_bytes().to_vec())
                .map_err(|at| format!("illegal base64 data at input byte {at}"));
            assert_eq!(decode(text), expected, "{text:?}");
        }
    }
}
