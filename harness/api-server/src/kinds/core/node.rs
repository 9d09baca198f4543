//! Implements Nodes.

use std::collections::{BTreeSet, HashSet};

use kubernetes_types::json::{at, set};
use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::status::FieldError;
use kubernetes_types::{json, names, quantity};
use serde_json::{Value, json};

use crate::kinds::common;
use crate::kinds::common::cells::{Context, age_of, condition, is_true, items, name, row, text_or};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{has, resource_list, with};
use crate::kinds::common::fields::{Errors, NOT_POSITIVE, Path, entries, get, int, list, text, texts, word};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::common::{addresses, disabled_fields, fields, formats, resources};
use crate::kinds::core::pod::validation;
use crate::kinds::kind::Kind;

/// The behavior of Nodes.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "nodes",
    kind: "Node",
    set_defaults: Some(set_defaults),
    through_internal: Some(through_internal),
    keeps_status: true,
    drop_disabled_fields,
    validate,
    validate_subresources: &[("status", validate_change)],
    warn,
    cells: Some(cells),
    selectable_fields: Some(&["metadata.name", "spec.unschedulable"]),
    ..Kind::PLAIN
};

/// Removes the fields of dynamic kubelet configuration, which was removed.
fn drop_disabled_fields(object: &mut Value) {
    disabled_fields::drop_all(object.get_mut("spec"), &[&["configSource"], &["podPreemptionPolicy"]]);
    disabled_fields::drop_all(object.get_mut("status"), &[&["config"]]);
}

fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    validate_node(errors, object);
    if let Some(change) = change {
        validate_change(errors, object, change);
    }
}

fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    warn_about_spec(warnings, get(object, "spec"));
}

/// Sets the defaults of a Node: `allocatable` defaults to `capacity`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_NodeStatus`.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "status", |status| {
        resource_list(status, "capacity");
        resource_list(status, "allocatable");
        if !has(status, "allocatable")
            && let Some(capacity) = status.get("capacity").cloned()
        {
            set(status, &["allocatable"], capacity);
        }
    });
}

/// Source: `Convert_v1_NodeSpec_To_core_NodeSpec` and back.
pub(crate) fn through_internal(object: &mut Value) {
    with(object, "spec", |spec| {
        let first = spec.pointer("/podCIDRs/0").and_then(Value::as_str).unwrap_or_default().to_owned();
        let singular = common::defaults::text(spec, "podCIDR").to_owned();
        if singular.is_empty() && !first.is_empty() {
            set(spec, &["podCIDR"], first);
        } else if singular != first {
            set(spec, &["podCIDRs"], json!([singular]));
        }
    });
}

/// Validates a new Node.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNode`.
/// Rule: VLO-34.
pub(crate) fn validate_node(errors: &mut Errors, object: &Value) {
    let spec = get(object, "spec");
    annotations(errors, object);
    // Upstream also reports errors in taints at a path in the metadata.
    taints(errors, &Path::new("metadata").child("taints"), list(spec, "taints"));
    amounts(errors, object);
    let swap = get(get(get(object, "status"), "nodeInfo"), "swap");
    if let Some(capacity) = int(swap, "capacity").filter(|capacity| *capacity <= 0) {
        let path = Path::new("metadata");
        errors.invalid(&path.child("nodeSwapStatus").child("capacity"), capacity, NOT_POSITIVE);
    }
    declared_features(errors, object);
    ranges(errors, &Path::new("spec").child("podCIDRs"), spec);
}

