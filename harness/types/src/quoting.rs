//! Formats strings, values, and system errors as Go does in kube-apiserver's messages.

use std::io;

pub use go_std::quote::is_printable;
use serde_json::Value;

/// Formats a system error as Go does: `no such file or directory`.
pub fn system_error(error: &io::Error) -> String {
    error.to_string().split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// Quotes `text` as Go's `%q` does.
pub fn quote(text: &str) -> String {
    go_std::quote::quote(text)
}

/// Formats a value as Go's `%v` does.
pub fn printed(value: &Value) -> String {
    formatted(value, &|_, plain| plain)
}

/// Formats a value as Go's `%s` does. Scalars that are not strings are marked: `%!s(int64=1)`.
///
/// Source: Go fmt/print.go, `badVerb`.
pub fn printed_as_string(value: &Value) -> String {
    if value.is_null() {
        return "%!s(<nil>)".to_owned();
    }
    formatted(value, &|scalar, plain| {
        if scalar.is_string() || scalar.is_null() {
            plain
        } else {
            format!("%!s({}={plain})", go_type(scalar))
        }
    })
}

/// Formats a value as Go's `fmt` package does. `adorned` receives each scalar, and the scalar formatted with `%v`.
fn formatted(value: &Value, adorned: &impl Fn(&Value, String) -> String) -> String {
    match value {
        Value::Null => adorned(value, "<nil>".to_owned()),
        Value::String(text) => adorned(value, text.clone()),
        Value::Number(number) if number.is_f64() => {
            adorned(value, printed_float(number.as_f64().unwrap_or_default()))
        }
        Value::Bool(_) | Value::Number(_) => adorned(value, value.to_string()),
        Value::Array(items) => {
            let items = items.iter().map(|item| formatted(item, adorned));
            format!("[{}]", items.collect::<Vec<_>>().join(" "))
        }
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, member)| format!("{name}:{}", formatted(member, adorned)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
    }
}

/// Formats a float as Go's `%v` does.
///
/// Source: Go fmt/print.go, `fmtFloat`; strconv/ftoa.go.
pub(crate) fn printed_float(float: f64) -> String {
    let text = format!("{float:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let Ok(exponent) = exponent.parse::<i32>() else { return text };
    if (-4..21).contains(&exponent) {
        return float.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Returns the type of a value as Go's `%T` formats it.
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

/// Returns the type of a value as Go's `%s` formats `reflect.TypeOf`.
pub fn go_type_as_string(value: &Value) -> &'static str {
    if value.is_null() { "%!s(<nil>)" } else { go_type(value) }
}

/// Quotes a byte as Go's JSON scanner does: as the character with that code point, in single quotes.
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

/// Encodes `value` as Go's JSON encoder does: compact, with `<`, `>`, and `&` escaped for HTML.
///
/// Source: Go encoding/json/encode.go, `appendHTMLEscape`.
pub fn encode(value: &Value) -> String {
    escape_html(&value.to_string())
}

/// Escapes the characters in `json` that are special in HTML. They occur only in strings.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn floats_are_formatted_as_in_go() {
        for (float, text) in [
            (1.5, "1.5"),
            (3.0, "3"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.25e-7, "1.25e-07"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(printed_float(float), text);
        }
    }

    #[test]
    fn values_are_formatted_as_in_go() {
        for (value, plain, as_string) in [
            (json!(null), "<nil>", "%!s(<nil>)"),
            (json!("a"), "a", "a"),
            (json!(1.5e30), "1.5e+30", "%!s(float64=1.5e+30)"),
            (json!([1, "a", null]), "[1 a <nil>]", "[%!s(int64=1) a <nil>]"),
            (json!({"b": true, "a": {}}), "map[a:map[] b:true]", "map[a:map[] b:%!s(bool=true)]"),
        ] {
            assert_eq!(printed(&value), plain);
            assert_eq!(printed_as_string(&value), as_string);
        }
    }

    #[test]
    fn json_is_escaped_for_html() {
        assert_eq!(encode(&json!(["<&>", "\u{2028}"])), r#"["\u003c\u0026\u003e","\u2028"]"#);
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
