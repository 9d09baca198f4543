//! V19: what comes out is a valid object.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_types::json::set;
use kubernetes_types::schema;
use serde_json::{Value, json};

use super::said::Said;
use super::structure::{self, UNKNOWN_FIELD};
use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V19",
    title: "valid: what it makes decodes, has no key twice in a list, and fits the schema",
    severity: Severity::Error,
    why: "Nobody looks at the object between the webhook and the server's validation, whose error names a container \
          or a volume that the user never wrote. Two containers, volumes or mounts of one name are refused; two \
          variables or owners are stored and break server-side apply; a field that the kind does not have is dropped \
          without a word, and with it whatever the webhook was installed for.",
    source: "Admission Webhook Good Practices, Ensure that mutations don't violate validations; kubernetes \
             pkg/apis/core/validation; API types, listType and listMapKey",
    audience: Audience::Mutating,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// Lists whose items have a key, by the path of their field: what the key is made of, and how bad it is to have it twice.
/// A path that begins with a dot is the end of one. An item without the key counts not. Containers of all kinds share their
/// names. kube-apiserver refuses what is an error here, and takes the rest: of a `NetworkPolicy`'s or of `Endpoints`' ports two
/// that are alike say the same twice, and are missing here.
const LISTS: [(&str, &[&str], Severity); 21] = [
    (".volumes", &["name"], Severity::Error),
    (".volumeMounts", &["mountPath"], Severity::Error),
    (".volumeDevices", &["devicePath"], Severity::Error),
    (".containers.ports", &["name"], Severity::Error),
    (".initContainers.ports", &["name"], Severity::Error),
    (".ephemeralContainers.ports", &["name"], Severity::Error),
    (".ports", &["containerPort", "protocol"], Severity::Warning),
    // Of a Service.
    ("spec.ports", &["name"], Severity::Error),
    ("spec.ports", &["port", "protocol"], Severity::Error),
    // Of an EndpointSlice.
    ("ports", &["name"], Severity::Error),
    (".topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"], Severity::Error),
    (".resourceClaims", &["name"], Severity::Error),
    (".schedulingGates", &["name"], Severity::Error),
    (".volumeClaimTemplates", &["metadata"], Severity::Warning),
    ("subjects", &["kind", "name", "namespace"], Severity::Note),
    (".env", &["name"], Severity::Warning),
    (".imagePullSecrets", &["name"], Severity::Warning),
    (".hostAliases", &["ip"], Severity::Warning),
    (".ownerReferences", &["uid"], Severity::Warning),
    ("secrets", &["name"], Severity::Note),
    ("webhooks", &["name"], Severity::Error),
];
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let said = Said::of(object_probe).await?;
    let after = said.patched()?;
    let before = said.object();
    let mut violations = Vec::new();
    if let Verdict::ServerError(status) = said.outcome.verdict() {
        let message =
            format!("its patch applies, and the server cannot read what comes out: {}", status.message);
        violations.push(Violation::new("does not decode", message));
    }
    let is_built_in = object_probe.environment.is_built_in(object_probe.request);
    // What the lists of a custom resource are, its schema says.
    let lists = |object: &Value| {
        if is_built_in { object.clone() } else { json!({"metadata": object["metadata"]}) }
    };
    violations.extend(repeated(&lists(before), &lists(&after)));
    if is_built_in {
        let unknown = |object: &Value| schema::normalize(&mut object.clone(), &object_probe.request.kind);
        let known = unknown(before);
        let mut added: Vec<String> =
            unknown(&after).into_iter().filter(|path| !known.contains(path)).collect();
        added.dedup();
        if !added.is_empty() {
            let message = format!(
                "it sets fields that the kind does not have and the server drops: {}",
                added.join(", ")
            );
            violations.push(Violation::new("sets unknown fields", message).with_severity(Severity::Warning));
        }
    } else if let Some(schema) =
        object_probe.environment.cluster_fixture.schema_of(&object_probe.request.kind)
    {
        let known = structure::faults(&schema, before);
        // What was invalid before nobody would have admitted without the webhook either.
        let was_invalid = known.iter().any(|(what, _)| *what != UNKNOWN_FIELD);
        let left_out = structure::faults(&schema, &with_empty(before, &after));
        for (what, path) in structure::faults(&schema, &after) {
            if known.contains(&(what, path.clone())) {
                continue;
            }
            let (severity, kind) = match what {
                // The server drops it, and refuses the object for anything else.
                UNKNOWN_FIELD => (Severity::Warning, "against the schema"),
                _ if was_invalid => (Severity::Note, "against the schema, as before"),
                _ if left_out.contains(&(what, path.clone())) => {
                    (Severity::Note, "against the schema, in what the user left out")
                }
                _ => (Severity::Error, "against the schema"),
            };
            let message = format!("what it makes does not fit the schema of its definition: {what}: {path}");
            violations.push(Violation::new(format!("{kind}: {what}"), message).with_severity(severity));
        }
    }
    Ok(violations.into_iter().map(|violation| violation.with_steps([Arc::clone(&said.outcome)])).collect())
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

