//! Validates IP addresses and CIDRs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kubernetes_types::quoting::quote;

use crate::kinds::common::fields::{Errors, Path};
use crate::kinds::common::warnings::Warnings;

/// Validates an IP address.
///
/// Source: apimachinery pkg/util/validation/ip.go, `IsValidIPForLegacyField` with strict validation.
pub(crate) fn ip(errors: &mut Errors, path: &Path<'_>, text: &str) {
    if let Some(why) = ip_error(text) {
        errors.invalid_text(path, text, why);
    }
}

/// Returns the error for an invalid IP address; `None` if the address is valid.
///
/// Source: apimachinery pkg/util/validation/ip.go, `IsValidIPForLegacyField` with strict validation.
pub(crate) fn ip_error(text: &str) -> Option<&'static str> {
    match text.parse::<IpAddr>() {
        Ok(address) if is_mapped(address) => Some("must not be an IPv4-mapped IPv6 address"),
        Ok(_) => None,
        Err(_) if without_zeros(text).is_some() => Some("must not have leading 0s"),
        Err(_) => Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
    }
}

/// Validates an IP address that must be in canonical form.
///
/// Source: apimachinery pkg/util/validation/ip.go, `IsValidIP`.
pub(crate) fn canonical_ip(errors: &mut Errors, path: &Path<'_>, text: &str) {
    let before = errors.len();
    ip(errors, path, text);
    if errors.len() == before
        && let Ok(address) = text.parse::<IpAddr>()
    {
        let plain = address.to_string();
        if plain != text {
            errors.invalid_text(path, text, format!("must be in canonical form ({})", quote(&plain)));
        }
    }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// Parses an IPv4 address and ignores leading zeros in its numbers.
fn without_zeros(text: &str) -> Option<IpAddr> {
    let number = |part: &str| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let short = part.trim_start_matches('0');
        is_number.then(|| if short.is_empty() { "0".to_owned() } else { short.to_owned() })
    };
    let parts: Option<Vec<String>> = text.split('.').map(number).collect();
    parts?.join(".").parse().ok()
}

/// A parsed CIDR that has not been normalized.
struct Range {
    address: IpAddr,
    bits: u32,
    /// Whether a number has leading zeros.
    has_zeros: bool,
}

/// Parses a CIDR. Numbers may have leading zeros.
///
/// Source: k8s.io/utils/net `ParseCIDRSloppy`.
fn parse_range(text: &str) -> Option<Range> {
    let (address, length) = text.split_once('/')?;
    let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let bits = length.parse::<u32>().ok().filter(|_| is_number)?;
    let strict = address.parse::<IpAddr>().ok();
    let address = strict.or_else(|| without_zeros(address))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let has_zeros = strict.is_none() || (length.len() > 1 && length.starts_with('0'));
    (bits <= most).then_some(Range { address, bits, has_zeros })
}

/// Parses a CIDR into an address and a prefix length. Numbers may have leading zeros.
pub(crate) fn parse_sloppy(text: &str) -> Option<(IpAddr, u32)> {
    parse_range(text).map(|range| (range.address, range.bits))
}

pub(crate) fn is_range(text: &str) -> bool {
    parse_range(text).is_some()
}

/// Validates a CIDR.
///
/// Source: apimachinery pkg/util/validation/ip.go, `IsValidCIDRForLegacyField` with strict validation.
pub(crate) fn range(errors: &mut Errors, path: &Path<'_>, text: &str) {
    const INVALID: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    match parse_range(text) {
        None => errors.invalid_text(path, text, INVALID),
        Some(Range { has_zeros: true, .. }) => {
            errors.invalid_text(path, text, "must not have leading 0s in IP or prefix length");
        }
        Some(Range { address, .. }) if is_mapped(address) => {
            errors.invalid_text(path, text, "must not have an IPv4-mapped IPv6 address");
        }
        Some(Range { address, bits, .. }) if has_more_bits(address, bits) => {
            errors.invalid_text(path, text, "must not have bits set beyond the prefix length");
        }
        Some(_) => {}
    }
}

