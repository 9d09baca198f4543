//! Finds, removes, and restores the fields that an object sets to an empty list, map, or byte string.

use serde_json::Value;

use super::table::{Field, Kind, Shape};
use super::walk::Type;
use crate::group_version::GroupVersionKind;

/// The fields of an object that are set to an empty list, map, or byte string instead of being absent.
///
/// Go's types distinguish empty from absent values until the object is stored. [`super::normalize`] removes these
/// fields, as Go's JSON encoder does; [`Self::restore`] adds them again.
///
/// Fields of the object's own metadata are not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmptyFields(Vec<EmptyField>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct EmptyField {
    path: Vec<Step>,
    value: Value,
    /// Whether the field is part of a list that server-side apply treats as a single value.
    is_in_atomic_list: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Item(usize),
}

impl EmptyFields {
    /// Finds the empty fields of an object of `kind`. Must be called before the object is normalized.
    pub fn find(object: &Value, kind: &GroupVersionKind) -> Self {
        let mut found = Vec::new();
        if has_empty(object) {
            let of = Type::for_kind(kind);
            for (name, member) in object.as_object().into_iter().flatten() {
                if name != "metadata" {
                    let mut path = vec![Step::Member(name.clone())];
                    visit(member, of.member(name), Atomic::No, &mut path, &mut found);
                }
            }
        }
        Self(found)
    }

    /// Returns whether no field is set to an empty value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a field below the root's member `name` is set to an empty value.
    pub fn is_below(&self, name: &str) -> bool {
        self.0.iter().any(|field| matches!(field.path.first(), Some(Step::Member(first)) if first == name))
    }

    /// Returns the fields that are part of a list that server-side apply treats as a single value.
    ///
    /// Such lists are compared with their empty fields.
    ///
    /// Source: structured-merge-diff value/listreflect.go, `EqualsUsing`.
    #[must_use]
    pub fn in_atomic_lists(&self) -> Self {
        Self(self.0.iter().filter(|field| field.is_in_atomic_list).cloned().collect())
    }

    /// Removes the fields from `object` by normalizing it, if there are any. Empty fields are not stored.
    pub fn remove(&self, object: &mut Value, kind: &GroupVersionKind) {
        if !self.is_empty() {
            drop(super::normalize(object, kind));
        }
    }

    /// Sets the fields in `object` where they are absent and the value that contains them exists.
    pub fn restore(&self, object: &mut Value) {
        for field in &self.0 {
            if let Some(found) = field.place(object).filter(|found| found.is_null()) {
                found.clone_from(&field.value);
            }
        }
    }

    /// Sets the fields with this name in `object`, even where a default has been set.
    pub fn restore_over_defaults(&self, object: &mut Value, name: &str) {
        let is_meant =
            |field: &&EmptyField| matches!(field.path.last(), Some(Step::Member(last)) if last == name);
        for field in self.0.iter().filter(is_meant) {
            if let Some(found) = field.place(object) {
                found.clone_from(&field.value);
            }
        }
    }
}

impl EmptyField {
    /// Returns the value of the field. If the field is absent, sets it to null.
    ///
    /// Returns `None` if the value that contains the field does not exist.
    fn place<'a>(&self, object: &'a mut Value) -> Option<&'a mut Value> {
        let Some((Step::Member(last), path)) = self.path.split_last() else { return None };
        let parent = path.iter().try_fold(object, |value, step| match step {
            Step::Member(name) => value.get_mut(name),
            Step::Item(index) => value.get_mut(*index),
        });
        Some(parent?.as_object_mut()?.entry(last.clone()).or_insert(Value::Null))
    }
}

/// Whether server-side apply treats the visited value as part of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Atomic {
    No,
    Map,
    List,
}

fn visit(value: &Value, of: Type, atomic: Atomic, path: &mut Vec<Step>, found: &mut Vec<EmptyField>) {
    let is_empty = match (of, value) {
        (Type::Field(Field { shape: Shape::List, .. }), Value::Array(items)) => items.is_empty(),
        (Type::Field(Field { shape: Shape::Map, .. }), Value::Object(entries)) => entries.is_empty(),
        (Type::Field(Field { shape: Shape::Plain, kind: Kind::Bytes, .. }), Value::String(text)) => {
            text.is_empty()
        }
        _ => false,
    };
    if is_empty {
        let (path, value) = (path.clone(), value.clone());
        found.push(EmptyField { path, value, is_in_atomic_list: atomic == Atomic::List });
        return;
    }
    match value {
        Value::Array(items) => {
            let is_single = atomic != Atomic::No || of.is_atomic() || of.keys().is_none();
            let atomic = if is_single { Atomic::List } else { Atomic::No };
            for (index, item) in items.iter().enumerate() {
                path.push(Step::Item(index));
                visit(item, of.item(), atomic, path, found);
                path.pop();
            }
        }
        Value::Object(members) => {
            let atomic = if atomic == Atomic::No && of.is_atomic() { Atomic::Map } else { atomic };
            for (name, member) in members {
                path.push(Step::Member(name.clone()));
                visit(member, of.member(name), atomic, path, found);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns whether a value contains an empty value; most objects do not.
fn has_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
        Value::Object(members) => members.is_empty() || members.values().any(has_empty),
        Value::String(text) => text.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::normalize;
    use super::*;

    #[test]
    fn restored_fields_are_those_that_normalization_removes() {
        let mut object = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a", "labels": {}},
            "spec": {
                "podSelector": {"matchLabels": {}},
                "ingress": [{"ports": [], "from": [{"podSelector": {"matchLabels": {}}}]}],
                "egress": [],
                "policyTypes": ["Ingress"],
                "bogus": [],
            },
        });
        let kind = GroupVersionKind::from_object(&object);
        let fields = EmptyFields::find(&object, &kind);
        assert!(fields.is_below("spec") && !fields.is_below("metadata"));
        drop(normalize(&mut object, &kind));
        let normalized = object.clone();
        assert_eq!(EmptyFields::find(&normalized, &kind), EmptyFields::default());
        fields.in_atomic_lists().restore(&mut object);
        let rule = json!({"ports": [], "from": [{"podSelector": {"matchLabels": {}}}]});
        assert_eq!(
            object["spec"],
            json!({
                "podSelector": {}, "ingress": [rule], "policyTypes": ["Ingress"],
            })
        );
        fields.restore(&mut object);
        assert_eq!(
            object["spec"],
            json!({
                "podSelector": {"matchLabels": {}}, "ingress": [rule], "egress": [], "policyTypes": ["Ingress"],
            })
        );
        drop(normalize(&mut object, &kind));
        assert_eq!(object, normalized);
    }

    #[test]
    fn fields_without_a_place_are_not_restored() {
        let object = json!({
            "apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "env": []}], "volumes": []},
        });
        let fields = EmptyFields::find(&object, &GroupVersionKind::from_object(&object));
        let mut other = json!({"spec": {"volumes": [{"name": "v"}]}});
        fields.restore(&mut other);
        assert_eq!(other, json!({"spec": {"volumes": [{"name": "v"}]}}));
    }
}