/// Validates the annotations of a Node for taints and Pods to avoid.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNodeSpecificAnnotations` and
/// `ValidateAvoidPodsInNodeAnnotations`.
fn annotations(errors: &mut Errors, object: &Value) {
    const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
    const PREFER_AVOID_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
    let metadata = Path::new("metadata");
    let path = metadata.child("annotations");
    let annotations = get(get(object, "metadata"), "annotations");
    if let Some(value) = word(annotations, TAINTS).filter(|value| !value.is_empty()) {
        let fields = ["key", "value", "effect", "timeAdded"];
        if let Some(found) = validation::annotations::decoded_list(errors, &path, TAINTS, value, &fields) {
            taints(errors, &path.child(TAINTS), &found);
        }
    }
    let Some(value) = word(annotations, PREFER_AVOID_PODS).filter(|value| !value.is_empty()) else { return };
    let of_error = path.child("AvoidPods");
    let Some(found) = validation::annotations::decoded(errors, &of_error, PREFER_AVOID_PODS, value) else {
        return;
    };
    let path = path.child(PREFER_AVOID_PODS);
    for (index, entry) in list(&found, "preferAvoidPods").iter().enumerate() {
        let item = path.index(index);
        let path = item.child("PodSignature");
        let controller = fields::set(get(entry, "podSignature"), "podController");
        match controller.map(|controller| get(controller, "controller")) {
            None => errors.required(&path, ""),
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => {
                let path = path.child("PodController");
                errors.invalid(&path.child("Controller"), false, "must point to a controller");
            }
            // kube-apiserver panics if the field is absent.
            Some(_) => errors.cannot_validate("Pods to avoid without `controller`"),
        }
    }
}

fn amounts(errors: &mut Errors, object: &Value) {
    let status = Path::new("status");
    for field in ["capacity", "allocatable"] {
        let path = status.child(field);
        for (name, value) in entries(get(object, "status"), field) {
            if let Some(value) = quantity::from_value(value) {
                resources::amount(errors, &path.child(name), name, &value);
            }
        }
    }
}

/// Validates an update of a Node.
///
/// If the update is not a status update, the caller must also validate the object as a new Node.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNodeUpdate`; pkg/registry/core/node/strategy.go.
/// Rule: VLO-34.
pub(crate) fn validate_change(errors: &mut Errors, object: &Value, change: Change<'_>) {
    let (path, spec, status) = (Path::new("spec"), get(object, "spec"), Path::new("status"));
    annotations(errors, object);
    amounts(errors, object);
    declared_features(errors, object);
    let before = get(change.old, "spec");
    let mut seen = HashSet::new();
    let addresses_path = status.child("addresses");
    for (index, address) in list(get(object, "status"), "addresses").iter().enumerate() {
        let pair = (text(address, "type"), text(address, "address"));
        if !seen.insert(pair) {
            let shown = format!("{{\"Type\":{},\"Address\":{}}}", quote(pair.0), quote(pair.1));
            errors.push(FieldError::duplicate(addresses_path.index(index).to_string(), shown));
        }
    }
    let of = |spec| -> Vec<String> { texts(spec, "podCIDRs").map(ToOwned::to_owned).collect() };
    let (new, old) = (of(spec), of(before));
    if !old.is_empty() {
        let differing = if new.len() == old.len() {
            new.iter().zip(&old).filter(|(new, old)| new != old).count()
        } else {
            1
        };
        for _ in 0..differing {
            let why = "node updates may not change podCIDR except from \"\" to valid";
            errors.forbidden(&path.child("podCIDRs"), why);
        }
    }
    let id = |spec| text(spec, "providerID");
    if !id(before).is_empty() && id(before) != id(spec) {
        let what = if id(spec).is_empty() { "cleared" } else { "modified" };
        let why = format!("field cannot be {what} once set");
        errors.invalid(&path.child("providerID"), "null", why);
    }
    taints(errors, &Path::new("metadata").child("taints"), list(spec, "taints"));
    if text(spec, "externalID") != text(before, "externalID") {
        errors.forbidden(&path.child("externalID"), "may not be updated");
    }
}

/// Validates the declared features of a Node. They must be sorted.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateNodeDeclaredFeatures`.
fn declared_features(errors: &mut Errors, object: &Value) {
    let status = Path::new("status");
    let path = status.child("declaredFeatures");
    let mut before: Option<&str> = None;
    for (index, feature) in texts(get(object, "status"), "declaredFeatures").enumerate() {
        let path = path.index(index);
        match before {
            Some(before) if before == feature => errors.duplicate(&path, feature),
            Some(before) if before > feature => {
                errors.invalid_text(&path, feature, "list must be sorted alphabetically");
            }
            Some(_) | None => {}
        }
        let why = if feature.len() > 253 {
            Some("must be no more than 253 characters")
        } else if is_feature(feature) {
            None
        } else {
            Some(
                "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or \
                 MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
            )
        };
        if let Some(why) = why {
            errors.invalid_text(&path, feature, format!("invalid feature name {}: {why}", quote(feature)));
        }
        before = Some(feature);
    }
}

