//! How Go writes a text between quotes, and errors of the system: kube-apiserver's messages are full of them.

use std::fmt::Write as _;
use std::io;

use serde_json::Value;

/// What went wrong, as Go says it: `no such file or directory`.
pub fn system_error(error: &io::Error) -> String {
    error.to_string().split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// `text` as Go's `%q` prints it.
///
/// Source: Go strconv/quote.go, `Quote`.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            ' ' => quoted.push(' '),
            _ if is_printable(character) => quoted.push(character),
            _ => {
                let number = u32::from(character);
                // Writing into a String cannot fail.
                let _ = match number {
                    0..0x80 => write!(quoted, "\\x{number:02x}"),
                    0x80..0x1_0000 => write!(quoted, "\\u{number:04x}"),
                    _ => write!(quoted, "\\U{number:08x}"),
                };
            }
        }
    }
    quoted.push('"');
    quoted
}

/// As `%v` of Go writes it.
pub fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| format!("{name}:{}", printed(member)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
    }
}

/// As `%T` of Go writes it.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
    }
}

/// A byte as Go's JSON scanner quotes it: as the character of that number, between apostrophes.
///
/// Source: Go encoding/json/scanner.go, `quoteChar`.
pub(crate) fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = quote(&char::from(byte).to_string());
            format!("'{}'", quoted.trim_matches('"'))
        }
    }
}

/// `value` as Go's JSON encoder writes it: compact, and `<`, `>` and `&` escaped for HTML.
///
/// Source: Go encoding/json/encode.go, `appendHTMLEscape`.
pub fn encode(value: &Value) -> String {
    escape_html(&value.to_string())
}

/// JSON with what HTML could misunderstand escaped: such characters stand in strings only.
pub fn escape_html(json: &str) -> String {
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json.to_owned();
    }
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Whether Go takes a character for printable: neither a control character nor a blank but the space itself, nor
/// unassigned.
///
/// Source: Go unicode/graphic.go, `IsPrint`.
pub fn is_printable(character: char) -> bool {
    match character {
        ' ' | '\'' | '"' | '\\' => true,
        // What Rust's own escaping leaves alone.
        _ => !character.is_whitespace() && character.escape_debug().len() == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_in_go() {
        for (text, quoted) in [
            ("a b", r#""a b""#),
            ("it's", r#""it's""#),
            ("a\"\\", r#""a\"\\""#),
            ("\n\t\u{7}\u{b}\0\u{7f}", r#""\n\t\a\v\x00\x7f""#),
            ("\u{85}\u{a0}\u{2028}", r#""\u0085\u00a0\u2028""#),
            ("é😀", "\"é😀\""),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn json_is_escaped_for_html() {
        assert_eq!(encode(&serde_json::json!(["<&>", "\u{2028}"])), r#"["\u003c\u0026\u003e","\u2028"]"#);
    }

    #[test]
    fn a_byte_is_quoted_as_the_character_of_its_number() {
        assert_eq!(quote_byte(b'x'), "'x'");
        assert_eq!(quote_byte(b'\''), r"'\''");
        assert_eq!(quote_byte(b'"'), "'\"'");
        assert_eq!(quote_byte(b'\n'), r"'\n'");
        assert_eq!(quote_byte(0xff), "'ÿ'");
    }
}