/// Validates a CIDR that must be in canonical form.
///
/// Source: apimachinery pkg/util/validation/ip.go, `IsValidCIDR`.
pub(crate) fn canonical_range(errors: &mut Errors, path: &Path<'_>, text: &str) {
    let before = errors.len();
    range(errors, path, text);
    if errors.len() == before
        && let Some(Range { address, bits, .. }) = parse_range(text)
    {
        let plain = network(address, bits);
        if plain != text {
            errors.invalid_text(path, text, format!("must be in canonical form ({})", quote(&plain)));
        }
    }
}

/// Validates an interface address: an IP address with a prefix length.
///
/// Source: apimachinery pkg/util/validation/ip.go, `IsValidInterfaceAddress`.
pub(crate) fn of_interface(errors: &mut Errors, path: &Path<'_>, text: &str) {
    let Some(Range { address, bits, .. }) = parse_range(text) else {
        let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        errors.invalid_text(path, text, why);
        return;
    };
    let plain = address.to_canonical();
    let bits = if plain.is_ipv4() && bits > 32 { bits - 96 } else { bits };
    let plain = format!("{plain}/{bits}");
    if plain != text {
        errors.invalid_text(path, text, format!("must be in canonical form ({})", quote(&plain)));
    }
}

/// Returns whether a CIDR is IPv4; `None` if it is invalid.
pub(crate) fn is_range_of_version_4(text: &str) -> Option<bool> {
    parse_range(text).map(|range| range.address.to_canonical().is_ipv4())
}

/// Warns about an IP address that is not standard or not canonical.
///
/// Source: apimachinery pkg/util/validation/ip.go, `GetWarningsForIP`.
pub(crate) fn unusual_ip(warnings: &mut Warnings, path: &Path<'_>, text: &str) {
    let strict = text.parse::<IpAddr>().ok();
    let Some(address) = strict.or_else(|| without_zeros(text)) else { return };
    let (shown, plain) = (quote(text), address.to_canonical().to_string());
    if strict.is_none() || is_mapped(address) {
        let plain = quote(&plain);
        warnings.push(format!("{path}: non-standard IP address {shown} is invalid: use {plain}"));
    } else if address.is_ipv6() && plain != text {
        let plain = quote(&plain);
        warnings
            .push(format!("{path}: IPv6 address {shown} should be in RFC 5952 canonical format ({plain})"));
    }
}

/// Warns about a CIDR that is ambiguous, not standard, or not canonical.
///
/// Source: apimachinery pkg/util/validation/ip.go, `GetWarningsForCIDR`.
pub(crate) fn unusual_range(warnings: &mut Warnings, path: &Path<'_>, text: &str) {
    let Some(Range { address, bits, has_zeros }) = parse_range(text) else { return };
    let shown = quote(text);
    let all = if address.is_ipv4() { 32 } else { 128 };
    let net = quote(&network(address, bits));
    let is_ambiguous = has_more_bits(address, bits);
    if is_ambiguous {
        let single = quote(&format!("{}/{all}", address.to_canonical()));
        warnings.push(format!(
            "{path}: CIDR value {shown} is ambiguous in this context (should be {net} or {single}?)"
        ));
    }
    let is_odd = has_zeros || is_mapped(address);
    if is_odd {
        warnings.push(format!("{path}: non-standard CIDR value {shown} is invalid: use {net}"));
    }
    let plain = format!("{address}/{bits}");
    if !is_ambiguous && !is_odd && address.is_ipv6() && plain != text {
        let plain = quote(&plain);
        warnings.push(format!(
            "{path}: IPv6 CIDR value {shown} should be in RFC 5952 canonical format ({plain})"
        ));
    }
}

/// Formats the network with the prefix length `bits` as Go does.
fn network(address: IpAddr, bits: u32) -> String {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits)).unwrap_or(0);
            format!("{}/{bits}", Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits)).unwrap_or(0);
            let masked = Ipv6Addr::from_bits(address.to_bits() & mask);
            match masked.to_ipv4_mapped() {
                Some(masked) => format!("{masked}/{}", bits.saturating_sub(96)),
                None => format!("{masked}/{bits}"),
            }
        }
    }
}

