//! Defines the CEL variable `request`.

use serde_json::{Map, Value, json};

pub(crate) use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource};

/// Returns the value of `request`: the `request` of a review for `kind`, as JSON, without the objects.
///
/// For match conditions, `resource` is the request's own resource, even if `kind` belongs to an equivalent resource.
///
/// Source: apiserver pkg/admission/plugin/cel/condition.go, `CreateAdmissionRequest`; api admission/v1/types.go.
/// Rule: MC-05, MC-06, POL-23.
pub(crate) fn value(
    attributes: &Attributes,
    resource: &GroupVersionResource,
    kind: &GroupVersionKind,
) -> Value {
    let mut request = Map::new();
    for (name, value) in [
        ("uid", json!("")),
        ("kind", json!(kind)),
        ("resource", json!(resource)),
        ("requestKind", json!(attributes.kind)),
        ("requestResource", json!(attributes.resource)),
        ("operation", json!(attributes.operation)),
        ("userInfo", json!(attributes.user)),
        ("object", Value::Null),
        ("oldObject", Value::Null),
        ("dryRun", json!(attributes.dry_run)),
        ("options", attributes.options.clone().unwrap_or_default()),
    ] {
        request.insert(name.to_owned(), value);
    }
    for (name, text) in [
        ("subResource", &attributes.subresource),
        ("requestSubResource", &attributes.subresource),
        ("name", &attributes.name),
        ("namespace", &attributes.namespace),
    ] {
        if !text.is_empty() {
            request.insert(name.to_owned(), json!(text));
        }
    }
    Value::Object(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::UserInfo;
    use crate::testing::create_config_map;

    #[test]
    fn kind_follows_the_review_version_and_resource_the_request() {
        let attributes = Attributes { subresource: "status".to_owned(), ..create_config_map() };
        let request =
            value(&attributes, &attributes.resource, &GroupVersionKind::new("e.com", "v2", "Thing"));
        assert_eq!(request["kind"], json!({"group": "e.com", "version": "v2", "kind": "Thing"}));
        assert_eq!(request["requestKind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
        let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
        assert_eq!((&request["resource"], &request["requestResource"]), (&resource, &resource));
        assert_eq!(
            (&request["subResource"], &request["requestSubResource"]),
            (&json!("status"), &json!("status"))
        );
    }

    #[test]
    fn empty_fields_are_omitted() {
        let attributes = Attributes {
            name: String::new(),
            namespace: String::new(),
            options: None,
            user: UserInfo::default(),
            ..create_config_map()
        };
        let request = value(&attributes, &attributes.resource, &attributes.kind);
        let members: Vec<&String> = request.as_object().unwrap().keys().collect();
        let expected = [
            "dryRun",
            "kind",
            "object",
            "oldObject",
            "operation",
            "options",
            "requestKind",
            "requestResource",
            "resource",
            "uid",
            "userInfo",
        ];
        assert_eq!(members, expected);
        assert_eq!((&request["dryRun"], &request["options"]), (&json!(false), &Value::Null));
        assert_eq!(request["userInfo"], json!({}));
    }
}
