//! V19: the result is a valid object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_api_server::UnknownField;
use kubernetes_types::json::{at, set, text};
use kubernetes_types::schema::Type;
use kubernetes_types::status::StatusCause;
use serde_json::{Value, json};

use super::webhook_response::WebhookResponse;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;
use crate::rejection;
use crate::validity::{self, is_remark, place};

pub(super) const CHECK: Check = Check {
    id: "V19",
    title: "validity: the result decodes, passes the API server's validation, and has no duplicate list keys",
    severity: Severity::Error,
    why: "The first check of the mutated object is the API server's validation, whose error names a \
          container or volume that the user never wrote, or a rule of a custom resource. An object that \
          passes can be wrong as well. Two variables or owners with one name are stored and break \
          server-side apply. A field that the kind does not have is silently dropped, together with the \
          effect of the webhook.",
    help: "Correct the field that the message names in the patch.",
    source: "Admission Webhook Good Practices, Ensure that mutations don't violate validations; kubernetes \
             pkg/apis/core/validation; apiextensions-apiserver pkg/registry/customresource/validator.go; \
             API types, \
             listType and listMapKey",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let webhook_response = WebhookResponse::to_creation(object_probe).await?;
    let after = webhook_response.patched()?;
    let outcome = &webhook_response.outcome;
    let mut violations = Vec::new();
    match (outcome.verdict(), &outcome.object) {
        (Verdict::ServerError(status), _) => {
            let message =
                format!("the patch applies, but the API server cannot decode the result: {}", status.message);
            violations.push(Violation::new("does not decode", message));
        }
        (Verdict::Admitted, Some(made)) => {
            let refused = refused(object_probe, &outcome.request, made);
            if let (true, Some(written)) = (refused.is_empty(), &outcome.request.object) {
                violations.extend(repeated(object_probe, written, made));
            }
            violations.extend(refused);
            violations.extend(priority(&outcome.request, made));
        }
        _ => {}
    }
    violations.extend(unknown_fields(object_probe, webhook_response.object(), &after));
    Ok(violations.into_iter().map(|violation| violation.with_steps([Arc::clone(outcome)])).collect())
}

/// Returns the API server's errors for `made` that do not apply to the user's object.
fn refused(object_probe: &ObjectProbe<'_>, request: &Attributes, made: &Value) -> Vec<Violation> {
    let faults = |object: &Value| -> Vec<StatusCause> {
        let mut faults = validity::faults(object_probe.environment, request, object);
        faults.retain(|cause| !is_remark(cause));
        faults
    };
    let found = faults(made);
    if found.is_empty() {
        return Vec::new();
    }
    let Some(written) = &request.object else { return Vec::new() };
    let places = |causes: Vec<StatusCause>| -> BTreeSet<String> { causes.iter().map(place).collect() };
    let known = places(faults(written));
    let left_out = places(faults(&with_empty(written, made)));
    let mut violations: Vec<Violation> = Vec::new();
    for cause in found {
        let place = place(&cause);
        if known.contains(&place) {
            continue;
        }
        let (severity, kind, meaning) = if !known.is_empty() {
            let meaning = "without the webhook's changes, it rejects the object because of other errors";
            (Severity::Note, "rejected, as before", meaning)
        } else if left_out.contains(&place) {
            let meaning = "it also rejects an object in which these fields are empty";
            (Severity::Note, "rejected, in fields that the user left out", meaning)
        } else {
            (Severity::Error, "rejected", "without the webhook's changes, it does not report this error")
        };
        // A webhook that writes one null usually writes several: they have one cause.
        let what = if is_null(&cause) { "null" } else { &place };
        let kind = format!("{kind}: {what}");
        if let Some(known) = violations.iter_mut().find(|violation| violation.kind == kind) {
            known.fields.insert(validity::without_positions(&cause.field));
            continue;
        }
        let error = format!("{}: {}", cause.field, cause.message);
        let message = rejection::message("the result", &error, meaning);
        let violation = Violation::new(kind, message).with_fields([cause.field.as_str()]);
        violations.push(violation.with_severity(severity));
    }
    violations
}

