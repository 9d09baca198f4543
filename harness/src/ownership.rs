//! Who set which field of an object.
//!
//! kube-apiserver keeps that in `metadata.managedFields`. admit keeps it beside the object, where neither clients nor
//! webhooks see it, because two answers depend on it: whether the first patch of a request is a change although it changes
//! nothing, and whether a write that comes to nothing gives a new `resourceVersion`.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use crate::attributes::{Attributes, GroupVersionKind, Operation};
use crate::schema::Type;

/// The names of members from the root of an object to a field; an item of a list is named by its keys.
type Path = Vec<String>;

/// A field, known by the hash of its path: a name may be megabytes long, and have a hundred thousand fields below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct FieldId(u64);

impl FieldId {
    /// The field `name` of this one; the root of an object is the default.
    fn member(self, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (self.0, name).hash(&mut hasher);
        Self(hasher.finish())
    }

    fn at(path: &[&str]) -> Self {
        path.iter().fold(Self::default(), |field, name| field.member(name))
    }
}

/// The fields of one object, by who set them last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owners {
    fields: BTreeMap<Manager, BTreeSet<FieldId>>,
    /// Whether one manager has a second entry, which the next write of the object loses.
    has_twin: bool,
}

/// Who sets fields, in which version of the object and through which subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    /// The `fieldManager` of the request, or what its client calls itself.
    pub(crate) name: String,
    /// The `apiVersion` of the object in the request.
    pub(crate) api_version: String,
    /// The subresource; empty for the object itself.
    pub(crate) subresource: String,
}

/// One write of an object, before admission.
#[derive(Clone, Debug)]
pub(crate) struct Write<'a> {
    /// The stored object; none if it is created.
    pub(crate) old: Option<&'a Value>,
    /// The object of the request, with its defaults.
    pub(crate) new: &'a Value,
    /// Whose request it is.
    pub(crate) by: Manager,
    /// Fields that such a request cannot set, as of the whole object.
    pub(crate) reset: &'a [&'a [&'a str]],
    /// Whether it is of a type of the server; a custom resource is free-form.
    pub(crate) built_in: bool,
}

/// The times in an object's managedFields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "either this request set a field or it did not")]
pub enum Times {
    /// One is of this request, and has fractions of a second until the object is JSON for the first time.
    Fine,
    /// All were read from the storage, in whole seconds, or there are none.
    Whole,
}

impl Times {
    /// Of a request of which nothing is known but what admission sees: somebody owns all that was there.
    pub(crate) fn of(attributes: &Attributes, built_in: bool) -> Self {
        let Some(new) = &attributes.object else { return Self::Whole };
        let (owners, old) = match (attributes.operation, &attributes.old_object) {
            (Operation::Create, _) => (Owners::default(), None),
            (Operation::Update, Some(old)) => (Owners::of(old, built_in), Some(old)),
            (Operation::Update | Operation::Delete | Operation::Connect, _) => return Self::Whole,
        };
        owners.after(&Write { old, new, by: Manager::default(), reset: &[], built_in }).1
    }
}

/// What a field takes in a set, which is half empty at the worst.
const FIELD_BYTES: usize = 2 * size_of::<FieldId>() + 8;

impl Owners {
    /// The bytes of memory that they take, not exactly.
    pub(crate) fn weight(&self) -> usize {
        let each = |(manager, fields): (&Manager, &BTreeSet<FieldId>)| {
            let texts = [&manager.name, &manager.api_version, &manager.subresource];
            let texts: usize = texts.into_iter().map(String::len).sum();
            size_of::<Manager>() + texts + fields.len() * FIELD_BYTES
        };
        self.fields.iter().map(each).sum()
    }

    /// Who owns what after a write, and what that makes of the times. Of an object in which nobody owned a field, no
    /// managedFields are kept later either.
    ///
    /// Source: apimachinery `pkg/util/managedfields/internal/{fieldmanager,skipnonapplied,managedfieldsupdater}.go`;
    /// structured-merge-diff merge/update.go, `Update`.
    pub(crate) fn after(&self, write: &Write<'_>) -> (Self, Times) {
        let mut fields = if is_reset(write.new) { BTreeMap::new() } else { self.fields.clone() };
        if fields.is_empty() && write.old.is_some() {
            return (Self::default(), Times::Whole);
        }
        let nothing = Value::Object(serde_json::Map::new());
        let mut changes = Changes { built_in: write.built_in, reset: write.reset, ..Changes::default() };
        let (mut path, root) = (Vec::new(), FieldId::default());
        let of = if write.built_in { Type::of_kind(&GroupVersionKind::of(write.new)) } else { Type::Free };
        changes.compare(&mut path, root, of, Some(write.old.unwrap_or(&nothing)), Some(write.new));
        if changes.is_unkeyed {
            return (Self::default(), Times::Whole);
        }
        for owned in fields.values_mut() {
            owned.retain(|field| !changes.removed.contains(field) && !changes.set.contains(field));
        }
        fields.retain(|_, owned| !owned.is_empty());
        let times = if changes.set.is_empty() { Times::Whole } else { Times::Fine };
        if times == Times::Fine {
            fields.entry(write.by.clone()).or_default().append(&mut changes.set);
        }
        (Self { fields, has_twin: false }, times)
    }

