//! String formats of schemas, as kube-apiserver validates them.
//!
//! Source: kube-openapi pkg/validation/strfmt and `pkg/internal/third_party/govalidator`; apiextensions-apiserver
//! `pkg/apiserver/validation/formats.go`.

use std::sync::LazyLock;

use go_std::{mail, netip};

use crate::formats;
use crate::regexp::Regexp;

/// The names of the supported formats, without hyphens.
const KNOWN: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Returns whether kube-apiserver supports a string format. kube-apiserver ignores unknown formats.
pub fn is_known_format(format: &str) -> bool {
    KNOWN.contains(&format.replace('-', "").as_str())
}

/// Returns whether a string conforms to a format.
pub fn has_format(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "uri" => formats::uri(text).is_empty(),
        "email" => mail::is_address(text),
        "hostname" => {
            is_match(&HOSTNAME, text) && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
        }
        "ipv4" => text.contains('.') && is_address(text),
        "ipv6" => text.contains(':') && is_strict_address(text),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => formats::uuid(text).is_empty(),
        "uuid3" => is_match(&UUID3, text),
        "uuid4" => is_match(&UUID4, text),
        "uuid5" => is_match(&UUID5, text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "ssn" => text.len() == 11 && is_match(&SSN, text),
        "hexcolor" => is_match(&HEX_COLOR, text),
        "rgbcolor" => is_match(&RGB_COLOR, text),
        "byte" => formats::byte(text).is_empty(),
        "date" => formats::date(text).is_empty(),
        "duration" => super::parse_duration(text).is_ok(),
        "datetime" => formats::date_time(text).is_empty(),
        "k8sshortname" => text.len() <= 63 && is_match(&SHORT_NAME, text),
        "k8slongname" => text.len() <= 253 && is_match(&LONG_NAMES, text),
        // `password` and unknown formats.
        _ => true,
    }
}

type Expression = LazyLock<Option<Regexp>>;

fn is_match(expression: &Expression, text: &str) -> bool {
    expression.as_ref().is_some_and(|expression| expression.is_match(text))
}

