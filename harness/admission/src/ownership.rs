//! Determines whether a request adds a timestamp to `metadata.managedFields`.

use kubernetes_managed_fields::{ConversionError, FieldManager, Type as ManagedType, Versions, Writer};
use kubernetes_types::schema::{self, Type};
use serde_json::{Value, json};

pub use crate::attributes::{Attributes, GroupVersionKind, Operation};

/// The precision of the timestamps in an object's managedFields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "either this request set a field or it did not")]
pub enum TimePrecision {
    /// One timestamp is new, and has fractions of a second until the object is first encoded as JSON.
    Nanos,
    /// All timestamps were read from storage, in whole seconds, or there are none.
    Seconds,
}

impl TimePrecision {
    /// Returns the precision for a request, assuming that all existing fields have an owner.
    pub fn for_request(attributes: &Attributes, built_in: bool) -> Self {
        let Some(new) = &attributes.object else { return Self::Seconds };
        let old = match (attributes.operation, &attributes.old_object) {
            (Operation::Create, _) => None,
            (Operation::Update, Some(old)) => Some(old),
            (Operation::Update | Operation::Delete | Operation::Connect, _) => return Self::Seconds,
        };
        let kind = &attributes.kind;
        let (versions, version) = (OneVersion { kind, built_in }, kind.api_version());
        let manager = FieldManager {
            versions: &versions,
            api_version: &version,
            kind: &kind.kind,
            subresource: "",
            reset_fields: &std::collections::BTreeMap::new(),
        };
        let by = |manager| Writer { manager, now: "1970-01-01T00:00:00Z" };
        let live = old.map(|old| manager.update_no_errors(None, old.clone(), &by("before")).object);
        let written = manager.update_no_errors(live.as_ref(), new.clone(), &by("now"));
        if written.is_timed { Self::Nanos } else { Self::Seconds }
    }
}

/// A schema for a kind with a single known version.
#[derive(Clone, Copy, Debug)]
pub struct OneVersion<'a> {
    /// The only kind that the schema describes.
    pub kind: &'a GroupVersionKind,
    /// Whether the kind is a built-in type; a custom resource is unstructured.
    pub built_in: bool,
}

impl Versions for OneVersion<'_> {
    type Schema = Type;

    fn root(&self, api_version: &str) -> Option<ManagedType<Type>> {
        let of = if self.built_in { Type::for_kind(self.kind) } else { Type::Free };
        (api_version == self.kind.api_version()).then(|| schema::applied(of))
    }

    fn convert(&self, _: &Value, api_version: &str) -> Result<Value, ConversionError> {
        Err(ConversionError::UnknownVersion(api_version.to_owned()))
    }

    fn empty(&self, api_version: &str) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": self.kind.kind});
        if self.built_in {
            // A kind without a Go type has no fields that are always present.
            drop(schema::normalize(&mut object, self.kind));
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::create_config_map;

    /// Returns a `ConfigMap` with the fields in `members`.
    fn config_map(mut members: Value) -> Value {
        members["apiVersion"] = "v1".into();
        members["kind"] = "ConfigMap".into();
        members
    }

    #[track_caller]
    fn check(old: &Value, new: &Value, expect: TimePrecision) {
        let attributes = Attributes {
            operation: Operation::Update,
            object: Some(config_map(new.clone())),
            old_object: Some(config_map(old.clone())),
            ..create_config_map()
        };
        assert_eq!(TimePrecision::for_request(&attributes, true), expect, "{old} to {new}");
    }

    #[test]
    fn added_and_modified_fields_have_a_time_and_removed_ones_do_not() {
        let labels = |labels: Value| json!({"metadata": {"name": "x", "labels": labels}, "data": {"k": "v"}});
        let one = labels(json!({"a": "1"}));
        check(&one, &labels(json!({"a": "1", "b": "2"})), TimePrecision::Nanos);
        check(&one, &labels(json!({"a": "2"})), TimePrecision::Nanos);
        check(&one, &one, TimePrecision::Seconds);
        check(&one, &json!({"metadata": {"name": "x"}, "data": {"k": "v"}}), TimePrecision::Seconds);
    }

    #[test]
    fn the_items_of_a_set_have_no_order() {
        let set = |list: Value| json!({"metadata": {"name": "x", "finalizers": list}, "data": {"k": "v"}});
        check(&set(json!(["a", "b"])), &set(json!(["b", "a"])), TimePrecision::Seconds);
        check(&set(json!(["a", "b"])), &set(json!(["b"])), TimePrecision::Seconds);
        check(&set(json!(["a"])), &set(json!(["a", "b"])), TimePrecision::Nanos);
    }

    #[test]
    fn fields_set_by_the_server_have_no_time() {
        let object = |metadata: Value| json!({"metadata": metadata, "data": {"k": "v"}});
        check(&object(json!({})), &object(json!({"generation": 7, "uid": "u"})), TimePrecision::Seconds);
    }

    #[test]
    fn a_new_object_has_a_time_if_it_has_fields() {
        let create = |object: Value| {
            let attributes = Attributes { object: Some(config_map(object)), ..create_config_map() };
            TimePrecision::for_request(&attributes, true)
        };
        assert_eq!(create(json!({"metadata": {"name": "x"}})), TimePrecision::Seconds);
        assert_eq!(create(json!({"metadata": {"name": "x"}, "data": {"k": "v"}})), TimePrecision::Nanos);
    }
}