    /// The same for a write of its Scale. `replicas` is where the object has what the Scale has in `/spec/replicas`.
    ///
    /// Who owned the replicas loses them, because the Scale is of another version than the object; what is then stored for
    /// its writer may be a second entry of a manager that has one already.
    ///
    /// Source: apimachinery pkg/util/managedfields/scalehandler.go, `ToSubresource` and `ToParent`.
    pub(crate) fn after_scaling(&self, write: &Write<'_>, replicas: &[&str]) -> (Self, Times) {
        let replicas = FieldId::at(replicas);
        let mut fields = self.fields.clone();
        let owner = fields.iter().find(|(_, owned)| owned.contains(&replicas)).map(|(by, _)| by.clone());
        let Some(owner) = owner else { return (Self { fields, has_twin: false }, Times::Whole) };
        let of_scale = BTreeSet::from([FieldId::at(&["spec", "replicas"])]);
        let before = BTreeMap::from([(owner.clone(), of_scale.clone())]);
        let (scale, times) = Self { fields: before, has_twin: false }.after(write);
        fields.retain(|_, owned| {
            owned.remove(&replicas);
            !owned.is_empty()
        });
        let Some((by, _)) = scale.fields.into_iter().find(|(_, owned)| owned.is_superset(&of_scale)) else {
            return (Self { fields, has_twin: false }, times);
        };
        let by = Manager { api_version: owner.api_version, ..by };
        if fields.contains_key(&by) {
            return (Self { fields, has_twin: true }, times);
        }
        fields.insert(by, BTreeSet::from([replicas]));
        (Self { fields, has_twin: false }, times)
    }

    /// As if somebody had made `object` as it is.
    pub(crate) fn of(object: &Value, built_in: bool) -> Self {
        let write = Write { old: None, new: object, by: Manager::default(), reset: &[], built_in };
        Self::default().after(&write).0
    }
}

/// Whether a client takes all managedFields away.
///
/// Source: apimachinery pkg/util/managedfields/internal/fieldmanager.go, `isResetManagedFields`.
fn is_reset(object: &Value) -> bool {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    entries.is_some_and(|entries| match entries.as_slice() {
        [] => true,
        [only] => only.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    })
}

/// Fields that the server writes, or that name the object.
///
/// Source: apimachinery pkg/util/managedfields/internal/stripmeta.go.
fn is_nobodys(path: &Path) -> bool {
    match path.as_slice() {
        [] => true,
        [field] => ["apiVersion", "kind", "metadata"].contains(&field.as_str()),
        [parent, field] if parent == "metadata" => [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ]
        .contains(&field.as_str()),
        _ => false,
    }
}

/// What differs between two objects.
///
/// Source: structured-merge-diff typed/compare.go.
#[derive(Debug, Default)]
struct Changes<'a> {
    built_in: bool,
    /// Fields that do not count, with all below them.
    reset: &'a [&'a [&'a str]],
    /// Added or modified.
    set: BTreeSet<FieldId>,
    removed: BTreeSet<FieldId>,
    /// Whether an item of a list has not the keys that tell it apart: such an object loses its managedFields.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/fieldmanager.go, `UpdateNoErrors`; structured-merge-diff
    /// typed/helpers.go, `keyedAssociativeListItemToPathElement`.
    is_unkeyed: bool,
}

