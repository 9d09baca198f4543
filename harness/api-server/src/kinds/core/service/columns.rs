//! Computes the table rows of Services.

use std::collections::BTreeSet;

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, items, labels, name, number, row};

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
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
pub(crate) fn load_balancer(object: &Value) -> String {
    let ingress = items(object, &["status", "loadBalancer", "ingress"]);
    let address = |place: &Value| match text(place, &["ip"]) {
        "" => text(place, &["hostname"]).to_owned(),
        ip => ip.to_owned(),
    };
    let addresses: BTreeSet<String> =
        ingress.iter().map(address).filter(|address| !address.is_empty()).collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}