/// Reports a Pod whose priority class the webhook changes without changing the priority that the class determines.
///
/// The Priority plugin runs again after the mutating webhooks, and rejects a priority that does not match the class.
///
/// Source: kubernetes plugin/pkg/admission/priority/admission.go, `admitPod`.
fn priority(request: &Attributes, made: &Value) -> Option<Violation> {
    let is_stored = request.kind.kind == "Pod" && request.subresource.is_empty();
    let written = request.object.as_ref().filter(|_| is_stored)?;
    let [before, after] = [written, made].map(|pod| text(pod, &["spec", "priorityClassName"]));
    let priority = at(made, &["spec", "priority"]);
    if after.is_empty()
        || before == after
        || *priority != *at(written, &["spec", "priority"])
        || priority.is_null()
    {
        return None;
    }
    let message = format!(
        "the patch sets spec.priorityClassName to \"{after}\" and leaves spec.priority at {priority}: the API server \
         rejects the Pod unless the class has this value"
    );
    Some(Violation::new("rejected: spec.priorityClassName: Forbidden", message))
}

/// Returns whether the cause is a null that the schema rejects.
fn is_null(cause: &StatusCause) -> bool {
    cause.message.starts_with(r#"Invalid value: "null":"#)
}

/// Returns `before` with an empty object for each member that only `after` contains.
fn with_empty(before: &Value, after: &Value) -> Value {
    let mut filled = before.clone();
    for (name, _) in after.as_object().into_iter().flatten().filter(|(_, member)| member.is_object()) {
        if before.get(name).is_none() {
            set(&mut filled, &[name], json!({}));
        }
    }
    filled
}

/// Reports fields of `after` that neither the kind nor `before` contains.
fn unknown_fields(object_probe: &ObjectProbe<'_>, before: &Value, after: &Value) -> Option<Violation> {
    let added = object_probe.environment.cluster_fixture.added_unknown_fields(before, after);
    if added.is_empty() {
        return None;
    }
    let added: BTreeSet<String> = added.iter().map(UnknownField::without_positions).collect();
    let added: Vec<&str> = added.iter().map(String::as_str).collect();
    let message = format!(
        "the webhook sets fields that the kind does not have and the API server drops: {}",
        added.join(", ")
    );
    let violation = Violation::new("sets unknown fields", message);
    Some(violation.with_fields(added).with_severity(Severity::Warning))
}

/// Reports list keys that the webhook duplicates.
fn repeated(object_probe: &ObjectProbe<'_>, before: &Value, after: &Value) -> Vec<Violation> {
    let kind = &object_probe.request.kind;
    if object_probe.environment.is_built_in(object_probe.request) {
        return more_often(before, after, Type::for_kind(kind), "");
    }
    more_often(at(before, &["metadata"]), at(after, &["metadata"]), Type::for_metadata(), "metadata")
}

fn more_often(before: &Value, after: &Value, of: Type, path: &str) -> Vec<Violation> {
    let (mut known, mut found) = (BTreeMap::new(), BTreeMap::new());
    count(before, of, path, &mut known);
    count(after, of, path, &mut found);
    let mut violations: Vec<Violation> = Vec::new();
    for (place, times) in found {
        let before = known.get(&place).copied().unwrap_or(1);
        if times > before.max(1) {
            let ListKey { list, field, key } = place;
            let message = format!("after the patch, {list} has {field} {key} {times} times");
            let kind = format!("{list}: duplicate {field}");
            violations.push(Violation::new(kind, message).with_severity(Severity::Warning));
        }
    }
    violations.dedup_by(|a, b| a.kind == b.kind);
    violations
}

/// A key of a list item, and the list that contains the item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ListKey {
    /// The path of the list, without the positions of list items, such as `spec.containers.env`.
    list: String,
    /// The names of the fields that form the key, such as `name`.
    field: String,
    key: String,
}

