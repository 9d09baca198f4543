//! Implements Endpoints.

use kubernetes_types::json;
use serde_json::Value;

use crate::kinds::common;
use crate::kinds::common::cells::{Context, age_of, items, name, number, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{each, ensure, fill};
use crate::kinds::common::fields::{Errors, Path, int, list, text, word};
use crate::kinds::common::formats;
use crate::kinds::common::warnings::{Warnings, is_managed_by};
use crate::kinds::kind::Kind;

/// The behavior of Endpoints.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "endpoints",
    kind: "Endpoints",
    set_defaults: Some(set_defaults),
    is_created_by_update: true,
    validate,
    warn,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Sets the defaults of an Endpoints object.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Endpoints`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    each(object, "subsets", |subset| each(subset, "ports", |port| fill(port, "protocol", "TCP")));
}

pub(crate) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Validates Endpoints.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateEndpoints`.
/// Rule: VLO-31.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    if change.is_some_and(|change| change.is_same(&["subsets"])) {
        return;
    }
    let path = Path::new("subsets");
    for (index, subset) in list(object, "subsets").iter().enumerate() {
        let item = path.index(index);
        let kinds = ["addresses", "notReadyAddresses"];
        if kinds.iter().all(|kind| list(subset, kind).is_empty()) {
            errors.required(&item, "must specify `addresses` or `notReadyAddresses`");
        }
        for kind in kinds {
            let path = item.child(kind);
            for (index, found) in list(subset, kind).iter().enumerate() {
                address(errors, &path.index(index), found);
            }
        }
        let (path, ports) = (item.child("ports"), list(subset, "ports"));
        for (index, found) in ports.iter().enumerate() {
            port(errors, &path.index(index), found, ports.len() > 1);
        }
    }
}

fn address(errors: &mut Errors, path: &Path<'_>, address: &Value) {
    let (found, host) = (text(address, "ip"), text(address, "hostname"));
    common::addresses::ip(errors, &path.child("ip"), found);
    if !host.is_empty() {
        formats::dns_label(errors, &path.child("hostname"), host);
    }
    if let Some(node) = word(address, "nodeName") {
        formats::dns_subdomain(errors, &path.child("nodeName"), node);
    }
    common::addresses::reachable(errors, &path.child("ip"), found);
}

fn port(errors: &mut Errors, path: &Path<'_>, port: &Value, needs_name: bool) {
    let name = text(port, "name");
    if !name.is_empty() {
        formats::dns_label(errors, &path.child("name"), name);
    } else if needs_name {
        errors.required(&path.child("name"), "");
    }
    formats::port(errors, &path.child("port"), int(port, "port").unwrap_or(0));
    errors.required_one_of(&path.child("protocol"), text(port, "protocol"), &PROTOCOLS);
    if let Some(protocol) = word(port, "appProtocol") {
        formats::qualified_name(errors, &path.child("appProtocol"), protocol);
    }
}

/// Warns about addresses in Endpoints that are not standard or not canonical.
///
/// Source: kubernetes pkg/registry/core/endpoint/strategy.go, `endpointsWarnings`.
pub(crate) fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    if is_managed_by(object, "endpoints.kubernetes.io/managed-by", &["endpoint-controller"]) {
        return;
    }
    let path = Path::new("subsets");
    for (index, subset) in list(object, "subsets").iter().enumerate() {
        let item = path.index(index);
        for field in ["addresses", "notReadyAddresses"] {
            let path = item.child(field);
            for (index, address) in list(subset, field).iter().enumerate() {
                let path = path.index(index);
                common::addresses::unusual_ip(warnings, &path.child("ip"), text(address, "ip"));
            }
        }
    }
}

/// The maximum number of items that a cell lists.
pub(crate) const MAX_LISTED: usize = 3;

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
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
                let ip = json::text(address, &["ip"]);
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
