//! Validates the bodies of subresources whose kind is not that of the resource.

use kubernetes_types::status::Status;
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;
use crate::kinds::scale;
use crate::subresources::{binding, token};

/// Validates the body of a subresource whose kind is not that of the resource.
///
/// # Errors
/// Returns 422 for an invalid body, or the errors of `ClusterFixture::invalid_fields`.
pub(super) fn validate(
    body: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
) -> Result<(), Box<Status>> {
    match (subresource, old) {
        ("scale", Some(old)) => scale::validate(body, old, resource),
        ("token", _) => token::validate(body),
        ("binding", _) => {
            let errors = binding::errors(body);
            if errors.is_empty() {
                return Ok(());
            }
            Err(Box::new(Status::invalid("", "Binding", metadata::text(body, "name"), &errors)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::{
        Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo,
    };
    use serde_json::json;

    use super::super::ClusterFixture;
    use super::*;

    #[test]
    fn bodies_of_subresources_are_validated() {
        let cluster_fixture = ClusterFixture::new([]);
        let check = |(group, resource, subresource): (&str, &str, &str), body: Value, expected: &[&str]| {
            let request = Attributes {
                operation: Operation::Update,
                resource: GroupVersionResource::new(group, "v1", resource),
                subresource: subresource.to_owned(),
                kind: GroupVersionKind::from_object(&body),
                namespace: "default".to_owned(),
                name: "a".to_owned(),
                old_object: Some(json!({"metadata": {"uid": "1"}})),
                object: Some(body),
                options: None,
                dry_run: false,
                user: UserInfo::default(),
            };
            let causes = cluster_fixture.invalid_fields(&request).unwrap();
            let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
            assert_eq!(fields, expected, "{causes:?}");
        };
        let scale = |replicas: i32| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}});
        check(("apps", "deployments", "scale"), scale(-1), &["spec.replicas"]);
        check(("apps", "deployments", "scale"), scale(0), &[]);
        let binding = |target: Value| json!({"apiVersion": "v1", "kind": "Binding", "target": target});
        check(("", "pods", "binding"), binding(json!({"kind": "Node"})), &["target.name"]);
        check(("", "pods", "binding"), binding(json!({"kind": "Node", "name": "node-1"})), &[]);
        let token = |seconds: i32| {
            let spec = json!({"expirationSeconds": seconds});
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
        };
        check(("", "serviceaccounts", "token"), token(1), &["spec.expirationSeconds"]);
        check(("", "serviceaccounts", "token"), token(600), &[]);
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction"});
        check(("", "pods", "eviction"), eviction, &[]);
    }
}
