//! Parses and formats URLs as Go does.
//!
//! Decoded parts are bytes, not strings: `%ff` is allowed in a host and represents a byte that is not valid UTF-8.

mod escape;
mod parse;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use crate::quote::quote;
use escape::{Mode, escape, is_valid_encoding, unescape};

/// The maximum number of query parameters. If a query has more, all of them are ignored.
///
/// Source: Go net/url/url.go, `defaultMaxParams`.
const MAX_PARAMETERS: usize = 10_000;

/// A URL, split into the same parts as in Go.
///
/// Source: Go net/url/url.go, `URL`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// The scheme in lowercase, or an empty string if the URL does not have a scheme.
    pub scheme: String,
    /// The text after the scheme, if that text does not begin with `/`.
    opaque: String,
    user: Option<User>,
    /// The decoded host and port.
    pub host: Vec<u8>,
    path: Vec<u8>,
    /// The path as written, if it differs from the result of escaping `path`; otherwise an empty string.
    raw_path: String,
    query: String,
    /// Whether the URL has a `?` that no query follows.
    force_query: bool,
    fragment: Vec<u8>,
    raw_fragment: String,
    /// Whether the URL has a scheme and a path but no host.
    omit_host: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

/// Unescapes a segment of a path.
///
/// # Errors
/// Returns Go's message if an escape sequence is invalid, such as `invalid URL escape "%z"`.
///
/// Source: Go net/url/url.go, `PathUnescape`.
pub fn path_unescape(segment: &str) -> Result<Vec<u8>, String> {
    unescape(segment.as_bytes(), Mode::Path)
}

impl Url {
    /// Parses a URL or a relative reference, with an optional fragment.
    ///
    /// # Errors
    /// Returns Go's message if the text is invalid, such as `parse "a%z": invalid URL escape "%z"`.
    ///
    /// Source: Go net/url/url.go, `Parse`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (reference, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = parse::parse(reference, false).map_err(|error| parse_error(reference, &error))?;
        url.set_fragment(fragment).map_err(|error| parse_error(text, &error))?;
        Ok(url)
    }

    /// Parses an absolute URL or path without a fragment: `#` is part of the path or the query.
    ///
    /// # Errors
    /// Returns Go's message if the text is invalid, such as `parse "a": invalid URI for request`.
    ///
    /// Source: Go net/url/url.go, `ParseRequestURI`.
    pub fn parse_request_uri(text: &str) -> Result<Self, String> {
        parse::parse(text, true).map_err(|error| parse_error(text, &error))
    }

    /// Returns the escaped user name and password, or `None` if the URL does not have them.
    ///
    /// Source: Go net/url/url.go, `Userinfo.String`.
    pub fn userinfo(&self) -> Option<String> {
        let user = self.user.as_ref()?;
        let mut text = escape(&user.name, Mode::UserPassword);
        if let Some(password) = &user.password {
            text.push(':');
            text.push_str(&escape(password, Mode::UserPassword));
        }
        Some(text)
    }

    /// Returns the query as written, without the `?`.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Returns the decoded fragment, without the `#`.
    pub fn fragment(&self) -> &[u8] {
        &self.fragment
    }

    /// Returns the host without the port and without the brackets around an IPv6 address.
    ///
    /// Source: Go net/url/url.go, `splitHostPort`.
    pub fn hostname(&self) -> &[u8] {
        let host = self.split_host_port().0;
        host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host)
    }

    /// Returns the port, or an empty slice if the URL does not have a port.
    ///
    /// Source: Go net/url/url.go, `splitHostPort`.
    pub fn port(&self) -> &[u8] {
        self.split_host_port().1
    }

    fn split_host_port(&self) -> (&[u8], &[u8]) {
        let colon = self.host.iter().rposition(|byte| *byte == b':');
        let split = colon.and_then(|colon| self.host.split_at_checked(colon));
        let Some((host, [_, port @ ..])) = split else { return (&self.host, b"") };
        if port.iter().all(u8::is_ascii_digit) { (host, port) } else { (&self.host, b"") }
    }

    /// Returns the escaped path: the path as written if its encoding is valid.
    ///
    /// Source: Go net/url/url.go, `EscapedPath`.
    pub fn escaped_path(&self) -> String {
        let written = unescape(self.raw_path.as_bytes(), Mode::Path);
        if !self.raw_path.is_empty()
            && is_valid_encoding(&self.raw_path, Mode::Path)
            && written.is_ok_and(|path| path == self.path)
        {
            return self.raw_path.clone();
        }
        if self.path == b"*" {
            return "*".to_owned();
        }
        escape(&self.path, Mode::Path)
    }

    /// Returns the decoded values of each parameter, in order; invalid parameters are omitted.
    ///
    /// Source: Go net/url/url.go, `parseQuery`.
    pub fn parameters(&self) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
        let mut parameters = BTreeMap::<_, Vec<_>>::new();
        if self.query.matches('&').count() >= MAX_PARAMETERS {
            return parameters;
        }
        for setting in self.query.split('&').filter(|setting| !setting.is_empty() && !setting.contains(';')) {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            let key = unescape(key.as_bytes(), Mode::QueryComponent);
            let value = unescape(value.as_bytes(), Mode::QueryComponent);
            if let (Ok(key), Ok(value)) = (key, value) {
                parameters.entry(key).or_default().push(value);
            }
        }
        parameters
    }

    fn set_path(&mut self, path: &str) -> Result<(), String> {
        self.path = unescape(path.as_bytes(), Mode::Path)?;
        self.raw_path = raw_unless_default(path, &self.path, Mode::Path);
        Ok(())
    }

    fn set_fragment(&mut self, fragment: &str) -> Result<(), String> {
        self.fragment = unescape(fragment.as_bytes(), Mode::Fragment)?;
        self.raw_fragment = raw_unless_default(fragment, &self.fragment, Mode::Fragment);
        Ok(())
    }

    fn escaped_fragment(&self) -> String {
        let written = unescape(self.raw_fragment.as_bytes(), Mode::Fragment);
        if !self.raw_fragment.is_empty()
            && is_valid_encoding(&self.raw_fragment, Mode::Fragment)
            && written.is_ok_and(|fragment| fragment == self.fragment)
        {
            return self.raw_fragment.clone();
        }
        escape(&self.fragment, Mode::Fragment)
    }

    fn write_authority(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scheme.is_empty() && self.host.is_empty() && self.user.is_none() {
            return Ok(());
        }
        if self.omit_host && self.host.is_empty() && self.user.is_none() {
            return Ok(());
        }
        if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
            f.write_str("//")?;
        }
        if let Some(user) = self.userinfo() {
            write!(f, "{user}@")?;
        }
        f.write_str(&escape(&self.host, Mode::Host))
    }
}

/// Formats the URL as Go does. The result can differ from the parsed text.
///
/// Source: Go net/url/url.go, `String`.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            self.write_authority(f)?;
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                f.write_str("/")?;
            }
            let is_relative = self.scheme.is_empty() && self.host.is_empty() && self.user.is_none();
            if is_relative && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
                f.write_str("./")?;
            }
            f.write_str(&path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.force_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", self.escaped_fragment())?;
        }
        Ok(())
    }
}

/// Formats a parse error with the text of the URL.
///
/// Source: Go net/url/url.go, `Error`.
fn parse_error(text: &str, error: &str) -> String {
    format!("parse {}: {error}", quote(text))
}

fn raw_unless_default(written: &str, unescaped: &[u8], mode: Mode) -> String {
    if escape(unescaped, mode) == written { String::new() } else { written.to_owned() }
}
