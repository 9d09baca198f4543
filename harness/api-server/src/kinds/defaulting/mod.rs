//! Sets the defaults of the API server's scheme.
//!
//! Each kind's constant names the function that sets its defaults.

pub(crate) mod internal;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::schema;
use serde_json::Value;

use crate::kinds::defaulting::internal::through_internal;
use crate::kinds::table;

/// Sets the defaults that apply to the `apiVersion` and `kind` of `object`. Is idempotent.
///
/// Rule: KND-01.
pub(crate) fn set_defaults(object: &mut Value) {
    set_own_defaults(object);
    through_internal(object);
}

/// Sets defaults as [`set_defaults`] does, but does not convert the object to the internal type and back.
///
/// If a webhook patches an object, the next webhooks receive the object with these defaults but without the conversion.
pub(crate) fn set_own_defaults(object: &mut Value) {
    let meant = GroupVersionKind::from_object(object);
    // Unknown fields are not reported here.
    drop(schema::normalize(object, &meant));
    if let Some(set_defaults) = table::of_kind(&meant).and_then(|kind| kind.set_defaults) {
        set_defaults(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test cases from kube-apiserver 1.37.1.
    ///
    /// `input` is the object sent to kube-apiserver. `defaulted` is the `requestObject` of the audit event: the object
    /// after decoding and before admission.
    const CASES: &str = include_str!("cases.json");

    fn cases() -> Vec<Value> {
        serde_json::from_str(CASES).unwrap()
    }

    #[test]
    fn every_kind_is_defaulted_like_upstream() {
        for case in cases() {
            let mut object = case["input"].clone();
            set_defaults(&mut object);
            assert_eq!(object, case["defaulted"], "{object:#}");
        }
    }

    #[test]
    fn defaulting_is_idempotent() {
        for case in cases() {
            let mut object = case["defaulted"].clone();
            set_defaults(&mut object);
            assert_eq!(object, case["defaulted"], "{object:#}");
        }
    }

    #[test]
    fn every_defaulted_kind_has_a_case() {
        let cases = cases();
        for (api_version, kind) in
            table::KINDS.iter().filter(|kind| kind.set_defaults.is_some()).flat_map(|kind| {
                let api_versions = kind.versions.iter().map(|version| {
                    if kind.group.is_empty() {
                        (*version).to_owned()
                    } else {
                        format!("{}/{version}", kind.group)
                    }
                });
                api_versions.map(|api_version| (api_version, kind.kind))
            })
        {
            let of_kind =
                |case: &&Value| case["input"]["apiVersion"] == api_version && case["input"]["kind"] == kind;
            assert!(cases.iter().any(|case| of_kind(&case)), "{api_version} {kind}");
        }
    }

    #[test]
    fn malformed_objects_are_left_to_validation() {
        for case in cases() {
            for field in ["spec", "metadata", "status"] {
                for wrong in
                    [serde_json::json!(1), serde_json::json!([1]), serde_json::json!("x"), Value::Null]
                {
                    let mut object = case["input"].clone();
                    object[field] = wrong;
                    set_defaults(&mut object);
                }
            }
        }
    }

    #[test]
    fn custom_resources_get_no_built_in_defaults() {
        let mut object =
            serde_json::json!({"apiVersion": "example.com/v1", "kind": "Pod", "spec": {"containers": [{}]}});
        let before = object.clone();
        set_defaults(&mut object);
        assert_eq!(object, before);
    }
}
