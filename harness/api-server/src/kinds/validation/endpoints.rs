//! Validates Endpoints and `EndpointSlice`s.

use std::collections::HashSet;
use std::net::IpAddr;

use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::FieldError;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, int, list, map, set, text, texts, word};
use crate::kinds::common::{addresses, formats};
use crate::kinds::validation::networking;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Validates Endpoints.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateEndpoints`.
/// Rule: VLO-31.
pub(crate) fn endpoints(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
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
    addresses::ip(errors, &path.child("ip"), found);
    if !host.is_empty() {
        formats::dns_label(errors, &path.child("hostname"), host);
    }
    if let Some(node) = word(address, "nodeName") {
        formats::dns_subdomain(errors, &path.child("nodeName"), node);
    }
    addresses::reachable(errors, &path.child("ip"), found);
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

/// Validates an `EndpointSlice`.
///
/// Source: kubernetes pkg/apis/discovery/validation/validation.go, `ValidateEndpointSlice` and
/// `ValidateEndpointSliceUpdate`; `pkg/apis/discovery/v1/zz_generated.validations.go`.
/// Rule: VLO-31.
pub(crate) fn slice(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    const MAX_ENDPOINTS: usize = 1000;
    const MAX_PORTS: usize = 20_000;
    let (kind, kind_path) = (text(object, "addressType"), Path::new("addressType"));
    let is_same_kind = change.is_some_and(|change| change.is_same(&["addressType"]));
    if kind.is_empty() && !is_same_kind {
        errors.required_by_type(&kind_path);
    }
    if !kind.is_empty() && !["FQDN", "IPv4", "IPv6"].contains(&kind) && !is_same_kind {
        let supported = "\"FQDN\", \"IPv4\", \"IPv6\"";
        let error = FieldError::not_supported(kind_path.to_string(), quote(kind), supported);
        // In an update, generated validation reports only the change and does not replace the handwritten error.
        if change.is_some() { errors.push(error) } else { errors.generated(error) }
    }
    if change.is_some() && !is_same_kind {
        networking::stays_by_type(errors, &kind_path);
    }
    let (path, ports) = (Path::new("ports"), list(object, "ports"));
    if ports.len() > MAX_PORTS {
        errors.too_many(&path, ports.len(), MAX_PORTS);
    } else {
        slice_ports(errors, &path, ports);
    }
    if change.is_some_and(|change| change.is_same(&["endpoints"])) {
        return;
    }
    let (path, endpoints) = (Path::new("endpoints"), list(object, "endpoints"));
    if endpoints.len() > MAX_ENDPOINTS {
        errors.too_many(&path, endpoints.len(), MAX_ENDPOINTS);
        return;
    }
    for (index, found) in endpoints.iter().enumerate() {
        endpoint(errors, &path.index(index), found, kind);
    }
}

fn slice_ports(errors: &mut Errors, path: &Path<'_>, ports: &[Value]) {
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            formats::dns_label(errors, &path.child("name"), name);
        }
        if !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        match word(port, "protocol") {
            None => errors.required(&path.child("protocol"), ""),
            protocol => errors.one_of(&path.child("protocol"), protocol, &PROTOCOLS),
        }
        if let Some(protocol) = word(port, "appProtocol") {
            formats::qualified_name(errors, &path.child("appProtocol"), protocol);
        }
    }
}

fn endpoint(errors: &mut Errors, path: &Path<'_>, endpoint: &Value, kind: &str) {
    const MAX_ADDRESSES: usize = 100;
    const MAX_TOPOLOGY_LABELS: usize = 16;
    let addresses_path = path.child("addresses");
    let count = list(endpoint, "addresses").len();
    if count == 0 {
        errors.required_by_type(&addresses_path);
    } else if count > MAX_ADDRESSES {
        errors.generated(FieldError::too_many(addresses_path.to_string(), count, MAX_ADDRESSES));
    }
    for (index, found) in texts(endpoint, "addresses").enumerate() {
        of_kind(errors, &addresses_path, index, found, kind);
    }
    if let Some(node) = word(endpoint, "nodeName") {
        formats::dns_subdomain(errors, &path.child("nodeName"), node);
    }
    let topology = path.child("deprecatedTopology");
    let labels = map(endpoint, "deprecatedTopology").map_or(0, serde_json::Map::len);
    if labels > MAX_TOPOLOGY_LABELS {
        errors.too_many(&topology, labels, MAX_TOPOLOGY_LABELS);
    }
    formats::labels(errors, &topology, get(endpoint, "deprecatedTopology"));
    if let Some(host) = word(endpoint, "hostname") {
        formats::dns_label(errors, &path.child("hostname"), host);
    }
    if let Some(hints) = set(endpoint, "hints") {
        slice_hints(errors, &path.child("hints"), hints);
    }
}

fn of_kind(errors: &mut Errors, path: &Path<'_>, index: usize, address: &str, kind: &str) {
    let item = path.index(index);
    let before = errors.len();
    match kind {
        "IPv4" => addresses::ip(errors, &item, address),
        "IPv6" => addresses::canonical_ip(errors, &item, address),
        "FQDN" => return formats::full_domain_name(errors, &item, address),
        _ => return,
    }
    if errors.len() > before {
        return;
    }
    let is_of_kind = address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4() == (kind == "IPv4"));
    if !is_of_kind {
        errors.invalid_text(path, address, format!("must be an {kind} address"));
    }
    addresses::reachable(errors, &item, address);
}

fn slice_hints(errors: &mut Errors, path: &Path<'_>, hints: &Value) {
    const MAX_HINTS: usize = 8;
    for (field, wrong) in
        [("forZones", names::label_value as fn(&str) -> Vec<String>), ("forNodes", names::dns1123_subdomain)]
    {
        let (path, found) = (path.child(field), list(hints, field));
        if found.len() > MAX_HINTS {
            errors.too_many(&path, found.len(), MAX_HINTS);
            return;
        }
        let mut seen = HashSet::new();
        for (index, hint) in found.iter().enumerate() {
            let (item, name) = (path.index(index), text(hint, "name"));
            if !seen.insert(name) {
                errors.duplicate(&item.child("name"), name);
            }
            errors.all_invalid(&item.child("name"), name, wrong(name));
        }
    }
}
