//! Implements `EndpointSlice` objects.

use std::collections::HashSet;
use std::net::IpAddr;

use kubernetes_types::json::at;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::FieldError;
use kubernetes_types::{json, names};
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, at_most, items, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{each, fill_pointer, has};
use crate::kinds::common::fields::{Errors, Path, get, list, map, set, text, texts, word};
use crate::kinds::common::warnings::{Warnings, is_managed_by};
use crate::kinds::common::{addresses, formats};
use crate::kinds::core::endpoints::{MAX_LISTED, PROTOCOLS};
use crate::kinds::kind::{Changes, Kind};

/// The behavior of `EndpointSlice` objects.
pub(crate) const KIND: Kind = Kind {
    group: "discovery.k8s.io",
    resource: "endpointslices",
    kind: "EndpointSlice",
    set_defaults: Some(set_defaults),
    prepare_create: |object| drop_topology(object, None),
    finish_update: |object, old, _| drop_topology(object, Some(old)),
    next_generation: Changes::OfIntentOr(&[&["metadata", "labels"]]),
    validate,
    warn: |warnings, object, old| warn_about_slice(warnings, object, old.is_none()),
    cells: Some(cells),
    ..Kind::COUNTED
};

/// Sets the defaults of an `EndpointSlice`.
///
/// Source: kubernetes pkg/apis/discovery/v1/defaults.go, `SetDefaults_EndpointPort`.
pub(crate) fn set_defaults(object: &mut Value) {
    each(object, "ports", |port| {
        if !has(port, "name") {
            fill_pointer(port, "name", "");
        }
        fill_pointer(port, "protocol", "TCP");
    });
}

/// Removes `deprecatedTopology`. The field is read-only in `discovery.k8s.io/v1`.
///
/// Sets `nodeName` of an endpoint from its topology if the old slice contains an endpoint with this topology.
///
/// Source: kubernetes pkg/registry/discovery/endpointslice/strategy.go, `dropTopologyOnV1`.
pub(crate) fn drop_topology(slice: &mut Value, old: Option<&Value>) {
    const HOST: &str = "kubernetes.io/hostname";
    fn topology(endpoint: &Value) -> Option<&str> {
        endpoint.get("deprecatedTopology")?.get(HOST)?.as_str()
    }
    let endpoints_of = |slice: &Value| slice.get("endpoints").and_then(Value::as_array).cloned();
    let before = old.and_then(endpoints_of).unwrap_or_default();
    if old.is_some() && endpoints_of(slice).unwrap_or_default() == before {
        return;
    }
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten();
    for endpoint in endpoints {
        let node = topology(endpoint).map(str::to_owned);
        let was_known = before.iter().any(|before| topology(before) == node.as_deref());
        let Some(members) = endpoint.as_object_mut() else { continue };
        if let Some(node) = node
            && was_known
            && !members.contains_key("nodeName")
        {
            members.insert("nodeName".to_owned(), node.into());
        }
        members.remove("deprecatedTopology");
    }
}

/// Validates an `EndpointSlice`.
///
/// Source: kubernetes pkg/apis/discovery/validation/validation.go, `ValidateEndpointSlice` and
/// `ValidateEndpointSliceUpdate`; `pkg/apis/discovery/v1/zz_generated.validations.go`.
/// Rule: VLO-31.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
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
        formats::stays_by_type(errors, &kind_path);
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

/// Warns about an `EndpointSlice`.
///
/// Source: kubernetes pkg/registry/discovery/endpointslice/strategy.go.
pub(crate) fn warn_about_slice(warnings: &mut Warnings, slice: &Value, is_new: bool) {
    if is_new && text(slice, "addressType") == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let managers = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if is_managed_by(slice, "endpointslice.kubernetes.io/managed-by", &managers) {
        return;
    }
    let path = Path::new("endpoints");
    for (index, endpoint) in list(slice, "endpoints").iter().enumerate() {
        let item = path.index(index);
        let path = item.child("addresses");
        for (index, address) in texts(endpoint, "addresses").enumerate() {
            addresses::unusual_ip(warnings, &path.index(index), address);
        }
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
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
        json::text(object, &["addressType"]),
        at_most(&ports, MAX_LISTED),
        at_most(&addresses, MAX_LISTED),
        age_of(object, context),
    ]
}