static HOSTNAME: Expression = LazyLock::new(|| {
    let expression = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
    Regexp::new(expression).ok()
});
static UUID3: Expression = LazyLock::new(|| {
    Regexp::new(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok()
});
static UUID4: Expression = LazyLock::new(|| {
    Regexp::new(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$").ok()
});
static UUID5: Expression = LazyLock::new(|| {
    Regexp::new(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$").ok()
});
static CREDIT_CARD: Expression = LazyLock::new(|| {
    let expression = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$";
    Regexp::new(expression).ok()
});
static SSN: Expression = LazyLock::new(|| Regexp::new(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$").ok());
static HEX_COLOR: Expression = LazyLock::new(|| Regexp::new(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$").ok());
static RGB_COLOR: Expression = LazyLock::new(|| {
    let part = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])";
    Regexp::new(&format!(r"^rgb\(\s*{part}\s*,\s*{part}\s*,\s*{part}\s*\)$")).ok()
});
static SHORT_NAME: Expression = LazyLock::new(|| Regexp::new("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$").ok());
static LONG_NAMES: Expression =
    LazyLock::new(|| Regexp::new(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").ok());

/// Returns whether the text is an IP address that `net.ParseIP` accepts.
fn is_strict_address(text: &str) -> bool {
    netip::parse_address(text.as_bytes()).is_ok_and(|address| address.zone.is_none())
}

/// Returns whether the text is an IP address; leading zeros are allowed, as before Go 1.17.
///
/// Source: `k8s.io/utils internal/third_party/forked/golang/net/ip.go`, `ParseIP`.
fn is_address(text: &str) -> bool {
    is_strict_address(&without_zeros(text))
}

/// Returns the text without leading zeros in the decimal parts after the last colon.
fn without_zeros(text: &str) -> String {
    let Some(dot) = text.find('.') else { return text.to_owned() };
    let start = text.get(..dot).and_then(|before| before.rfind(':')).map_or(0, |colon| colon + 1);
    let (before, decimal) = text.split_at(start);
    let parts: Vec<&str> = decimal
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            trimmed => trimmed,
        })
        .collect();
    format!("{before}{}", parts.join("."))
}

/// Returns whether the text is a network in CIDR notation.
///
/// Source: `k8s.io/utils internal/third_party/forked/golang/net/ip.go`, `ParseCIDR`.
fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    if !is_address(address) {
        return false;
    }
    let most = if address.contains(':') { 128 } else { 32 };
    let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    is_number && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

/// Returns whether the text is a hardware address.
///
/// Source: Go net/mac.go, `ParseMAC`.
fn is_mac(text: &str) -> bool {
    let groups = |separator: char, digits: usize, counts: [usize; 3]| {
        let mut count = 0;
        let are_hexadecimal = text.split(separator).all(|group| {
            count += 1;
            group.len() == digits && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        are_hexadecimal && counts.contains(&count)
    };
    groups(':', 2, [6, 8, 20]) || groups('-', 2, [6, 8, 20]) || groups('.', 4, [3, 4, 10])
}

/// Returns the digits of an ISBN, or `None` if the text is invalid. If `may_end_with_x` is set, the last digit may be
/// an `X`.
fn digits(text: &str, length: usize, may_end_with_x: bool) -> Option<Vec<u32>> {
    let is_blank = |character: char| matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0c' | '-');
    let characters: Vec<char> = text.chars().filter(|character| !is_blank(*character)).collect();
    if characters.len() != length {
        return None;
    }
    let digit = |(index, character): (usize, &char)| match character {
        'X' if may_end_with_x && index + 1 == length => Some(10),
        '0'..='9' => character.to_digit(10),
        _ => None,
    };
    characters.iter().enumerate().map(digit).collect()
}

fn is_isbn10(text: &str) -> bool {
    let Some(digits) = digits(text, 10, true) else { return false };
    (1_u32..).zip(digits).map(|(place, digit)| place * digit).sum::<u32>().is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let Some(digits) = digits(text, 13, false) else { return false };
    let weights = [1, 3].into_iter().cycle();
    weights.zip(digits).map(|(weight, digit)| weight * digit).sum::<u32>().is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let doubled = [false, true].into_iter().cycle();
    let sum: u32 = digits
        .chars()
        .rev()
        .zip(doubled)
        .filter_map(|(digit, doubled)| Some((digit.to_digit(10)?, doubled)))
        .map(|(digit, doubled)| if doubled { digit * 2 / 10 + digit * 2 % 10 } else { digit })
        .sum();
    is_match(&CREDIT_CARD, &digits) && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_formats() {
        let cases = [
            (
                "ipv4",
                &["1.2.3.4", "01.002.3.4", "::ffff:1.2.3.4"][..],
                &["1.2.3", "::1", "1.2.3.256", ""][..],
            ),
            ("ipv6", &["::1", "::ffff:1.2.3.4"], &["::1%eth0", "1.2.3.4", "::ffff:01.2.3.4"]),
            ("cidr", &["10.0.0.0/8", "010.0.0.0/08", "::/128"], &["10.0.0.0", "10.0.0.0/33", "a/8", "::/+1"]),
            ("mac", &["01:23:45:67:89:ab", "0123.4567.89ab"], &["01:23:45:67:89", "01-23:45-67-89-ab", ""]),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("isbn", &["0321751043", "978-0321751041", "080442957X"], &["0321751044", "978-0321751042", ""]),
            ("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112", "1"]),
            ("ssn", &["111-22-3333", "111 22 3333"], &["111223333", "1"]),
            ("hexcolor", &["#FFF", "00ff00"], &["#FFFF", "red"]),
            ("rgbcolor", &["rgb(0, 10,255)"], &["rgb(0,0,256)", "rgb(0,0)"]),
            ("hostname", &["example.com", "a", "a-b.example.com"], &["-a", "a..b.com", "a_b.com", ""]),
            ("duration", &["5s", "2 days", "1h30m"], &["5", ""]),
            ("date-time", &["2024-01-02T03:04:05Z"], &["2024-01-02"]),
            ("email", &["a.b@example.com", "\"a b\" <a@b>"], &["a", "a..b@c", "@c", "a@b@c", ""]),
            ("k8s-short-name", &["a-b"], &["a.b", "A"]),
            ("k8s-long-name", &["a-b.c"], &["a..b", "A"]),
            ("bsonobjectid", &["0123456789abcdef01234567"], &["0123", "0123456789abcdef0123456g"]),
            ("uri", &["/a", "https://b/c"], &["a b", ""]),
            ("password", &[""], &[]),
        ];
        for (format, fitting, others) in cases {
            assert!(is_known_format(format), "{format}");
            for text in fitting {
                assert!(has_format(format, text), "{format} {text}");
            }
            for text in others {
                assert!(!has_format(format, text), "{format} {text}");
            }
        }
        assert!(!is_known_format("int32") && !is_known_format("iban"));
    }
}
