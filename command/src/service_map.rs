//! Parses the names of Services and `--service NAMESPACE/NAME=HOST:PORT`, which maps Services to addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use harness::server::ServiceName;

/// The value of `--service`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceMapping {
    /// The Service in a `clientConfig`.
    pub(crate) service: ServiceName,
    /// A host name or an IP address, without the brackets of an IPv6 address.
    pub(crate) host: String,
    /// The port of the host. It replaces the port in the `clientConfig`.
    pub(crate) port: u16,
}

/// The reason why the value of `--service` is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidService {
    #[error("expected NAMESPACE/NAME=HOST:PORT")]
    Shape,
    #[error("namespace and name must consist of lower-case letters, digits and '-'")]
    Name,
    #[error("the port must be a number between 1 and 65535")]
    Port,
    #[error("the host must be a DNS name, an IPv4 address, or an IPv6 address in brackets")]
    Host,
}

/// Returns a message for each Service of `--service` that is not in `referenced`, the Services of the webhooks.
///
/// `webhooks` is the subject of the message, such as `the webhooks`.
pub(crate) fn unused<'a>(
    mapped: impl IntoIterator<Item = &'a ServiceName>,
    referenced: &BTreeSet<ServiceName>,
    webhooks: &str,
) -> Vec<String> {
    let list: Vec<String> = referenced.iter().map(|it| format!("{}/{}", it.namespace, it.name)).collect();
    let list = if list.is_empty() { "no Service".to_owned() } else { list.join(", ") };
    let unused = mapped.into_iter().filter(|name| !referenced.contains(name));
    let message = |ServiceName { namespace, name }: &ServiceName| {
        format!("--service {namespace}/{name} is not used: {webhooks} refer to {list}")
    };
    unused.map(message).collect()
}

/// Splits `NAMESPACE/NAME`, or a host name `NAME.NAMESPACE` with an optional `.svc`, into the namespace and the name.
pub(crate) fn namespace_and_name(text: &str) -> Option<(&str, &str)> {
    text.split_once('/').or_else(|| {
        let text = text.strip_suffix(".cluster.local").unwrap_or(text);
        let (name, namespace) = text.strip_suffix(".svc").unwrap_or(text).split_once('.')?;
        Some((namespace, name))
    })
}

/// Returns the mappings by Service; the last mapping of a Service takes precedence.
pub(crate) fn by_service(mappings: Vec<ServiceMapping>) -> BTreeMap<ServiceName, (String, u16)> {
    mappings.into_iter().map(|mapping| (mapping.service, (mapping.host, mapping.port))).collect()
}

impl FromStr for ServiceMapping {
    type Err = InvalidService;

    fn from_str(text: &str) -> Result<Self, InvalidService> {
        let (service, address) = text.split_once('=').ok_or(InvalidService::Shape)?;
        let (namespace, name) = namespace_and_name(service).ok_or(InvalidService::Shape)?;
        let (host, port) = address.rsplit_once(':').ok_or(InvalidService::Shape)?;
        if !is_label(namespace) || !is_label(name) {
            return Err(InvalidService::Name);
        }
        let port = port.parse().ok().filter(|port| *port != 0).ok_or(InvalidService::Port)?;
        let service = ServiceName { namespace: namespace.to_owned(), name: name.to_owned() };
        Ok(Self { service, host: parsed_host(host).ok_or(InvalidService::Host)?, port })
    }
}

fn parsed_host(host: &str) -> Option<String> {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().ok().map(|address| address.to_string());
    }
    let is_host = host.split('.').all(|label| is_label(&label.to_ascii_lowercase()));
    is_host.then(|| host.to_owned())
}

fn is_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(allowed)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(&str, u16), InvalidService>) {
        let parsed = text.parse::<ServiceMapping>();
        let summary =
            parsed.as_ref().map(|mapping| (mapping.host.as_str(), mapping.port)).map_err(|error| *error);
        assert_eq!(summary, expected, "{text}");
    }

    #[test]
    fn a_service_is_mapped_to_a_host_and_a_port() {
        check("default/hook=127.0.0.1:8443", Ok(("127.0.0.1", 8443)));
        check("default/hook=localhost:8443", Ok(("localhost", 8443)));
        check("default/hook=[::1]:8443", Ok(("::1", 8443)));
        let mapping: ServiceMapping = "a/b=c:1".parse().unwrap();
        assert_eq!(mapping.service, ServiceName { namespace: "a".to_owned(), name: "b".to_owned() });
    }

    #[test]
    fn an_invalid_mapping_is_rejected_with_the_expected_form() {
        for text in ["", "hook", "hook=localhost:1", "default/hook", "default/hook=localhost"] {
            check(text, Err(InvalidService::Shape));
        }
        for text in ["/hook=h:1", "default/=h:1", "Default/hook=h:1", "a/b/c=h:1", "-a/b=h:1"] {
            check(text, Err(InvalidService::Name));
        }
        for text in ["a/b=h:0", "a/b=h:65536", "a/b=h:x", "a/b=h:"] {
            check(text, Err(InvalidService::Port));
        }
        for text in ["a/b=:1", "a/b=::1:1", "a/b=h h:1", "a/b=https://h:1", "a/b=[h]:1"] {
            check(text, Err(InvalidService::Host));
        }
    }

    #[test]
    fn the_last_mapping_of_a_service_wins() {
        let mappings = ["a/b=c:1", "a/b=d:2", "a/c=e:3"].map(|text| text.parse().unwrap());
        let hosts: Vec<(String, u16)> = by_service(mappings.to_vec()).into_values().collect();
        assert_eq!(hosts, [("d".to_owned(), 2), ("e".to_owned(), 3)]);
    }
}