/// Keys that are more often in a list than before, and than once.
fn repeated(before: &Value, after: &Value) -> Vec<Violation> {
    let (mut known, mut found) = (BTreeMap::new(), BTreeMap::new());
    count(before, "", &mut known);
    count(after, "", &mut found);
    let mut violations: Vec<Violation> = Vec::new();
    for (place, (times, severity)) in found {
        let before = known.get(&place).map_or(1, |(times, _)| *times);
        if times > before.max(1) {
            let Place { list, field, key } = place;
            let message = format!("after its patch {list} has {field} {key} {times} times");
            violations
                .push(Violation::new(format!("{list}: {field} twice"), message).with_severity(severity));
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
fn count(value: &Value, path: &str, counts: &mut BTreeMap<Place, (usize, Severity)>) {
    match value {
        Value::Object(members) => {
            let names = CONTAINERS.iter().filter_map(|list| members.get(*list)?.as_array()).flatten();
            add(
                path,
                "name of a container",
                names.filter_map(|item| item["name"].as_str()),
                Severity::Error,
                counts,
            );
            for (name, member) in members {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if let Some(items) = member.as_array() {
                    let here = |list: &str| list == place || list.starts_with('.') && place.ends_with(list);
                    for (_, fields, severity) in LISTS.iter().filter(|(list, _, _)| here(list)) {
                        let keys: Vec<String> = items.iter().filter_map(|item| key(item, fields)).collect();
                        add(
                            &place,
                            &fields.join(" and "),
                            keys.iter().map(String::as_str),
                            *severity,
                            counts,
                        );
                    }
                    if name == "finalizers" {
                        add(
                            &place,
                            "entry",
                            items.iter().filter_map(Value::as_str),
                            Severity::Warning,
                            counts,
                        );
                    }
                }
                count(member, &place, counts);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| count(item, path, counts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn add<'a>(
    list: &str,
    field: &str,
    keys: impl Iterator<Item = &'a str>,
    severity: Severity,
    counts: &mut BTreeMap<Place, (usize, Severity)>,
) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for key in keys {
        *times.entry(key).or_default() += 1;
    }
    for (key, times) in times {
        let place = Place { list: list.to_owned(), field: field.to_owned(), key: key.to_owned() };
        let entry = counts.entry(place).or_insert((0, severity));
        entry.0 = entry.0.max(times);
    }
}

/// The key of an item; none if it has not all of it. A protocol that is not given is TCP.
fn key(item: &Value, fields: &[&str]) -> Option<String> {
    let part = |field: &&str| match (*field, item.get(*field)) {
        ("protocol", None) => Some("TCP".to_owned()),
        ("namespace", None) => Some(String::new()),
        ("metadata", Some(metadata)) => metadata["name"].as_str().map(str::to_owned),
        (_, Some(Value::String(text))) => Some(text.clone()),
        (_, value) => value.map(Value::to_string),
    };
    fields.iter().map(part).collect::<Option<Vec<_>>>().map(|parts| parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &Value, after: &Value, expected: &[&str]) {
        let violations = repeated(before, after);
        let kinds: Vec<&str> = violations.iter().map(|violation| violation.kind.as_str()).collect();
        assert_eq!(kinds, expected, "{after}");
    }

    #[test]
    fn a_key_that_is_there_twice_is_found_wherever_the_list_is() {
        let spec = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
        let none = spec(json!({}));
        check(
            &none,
            &spec(json!({"volumes": [{"name": "a"}, {"name": "a"}]})),
            &["spec.template.spec.volumes: name twice"],
        );
        let containers = json!({"containers": [{"name": "a"}], "initContainers": [{"name": "a"}]});
        check(&none, &spec(containers), &["spec.template.spec: name of a container twice"]);
        let env = |names: [&str; 2]| {
            spec(json!({"containers": [{"name": "x", "env": names.map(|name| json!({"name": name}))}]}))
        };
        check(&none, &env(["A", "A"]), &["spec.template.spec.containers.env: name twice"]);
        check(&none, &env(["A", "B"]), &[]);
        // Two containers may well have the same variable.
        let both = json!({"containers": [{"name": "x", "env": [{"name": "A"}]}, {"name": "y", "env": [{"name": "A"}]}]});
        check(&none, &spec(both), &[]);
    }

    #[test]
    fn ports_differ_by_their_protocol() {
        let ports = |ports: Value| json!({"spec": {"ports": ports}});
        let none = json!({});
        check(&none, &ports(json!([{"port": 53}, {"port": 53, "protocol": "UDP"}])), &[]);
        check(
            &none,
            &ports(json!([{"port": 53}, {"port": 53, "protocol": "TCP"}])),
            &["spec.ports: port and protocol twice"],
        );
    }

    #[test]
    fn ports_that_kube_apiserver_takes_twice_are_harmless() {
        let none = json!({});
        let twice = json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "UDP"}]);
        check(&none, &json!({"spec": {"ingress": [{"ports": twice}]}}), &[]);
        check(
            &none,
            &json!({"subsets": [{"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 1}]}]}),
            &[],
        );
        check(&none, &json!({"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 1}]}), &[]);
        check(
            &none,
            &json!({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}),
            &["ports: name twice"],
        );
        let containers = json!([{"name": "x", "ports": [{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]}]);
        check(&none, &json!({"spec": {"containers": containers}}), &["spec.containers.ports: name twice"]);
    }

    #[test]
    fn what_the_user_has_twice_is_the_users() {
        let object = json!({"metadata": {"finalizers": ["a", "a"]}});
        check(&object, &object, &[]);
        let more = json!({"metadata": {"finalizers": ["a", "a", "a"]}});
        check(&object, &more, &["metadata.finalizers: entry twice"]);
    }
}
