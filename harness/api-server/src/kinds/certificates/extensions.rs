//! Validates the extensions of certificates as Go does.
//!
//! Source: Go crypto/x509/parser.go, `processExtensions`; golang.org/x/crypto/cryptobyte/asn1.go.

use std::collections::HashSet;
use std::net::IpAddr;

use go_std::url::Url;
use x509_parser::extensions::X509Extension;

const BOOLEAN: u8 = 0x01;

const INTEGER: u8 = 0x02;

const BIT_STRING: u8 = 0x03;

const OCTET_STRING: u8 = 0x04;

const OBJECT_IDENTIFIER: u8 = 0x06;

const SEQUENCE: u8 = 0x30;

// General names.
const EMAIL: u8 = 0x81;

const DNS: u8 = 0x82;

const URI: u8 = 0x86;

const IP: u8 = 0x87;

// Context-specific tags with a primitive and a constructed value.
const PRIMITIVE_0: u8 = 0x80;

const PRIMITIVE_1: u8 = 0x81;

const CONSTRUCTED_0: u8 = 0xa0;

const CONSTRUCTED_1: u8 = 0xa1;

const BASIC_CONSTRAINTS: &str = "2.5.29.19";

/// Returns whether Go can parse an extension. Go accepts any value of an extension that it does not know.
pub(crate) fn is_valid(extension: &X509Extension<'_>) -> bool {
    let mut value = Der(extension.value);
    match extension.oid.to_id_string().as_str() {
        "2.5.29.14" => !extension.critical && value.take(OCTET_STRING).is_some(),
        "2.5.29.15" => value.take(BIT_STRING).is_some_and(is_bit_string),
        "2.5.29.17" => is_valid_sequence(value, alternative_name),
        BASIC_CONSTRAINTS => value.take(SEQUENCE).and_then(basic_constraints).is_some(),
        "2.5.29.30" => name_constraints(value).is_some(),
        "2.5.29.31" => is_valid_sequence(value, distribution_point),
        "2.5.29.32" => value.take(SEQUENCE).and_then(policies).is_some(),
        "2.5.29.33" => is_valid_sequence(value, |list| {
            let mut mapping = list.take(SEQUENCE)?;
            mapping.take(OBJECT_IDENTIFIER)?;
            mapping.take(OBJECT_IDENTIFIER).map(drop)
        }),
        "2.5.29.35" => !extension.critical && value.take(SEQUENCE).and_then(authority_key).is_some(),
        "2.5.29.36" => value.take(SEQUENCE).and_then(policy_constraints).is_some(),
        "2.5.29.37" => is_valid_sequence(value, object_identifier),
        "2.5.29.54" => value.take(INTEGER).is_some_and(is_integer),
        "1.3.6.1.5.5.7.1.1" => !extension.critical && is_valid_sequence(value, access_description),
        _ => true,
    }
}

/// Returns whether a basic constraints extension marks the certificate as a CA.
pub(crate) fn is_authority(extension: &X509Extension<'_>) -> bool {
    extension.oid.to_id_string() == BASIC_CONSTRAINTS
        && Der(extension.value).take(SEQUENCE).and_then(basic_constraints) == Some(true)
}

/// An element is longer than the input.
struct Truncated;

/// A byte string that is read as DER.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Reads the next element; returns its tag and its value.
    ///
    /// Source: golang.org/x/crypto/cryptobyte/asn1.go, `readASN1`.
    fn any(&mut self) -> Option<(u8, Der<'a>)> {
        const LONG_TAG: u8 = 0x1f;
        let ([tag, first], mut rest) = self.0.split_first_chunk()?;
        if tag & LONG_TAG == LONG_TAG {
            return None;
        }
        let length = if first & 0x80 == 0 {
            usize::from(*first)
        } else {
            let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = after;
            let is_minimal = (1..=4).contains(&bytes.len()) && bytes.first() != Some(&0);
            let length = bytes.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
            if !is_minimal || length < 128 {
                return None;
            }
            length
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, Der(value)))
    }

    fn take(&mut self, tag: u8) -> Option<Der<'a>> {
        self.any().filter(|(found, _)| *found == tag).map(|(_, value)| value)
    }

    fn begins_with(self, tag: u8) -> bool {
        self.0.first() == Some(&tag)
    }

    /// Reads the next element if it has `tag`.
    fn optional(&mut self, tag: u8) -> Result<Option<Der<'a>>, Truncated> {
        if self.begins_with(tag) { self.take(tag).map(Some).ok_or(Truncated) } else { Ok(None) }
    }

    fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// Source: golang.org/x/crypto/cryptobyte/asn1.go, `ReadASN1ObjectIdentifier`.
