//! Implements `NetworkPolicy` objects.

use std::collections::HashSet;
use std::net::IpAddr;

use kubernetes_types::json;
use kubernetes_types::json::at;
use kubernetes_types::quoting::encode;
use serde_json::{Value, json};

use crate::kinds::common::cells::{Context, age_of, label_selector, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{each, ensure, fill_pointer, is_empty};
use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text, texts, word};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::common::{addresses, formats, selectors};
use crate::kinds::kind::{Changes, Kind};

/// The behavior of `NetworkPolicy` objects.
pub(crate) const KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "networkpolicies",
    kind: "NetworkPolicy",
    set_defaults: Some(set_defaults),
    next_generation: Changes::OfIntentOrEmptyFields,
    validate,
    warn: |warnings, object, _| warn_about_spec(warnings, get(object, "spec")),
    cells: Some(cells),
    ..Kind::COUNTED
};

/// Sets the defaults of a `NetworkPolicy`.
///
/// Source: kubernetes pkg/apis/networking/v1/defaults.go.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    let Some(spec) = ensure(object, "spec") else { return };
    ensure(spec, "podSelector");
    if is_empty(spec, "policyTypes") {
        let types = if is_empty(spec, "egress") { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
        json::set(spec, &["policyTypes"], types);
    }
    for rules in ["ingress", "egress"] {
        each(spec, rules, |rule| each(rule, "ports", |port| fill_pointer(port, "protocol", "TCP")));
    }
}

/// Validates a `NetworkPolicy`.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `ValidateNetworkPolicySpec`;
/// `pkg/apis/networking/v1/zz_generated.validations.go`.
/// Rule: VLO-24.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    // CIDRs in the old policy do not have to be valid.
    let known: HashSet<&str> = change.map(|change| ranges(get(change.old, "spec"))).unwrap_or_default();
    let mut missing = Vec::new();
    selectors::label_selector(errors, &path.child("podSelector"), get(spec, "podSelector"));
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = path.child(direction);
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let item = path.index(index);
            let path = item.child("ports");
            for (index, port) in list(rule, "ports").iter().enumerate() {
                policy_port(errors, &path.index(index), port);
            }
            let path = item.child(peers);
            for (index, found) in list(rule, peers).iter().enumerate() {
                let path = path.index(index);
                peer(errors, &path, found, &known);
                if set(found, "ipBlock").is_some_and(|block| text(block, "cidr").is_empty()) {
                    missing.push(path.child("ipBlock").child("cidr").to_string());
                }
            }
        }
    }
    let types = path.child("policyTypes");
    if list(spec, "policyTypes").len() > 2 {
        let shown = encode(get(spec, "policyTypes"));
        errors.invalid(&types, shown, "may not specify more than two policyTypes");
    } else {
        for (index, kind) in texts(spec, "policyTypes").enumerate() {
            errors.one_of(&types.index(index), Some(kind), &["Ingress", "Egress"]);
        }
    }
    // These errors are from generated validation.
    errors.extend(missing.into_iter().map(|field| kubernetes_types::status::FieldError::required(field, "")));
}

/// Returns the CIDRs in a network policy.
fn ranges(spec: &Value) -> HashSet<&str> {
    let rules = |direction, peers: &'static str| {
        list(spec, direction).iter().flat_map(move |rule| list(rule, peers)).map(|peer| get(peer, "ipBlock"))
    };
    rules("ingress", "from")
        .chain(rules("egress", "to"))
        .flat_map(|block| texts(block, "except").chain([text(block, "cidr")]))
        .collect()
}

fn policy_port(errors: &mut Errors, path: &Path<'_>, port: &Value) {
    errors.one_of(&path.child("protocol"), word(port, "protocol"), &["TCP", "UDP", "SCTP"]);
    let (number, end) = (set(port, "port"), int(port, "endPort"));
    let end_path = path.child("endPort");
    match number {
        None => {
            if let Some(end) = end {
                errors.invalid(&end_path, end, "may not be specified when `port` is not specified");
            }
        }
        Some(Value::String(name)) => {
            if let Some(end) = end {
                errors.invalid(&end_path, end, "may not be specified when `port` is non-numeric");
            }
            errors.all_invalid(&path.child("port"), name, formats::port_name(name));
        }
        Some(number) => {
            let number = number.as_i64().unwrap_or(0);
            formats::port(errors, &path.child("port"), number);
            if let Some(end) = end {
                if end < number {
                    errors.invalid(&end_path, end, "must be greater than or equal to `port`");
                }
                formats::port(errors, &end_path, end);
            }
        }
    }
}

fn peer(errors: &mut Errors, path: &Path<'_>, peer: &Value, known: &HashSet<&str>) {
    let mut count = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = set(peer, field) {
            count += 1;
            selectors::label_selector(errors, &path.child(field), selector);
        }
    }
    let block = set(peer, "ipBlock");
    if let Some(block) = block {
        count += 1;
        ip_block(errors, &path.child("ipBlock"), block, known);
    }
    if count == 0 {
        errors.required(path, "must specify a peer");
    } else if count > 1 && block.is_some() {
        errors.forbidden(path, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(errors: &mut Errors, path: &Path<'_>, block: &Value, known: &HashSet<&str>) {
    let range = text(block, "cidr");
    if range.is_empty() {
        return;
    }
    let mut check = |path: &Path<'_>, range: &str| {
        if !known.contains(range) {
            addresses::range(errors, path, range);
        }
    };
    check(&path.child("cidr"), range);
    let Some(outer) = bounds(range) else { return };
    let path = path.child("except");
    for (index, except) in texts(block, "except").enumerate() {
        let path = path.index(index);
        if !known.contains(except) {
            addresses::range(errors, &path, except);
        }
        let Some(inner) = bounds(except) else { continue };
        if !is_below(inner, outer) {
            errors.invalid_text(&path, except, "must be a strict subset of `cidr`");
        }
    }
}

fn bounds(range: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = range.split_once('/')?;
    Some((address.parse().ok()?, length.parse().ok()?))
}

/// Returns whether the second range contains the first range and is larger.
fn is_below((inner, inner_bits): (IpAddr, u32), (outer, outer_bits): (IpAddr, u32)) -> bool {
    let begins_alike = match (inner, outer) {
        (IpAddr::V4(inner), IpAddr::V4(outer)) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(outer_bits)).unwrap_or(0);
            inner.to_bits() & mask == outer.to_bits() & mask
        }
        (IpAddr::V6(inner), IpAddr::V6(outer)) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(outer_bits)).unwrap_or(0);
            inner.to_bits() & mask == outer.to_bits() & mask
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    };
    begins_alike && outer_bits < inner_bits
}

pub(crate) fn warn_about_spec(warnings: &mut Warnings, spec: &Value) {
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = Path::new("spec");
        let path = path.child(direction);
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let item = path.index(index);
            let path = item.child(peers);
            for (index, peer) in list(rule, peers).iter().enumerate() {
                let item = path.index(index);
                let path = item.child("ipBlock");
                let block = get(peer, "ipBlock");
                addresses::unusual_range(warnings, &path.child("cidr"), text(block, "cidr"));
                let path = path.child("except");
                for (index, except) in texts(block, "except").enumerate() {
                    addresses::unusual_range(warnings, &path.index(index), except);
                }
            }
        }
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), label_selector(at(object, &["spec", "podSelector"])), age_of(object, context)]
}
