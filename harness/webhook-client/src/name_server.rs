//! Formats the errors of Go's resolver for a host without an address.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// The name server that Go uses if the system does not configure one.
const DEFAULT: &str = "127.0.0.1:53";
const PORT: u16 = 53;

/// Returns Go's error for a `host` that the system could not resolve; `error` is the system's error.
///
/// Go reports whether the name server failed or did not answer. The system's error does not distinguish these cases, so
/// it is used unchanged.
///
/// Source: Go `net/dnsclient_unix.go`, `goLookupIPCNAMEOrder` and `tryOneName`; net/net.go, `DNSError`.
pub(super) fn lookup_failed(host: &str, error: &str) -> String {
    let words = error.rsplit_once(": ").map_or(error, |(_, words)| words);
    let is_temporary = ["Temporary failure in name resolution", "Try again"].contains(&words);
    let words = if is_temporary { words } else { "no such host" };
    if !is_domain_name(host) {
        return format!("dial tcp: lookup {host}: no such host");
    }
    let configuration = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    format!("dial tcp: lookup {host} on {}: {words}", first_server(&configuration))
}

/// Returns the first name server in `configuration`, the content of `resolv.conf`.
///
/// Source: Go `net/dnsconfig_unix.go`, `dnsReadConfig`.
fn first_server(configuration: &str) -> String {
    let server = configuration.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = (words.next() == Some("nameserver")).then(|| words.next()).flatten()?;
        address.parse::<IpAddr>().ok()
    });
    server.map_or_else(|| DEFAULT.to_owned(), |address| SocketAddr::new(address, PORT).to_string())
}

/// Returns whether `host` is a valid name for a DNS query.
///
/// Source: Go net/dnsclient.go, `isDomainName`.
fn is_domain_name(host: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let labels = host.strip_suffix('.').unwrap_or(host);
    let label = |label: &str| {
        let bytes = label.as_bytes();
        (1..=63).contains(&bytes.len())
            && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
            && bytes.first().is_some_and(|byte| *byte != b'-')
            && bytes.last().is_some_and(|byte| *byte != b'-')
    };
    labels.len() <= 254
        && labels.split('.').all(label)
        && labels.bytes().any(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_server_is_reported() {
        for (configuration, expect) in [
            ("", "127.0.0.1:53"),
            ("search a.b\nnameserver 10.96.0.10\nnameserver 1.1.1.1\n", "10.96.0.10:53"),
            ("# nameserver 1.1.1.1\n nameserver fd00::1\noptions ndots:5\n", "[fd00::1]:53"),
            ("nameserver\nnameserver nowhere\n", "127.0.0.1:53"),
        ] {
            assert_eq!(first_server(configuration), expect, "{configuration}");
        }
    }

    #[test]
    fn an_invalid_host_name_is_not_looked_up() {
        for (host, expect) in [
            ("webhook.example.com", true),
            ("webhook.example.com.", true),
            ("a_b", true),
            ("-a.b", false),
            ("a-.b", false),
            ("a..b", false),
            ("1.2", false),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(is_domain_name(host), expect, "{host}");
        }
    }

    #[test]
    fn a_failing_name_server_is_not_reported_as_no_such_host() {
        let failed =
            |words: &str| lookup_failed("a.b", &format!("failed to lookup address information: {words}"));
        let temporary = "Temporary failure in name resolution";
        assert!(failed(temporary).ends_with(&format!(": {temporary}")));
        assert!(failed("Name or service not known").ends_with(": no such host"));
        assert_eq!(lookup_failed("a..b", "x"), "dial tcp: lookup a..b: no such host");
    }
}
