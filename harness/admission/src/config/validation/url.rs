//! Parses URLs as Go's `url.Parse` does.

use std::net::Ipv6Addr;

use kubernetes_types::quoting::quote;

/// The parts of a URL that matter for a webhook, unescaped.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: String,
    pub(super) user: Option<String>,
    pub(super) host: String,
    pub(super) query: String,
    pub(super) fragment: String,
}

impl Url {
    /// Parses a URL.
    ///
    /// Source: Go net/url/url.go, `Parse`.
    ///
    /// # Errors
    /// Go's error message, without the prefix `parse "…": `.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self {
            scheme: scheme.to_ascii_lowercase(),
            query: query.to_owned(),
            fragment: unescape(fragment, Part::Other)?,
            ..Self::default()
        };
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let has_authority = !url.scheme.is_empty() || !rest.starts_with("///");
        let path = match rest.strip_prefix("//").filter(|_| has_authority) {
            Some(authority) => {
                let end = authority.find('/').unwrap_or(authority.len());
                let (authority, path) = authority.split_at(end);
                url.authority(authority)?;
                path
            }
            None => rest,
        };
        unescape(path, Part::Other)?;
        Ok(url)
    }

    fn authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = parse_host(&self.scheme, host)?;
        if let Some(user) = user {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
            if !user.bytes().all(allowed) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            unescape(user, Part::Other)?;
            self.user = Some(user.to_owned());
        }
        Ok(())
    }
}

/// Splits a URL into its scheme and the rest; the scheme is empty if there is none.
///
/// Source: Go net/url/url.go, `getScheme`.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    let Some((scheme, rest)) = text.split_once(':') else { return Ok(("", text)) };
    if scheme.is_empty() {
        return Err("missing protocol scheme".to_owned());
    }
    let is_valid = scheme.bytes().enumerate().all(|(index, byte)| match byte {
        b'a'..=b'z' | b'A'..=b'Z' => true,
        b'0'..=b'9' | b'+' | b'-' | b'.' => index > 0,
        _ => false,
    });
    Ok(if is_valid { (scheme, rest) } else { ("", text) })
}

/// Validates and unescapes a host with an optional port.
///
/// Source: Go net/url/url.go, `parseHost`.
fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rsplit_once('[') {
        Some(("", rest)) => {
            let Some((address, port)) = rest.rsplit_once(']') else {
                return Err("missing ']' in host".to_owned());
            };
            optional_port(port)?;
            let (number, zone) = address.split_once("%25").unwrap_or((address, ""));
            unescape(zone, Part::Other)?;
            let number = unescape(number, Part::Host)?;
            if number.parse::<std::net::Ipv4Addr>().is_ok() {
                return Err("invalid IP-literal".to_owned());
            }
            if number.parse::<Ipv6Addr>().is_err() {
                return Err(format!("invalid host: ParseAddr({}): unable to parse IP", quote(&number)));
            }
            Ok(host.to_owned())
        }
        Some(_) => Err("invalid IP-literal".to_owned()),
        None => {
            let strict = scheme == "http" || scheme == "https";
            let colon = if strict { host.find(':') } else { host.rfind(':') };
            if let Some((_, port)) = colon.and_then(|colon| host.split_at_checked(colon)) {
                optional_port(port)?;
            }
            unescape(host, Part::Host)
        }
    }
}

fn optional_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':');
    if port.is_empty() || digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return Ok(());
    }
    Err(format!("invalid port {} after host", quote(port)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Host,
    Other,
}

/// Decodes the percent escapes in a part of a URL.
///
/// Source: Go net/url/url.go, `unescape`.
fn unescape(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut unescaped = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        if byte != b'%' {
            // Go accepts these characters, although RFC 3986 does not.
            let odd = !byte.is_ascii_alphanumeric() && !b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte);
            if part == Part::Host && byte < 0x80 && odd {
                return Err(format!(
                    "invalid character {} in host name",
                    quote(&char::from(byte).to_string())
                ));
            }
            unescaped.push(byte);
            index += 1;
            continue;
        }
        let escape = bytes.get(index..bytes.len().min(index + 3)).unwrap_or_default();
        let number = std::str::from_utf8(escape.get(1..).unwrap_or_default())
            .ok()
            .filter(|digits| digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(number) = number.filter(|number| part == Part::Other || *number >= 0x80 || escape == b"%25")
        else {
            let escape = String::from_utf8_lossy(escape).into_owned();
            return Err(format!("invalid URL escape {}", quote(&escape)));
        };
        unescaped.push(number);
        index += 3;
    }
    Ok(String::from_utf8_lossy(&unescaped).into_owned())
}
