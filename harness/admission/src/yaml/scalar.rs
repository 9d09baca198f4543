//! Resolves scalars: words, numbers, and tags.
//!
//! Source: sigs.k8s.io/yaml goyaml.v2/resolve.go.

use go_std::base64;

use super::compose::Scalar;

const BOOL: &str = "tag:yaml.org,2002:bool";
const FLOAT: &str = "tag:yaml.org,2002:float";
const INT: &str = "tag:yaml.org,2002:int";
const NULL: &str = "tag:yaml.org,2002:null";
const STR: &str = "tag:yaml.org,2002:str";
const TIMESTAMP: &str = "tag:yaml.org,2002:timestamp";
const BINARY: &str = "tag:yaml.org,2002:binary";
pub(super) const MERGE: &str = "tag:yaml.org,2002:merge";

/// A resolved scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Resolved {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(String),
}

impl Resolved {
    fn tag(&self) -> &'static str {
        match self {
            Self::Null => NULL,
            Self::Bool(_) => BOOL,
            Self::Int(_) | Self::Uint(_) => INT,
            Self::Float(_) => FLOAT,
            Self::Text(_) => STR,
        }
    }
}

/// Returns the value of a scalar.
///
/// # Errors
/// Returns Go's message if the scalar does not have the type of its tag.
pub(super) fn resolve(scalar: &Scalar) -> Result<Resolved, String> {
    let Scalar { value, tag, is_implicit } = scalar;
    let text = || Resolved::Text(value.clone());
    match tag.as_str() {
        "" if !is_implicit => Ok(text()),
        "" => Ok(plain(value).unwrap_or_else(text)),
        BINARY => {
            let data = base64::decode(value);
            let data =
                data.map_err(|_error| "yaml: !!binary value contains invalid base64 data".to_owned())?;
            Ok(Resolved::Text(String::from_utf8_lossy(&data).into_owned()))
        }
        TIMESTAMP if is_timestamp(value) => Ok(text()),
        BOOL | INT | FLOAT | NULL | TIMESTAMP => {
            let found = plain(value).unwrap_or_else(text);
            if let (Resolved::Int(number), FLOAT) = (&found, tag.as_str()) {
                return Ok(Resolved::Float(as_float(*number)));
            }
            if found.tag() != tag {
                let (found, wanted) = (short(found.tag()), short(tag));
                return Err(format!("yaml: cannot decode {found} `{value}` as a {wanted}"));
            }
            Ok(found)
        }
        _ => Ok(text()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "Go converts an int64 to a float64, too")]
fn as_float(number: i64) -> f64 {
    number as f64
}

fn short(tag: &str) -> String {
    tag.replace("tag:yaml.org,2002:", "!!")
}

/// Returns the value of a plain scalar; `None` for text.
fn plain(value: &str) -> Option<Resolved> {
    let found = match value {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Resolved::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Resolved::Bool(false)
        }
        "" | "~" | "null" | "Null" | "NULL" => Resolved::Null,
        ".nan" | ".NaN" | ".NAN" => Resolved::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Resolved::Float(f64::NEG_INFINITY),
        _ => return number(value),
    };
    Some(found)
}

fn number(value: &str) -> Option<Resolved> {
    match value.chars().next()? {
        '.' => float(value),
        '0'..='9' | '+' | '-' if !is_timestamp(value) => {
            let digits = value.replace('_', "");
            integer(&digits).or_else(|| float(&digits))
        }
        _ => None,
    }
}

/// Parses an integer with the prefixes of Go: `0x`, `0o`, `0b`, and `0` for octal numbers.
///
/// Source: Go strconv/atoi.go, `ParseInt` and `ParseUint` with base 0.
fn integer(text: &str) -> Option<Resolved> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (lower.get(2..)?, 16),
        [b'0', b'o', ..] => (lower.get(2..)?, 8),
        [b'0', b'b', ..] => (lower.get(2..)?, 2),
        [b'0', _, ..] => (lower.get(1..)?, 8),
        _ => (lower.as_str(), 10),
    };
    if !digits.starts_with(|digit: char| digit.is_ascii_alphanumeric()) {
        return None;
    }
    let number = u64::from_str_radix(digits, radix).ok()?;
    if text.starts_with('-') {
        return 0i64.checked_sub_unsigned(number).map(Resolved::Int);
    }
    match i64::try_from(number) {
        Ok(number) => Some(Resolved::Int(number)),
        Err(_) if text == unsigned => Some(Resolved::Uint(number)),
        Err(_) => None,
    }
}

/// Parses a float that matches Go's `yamlStyleFloat`. A float beyond the range of a float64 is text.
fn float(text: &str) -> Option<Resolved> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        None => (unsigned, "0"),
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    let is_float = are_digits(whole)
        && are_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && are_digits(exponent)
        && !exponent.is_empty();
    let number: f64 = is_float.then(|| text.parse().ok()).flatten()?;
    number.is_finite().then_some(Resolved::Float(number))
}

/// Source: sigs.k8s.io/yaml goyaml.v2/resolve.go, `parseTimestamp`.
fn is_timestamp(text: &str) -> bool {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        None => (text, None),
        Some((date, time)) => (date, Some(time)),
    };
    let date: Vec<&str> = date.split('-').collect();
    let [year, month, day] = date.as_slice() else { return false };
    let is_date = year.len() == 4
        && is_below(year, 10_000)
        && (1..=12).any(|number| is_number(month, number))
        && (1..=31).any(|number| is_number(day, number));
    is_date && time.is_none_or(|time| is_time(time, text.contains(' ')))
}

fn is_time(text: &str, is_without_zone: bool) -> bool {
    let (time, zone) = match text.find(['Z', '+', '-']) {
        None => (text, None),
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at..)),
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let parts: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = parts.as_slice() else { return false };
    let is_zone = |zone: &str| {
        let parts: Vec<&str> = zone.get(1..).unwrap_or_default().split(':').collect();
        zone == "Z" || matches!(parts.as_slice(), [hour, minute] if is_two(hour) && is_two(minute))
    };
    is_below(hour, 24)
        && is_below(minute, 60)
        && is_below(second, 60)
        && !fraction.is_empty()
        && fraction.bytes().all(|digit| digit.is_ascii_digit())
        && if is_without_zone { zone.is_none() } else { zone.is_some_and(is_zone) }
}

fn is_two(text: &str) -> bool {
    text.len() == 2 && is_below(text, 100)
}

fn is_number(text: &str, number: u32) -> bool {
    text.len() <= 2 && is_below(text, 100) && text.parse() == Ok(number)
}

fn is_below(text: &str, end: u32) -> bool {
    text.bytes().all(|digit| digit.is_ascii_digit()) && text.parse().is_ok_and(|number: u32| number < end)
}
