//! Updates the status of custom resource definitions as the controllers in kube-apiserver do.
//!
//! The status contains the accepted names, whether the resource is established, and whether it is approved if its group
//! is protected.
//!
//! In kube-apiserver, these controllers watch definitions and write shortly after a request. admit makes all writes
//! before the response to the request that caused them, each with a separate `resourceVersion`. If a webhook rule
//! matches these writes, [`definition_controllers`](crate::server::definition_controllers) makes them instead.

use std::collections::HashSet;
use std::sync::Arc;

use kubernetes_types::json::{at, set, text};
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::apiextensions::approval_policy::Approval;
use crate::kinds::apiextensions::{approval_policy, definition_conversion};
use crate::kinds::discovery::custom::{GROUP, RESOURCE};
use crate::kinds::server_writes;
use crate::storage::{Key, ObjectReader as _, Storage};

/// A condition of a definition, without `lastTransitionTime`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// Updates the status of all stored definitions until no controller would make another change.
///
/// Source: apiextensions-apiserver `pkg/controller/status/naming_controller.go`,
/// `pkg/controller/establish/establishing_controller.go` and `pkg/controller/apiapproval/apiapproval_controller.go`.
/// Rule: SCH-10.
pub(crate) fn reconcile(storage: &Storage) {
    // The loop ends because each write moves the accepted names closer to the specification and no write reverts that.
    loop {
        let definitions = storage.list(GROUP, RESOURCE, "");
        let mut has_written = false;
        for stored in &definitions {
            // Other definitions may have changed, so names are compared with what is stored now.
            let Some(stored) = storage.get(GROUP, RESOURCE, "", metadata::text(stored, "name")) else {
                continue;
            };
            if let Some(next) = next(&stored, || Names::of_group(storage, text(&stored, &["spec", "group"])))
            {
                has_written |= write(storage, &stored, next);
            }
        }
        if !has_written {
            return;
        }
    }
}

/// Replaces the stored definition `stored`. Returns false if another write happened first.
pub(crate) fn write(storage: &Storage, stored: &Arc<Value>, definition: Value) -> bool {
    let key = key(metadata::text(stored, "name"));
    storage.replace(&key, Some(stored), server_writes::with_status(stored, definition)).is_ok()
}

/// Returns the storage key of the definition with this name.
pub(crate) fn key(name: &str) -> Key {
    Key::cluster_scoped(GROUP, RESOURCE, name)
}

pub(crate) fn is_true(definition: &Value, kind: &str) -> bool {
    find(definition, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Returns whether the server serves the objects of a definition.
///
/// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `ServeHTTP`.
pub(crate) fn is_served(definition: &Value) -> bool {
    is_true(definition, "NamesAccepted") || is_true(definition, "Established")
}

/// Sets a condition. `lastTransitionTime` changes only if the status changes.
///
/// Source: apiextensions-apiserver pkg/apihelpers/helpers.go, `SetCRDCondition`.
pub(crate) fn set_condition(definition: &mut Value, condition: Condition<'_>) {
    let Condition { kind, status, reason, message } = condition;
    let known = find(definition, kind);
    let since =
        known.filter(|known| known["status"] == *status).map(|known| text(known, &["lastTransitionTime"]));
    let since = since.filter(|since| !since.is_empty()).map_or_else(metadata::now, str::to_owned);
    let new = json!({
        "type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message,
    });
    let mut conditions = conditions(definition).to_vec();
    match conditions.iter_mut().find(|known| known["type"] == *kind) {
        Some(known) => *known = new,
        None => conditions.push(new),
    }
    set(definition, &["status", "conditions"], conditions);
}

fn conditions(definition: &Value) -> &[Value] {
    at(definition, &["status", "conditions"]).as_array().map(Vec::as_slice).unwrap_or_default()
}

fn find<'d>(definition: &'d Value, kind: &str) -> Option<&'d Value> {
    conditions(definition).iter().find(|condition| condition["type"] == *kind)
}

/// Returns whether a condition exists with this status, reason, and message.
fn has(definition: &Value, condition: Condition<'_>) -> bool {
    find(definition, condition.kind).is_some_and(|known| {
        let is = |field: &str, value: &str| text(known, &[field]) == value;
        is("status", condition.status) && is("reason", condition.reason) && is("message", condition.message)
    })
}

/// Returns the definition with the next change by a controller; `None` if no controller changes the definition.
fn next(definition: &Value, taken: impl FnOnce() -> Names) -> Option<Value> {
    accept_names(definition, taken).or_else(|| establish(definition)).or_else(|| approve(definition))
}

/// The names that the definitions of one group use.
#[derive(Debug, Default)]
pub(crate) struct Names {
    resources: HashSet<String>,
    kinds: HashSet<String>,
}