/// Returns whether an address has a bit set after the first `bits` bits.
fn has_more_bits(address: IpAddr, bits: u32) -> bool {
    match address {
        IpAddr::V4(address) => address.to_bits().checked_shl(bits).unwrap_or(0) != 0,
        IpAddr::V6(address) => address.to_bits().checked_shl(bits).unwrap_or(0) != 0,
    }
}

/// Validates an address that other hosts must be able to reach.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateEndpointIP`.
pub(crate) fn reachable(errors: &mut Errors, path: &Path<'_>, text: &str) {
    let Some(address) = text.parse::<IpAddr>().ok().or_else(|| without_zeros(text)) else {
        errors.invalid_text(path, text, "must be a valid IP address");
        return;
    };
    let address = address.to_canonical();
    let (link_local, multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), matches!(address.octets(), [224, 0, 0, _])),
        IpAddr::V6(address) => (
            address.is_unicast_link_local(),
            address.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
        ),
    };
    if address.is_unspecified() {
        errors.invalid_text(path, text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        errors.invalid_text(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    if link_local {
        errors.invalid_text(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        let why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.invalid_text(path, text, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(validate: fn(&mut Errors, &Path<'_>, &str), text: &str, expected: Option<&str>) {
        let mut errors = Errors::default();
        validate(&mut errors, &Path::new("f"), text);
        let found: Vec<String> = errors.into_list().unwrap().iter().map(ToString::to_string).collect();
        let expected: Vec<String> =
            expected.into_iter().map(|why| format!("f: Invalid value: \"{text}\": {why}")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn addresses_are_strict() {
        check(ip, "10.0.0.1", None);
        check(ip, "2001:db8::1", None);
        check(ip, "010.0.0.1", Some("must not have leading 0s"));
        check(ip, "::ffff:1.2.3.4", Some("must not be an IPv4-mapped IPv6 address"));
        check(ip, "1.2.3", Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
    }

    #[test]
    fn cidr_without_host_bits_is_valid() {
        check(range, "10.0.0.0/8", None);
        check(range, "0.0.0.0/0", None);
        check(range, "2001:db8::/32", None);
        check(range, "10.0.0.1/32", None);
        check(range, "10.0.0.1/8", Some("must not have bits set beyond the prefix length"));
        check(range, "10.0.0.0/08", Some("must not have leading 0s in IP or prefix length"));
        check(range, "10.0.0.0", Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
        check(range, "10.0.0.0/33", Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
    }

    #[track_caller]
    fn check_unusual(warn: fn(&mut Warnings, &Path<'_>, &str), text: &str, expected: &[&str]) {
        let mut warnings = Warnings::default();
        warn(&mut warnings, &Path::new("f"), text);
        assert_eq!(warnings.into_texts(), expected);
    }

    #[test]
    fn unusual_addresses_are_reported() {
        check_unusual(unusual_ip, "10.0.0.1", &[]);
        check_unusual(unusual_ip, "", &[]);
        let plain = "f: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\"";
        check_unusual(unusual_ip, "010.0.0.1", &[plain]);
        let plain = "f: non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\"";
        check_unusual(unusual_ip, "::ffff:1.2.3.4", &[plain]);
        let plain = "f: IPv6 address \"::0:1\" should be in RFC 5952 canonical format (\"::1\")";
        check_unusual(unusual_ip, "::0:1", &[plain]);
    }

    #[test]
    fn unusual_ranges_are_reported() {
        check_unusual(unusual_range, "10.0.0.0/8", &[]);
        let plain = "f: CIDR value \"10.1.2.3/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \
                     \"10.1.2.3/32\"?)";
        check_unusual(unusual_range, "10.1.2.3/8", &[plain]);
        let plain = "f: non-standard CIDR value \"010.0.0.0/8\" is invalid: use \"10.0.0.0/8\"";
        check_unusual(unusual_range, "010.0.0.0/8", &[plain]);
    }
}