impl Changes<'_> {
    fn compare(
        &mut self,
        path: &mut Path,
        field: FieldId,
        of: Type,
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        // A Go struct leaves out what is empty, but for lists that it always shows.
        let is_there = |value: &&Value| !self.built_in || value.is_array() || !is_empty(value);
        let (old, new) = (old.filter(is_there), new.filter(is_there));
        self.is_unkeyed |= has_unkeyed_item(new, of);
        let parts = (parts(old, of), parts(new, of));
        match (old, new) {
            (None, None) => return,
            (None, Some(_)) => self.note_set(path, field),
            (Some(_), None) if self.is_left_out(path) => {}
            (Some(_), None) => drop(self.removed.insert(field)),
            (Some(old), Some(new)) => {
                let is_leaf = |parts: &Option<_>, value| parts.is_none() && !is_empty(value);
                let one_is = is_leaf(&parts.0, old) || is_leaf(&parts.1, new);
                if (one_is || (parts.0.is_none() && parts.1.is_none())) && old != new {
                    self.note_set(path, field);
                }
            }
        }
        let (old, new) = (parts.0.unwrap_or_default(), parts.1.unwrap_or_default());
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let (old, new) = (old.get(name).copied(), new.get(name).copied());
            let of = old.or(new).map_or(Type::Free, |part| part.of);
            // Of a custom resource the metadata alone has a Go type.
            let is_metadata = path.is_empty() && name == "metadata";
            let of = if is_metadata { Type::of_metadata() } else { of };
            path.push(name.clone());
            self.compare(
                path,
                field.member(name),
                of,
                old.map(|part| part.value),
                new.map(|part| part.value),
            );
            path.pop();
        }
    }

    fn note_set(&mut self, path: &Path, field: FieldId) {
        if !is_nobodys(path) && !self.is_left_out(path) {
            self.set.insert(field);
        }
    }

    fn is_left_out(&self, path: &Path) -> bool {
        self.reset.iter().any(|top| path.len() >= top.len() && path.iter().zip(*top).all(|(a, b)| a == b))
    }
}

/// A field of a value that is compared by its fields.
#[derive(Clone, Copy)]
struct Part<'a> {
    value: &'a Value,
    of: Type,
}

