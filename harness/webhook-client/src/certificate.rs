//! Finds errors in server certificates, with the messages of Go's crypto/x509.

use std::fmt;
use std::net::IpAddr;

use jiff::Timestamp;
use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::{OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_PKCS1_SHA1WITHRSA};
use x509_parser::prelude::FromDer as _;
use x509_parser::time::ASN1Time;

use kubernetes_types::quoting::quote;

/// If a certificate has at least this many names, the message contains their number instead of a list.
const MAX_NAMES: usize = 100;

/// An error in a certificate: `x509: …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CertificateFault(String);

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CertificateFault {}

/// Returns Go's first error for a certificate: validity period, name, issuer, usage.
///
/// `chain` must verify that the certificate is trusted.
///
/// Source: Go crypto/x509/verify.go, `Certificate.Verify`.
pub(super) fn complaint(
    leaf: &CertificateDer<'_>,
    trusted: &[CertificateDer<'_>],
    server_name: &ServerName<'_>,
    now: UnixTime,
    chain: impl FnOnce() -> Result<(), rustls::Error>,
) -> Option<CertificateFault> {
    let certificate = match X509Certificate::from_der(leaf) {
        Ok((_, certificate)) => certificate,
        Err(error) => return Some(CertificateFault(format!("x509: {error}"))),
    };
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let text = times(&certificate, seconds)
        .or_else(|| name(&certificate, &server_name.to_str()))
        .or_else(|| chain().err().map(|error| signer(&error, &certificate, trusted, seconds)))
        .or_else(|| expired_issuer(&certificate, trusted, seconds))
        .or_else(|| usage(&certificate));
    text.map(CertificateFault)
}

/// Returns whether `leaf` is valid for a server with the name `server_name`.
pub(super) fn is_for(leaf: &CertificateDer<'_>, server_name: &str) -> bool {
    X509Certificate::from_der(leaf).is_ok_and(|(_, certificate)| name(&certificate, server_name).is_none())
}

fn times(certificate: &X509Certificate<'_>, now: i64) -> Option<String> {
    let validity = certificate.validity();
    let (which, limit) = if now < validity.not_before.timestamp() {
        ("before", validity.not_before)
    } else if now > validity.not_after.timestamp() {
        ("after", validity.not_after)
    } else {
        return None;
    };
    Some(format!(
        "x509: certificate has expired or is not yet valid: current time {} is {which} {}",
        rfc3339(now),
        rfc3339(ASN1Time::timestamp(&limit)),
    ))
}

fn rfc3339(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

/// Returns Go's error if the certificate is not valid for `host`.
///
/// Source: Go crypto/x509/verify.go, `VerifyHostname` and `HostnameError`.
/// Rule: HTTP-17.
fn name(certificate: &X509Certificate<'_>, host: &str) -> Option<String> {
    let extension = certificate.subject_alternative_name().ok().flatten();
    let names: &[GeneralName<'_>] = extension.as_ref().map_or(&[], |names| &names.value.general_names);
    let dns: Vec<&str> = names
        .iter()
        .filter_map(|name| if let GeneralName::DNSName(name) = name { Some(*name) } else { None })
        .collect();
    let ips: Vec<IpAddr> = names
        .iter()
        .filter_map(|name| if let GeneralName::IPAddress(bytes) = name { ip(bytes) } else { None })
        .collect();
    let wanted: Option<IpAddr> = host.parse().ok();
    let matches = match wanted {
        Some(wanted) => ips.iter().any(|ip| ip.to_canonical() == wanted.to_canonical()),
        None => dns.iter().any(|pattern| is_match(pattern, host)),
    };
    if matches {
        return None;
    }
    let common_name = certificate.subject().iter_common_name().last().and_then(|name| name.as_str().ok());
    if extension.is_none() && common_name.is_some_and(|name| is_match(name, host)) {
        return Some("x509: certificate relies on legacy Common Name field, use SANs instead".to_owned());
    }
    let listed: Vec<String> = if wanted.is_some() {
        if ips.is_empty() {
            return Some(format!(
                "x509: cannot validate certificate for {host} because it doesn't contain any IP SANs"
            ));
        }
        ips.iter().map(ToString::to_string).collect()
    } else {
        dns.iter().map(ToString::to_string).collect()
    };
    let what = if wanted.is_some() { "IP SANs" } else { "names" };
    Some(match listed.len() {
        0 => format!("x509: certificate is not valid for any names, but wanted to match {host}"),
        MAX_NAMES.. => {
            format!("x509: certificate is valid for {} {what}, but none matched {host}", listed.len())
        }
        _ => format!("x509: certificate is valid for {}, not {host}", listed.join(", ")),
    })
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

/// Returns whether `host` matches `pattern`. The first label of a pattern may be the wildcard `*`.
///
/// Source: `matchHostnames`.
fn is_match(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    let host = host.strip_suffix('.').unwrap_or(&host);
    let (mut patterns, mut labels) = (pattern.split('.'), host.split('.'));
    let first = match (patterns.next(), labels.next()) {
        (Some("*"), Some(_)) => pattern.len() > 1,
        (pattern, label) => pattern == label,
    };
    !pattern.is_empty() && first && patterns.eq(labels)
}

/// Returns Go's error if every CA certificate with the issuer's name has expired or is not valid yet.
///
/// rustls does not check this for trust anchors.
fn expired_issuer(
    certificate: &X509Certificate<'_>,
    trusted: &[CertificateDer<'_>],
    now: i64,
) -> Option<String> {
    let issuers =
        trusted.iter().filter_map(|der| X509Certificate::from_der(der).ok()).map(|(_, found)| found);
    let mut issuers = issuers.filter(|found| found.subject().as_raw() == certificate.issuer().as_raw());
    let first = times(&issuers.next()?, now)?;
    issuers.all(|issuer| times(&issuer, now).is_some()).then_some(first)
}

/// Returns Go's message for a certificate that was not signed by a trusted certificate.
fn signer(
    error: &rustls::Error,
    certificate: &X509Certificate<'_>,
    trusted: &[CertificateDer<'_>],
    now: i64,
) -> String {
    if let rustls::Error::InvalidCertificate(
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
    ) = error
    {
        return incompatible_usage();
    }
    let issuer = trusted.iter().filter_map(|der| X509Certificate::from_der(der).ok()).map(|(_, found)| found);
    let issuer = issuer.into_iter().find(|found| found.subject().as_raw() == certificate.issuer().as_raw());
    let unknown = "x509: certificate signed by unknown authority";
    let Some(issuer) = issuer else { return unknown.to_owned() };
    if let Some(expired) = times(&issuer, now) {
        return expired;
    }
    let algorithm = &issuer.public_key().algorithm.algorithm;
    let hint = if certificate.signature_algorithm.algorithm == OID_PKCS1_SHA1WITHRSA {
        "x509: cannot verify signature: insecure algorithm SHA1-RSA"
    } else if *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY {
        "x509: ECDSA verification failure"
    } else if *algorithm == OID_PKCS1_RSAENCRYPTION {
        "crypto/rsa: verification error"
    } else {
        "x509: Ed25519 verification failure"
    };
    let subject = issuer.subject();
    let first = |text: Option<&x509_parser::x509::AttributeTypeAndValue<'_>>| {
        text.and_then(|text| text.as_str().ok()).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let name = first(subject.iter_common_name().last())
        .or_else(|| first(subject.iter_organization().next()))
        .unwrap_or_else(|| format!("serial:{}", issuer.serial));
    format!(
        "{unknown} (possibly because of {} while trying to verify candidate authority certificate {})",
        quote(hint),
        quote(&name)
    )
}

/// Returns Go's error if the certificate has extended key usages, but none of them allows server authentication.
fn usage(certificate: &X509Certificate<'_>) -> Option<String> {
    let usage = certificate.extended_key_usage().ok().flatten()?;
    (!usage.value.server_auth && !usage.value.any).then(incompatible_usage)
}

fn incompatible_usage() -> String {
    "x509: certificate specifies an incompatible key usage".to_owned()
}
