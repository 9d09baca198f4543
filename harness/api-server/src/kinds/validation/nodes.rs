//! Validates Nodes, runtime classes, and leases.

use std::collections::{BTreeSet, HashSet};

use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::status::FieldError;
use kubernetes_types::{names, quantity};
use serde_json::{Value, json};

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{
    Errors, NOT_POSITIVE, Path, entries, get, int, list, set, text, texts, word,
};
use crate::kinds::common::resources::Owner;
use crate::kinds::common::{addresses, formats, resources};
use crate::kinds::validation::pod::scheduling;
use crate::kinds::validation::{networking, pod};

/// Validates a new Node.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNode`.
/// Rule: VLO-34.
pub(crate) fn node(errors: &mut Errors, object: &Value) {
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
        if let Some(found) = pod::annotations::decoded_list(errors, &path, TAINTS, value, &fields) {
            taints(errors, &path.child(TAINTS), &found);
        }
    }
    let Some(value) = word(annotations, PREFER_AVOID_PODS).filter(|value| !value.is_empty()) else { return };
    let of_error = path.child("AvoidPods");
    let Some(found) = pod::annotations::decoded(errors, &of_error, PREFER_AVOID_PODS, value) else { return };
    let path = path.child(PREFER_AVOID_PODS);
    for (index, entry) in list(&found, "preferAvoidPods").iter().enumerate() {
        let item = path.index(index);
        let path = item.child("PodSignature");
        let controller = set(get(entry, "podSignature"), "podController");
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
pub(crate) fn changed_node(errors: &mut Errors, object: &Value, change: Change<'_>) {
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

/// Validates a `RuntimeClass`.
///
/// Source: kubernetes pkg/apis/node/validation/validation.go; `pkg/apis/node/v1/zz_generated.validations.go`.
/// Rule: VLO-34.
pub(crate) fn runtime_class(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, handler) = (Path::new("handler"), text(object, "handler"));
    // Generated validation reports a change.
    let is_changed = change.is_some_and(|change| !change.is_same(&["handler"]));
    if is_changed {
        networking::stays_by_type(errors, &path);
    }
    if handler.is_empty() {
        errors.required_by_type(&path);
    } else {
        for why in names::dns1123_label(handler) {
            let error = |why| FieldError::invalid(path.to_string(), quote(handler), why);
            // In this case, generated validation reports only the change and does not replace the handwritten error.
            if is_changed {
                errors.push(error(why));
            } else {
                errors.generated(error(why.replace("63 characters", "63 bytes")));
            }
        }
    }
    if let Some(overhead) = set(object, "overhead") {
        let limits = json!({"limits": get(overhead, "podFixed")});
        let claims = BTreeSet::new();
        resources::requirements(errors, &Path::new("overhead"), &limits, Owner::Container, &claims);
    }
    if let Some(scheduling) = set(object, "scheduling") {
        let path = Path::new("scheduling");
        formats::labels(errors, &path.child("nodeSelector"), get(scheduling, "nodeSelector"));
        let path = path.child("tolerations");
        scheduling::tolerations(errors, &path, list(scheduling, "tolerations"));
    }
}

/// Validates a Lease.
///
/// Source: kubernetes pkg/apis/coordination/validation/validation.go, `ValidateLeaseSpec`.
/// Rule: VLO-34.
pub(crate) fn lease(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    if let Some(seconds) = int(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.invalid(&path.child("leaseDurationSeconds"), seconds, "must be greater than 0");
    }
    // The strategy and the preferred holder are not validated: they are dropped because coordinated leader election is
    // off.
    errors.none_negative(&path, spec, &["leaseTransitions"]);
}