fn object_identifier(list: &mut Der<'_>) -> Option<()> {
    let value = list.take(OBJECT_IDENTIFIER)?.0;
    is_base_128(value, |number| number.len() <= 5 && base_128(number) < 1 << 31).then_some(())
}

/// Returns whether a value is a sequence whose elements `read` can read.
fn is_valid_sequence(mut value: Der<'_>, read: impl Fn(&mut Der<'_>) -> Option<()>) -> bool {
    let Some(mut list) = value.take(SEQUENCE) else { return false };
    while !list.is_empty() {
        if read(&mut list).is_none() {
            return false;
        }
    }
    true
}

/// Returns whether a value consists of minimally encoded base-128 integers that `is_fit` accepts.
fn is_base_128(value: &[u8], is_fit: impl Fn(&[u8]) -> bool) -> bool {
    value.last().is_some_and(|last| last & 0x80 == 0)
        && value
            .split_inclusive(|byte| byte & 0x80 == 0)
            .all(|number| number.first() != Some(&0x80) && is_fit(number))
}

fn base_128(number: &[u8]) -> u64 {
    number.iter().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

/// Source: golang.org/x/crypto/cryptobyte/asn1.go, `ReadASN1BitString`.
fn is_bit_string(value: Der<'_>) -> bool {
    let Some((padding, bytes)) = value.0.split_first() else { return false };
    let last = bytes.last().copied().unwrap_or_default();
    *padding <= 7 && (!bytes.is_empty() || *padding == 0) && last & ((1 << padding) - 1) == 0
}

/// Returns whether a value is an integer of at most 64 bits.
///
/// Source: golang.org/x/crypto/cryptobyte/asn1.go, `checkASN1Integer` and `asn1Signed`.
fn is_integer(value: Der<'_>) -> bool {
    match value.0 {
        [] | [0, 0..=0x7f, ..] | [0xff, 0x80..=0xff, ..] => false,
        bytes => bytes.len() <= 8,
    }
}

/// Source: Go crypto/x509/parser.go, `parseSANExtension`.
fn alternative_name(list: &mut Der<'_>) -> Option<()> {
    let (tag, name) = list.any()?;
    let is_valid = match tag {
        EMAIL | DNS => name.0.is_ascii(),
        URI => {
            let text = std::str::from_utf8(name.0).ok().filter(|text| text.is_ascii())?;
            is_domain(&Url::parse(text).ok()?.host, false)
        }
        IP => [4, 16].contains(&name.0.len()),
        _ => true,
    };
    is_valid.then_some(())
}

/// Returns whether basic constraints mark the certificate as a CA, or `None` if they are invalid.
///
/// Source: Go crypto/x509/parser.go, `parseBasicConstraintsExtension`.
fn basic_constraints(mut value: Der<'_>) -> Option<bool> {
    let is_authority = match value.optional(BOOLEAN).ok()? {
        None => false,
        Some(Der([flag @ (0 | 0xff)])) => *flag != 0,
        Some(_) => return None,
    };
    match value.optional(INTEGER).ok()? {
        Some(length) if !is_integer(length) || length.0.first().is_some_and(|first| first & 0x80 != 0) => {
            None
        }
        Some(_) | None => Some(is_authority),
    }
}

/// Source: Go crypto/x509/parser.go, `parseNameConstraintsExtension`.
fn name_constraints(mut outer: Der<'_>) -> Option<()> {
    let mut value = outer.take(SEQUENCE)?;
    let permitted = value.optional(CONSTRUCTED_0).ok()?;
    let excluded = value.optional(CONSTRUCTED_1).ok()?;
    let is_empty = [permitted, excluded].into_iter().flatten().all(Der::is_empty);
    if !outer.is_empty() || !value.is_empty() || is_empty {
        return None;
    }
    for mut subtrees in [permitted, excluded].into_iter().flatten() {
        while !subtrees.is_empty() {
            let (tag, base) = subtrees.take(SEQUENCE)?.any()?;
            is_constraint(tag, base.0).then_some(())?;
        }
    }
    Some(())
}

fn is_constraint(tag: u8, base: &[u8]) -> bool {
    match tag {
        EMAIL if base.contains(&b'@') => is_mailbox(base),
        DNS | EMAIL => is_domain(base, true),
        URI => {
            let is_ip = std::str::from_utf8(base).is_ok_and(|text| text.parse::<IpAddr>().is_ok());
            !is_ip && is_domain(base, true)
        }
        IP => match base.len() {
            8 | 32 => {
                let (_, mask) = base.split_at(base.len() / 2);
                let ones = mask.iter().take_while(|byte| **byte == 0xff).count();
                let mut rest = mask.iter().skip(ones);
                rest.next().is_none_or(|byte| byte.leading_ones() == byte.count_ones())
                    && rest.all(|byte| *byte == 0)
            }
            _ => false,
        },
        _ => true,
    }
}

/// Source: Go crypto/x509/parser.go, `domainNameValid`.
fn is_domain(name: &[u8], is_constraint: bool) -> bool {
    let labels = name.strip_prefix(b".").filter(|_| is_constraint).unwrap_or(name);
    name.is_empty()
        || labels
            .split(|byte| *byte == b'.')
            .all(|label| !label.is_empty() && label.iter().all(u8::is_ascii_graphic))
}

/// Source: Go crypto/x509/verify.go, `parseRFC2821Mailbox` and `domainToReverseLabels`.
fn is_mailbox(text: &[u8]) -> bool {
    let local = if text.first() == Some(&b'"') { quoted_local_part(text) } else { local_part(text) };
    local.and_then(|rest| rest.strip_prefix(b"@")).is_some_and(|domain| is_domain(domain, false))
}

/// Returns the text after a quoted local part.
fn quoted_local_part(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text.get(1..)?;
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some(rest),
            b'\\' => {
                let (escaped, after) = rest.split_first()?;
                matches!(escaped, 1..=9 | 11 | 12 | 14..=127).then_some(())?;
                rest = after;
            }
            1..=8 | 11 | 12 | 14..=33 | 35..=91 | 93..=127 => {}
            _ => return None,
        }
    }
}

