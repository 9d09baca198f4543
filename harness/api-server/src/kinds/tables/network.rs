//! Computes the table rows of Services, Endpoints, and network resources.
//!
//! Source: kubernetes pkg/printers/internalversion/printers.go.

use std::collections::BTreeSet;

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::kinds::common::cells::{
    Context, age_of, at_most, items, joined, label_selector, labels, name, number, present_or, row,
};

/// The maximum number of items that a cell lists.
const MAX_LISTED: usize = 3;

pub(crate) fn service(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let internal = items(object, &["spec", "clusterIPs"]).first().and_then(Value::as_str);
    let ports = items(object, &["spec", "ports"]).iter().map(service_port).collect::<Vec<_>>().join(",");
    row![
        name(object),
        text(object, &["spec", "type"]),
        internal.unwrap_or("<none>"),
        external_ip(object),
        if ports.is_empty() { "<none>".to_owned() } else { ports },
        age_of(object, context),
        labels(at(object, &["spec", "selector"])),
    ]
}

fn service_port(port: &Value) -> String {
    let protocol = text(port, &["protocol"]);
    match (number(port, &["port"]), number(port, &["nodePort"])) {
        (port, node_port) if node_port > 0 => format!("{port}:{node_port}/{protocol}"),
        (port, _) => format!("{port}/{protocol}"),
    }
}

fn external_ip(service: &Value) -> String {
    let own = items(service, &["spec", "externalIPs"]).iter().filter_map(Value::as_str);
    let own = own.collect::<Vec<_>>().join(",");
    match text(service, &["spec", "type"]) {
        "ClusterIP" | "NodePort" if own.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => own,
        "LoadBalancer" => match (load_balancer(service), own) {
            (balancer, own) if balancer.is_empty() && own.is_empty() => "<pending>".to_owned(),
            (balancer, own) if own.is_empty() => balancer,
            (balancer, own) if balancer.is_empty() => own,
            (balancer, own) => format!("{balancer},{own}"),
        },
        "ExternalName" => text(service, &["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Returns the distinct addresses of a load balancer, sorted and joined with commas.
fn load_balancer(object: &Value) -> String {
    let ingress = items(object, &["status", "loadBalancer", "ingress"]);
    let address = |place: &Value| match text(place, &["ip"]) {
        "" => text(place, &["hostname"]).to_owned(),
        ip => ip.to_owned(),
    };
    let addresses: BTreeSet<String> =
        ingress.iter().map(address).filter(|address| !address.is_empty()).collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

pub(crate) fn endpoints(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let subsets = items(object, &["subsets"]);
    row![name(object), addresses(subsets), age_of(object, context)]
}

/// Formats the endpoints of subsets; lists at most [`MAX_LISTED`] of them.
///
/// Source: `formatEndpoints`.
fn addresses(subsets: &[Value]) -> String {
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let (mut list, mut count) = (Vec::new(), 0);
    for subset in subsets {
        let addresses = items(subset, &["addresses"]);
        let ports = items(subset, &["ports"]);
        let times = ports.len().max(1);
        count += addresses.len() * times;
        for index in 0..times {
            for address in addresses {
                if list.len() == MAX_LISTED {
                    break;
                }
                let ip = text(address, &["ip"]);
                list.push(match ports.get(index).map(|port| number(port, &["port"])) {
                    None => ip.to_owned(),
                    Some(port) if ip.contains(':') => format!("[{ip}]:{port}"),
                    Some(port) => format!("{ip}:{port}"),
                });
            }
        }
    }
    let shown = list.join(",");
    if count > MAX_LISTED { format!("{shown} + {} more...", count - MAX_LISTED) } else { shown }
}

pub(crate) fn endpoint_slice(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let port = |port: &Value| match (at(port, &["port"]).as_i64(), at(port, &["name"]).as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    };
    let ports: Vec<String> = items(object, &["ports"]).iter().map(port).collect();
    let endpoints = items(object, &["endpoints"]).iter();
    let addresses = endpoints.flat_map(|endpoint| items(endpoint, &["addresses"])).filter_map(Value::as_str);
    let addresses: Vec<String> = addresses.map(str::to_owned).collect();
    row![
        name(object),
        text(object, &["addressType"]),
        at_most(&ports, MAX_LISTED),
        at_most(&addresses, MAX_LISTED),
        age_of(object, context),
    ]
}

pub(crate) fn ingress(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let has_tls = !items(object, &["spec", "tls"]).is_empty();
    row![
        name(object),
        present_or(object, &["spec", "ingressClassName"], "<none>"),
        hosts(items(object, &["spec", "rules"])),
        load_balancer(object),
        if has_tls { "80, 443" } else { "80" },
        age_of(object, context),
    ]
}

/// Formats the hosts of rules; `*` if the rules do not have hosts.
///
/// Source: `formatHosts`.
fn hosts(rules: &[Value]) -> String {
    let (mut hosts, mut has_more) = (Vec::new(), false);
    for rule in rules {
        has_more |= hosts.len() == MAX_LISTED;
        let host = text(rule, &["host"]);
        if !has_more && !host.is_empty() {
            hosts.push(host);
        }
    }
    match hosts.join(",") {
        _ if hosts.is_empty() => "*".to_owned(),
        shown if has_more => format!("{shown} + {} more...", rules.len() - MAX_LISTED),
        shown => shown,
    }
}

pub(crate) fn ingress_class(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let annotation =
        text(object, &["metadata", "annotations", "ingressclass.kubernetes.io/is-default-class"]);
    let default = if annotation == "true" { " (default)" } else { "" };
    let parameters = at(object, &["spec", "parameters"]);
    let parameters = if parameters.is_null() {
        "<none>".to_owned()
    } else {
        let group = at(parameters, &["apiGroup"]).as_str().map(|group| format!(".{group}"));
        let kind = text(parameters, &["kind"]);
        format!("{kind}{}/{}", group.unwrap_or_default(), text(parameters, &["name"]))
    };
    row![
        format!("{}{default}", name(object)),
        text(object, &["spec", "controller"]),
        parameters,
        age_of(object, context),
    ]
}

pub(crate) fn network_policy(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), label_selector(at(object, &["spec", "podSelector"])), age_of(object, context)]
}

pub(crate) fn service_cidr(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), joined(items(object, &["spec", "cidrs"]), &[]), age_of(object, context)]
}

pub(crate) fn ip_address(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let parent = at(object, &["spec", "parentRef"]);
    let part = |field| text(parent, &[field]);
    let text = if parent.is_null() {
        "<none>".to_owned()
    } else {
        let dot = if part("group").is_empty() { "" } else { "." };
        let resource = format!("{}{dot}{}", part("resource"), part("group")).to_lowercase();
        let slash = if part("namespace").is_empty() { "" } else { "/" };
        format!("{resource}{slash}{}/{}", part("namespace"), part("name"))
    };
    row![name(object), text, age_of(object, context)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoints_are_counted_for_each_port() {
        let ips = |ips: &[&str]| ips.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>();
        for (subsets, expected) in [
            (json!([]), "<none>"),
            (json!([{"addresses": ips(&["1.1.1.1"])}]), "1.1.1.1"),
            (json!([{"addresses": ips(&["::1"]), "ports": [{"port": 80}]}]), "[::1]:80"),
            (
                json!([{"addresses": ips(&["a", "b"]), "ports": [{"port": 1}, {"port": 2}]}]),
                "a:1,b:1,a:2 + 1 more...",
            ),
        ] {
            assert_eq!(addresses(subsets.as_array().unwrap()), expected);
        }
    }
}
