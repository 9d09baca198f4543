//! Parses URLs as Go does.

use std::net::IpAddr;

use super::escape::{Mode, unescape};
use super::{Url, User};
use crate::netip::parse_address;
use crate::quote::quote;

/// Parses a URL without a fragment. If `with_request` is set, the text must be an absolute URL or an absolute path.
///
/// # Errors
/// Returns Go's message if the text is invalid, such as `first path segment in URL cannot contain colon`.
///
/// Source: Go net/url/url.go, `parse`.
pub(super) fn parse(text: &str, with_request: bool) -> Result<Url, String> {
    let error = |message: &str| Err(message.to_owned());
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return error("net/url: invalid control character in URL");
    }
    if text.is_empty() && with_request {
        return error("empty url");
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    url.force_query = query == Some("");
    query.unwrap_or_default().clone_into(&mut url.query);

    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if with_request {
            return error("invalid URI for request");
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return error("first path segment in URL cannot contain colon");
        }
    }
    let may_have_authority = !scheme.is_empty() || (!with_request && !rest.starts_with("///"));
    match rest.strip_prefix("//").filter(|_| may_have_authority) {
        Some(after) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            rest = path;
            url.host = parse_authority(&mut url.user, &url.scheme, authority)?;
        }
        None => url.omit_host = !scheme.is_empty() && rest.starts_with('/'),
    }
    url.set_path(rest)?;
    Ok(url)
}

/// Splits a URL into the scheme, which may be empty, and the text after the scheme and its colon.
///
/// Source: Go net/url/url.go, `getScheme`.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    let end = text
        .bytes()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')))
        .unwrap_or(text.len());
    let (scheme, rest) = text.split_at(end);
    match rest.strip_prefix(':') {
        Some(_) if scheme.is_empty() => Err("missing protocol scheme".to_owned()),
        Some(rest) if scheme.starts_with(|first: char| first.is_ascii_alphabetic()) => Ok((scheme, rest)),
        _ => Ok(("", text)),
    }
}

/// Parses `user:password@host:port`, and returns the decoded host and port.
///
/// Source: Go net/url/url.go, `parseAuthority`.
fn parse_authority(user: &mut Option<User>, scheme: &str, authority: &str) -> Result<Vec<u8>, String> {
    let Some((info, host)) = authority.rsplit_once('@') else { return parse_host(scheme, authority) };
    let host = parse_host(scheme, host)?;
    if !info.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) =
        info.split_once(':').map_or((info, None), |(name, password)| (name, Some(password)));
    *user = Some(User {
        name: unescape(name.as_bytes(), Mode::UserPassword)?,
        password: password.map(|password| unescape(password.as_bytes(), Mode::UserPassword)).transpose()?,
    });
    Ok(host)
}

/// Validates and unescapes a host with an optional port.
///
/// Source: Go net/url/url.go, `parseHost`.
fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    match host.rfind('[') {
        Some(0) => return parse_ip_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Lists of hosts with ports are accepted for schemes other than HTTP.
    let is_http = matches!(scheme, "http" | "https");
    let colon = if is_http { host.find(':') } else { host.rfind(':') };
    if let Some(port) = colon.and_then(|colon| host.get(colon..)) {
        check_port(port)?;
    }
    unescape(host.as_bytes(), Mode::Host)
}

/// Parses an IPv6 address in brackets with an optional port: `[address]:port`.
fn parse_ip_literal(host: &str) -> Result<Vec<u8>, String> {
    let Some((name, port)) = host.strip_prefix('[').and_then(|host| host.rsplit_once(']')) else {
        return Err("missing ']' in host".to_owned());
    };
    check_port(port)?;
    let port = unescape(port.as_bytes(), Mode::Host)?;
    let (address, zone) = name.split_at(name.find("%25").unwrap_or(name.len()));
    let mut address = unescape(address.as_bytes(), Mode::Host)?;
    address.extend(unescape(zone.as_bytes(), Mode::Zone)?);
    match parse_address(&address) {
        Err(error) => return Err(format!("invalid host: {error}")),
        Ok(parsed) if matches!(parsed.ip, IpAddr::V4(_)) => return Err("invalid IP-literal".to_owned()),
        Ok(_) => {}
    }
    Ok([b"[", address.as_slice(), b"]", &port].concat())
}

/// Returns an error unless the text is empty or a colon followed by digits.
///
/// Source: Go net/url/url.go, `validOptionalPort`.
fn check_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':').or_else(|| port.is_empty().then_some(""));
    if digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
        Ok(())
    } else {
        Err(format!("invalid port {} after host", quote(port)))
    }
}
