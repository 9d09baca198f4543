//! Tests which fields of an object are unknown.

use serde_json::{Value, json};

use super::ClusterFixture;

#[test]
fn only_fields_that_the_change_adds_and_the_kind_lacks_are_unknown() {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "replicas": {"type": "integer"},
                    "parts": {"type": "array", "items": {
                        "type": "object", "properties": {"image": {"type": "string"}},
                    }},
                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "by": {"type": "object", "additionalProperties": {"type": "string"}},
                }}},
            }}}],
        },
    });
    let fixture = ClusterFixture::new([&definition]);
    let check = |before: &Value, after: &Value, expected: &[(&str, &str)]| {
        let found = fixture.added_unknown_fields(before, after);
        let paths: Vec<&str> = found.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, expected.iter().map(|(path, _)| *path).collect::<Vec<_>>(), "{after}");
        for (field, (_, known)) in found.iter().zip(expected) {
            assert!(known.is_empty() || field.known.iter().any(|name| name == known), "{field:?}");
        }
    };
    let pod =
        |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
    let plain = pod(json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    let misspelled = pod(json!({
        "containers": [{"name": "a", "imag": "x"}, {"name": "b", "imag": "x"}], "priorityClas": "high",
    }));
    check(&plain, &plain, &[]);
    let expected = [("spec.containers[0].imag", "image"), ("spec.priorityClas", "priorityClassName")];
    check(&plain, &misspelled, &expected);
    // The field moves to another item.
    let moved = pod(json!({"containers": [{"name": "a"}, {"name": "b", "imag": "x"}], "priorityClas": 1}));
    check(&misspelled, &moved, &[]);

    let widget = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec});
    let none = widget(json!({}));
    check(&none, &widget(json!({"any": {"x": 1}, "by": {"x": "1"}, "parts": [{"image": "x"}]})), &[]);
    let expected = [("spec.parts[0].imag", "image"), ("spec.replica", "replicas")];
    check(&none, &widget(json!({"parts": [{"imag": "x"}], "replica": 1})), &expected);
    // The server keeps the fields of a kind that has no definition.
    let unknown =
        json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}, "b": 1});
    check(&none, &unknown, &[]);
}