/// Counts how often each key occurs in a single list, and keeps the maximum.
fn count(value: &Value, of: Type, path: &str, counts: &mut BTreeMap<ListKey, usize>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                count(member, of.member(name), &place, counts);
            }
        }
        Value::Array(items) => {
            if let Some(fields) = of.keys() {
                let mut times: BTreeMap<String, usize> = BTreeMap::new();
                for key in items.iter().filter_map(|item| key(item, fields)) {
                    *times.entry(key).or_default() += 1;
                }
                let field = if fields.is_empty() { "entry".to_owned() } else { fields.join(" and ") };
                for (key, times) in times {
                    let place = ListKey { list: path.to_owned(), field: field.clone(), key };
                    let most = counts.entry(place).or_default();
                    *most = times.max(*most);
                }
            }
            for item in items {
                count(item, of.item(), path, counts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the key of an item, or `None` if it has no key field. Without `fields`, the key is the item itself.
fn key(item: &Value, fields: &[&str]) -> Option<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if fields.is_empty() {
        return Some(text(item));
    }
    let parts: Vec<String> = fields.iter().filter_map(|field| item.get(*field)).map(text).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::GroupVersionKind;

    use super::*;

    #[track_caller]
    fn check(kind: &str, before: &Value, after: &Value, expected: &[&str]) {
        let (group, kind) = kind.rsplit_once('/').unwrap_or(("", kind));
        let kind = GroupVersionKind::new(group, "v1", kind);
        let violations = more_often(before, after, Type::for_kind(&kind), "");
        let kinds: Vec<&str> = violations.iter().map(|violation| violation.kind.as_str()).collect();
        assert_eq!(kinds, expected, "{after}");
    }

    #[test]
    fn duplicate_key_is_found_in_nested_lists() {
        let spec = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
        let none = spec(json!({}));
        let env = |names: [&str; 2]| {
            spec(json!({"containers": [{"name": "x", "env": names.map(|name| json!({"name": name}))}]}))
        };
        check(
            "apps/Deployment",
            &none,
            &env(["A", "A"]),
            &["spec.template.spec.containers.env: duplicate name"],
        );
        check("apps/Deployment", &none, &env(["A", "B"]), &[]);
        // Two containers may have the same variable.
        let both = json!({"containers": [{"name": "x", "env": [{"name": "A"}]}, {"name": "y", "env": [{"name": "A"}]}]});
        check("apps/Deployment", &none, &spec(both), &[]);
    }

    #[test]
    fn ports_differ_by_their_protocol() {
        let ports = |protocols: [&str; 2]| {
            let ports = protocols.map(|protocol| json!({"containerPort": 53, "protocol": protocol}));
            json!({"spec": {"containers": [{"name": "x", "ports": ports}]}})
        };
        check("Pod", &json!({}), &ports(["TCP", "UDP"]), &[]);
        check(
            "Pod",
            &json!({}),
            &ports(["TCP", "TCP"]),
            &["spec.containers.ports: duplicate containerPort and protocol"],
        );
    }

    #[test]
    fn atomic_list_may_have_duplicates() {
        let twice = json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "UDP"}]);
        check(
            "networking.k8s.io/NetworkPolicy",
            &json!({}),
            &json!({"spec": {"ingress": [{"ports": twice}]}}),
            &[],
        );
        let ports = json!([{"name": "a", "port": 1}, {"name": "a", "port": 1}]);
        check("Endpoints", &json!({}), &json!({"subsets": [{"ports": ports}]}), &[]);
    }

    #[test]
    fn duplicates_of_the_user_are_not_reported() {
        let object = json!({"metadata": {"finalizers": ["a", "a"]}});
        check("Pod", &object, &object, &[]);
        let more = json!({"metadata": {"finalizers": ["a", "a", "a"]}});
        check("Pod", &object, &more, &["metadata.finalizers: duplicate entry"]);
    }
}
