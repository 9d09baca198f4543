//! Is a patched document still an object of its built-in type?

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::attributes::GroupVersionKind;
use crate::quoting::quote;
use crate::review::decode::DecodeError;
use crate::review::fields::Fields;

/// Looks at the types of the fields that webhooks most often touch: metadata of all kinds, the data of `ConfigMap` and
/// `Secret`, the lists of a Pod's spec. A wrong type elsewhere goes unnoticed.
///
/// # Errors
/// The text of Go's decoder.
///
/// Source: apimachinery pkg/runtime/serializer/json/json.go; api core/v1/types.go.
pub(crate) fn check(object: &Map<String, Value>, kind: &GroupVersionKind) -> Result<(), String> {
    check_under(object, kind, "")
}

/// The same of an object whose fields are under `path`: nothing, or with a dot at its end, such as `items.`.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_under(
    object: &Map<String, Value>,
    kind: &GroupVersionKind,
    path: &str,
) -> Result<(), String> {
    typed(&Fields::under(object, &kind.kind, path), kind).map_err(DecodeError::into_text)
}

fn typed(fields: &Fields<'_>, kind: &GroupVersionKind) -> Result<(), DecodeError> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "ConfigMap") => {
            fields.bytes_map("binaryData")?;
            fields.string_map("data")?;
            fields.boolean("immutable")?;
        }
        ("", "Secret") => {
            fields.bytes_map("data")?;
            fields.boolean("immutable")?;
            fields.string_map("stringData")?;
            fields.string("type", "v1.SecretType")?;
        }
        _ => {}
    }
    if let Some(metadata) = fields.object("metadata", "v1.ObjectMeta", "ObjectMeta")? {
        metadata.string_map("annotations")?;
        if let Some(time) = metadata.string("creationTimestamp", "string")?
            && time.parse::<Timestamp>().is_err()
        {
            let time = quote(&time);
            return Err(DecodeError::new(format!(
                "parsing time {time} as \"2006-01-02T15:04:05Z07:00\": cannot parse {time} as \"2006\""
            )));
        }
        metadata.strings("finalizers")?;
        metadata.string("generateName", "string")?;
        metadata.string_map("labels")?;
        metadata.list("managedFields", "[]v1.ManagedFieldsEntry")?;
        metadata.string("name", "string")?;
        metadata.string("namespace", "string")?;
        metadata.list("ownerReferences", "[]v1.OwnerReference")?;
        metadata.string("resourceVersion", "string")?;
        metadata.string("uid", "types.UID")?;
    }
    let spec = fields.object("spec", &format!("{}.{}Spec", kind.version, kind.kind), "PodSpec")?;
    if let Some(spec) = spec.filter(|_| kind.group.is_empty() && kind.kind == "Pod") {
        spec.list("containers", "[]v1.Container")?;
        spec.list("imagePullSecrets", "[]v1.LocalObjectReference")?;
        spec.list("initContainers", "[]v1.Container")?;
        spec.string_map("nodeSelector")?;
        spec.string("priorityClassName", "string")?;
        spec.string("serviceAccountName", "string")?;
        spec.list("tolerations", "[]v1.Toleration")?;
        spec.list("volumes", "[]v1.Volume")?;
    }
    fields.object("status", &format!("{}.{}Status", kind.version, kind.kind), "Status")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_text(kind: &str, object: Value, expect: &str) {
        let Value::Object(object) = object else { panic!("an object is wanted") };
        let found = check(&object, &GroupVersionKind::new("", "v1", kind));
        assert_eq!(found.err().unwrap_or_default(), expect);
    }

    // The texts are those of kube-apiserver 1.37.1.
    #[test]
    fn a_wrong_type_is_named_as_in_go() {
        let unmarshal = |text: &str| format!("json: cannot unmarshal {text}");
        check_text("ConfigMap", json!({"data": {"a": "b"}, "metadata": null, "bogus": 1}), "");
        check_text(
            "ConfigMap",
            json!({"metadata": {"labels": 1}}),
            &unmarshal("number into Go struct field ObjectMeta.metadata.labels of type map[string]string"),
        );
        check_text(
            "ConfigMap",
            json!({"metadata": "x"}),
            &unmarshal("string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
        );
        check_text(
            "ConfigMap",
            json!({"data": {"k": 1}}),
            &unmarshal("number into Go struct field ConfigMap.data of type string"),
        );
        check_text("ConfigMap", json!({"binaryData": {"a": "!"}}), "illegal base64 data at input byte 0");
        check_text(
            "Pod",
            json!({"spec": {"containers": "x"}}),
            &unmarshal("string into Go struct field PodSpec.spec.containers of type []v1.Container"),
        );
    }
}
