//! Generates strings that a schema allows.

use serde_json::Value;

use super::pattern;

/// The maximum length in characters of a string that is generated for `minLength`.
const MAX_LENGTH: usize = 4096;

/// Example strings for each format that kube-apiserver supports, except `password`, which accepts any string.
///
/// Source: kube-openapi `pkg/validation/strfmt`.
pub(super) const FORMATS: [(&str, [&str; 2]); 25] = [
    ("bsonobjectid", ["507f1f77bcf86cd799439011", "507f191e810c19729de860ea"]),
    ("byte", ["AAEC", "dGV4dA=="]),
    ("cidr", ["192.0.2.0/24", "2001:db8::/32"]),
    ("creditcard", ["4111111111111111", "5500000000000004"]),
    ("date", ["2026-01-01", "2024-02-29"]),
    ("datetime", ["2026-01-01T00:00:00Z", "2024-02-29T12:30:00.5+01:00"]),
    ("duration", ["30s", "1h30m"]),
    ("email", ["a@example.com", "a.b@example.org"]),
    ("hexcolor", ["#00ff00", "#fff"]),
    ("hostname", ["example.com", "a.example.org"]),
    ("ipv4", ["192.0.2.1", "198.51.100.7"]),
    ("ipv6", ["2001:db8::1", "2001:db8::7"]),
    ("isbn", ["0321751043", "9780321751041"]),
    ("isbn10", ["0321751043", "0306406152"]),
    ("isbn13", ["9780321751041", "9780306406157"]),
    ("k8slongname", ["a.example", "b-c.example"]),
    ("k8sshortname", ["a", "b-c"]),
    ("mac", ["00:00:5e:00:53:01", "00:00:5e:00:53:af"]),
    ("rgbcolor", ["rgb(0,255,0)", "rgb(1,2,3)"]),
    ("ssn", ["111-22-3333", "123-45-6789"]),
    ("uri", ["https://example.com/", "https://example.org/a?b=c"]),
    ("uuid", ["6f3d1d2e-0000-4000-8000-000000000001", "6f3d1d2e-0000-4000-8000-000000000002"]),
    ("uuid3", ["6f3d1d2e-0000-3000-8000-000000000001", "6f3d1d2e-0000-3000-8000-000000000002"]),
    ("uuid4", ["6f3d1d2e-0000-4000-8000-000000000001", "6f3d1d2e-0000-4000-8000-000000000002"]),
    ("uuid5", ["6f3d1d2e-0000-5000-8000-000000000001", "6f3d1d2e-0000-5000-8000-000000000002"]),
];

/// Returns the minimum and maximum length in characters that the schema allows.
pub(super) fn lengths(schema: &Value) -> (usize, usize) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    (limit("minLength").unwrap_or(0), limit("maxLength").unwrap_or(usize::MAX))
}

/// Returns a string that the schema allows, or another string if none was found.
pub(super) fn string(schema: &Value, turn: usize) -> String {
    let (least, most) = lengths(schema);
    let of_format = schema["format"].as_str().and_then(|format| {
        let format = format.replace('-', "");
        let (_, texts) = FORMATS.iter().find(|(known, _)| *known == format)?;
        texts.get(turn % texts.len())
    });
    if let Some(expression) = schema["pattern"].as_str() {
        let is_match = |text: &&&str| pattern::is_match(expression, text);
        let fitting = of_format.filter(is_match).map(|text| (*text).to_owned());
        return fitting
            .or_else(|| pattern::text(expression, turn, least, most.min(MAX_LENGTH)))
            .unwrap_or_else(|| "text".to_owned());
    }
    match of_format {
        Some(text) => (*text).to_owned(),
        None => of_length(turn, least, most),
    }
}

/// Returns a string for a field that accepts both numbers and strings.
pub(super) fn int_or_string(schema: &Value, turn: usize) -> String {
    if schema.get("pattern").is_some() { string(schema, turn) } else { (turn + 1).to_string() }
}

fn of_length(turn: usize, least: usize, most: usize) -> String {
    let mut text = if turn == 0 { "text".to_owned() } else { format!("text{turn}") };
    let missing = least.min(MAX_LENGTH).saturating_sub(text.len());
    text.extend(std::iter::repeat_n('x', missing));
    // The strings differ at the end.
    let surplus = text.len().saturating_sub(most);
    if turn == 0 {
        text.truncate(most);
    } else {
        drop(text.drain(..surplus));
    }
    text
}
