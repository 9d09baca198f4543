//! Parses the server names in certificates.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A DNS name or an IP address in a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// A DNS name. The first label can be `*`.
    Dns(DnsName),
    /// An IP address.
    Ip(IpAddr),
}

/// A valid DNS name: at most 253 bytes, with labels of 1 to 63 letters, digits, `-`, and `_`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DnsName(String);

impl DnsName {
    /// Returns the name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part before the first dot.
    pub(crate) fn first_label(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => f.pad(name.as_str()),
            Self::Ip(address) => address.fmt(f),
        }
    }
}

impl From<IpAddr> for Name {
    fn from(address: IpAddr) -> Self {
        Self::Ip(address)
    }
}

/// The error for a string that is not a DNS name or an IP address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid DNS name or IP address `{name}`: {reason}")]
pub struct InvalidName {
    name: String,
    reason: &'static str,
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Ip(address));
        }
        match fault(text) {
            None => Ok(Self::Dns(DnsName(text.to_owned()))),
            Some(reason) => Err(InvalidName { name: text.to_owned(), reason }),
        }
    }
}

fn fault(name: &str) -> Option<&'static str> {
    let labels = name.strip_prefix("*.").unwrap_or(name);
    if name.is_empty() {
        return Some("it is empty");
    }
    if name.len() > 253 {
        return Some("it is longer than 253 bytes");
    }
    if labels.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Some("it has only digits and dots");
    }
    labels.split('.').find_map(|label| {
        if label.is_empty() {
            Some("a label between two dots, or before or after one, is empty")
        } else if label.len() > 63 {
            Some("a label is longer than 63 bytes")
        } else if label.starts_with('-') || label.ends_with('-') {
            Some("a label begins or ends with `-`")
        } else if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') {
            Some("a label has something else than letters, digits, `-` and `_`")
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, reason: &str) {
        let message = text.parse::<Name>().unwrap_err().to_string();
        assert!(message.contains(&format!("`{text}`")) && message.contains(reason), "{message}");
    }

    #[test]
    fn dns_names_and_addresses_are_distinguished() {
        assert!(matches!("hooks.admit.svc".parse(), Ok(Name::Dns(_))));
        assert!(matches!("*.admit.svc".parse(), Ok(Name::Dns(_))));
        assert!(matches!("127.0.0.1".parse(), Ok(Name::Ip(_))));
        assert!(matches!("::1".parse(), Ok(Name::Ip(_))));
    }

    #[test]
    fn invalid_names_are_rejected_with_a_reason() {
        refused("", "empty");
        refused("a..b", "empty");
        refused("a.", "empty");
        refused("*.", "digits and dots");
        refused("300.1.2.3", "only digits");
        refused("a b", "something else");
        refused("a.*.b", "something else");
        refused("https://a", "something else");
        refused("-a", "begins or ends");
        refused(&"a".repeat(64), "63");
        refused(&"a.".repeat(130), "253");
    }
}