/// The fields in which `value` is compared, an item of a list by its keys; none if it is compared as one.
///
/// Source: the markers `listType`, `listMapKey`, `mapType` and `structType` of the API's types.
fn parts(value: Option<&Value>, of: Type) -> Option<BTreeMap<String, Part<'_>>> {
    match value? {
        Value::Object(members) if !members.is_empty() && !of.is_atomic() => {
            let part = |(name, value): (&String, _)| (name.clone(), Part { value, of: of.member(name) });
            Some(members.iter().map(part).collect())
        }
        Value::Array(items) if !items.is_empty() => {
            let (keys, of) = (of.keys()?, of.item());
            Some(items.iter().map(|value| (key(value, of, keys), Part { value, of })).collect())
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether `value` is a list with an item that lacks a key.
fn has_unkeyed_item(value: Option<&Value>, of: Type) -> bool {
    let (Some(Value::Array(items)), Some(keys), item) = (value, of.keys(), of.item()) else { return false };
    let is_given = |value: &Value, key: &&str| {
        let default = matches!(item.member(key), Type::Field(field) if field.default.is_some());
        default || value.get(*key).is_some_and(|key| !key.is_null())
    };
    items.iter().any(|value| !keys.iter().all(|key| is_given(value, key)))
}

/// What tells an item from the others of its list: its value, or its keys. A key that is left out has its default.
fn key(item: &Value, of: Type, keys: &[&str]) -> String {
    if keys.is_empty() {
        return item.to_string();
    }
    let text = |key: &&str| match (item.get(*key), of.member(key)) {
        (Some(value), _) => value.to_string(),
        (None, Type::Field(field)) => field.default.as_ref().map(Value::to_string).unwrap_or_default(),
        (None, _) => String::new(),
    };
    keys.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn by(name: &str) -> Manager {
        Manager { name: name.to_owned(), ..Manager::default() }
    }

    /// A `ConfigMap` with these members.
    fn config_map(mut members: Value) -> Value {
        members["apiVersion"] = "v1".into();
        members["kind"] = "ConfigMap".into();
        members
    }

    #[track_caller]
    fn check(old: &Value, new: &Value, expect: Times) {
        let (old, new) = (&config_map(old.clone()), &config_map(new.clone()));
        let write = Write { old: Some(old), new, by: by("b"), reset: &[&["status"]], built_in: true };
        assert_eq!(Owners::of(old, true).after(&write).1, expect, "{old} to {new}");
    }

    #[test]
    fn what_is_added_or_modified_has_a_time_and_what_is_removed_has_none() {
        let labels = |labels: Value| json!({"metadata": {"name": "x", "labels": labels}, "data": {"k": "v"}});
        let one = labels(json!({"a": "1"}));
        check(&one, &labels(json!({"a": "1", "b": "2"})), Times::Fine);
        check(&one, &labels(json!({"a": "2"})), Times::Fine);
        check(&one, &one, Times::Whole);
        check(&one, &labels(json!({})), Times::Whole);
        check(&one, &json!({"data": {"k": "v"}}), Times::Whole);
    }

    #[test]
    fn the_items_of_a_set_have_no_order_and_those_of_other_lists_have_one() {
        let finalizers = |list: Value| json!({"metadata": {"finalizers": list}, "spec": {"args": list}, "data": {"k": "v"}});
        let set = |list: Value| json!({"metadata": {"finalizers": list}, "data": {"k": "v"}});
        check(&set(json!(["a", "b"])), &set(json!(["b", "a"])), Times::Whole);
        check(&set(json!(["a", "b"])), &set(json!(["b"])), Times::Whole);
        check(&finalizers(json!(["a", "b"])), &finalizers(json!(["b", "a"])), Times::Fine);
    }

    #[test]
    fn what_a_request_cannot_set_is_nobodys() {
        check(&json!({"data": {"k": "v"}}), &json!({"data": {"k": "v"}, "status": {"a": 1}}), Times::Whole);
        let renamed = json!({"data": {"k": "v"}, "metadata": {"generation": 7, "uid": "u"}});
        check(&json!({"data": {"k": "v"}}), &renamed, Times::Whole);
    }

    #[test]
    fn an_object_of_which_nobody_owns_a_field_stays_so() {
        let empty = json!({"metadata": {"name": "x", "labels": {}}});
        check(&empty, &json!({"metadata": {"name": "x", "labels": {"a": "1"}}}), Times::Whole);
        // Somebody else than a client has set the label.
        let labelled = json!({"metadata": {"labels": {"a": "1"}}});
        let write = Write {
            old: Some(&labelled),
            new: &json!({"data": {"k": "v"}}),
            by: by("b"),
            reset: &[],
            built_in: true,
        };
        assert_eq!(Owners::of(&empty, true).after(&write), (Owners::default(), Times::Whole));
    }

    #[test]
    fn one_entry_that_is_empty_takes_all_owners_away() {
        for entries in [json!([]), json!([{}])] {
            let reset = json!({"metadata": {"managedFields": entries}, "data": {"k": "w"}});
            check(&json!({"data": {"k": "v"}}), &reset, Times::Whole);
        }
    }

    #[test]
    fn who_sets_a_field_takes_it_from_who_owned_it() {
        let old = json!({"data": {"k": "v"}});
        let before = Owners::of(&old, true);
        let write = |new| Write { old: Some(&old), new, by: by("b"), reset: &[], built_in: true };
        let (after, _) = before.after(&write(&json!({"data": {"k": "w"}})));
        assert_eq!(after.fields.keys().map(|by| by.name.as_str()).collect::<Vec<_>>(), ["", "b"]);
        assert_eq!(after.fields[&by("b")], BTreeSet::from([FieldId::at(&["data", "k"])]));
        assert_ne!(after, before);
    }

    #[test]
    fn a_field_costs_the_same_however_long_and_deep_its_path_is() {
        let below: serde_json::Map<String, Value> =
            (0..1000).map(|number| (number.to_string(), json!(1))).collect();
        let object = json!({"x".repeat(1_000_000): below});
        let owners = Owners::of(&object, false);
        assert_eq!(owners.fields.values().map(BTreeSet::len).collect::<Vec<_>>(), [1001]);
        assert_eq!(size_of::<FieldId>(), 8);
    }

    fn any_object() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(json!(null)), (0..3).prop_map(Value::from), "[a-c]".prop_map(Value::from)];
        let name = || prop::sample::select(vec!["metadata", "labels", "finalizers", "selector", "a"]);
        let inner = leaf.prop_recursive(3, 12, 3, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(name().prop_map(ToOwned::to_owned), inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        });
        prop::collection::btree_map(name().prop_map(ToOwned::to_owned), inner, 0..4)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn a_write_of_the_same_object_changes_no_owner(object in any_object(), built_in: bool) {
            let owners = Owners::of(&object, built_in);
            let write = Write { old: Some(&object), new: &object, by: by("b"), reset: &[], built_in };
            prop_assert_eq!(owners.after(&write), (owners.clone(), Times::Whole));
        }

        #[test]
        fn what_is_written_twice_has_a_time_once(a in any_object(), b in any_object(), built_in: bool) {
            let write = Write { old: Some(&a), new: &b, by: by("b"), reset: &[], built_in };
            let (owners, _) = Owners::of(&a, built_in).after(&write);
            let again = Write { old: Some(&b), ..write };
            prop_assert_eq!(owners.after(&again), (owners.clone(), Times::Whole));
        }
    }
}