impl Names {
    pub(crate) fn of_group(storage: &Storage, group: &str) -> Self {
        let mut names = Self::default();
        for definition in storage.list(GROUP, RESOURCE, "") {
            if text(&definition, &["spec", "group"]) != group {
                continue;
            }
            let accepted = at(&definition, &["status", "acceptedNames"]);
            let name = |field: &str| text(accepted, &[field]).to_owned();
            names.resources.extend([name("plural"), name("singular")]);
            names.resources.extend(short_names(accepted).into_iter().map(str::to_owned));
            names.kinds.extend([name("kind"), name("listKind")]);
        }
        names
    }
}

fn short_names(names: &Value) -> Vec<&str> {
    at(names, &["shortNames"]).as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns whether two `names` objects are equal. An empty list equals an absent list.
fn same_names(one: &Value, other: &Value) -> bool {
    let list = |names: &Value, field: &str| at(names, &[field]).as_array().cloned().unwrap_or_default();
    ["plural", "singular", "kind", "listKind"]
        .iter()
        .all(|field| text(one, &[field]) == text(other, &[field]))
        && ["shortNames", "categories"].iter().all(|field| list(one, field) == list(other, field))
}

/// Accepts the names that no other definition of the group uses. Returns `None` if nothing changes.
///
/// If several names conflict, the condition `NamesAccepted` reports the last conflict.
///
/// Source: apiextensions-apiserver `pkg/controller/status/naming_controller.go`, `sync` and
/// `calculateNamesAndConditions`.
/// Rule: SCH-10.
pub(crate) fn accept_names(definition: &Value, taken: impl FnOnce() -> Names) -> Option<Value> {
    let requested = at(definition, &["spec", "names"]);
    let accepted = at(definition, &["status", "acceptedNames"]);
    if same_names(requested, accepted) {
        return None;
    }
    let taken = taken();
    let mut names = accepted.clone();
    let mut conflict: Option<(String, String)> = None;
    let mut accept = |field: &str, reason: &str, taken: &HashSet<String>| {
        let name = text(requested, &[field]);
        if name != text(accepted, &[field]) && taken.contains(name) {
            conflict = Some((reason.to_owned(), in_use(name)));
        } else {
            set(&mut names, &[field], name);
        }
    };
    accept("plural", "PluralConflict", &taken.resources);
    accept("singular", "SingularConflict", &taken.resources);
    let own = short_names(accepted);
    if at(requested, &["shortNames"]) != at(accepted, &["shortNames"]) {
        let requested = short_names(requested);
        let mut conflicts: Vec<String> = Vec::new();
        for name in requested {
            if !own.contains(&name) && taken.resources.contains(name) && !conflicts.contains(&in_use(name)) {
                conflicts.push(in_use(name));
            }
        }
        if conflicts.is_empty() {
            copy(&mut names, at(definition, &["spec", "names"]), "shortNames");
        } else {
            let message = match conflicts.as_slice() {
                [one] => one.clone(),
                several => format!("[{}]", several.join(", ")),
            };
            conflict = Some(("ShortNamesConflict".to_owned(), message));
        }
    }
    let mut accept = |field: &str, reason: &str| {
        let name = text(requested, &[field]);
        if name != text(accepted, &[field]) && taken.kinds.contains(name) {
            conflict = Some((reason.to_owned(), in_use(name)));
        } else {
            set(&mut names, &[field], name);
        }
    };
    accept("kind", "KindConflict");
    accept("listKind", "ListKindConflict");
    copy(&mut names, requested, "categories");
    let condition = match &conflict {
        Some((reason, message)) => Condition { kind: "NamesAccepted", status: "False", reason, message },
        None => Condition {
            kind: "NamesAccepted",
            status: "True",
            reason: "NoConflicts",
            message: "no conflicts found",
        },
    };
    if names == *accepted && has(definition, condition) {
        return None;
    }
    let mut next = definition.clone();
    set(&mut next, &["status", "acceptedNames"], names);
    set_condition(&mut next, condition);
    if conflict.is_none() && !is_true(definition, "Established") {
        set_condition(
            &mut next,
            Condition {
                kind: "Established",
                status: "False",
                reason: "Installing",
                message: "the initial names have been accepted",
            },
        );
    } else if find(definition, "Established").is_none() {
        set_condition(
            &mut next,
            Condition {
                kind: "Established",
                status: "False",
                reason: "NotAccepted",
                message: "not all names are accepted",
            },
        );
    }
    Some(next)
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", Value::from(name))
}

/// Copies the list `from[field]` to `names`. Removes the list from `names` if `from` does not contain it.
fn copy(names: &mut Value, from: &Value, field: &str) {
    let Some(names) = names.as_object_mut() else { return };
    match from.get(field).filter(|list| list.as_array().is_some_and(|list| !list.is_empty())) {
        Some(list) => names.insert(field.to_owned(), list.clone()),
        None => names.remove(field),
    };
}

/// Source: apiextensions-apiserver `pkg/controller/establish/establishing_controller.go`, `sync`.
/// Rule: CNV-13, SCH-10.
pub(crate) fn establish(definition: &Value) -> Option<Value> {
    if !is_true(definition, "NamesAccepted") || is_true(definition, "Established") {
        return None;
    }
    let condition = if definition_conversion::has_invalid_bundle(definition) {
        Condition {
            kind: "Established",
            status: "False",
            reason: "InvalidCABundle",
            message: "The conversion webhook CABundle is invalid",
        }
    } else {
        Condition {
            kind: "Established",
            status: "True",
            reason: "InitialNamesAccepted",
            message: "the initial names have been accepted",
        }
    };
    if has(definition, condition) {
        return None;
    }
    let mut next = definition.clone();
    set_condition(&mut next, condition);
    Some(next)
}

/// Source: apiextensions-apiserver `pkg/controller/apiapproval/apiapproval_controller.go`, `calculateCondition`.
/// Rule: SCH-13.
pub(crate) fn approve(definition: &Value) -> Option<Value> {
    let (approval, message) = approval_policy::find_approval(definition)?;
    let (status, reason) = match approval {
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    let condition =
        Condition { kind: "KubernetesAPIApprovalPolicyConformant", status, reason, message: &message };
    if has(definition, condition) {
        return None;
    }
    let mut next = definition.clone();
    set_condition(&mut next, condition);
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(names: &Value) -> Value {
        json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "names": names},
            "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": ["v1"]},
        })
    }

    fn names(plural: &str, singular: &str, kind: &str, short: &[&str]) -> Value {
        let list = format!("{kind}List");
        json!({"plural": plural, "singular": singular, "kind": kind, "listKind": list, "shortNames": short})
    }

    fn taken(resources: &[&str], kinds: &[&str]) -> Names {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names { resources: set(resources), kinds: set(kinds) }
    }

    #[track_caller]
    fn reason(definition: &Value, taken: Names) -> (String, Value) {
        let next = accept_names(definition, || taken).expect("there is a write");
        let reason = find(&next, "NamesAccepted").expect("the condition exists")["reason"].clone();
        (reason.as_str().unwrap_or_default().to_owned(), next)
    }

    #[test]
    fn names_in_use_are_not_accepted() {
        let wanted = definition(&names("widgets", "widget", "Widget", &["w", "wi"]));
        let (found, next) = reason(&wanted, taken(&["", "other"], &[""]));
        assert_eq!(found, "NoConflicts");
        assert!(same_names(&next["spec"]["names"], &next["status"]["acceptedNames"]));
        assert_eq!(find(&next, "Established").expect("the condition exists")["reason"], "Installing");
        let next = establish(&next).expect("the names are accepted");
        assert!(is_true(&next, "Established") && establish(&next).is_none());

        let (found, next) = reason(&wanted, taken(&["widget", "w", "wi"], &[]));
        assert_eq!(found, "ShortNamesConflict");
        let conditions = &next["status"]["conditions"];
        assert_eq!(conditions[0]["message"], "[\"w\" is already in use, \"wi\" is already in use]");
        assert_eq!(conditions[1]["reason"], "NotAccepted");
        assert_eq!(next["status"]["acceptedNames"]["plural"], "widgets");
        assert_eq!(next["status"]["acceptedNames"].get("singular"), None);
        assert!(establish(&next).is_none() && !is_served(&next));

        let (found, _) = reason(&wanted, taken(&["w"], &["WidgetList"]));
        assert_eq!(found, "ListKindConflict");
    }

    #[test]
    fn condition_time_changes_only_with_its_status() {
        let mut definition = definition(&names("widgets", "widget", "Widget", &[]));
        let of = |status, reason| Condition { kind: "Terminating", status, reason, message: "m" };
        set_condition(&mut definition, of("True", "A"));
        definition["status"]["conditions"][0]["lastTransitionTime"] = json!("2020-01-01T00:00:00Z");
        set_condition(&mut definition, of("True", "B"));
        assert_eq!(definition["status"]["conditions"][0]["lastTransitionTime"], "2020-01-01T00:00:00Z");
        set_condition(&mut definition, of("False", "C"));
        assert_ne!(definition["status"]["conditions"][0]["lastTransitionTime"], "2020-01-01T00:00:00Z");
        assert_eq!(definition["status"]["conditions"].as_array().map(Vec::len), Some(1));
    }
}