/// Returns the text after a local part without quotes.
fn local_part(text: &[u8]) -> Option<&[u8]> {
    let mut local = Vec::new();
    let mut rest = text;
    while let Some((byte, mut after)) = rest.split_first() {
        let mut byte = byte;
        if *byte == b'\\' {
            (byte, after) = after.split_first()?;
        } else if !byte.is_ascii_alphanumeric() && !b"!#$%&'*+-/=?^_`{|}~.".contains(byte) {
            break;
        }
        local.push(*byte);
        rest = after;
    }
    let has_empty_atom = local.split(|byte| *byte == b'.').any(<[u8]>::is_empty);
    (!has_empty_atom).then_some(rest)
}

fn distribution_point(list: &mut Der<'_>) -> Option<()> {
    if let Some(mut name) = list.take(SEQUENCE)?.optional(CONSTRUCTED_0).ok()? {
        let mut names = name.take(CONSTRUCTED_0)?;
        while names.optional(URI).ok()?.is_some() {}
    }
    Some(())
}

/// Source: Go crypto/x509/parser.go, `parseCertificatePoliciesExtension`; oid.go, `newOIDFromDER`.
fn policies(mut list: Der<'_>) -> Option<()> {
    let mut seen = HashSet::new();
    while !list.is_empty() {
        let identifier = list.take(SEQUENCE)?.take(OBJECT_IDENTIFIER)?.0;
        (seen.insert(identifier) && is_base_128(identifier, |_| true)).then_some(())?;
    }
    Some(())
}

/// Source: Go crypto/x509/parser.go, `parseAuthorityKeyIdentifier`.
fn authority_key(mut value: Der<'_>) -> Option<()> {
    value.optional(PRIMITIVE_0).ok().map(drop)
}

fn policy_constraints(mut value: Der<'_>) -> Option<()> {
    for tag in [PRIMITIVE_0, PRIMITIVE_1] {
        let number = value.optional(tag).ok()?;
        number.is_none_or(is_integer).then_some(())?;
    }
    Some(())
}

fn access_description(list: &mut Der<'_>) -> Option<()> {
    let mut description = list.take(SEQUENCE)?;
    object_identifier(&mut description)?;
    description.optional(URI).ok().map(drop)
}
