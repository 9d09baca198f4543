//! Adds a typical status to a stored object, so that a webhook that writes the status whole loses something.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::{at, set};
use kubernetes_types::schema::Type;
use serde_json::{Value, json};

/// Adds fields that a controller writes: conditions if the kind has them, or else another field.
///
/// `schema` is the schema of a custom resource.
pub(super) fn add_status(object: &mut Value, schema: Option<&Value>) {
    let kind = GroupVersionKind::from_object(object);
    let (path, value) = match (kind.kind.as_str(), schema) {
        // kube-apiserver writes or completes their conditions.
        ("APIService" | "CertificateSigningRequest" | "CustomResourceDefinition", None) => return,
        ("Pod", None) => ("hostIP".to_owned(), "192.0.2.1".into()),
        ("CronJob", None) => ("lastScheduleTime".to_owned(), "2026-01-01T00:00:00Z".into()),
        ("Ingress", None) => ("loadBalancer".to_owned(), json!({"ingress": [{"ip": "192.0.2.1"}]})),
        ("ResourceQuota", None) => ("used".to_owned(), json!({"pods": "1"})),
        (_, Some(schema)) => match of_schema(at(schema, &["properties", "status"])) {
            Some(member) => member,
            None => return,
        },
        (_, None) if has_conditions(&kind) => ("conditions".to_owned(), conditions()),
        (_, None) => return,
    };
    set(object, &["status", &path], value);
}

fn has_conditions(kind: &GroupVersionKind) -> bool {
    matches!(Type::for_kind(kind).member("status").member("conditions"), Type::Field(_))
}

fn conditions() -> Value {
    json!([{"type": "Checked", "status": "True", "reason": "Checked", "message": "checked by a controller",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}

/// Returns the first member of a custom resource's status that can have any text or number.
fn of_schema(status: &Value) -> Option<(String, Value)> {
    const LIMITS: [&str; 9] = [
        "enum",
        "pattern",
        "format",
        "maxLength",
        "minLength",
        "minimum",
        "maximum",
        "multipleOf",
        "x-kubernetes-validations",
    ];
    let members = at(status, &["properties"]).as_object()?;
    members.iter().find_map(|(name, schema)| {
        let is_free = !LIMITS.iter().any(|limit| schema.get(limit).is_some());
        let value: Value = match schema["type"].as_str().filter(|_| is_free)? {
            "string" => "checked".into(),
            "integer" => 1.into(),
            _ => return None,
        };
        Some((name.clone(), value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_has_a_field_of_the_kind() {
        let schema = json!({"properties": {"status": {"properties": {
            "phase": {"type": "string", "enum": ["Ready"]}, "url": {"type": "string"}}}}});
        for (api_version, kind, schema, expected) in [
            ("apps/v1", "Deployment", None, json!({"conditions": conditions()})),
            (
                "networking.k8s.io/v1",
                "Ingress",
                None,
                json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}),
            ),
            ("v1", "ConfigMap", None, Value::Null),
            ("apiregistration.k8s.io/v1", "APIService", None, Value::Null),
            ("example.com/v1", "Widget", Some(&schema), json!({"url": "checked"})),
        ] {
            let mut object = json!({"apiVersion": api_version, "kind": kind});
            add_status(&mut object, schema);
            assert_eq!(object.get("status").unwrap_or(&Value::Null), &expected, "{kind}");
        }
    }
}
