//! V19: what comes out is a valid object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_types::json::{at, set};
use kubernetes_types::schema::Type;
use kubernetes_types::status::StatusCause;
use serde_json::{Value, json};

use super::said::Said;
use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;
use crate::validity::{self, place, without_positions};

pub(super) const CHECK: Check = Check {
    id: "V19",
    title: "valid: what it makes decodes, is not refused by the API server, and has no key twice in a list",
    severity: Severity::Error,
    why: "Nobody looks at the object between the webhook and the server's validation, whose error names a container \
          or a volume that the user never wrote, or a rule of a custom resource. What the server takes may be wrong as \
          well: two variables or owners of one name are stored and break server-side apply; a field that the kind \
          does not have is dropped without a word, and with it whatever the webhook was installed for.",
    source: "Admission Webhook Good Practices, Ensure that mutations don't violate validations; kubernetes \
             pkg/apis/core/validation; apiextensions-apiserver pkg/registry/customresource/validator.go; API types, \
             listType and listMapKey",
    audience: Audience::Mutating,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let said = Said::of(object_probe).await?;
    let after = said.patched()?;
    let outcome = &said.outcome;
    let mut violations = Vec::new();
    match (outcome.verdict(), &outcome.object) {
        (Verdict::ServerError(status), _) => {
            let message =
                format!("its patch applies, and the server cannot read what comes out: {}", status.message);
            violations.push(Violation::new("does not decode", message));
        }
        (Verdict::Admitted, Some(made)) => {
            let refused = refused(object_probe, &outcome.request, made);
            if let (true, Some(written)) = (refused.is_empty(), &outcome.request.object) {
                violations.extend(repeated(object_probe, written, made));
            }
            violations.extend(refused);
        }
        _ => {}
    }
    violations.extend(unknown_fields(object_probe, said.object(), &after));
    Ok(violations.into_iter().map(|violation| violation.with_steps([Arc::clone(outcome)])).collect())
}

/// What the API server finds wrong with `made`, and not with the object that the user wrote.
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
        let (severity, kind) = if !known.is_empty() {
            // What was invalid before, nobody would have admitted without the webhook either.
            (Severity::Note, "refused, as before")
        } else if left_out.contains(&place) {
            (Severity::Note, "refused, in what the user left out")
        } else {
            (Severity::Error, "refused")
        };
        // What writes one member as null writes others so: one cause.
        let what = if is_null(&cause) { "null" } else { &place };
        let kind = format!("{kind}: {what}");
        if violations.iter().any(|violation| violation.kind == kind) {
            continue;
        }
        let message = format!("the API server refuses what it makes: {}: {}", cause.field, cause.message);
        violations.push(Violation::new(kind, message).with_severity(severity));
    }
    violations
}

/// Whether a schema refuses a null.
fn is_null(cause: &StatusCause) -> bool {
    cause.message.starts_with(r#"Invalid value: "null":"#)
}

/// Whether this says only that the rules were not asked, because of what the others say.
fn is_remark(cause: &StatusCause) -> bool {
    cause.field == "<nil>"
}

/// `before` with an empty object for each member that only `after` has: who leaves out the whole spec leaves out what is
/// required in it.
fn with_empty(before: &Value, after: &Value) -> Value {
    let mut filled = before.clone();
    for (name, _) in after.as_object().into_iter().flatten().filter(|(_, member)| member.is_object()) {
        if before.get(name).is_none() {
            set(&mut filled, &[name], json!({}));
        }
    }
    filled
}

/// Fields that the kind does not have, and that `before` does not have either.
fn unknown_fields(object_probe: &ObjectProbe<'_>, before: &Value, after: &Value) -> Option<Violation> {
    let unknown = |object: &Value| -> BTreeSet<String> {
        let found = object_probe.environment.cluster_fixture.unknown_fields(object).unwrap_or_default();
        found.iter().map(|path| without_positions(path)).collect()
    };
    let known = unknown(before);
    let added: Vec<String> = unknown(after).into_iter().filter(|path| !known.contains(path)).collect();
    if added.is_empty() {
        return None;
    }
    let message =
        format!("it sets fields that the kind does not have and the server drops: {}", added.join(", "));
    Some(Violation::new("sets unknown fields", message).with_severity(Severity::Warning))
}

/// Keys that are more often in a list than before, and than once. The API server stores them, and server-side apply cannot
/// tell the items apart. Those of a custom resource are refused, but for its metadata's.
fn repeated(object_probe: &ObjectProbe<'_>, before: &Value, after: &Value) -> Vec<Violation> {
    let kind = &object_probe.request.kind;
    if object_probe.environment.is_built_in(object_probe.request) {
        return more_often(before, after, Type::of_kind(kind), "");
    }
    more_often(at(before, &["metadata"]), at(after, &["metadata"]), Type::of_metadata(), "metadata")
}

fn more_often(before: &Value, after: &Value, of: Type, path: &str) -> Vec<Violation> {
    let (mut known, mut found) = (BTreeMap::new(), BTreeMap::new());
    count(before, of, path, &mut known);
    count(after, of, path, &mut found);
    let mut violations: Vec<Violation> = Vec::new();
    for (place, times) in found {
        let before = known.get(&place).copied().unwrap_or(1);
        if times > before.max(1) {
            let Place { list, field, key } = place;
            let message = format!("after its patch {list} has {field} {key} {times} times");
            let kind = format!("{list}: {field} twice");
            violations.push(Violation::new(kind, message).with_severity(Severity::Warning));
        }
    }
    violations.dedup_by(|a, b| a.kind == b.kind);
    violations
}

/// A key of a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The field without positions, such as `spec.containers.env`.
    list: String,
    /// What the key is made of, such as `name`.
    field: String,
    /// The key.
    key: String,
}

/// How often each key is in one list at most.
fn count(value: &Value, of: Type, path: &str, counts: &mut BTreeMap<Place, usize>) {
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
                    let place = Place { list: path.to_owned(), field: field.clone(), key };
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

/// The key of an item, which without fields is the item itself; none if it has nothing of it.
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
        let violations = more_often(before, after, Type::of_kind(&kind), "");
        let kinds: Vec<&str> = violations.iter().map(|violation| violation.kind.as_str()).collect();
        assert_eq!(kinds, expected, "{after}");
    }

    #[test]
    fn a_key_that_is_there_twice_is_found_wherever_the_list_is() {
        let spec = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
        let none = spec(json!({}));
        let env = |names: [&str; 2]| {
            spec(json!({"containers": [{"name": "x", "env": names.map(|name| json!({"name": name}))}]}))
        };
        check("apps/Deployment", &none, &env(["A", "A"]), &["spec.template.spec.containers.env: name twice"]);
        check("apps/Deployment", &none, &env(["A", "B"]), &[]);
        // Two containers may well have the same variable.
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
            &["spec.containers.ports: containerPort and protocol twice"],
        );
    }

    #[test]
    fn a_list_that_is_one_value_may_have_anything_twice() {
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
    fn what_the_user_has_twice_is_the_users() {
        let object = json!({"metadata": {"finalizers": ["a", "a"]}});
        check("Pod", &object, &object, &[]);
        let more = json!({"metadata": {"finalizers": ["a", "a", "a"]}});
        check("Pod", &object, &more, &["metadata.finalizers: entry twice"]);
    }
}