fn is_feature(name: &str) -> bool {
    let is_word = |segment: &str| {
        segment.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    name.starts_with(|letter: char| letter.is_ascii_uppercase()) && name.split('/').all(is_word)
}

fn ranges(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let ranges = list(spec, "podCIDRs");
    for (index, range) in texts(spec, "podCIDRs").enumerate() {
        addresses::range(errors, &path.index(index), range);
    }
    if ranges.len() > 1 {
        let broken = texts(spec, "podCIDRs").enumerate().find(|(_, range)| !addresses::is_range(range));
        if let Some((index, range)) = broken {
            let why = format!(
                "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid \
                 CIDR address: {range})"
            );
            errors.push(FieldError::internal(path.to_string(), why));
        }
        let families: BTreeSet<bool> = texts(spec, "podCIDRs").map(|range| range.contains(':')).collect();
        if families.len() < 2 || ranges.len() > 2 {
            let why = "may specify no more than one CIDR for each IP family";
            errors.invalid(path, encode(get(spec, "podCIDRs")), why);
        }
    }
}

/// Validates the taints of a Node.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateNodeTaints`.
fn taints(errors: &mut Errors, path: &Path<'_>, taints: &[Value]) {
    let mut seen = HashSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        formats::qualified_name(errors, &path.child("key"), key);
        let wrong = names::label_value(value);
        if !wrong.is_empty() {
            errors.invalid_text(&path.child("value"), value, wrong.join(";"));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.required_one_of(&path.child("effect"), effect, &effects);
        if !seen.insert((key, effect)) {
            let time = encode(get(taint, "timeAdded"));
            let shown = format!(
                "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{time}}}",
                quote(key),
                quote(value),
                quote(effect)
            );
            let mut error = FieldError::duplicate(path.to_string(), shown);
            error.detail = format!("{}: taints must be unique by key and effect pair", error.detail);
            errors.push(error);
        }
    }
}

/// Warns about a Node.
///
/// Source: kubernetes pkg/registry/core/node/strategy.go, `nodeWarnings`.
pub(crate) fn warn_about_spec(warnings: &mut Warnings, spec: &Value) {
    if !text(spec, "externalID").is_empty() {
        let message = "this field is deprecated, and is unused by Kubernetes";
        warnings.push(format!("spec.externalID: {message}"));
    }
    let path = Path::new("spec");
    let path = path.child("podCIDRs");
    for (index, range) in texts(spec, "podCIDRs").enumerate() {
        addresses::unusual_range(warnings, &path.index(index), range);
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    // The last condition of a type wins.
    let conditions = items(object, &["status", "conditions"]).iter().rev();
    let mut ready = conditions.filter(|condition| json::text(condition, &["type"]) == "Ready");
    let status = match ready.next().map(|condition| json::text(condition, &["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let disabled = if is_true(object, &["spec", "unschedulable"]) { ",SchedulingDisabled" } else { "" };
    let roles: BTreeSet<&str> = at(object, &["metadata", "labels"])
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            None if key == "kubernetes.io/role" => value.as_str(),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    let addresses = items(object, &["status", "addresses"]);
    let address =
        |kind| condition(addresses, kind).map_or("<none>", |address| json::text(address, &["address"]));
    let info = at(object, &["status", "nodeInfo"]);
    let known = |field| text_or(info, &[field], "<unknown>");
    let architecture = match json::text(info, &["architecture"]) {
        "" => String::new(),
        architecture => format!(" ({architecture})"),
    };
    row![
        name(object),
        format!("{status}{disabled}"),
        if roles.is_empty() { "<none>".to_owned() } else { roles },
        age_of(object, context),
        json::text(info, &["kubeletVersion"]),
        address("InternalIP"),
        address("ExternalIP"),
        known("osImage"),
        format!("{}{architecture}", known("kernelVersion")),
        known("containerRuntimeVersion"),
    ]
}
