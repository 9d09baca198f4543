//! Applies strategic merge patches. They match list items by their merge keys.
//!
//! Source: apimachinery pkg/util/strategicpatch/patch.go, `StrategicMergeMapPatch`; pkg/util/mergepatch/errors.go.

use std::collections::{HashMap, HashSet};

use kubernetes_types::quoting::{go_type, go_type_as_string, printed, printed_as_string, quote};
use kubernetes_types::schema::{Field, Form, Kind, MESSAGES, Message, PatchStrategy, Shape};
use serde_json::{Map, Value};

use super::strategic_order::{DIRECTIVE, is_directed, is_scalar, keyed, normalized, object, partitioned};
use super::strategic_values::{distinct, without_directives, without_nulls};
pub use crate::attributes::GroupVersionKind;

/// The directive that lists which keys of an object to keep.
const RETAIN_KEYS: &str = "$retainKeys";
/// The prefix of a directive for values to delete from a list; the name of the list follows a slash.
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
/// The prefix of a directive for the order of a list; the name of the list follows a slash.
const SET_ORDER: &str = "$setElementOrder";

/// The reason why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategicError {
    /// A directive is malformed.
    #[error("{0}")]
    Malformed(&'static str),
    /// The patch requests an operation that strategic merge patches do not support.
    #[error("{0}")]
    Unprocessable(&'static str),
    /// Any other error. kube-apiserver reports it as an internal error.
    #[error("{0}")]
    Other(String),
    /// admit does not support the patch: kube-apiserver panics, or its result depends on Go's sort algorithm.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// The maximum number of item pairs to compare for one list.
const MAX_COMPARED_PAIRS: usize = 1_000_000;

/// The error for a patch that makes Go panic because it compares lists or objects.
pub(super) const NOT_COMPARABLE: StrategicError =
    StrategicError::Unsupported("a strategic merge patch that compares lists or objects");

type Result<T> = std::result::Result<T, StrategicError>;
type Object = Map<String, Value>;

const WRONG_DELETE_LIST: StrategicError = StrategicError::Malformed("invalid patch format of primitive list");
const WRONG_RETAIN_KEYS: StrategicError = StrategicError::Malformed("invalid patch format of retainKeys");
const WRONG_ORDER: StrategicError = StrategicError::Malformed("invalid patch format of setElementOrder list");

/// Applies `patch` to `object`. The type of `object` is the built-in `kind`.
///
/// # Errors
/// Returns [`StrategicError`] if kube-apiserver rejects the patch, or if admit does not support it.
pub fn apply(object: &Value, patch: &Object, kind: &GroupVersionKind) -> Result<Value> {
    let Some(message) = MESSAGES.of_kind(kind) else {
        return Err(StrategicError::Unsupported("a strategic merge patch of a kind without a Go type"));
    };
    let original = object.as_object().cloned().unwrap_or_default();
    merge(original, patch.clone(), Type::Struct(MESSAGES.get(message))).map(Value::Object)
}

/// The Go type of a value.
#[derive(Clone, Copy)]
enum Type {
    Struct(&'static Message),
    Map,
    /// A type without fields: a list of scalars, or a type with its own JSON encoding.
    Other,
}

impl Type {
    /// Returns the field that Go decodes the member `name` into.
    ///
    /// Source: apimachinery `third_party/forked/golang/json/fields.go`, `LookupPatchMetadataForStruct`.
    fn field(self, name: &str) -> Result<&'static Field> {
        let message = match self {
            Self::Struct(message) => message,
            Self::Map => return Err(no_struct("map")),
            Self::Other => return Err(no_struct("string")),
        };
        let found = match message.form {
            Form::Object => message.member(name).or_else(|| {
                message.members().iter().find(|field| field.name.eq_ignore_ascii_case(name)).copied()
            }),
            Form::Value => None,
        };
        found.ok_or_else(|| {
            let (message, name) = (&message.name, quote(name));
            StrategicError::Other(format!(
                "unable to find api field in struct {message} for the json field {name}"
            ))
        })
    }

    /// Returns the field `name`, or an error if the field is not a list.
    fn list(self, name: &str) -> Result<&'static Field> {
        let field = self.field(name)?;
        match field.shape {
            Shape::List => Ok(field),
            Shape::Plain | Shape::Optional | Shape::Map => {
                Err(StrategicError::Other("expected slice or array type, but got: struct".to_owned()))
            }
        }
    }

    /// Returns the type of a field's value or, for a list, the type of its items.
    fn for_field(field: &Field) -> Self {
        match (field.shape, field.kind) {
            (Shape::Map, _) => Self::Map,
            (Shape::Plain | Shape::Optional | Shape::List, Kind::Message(id)) => {
                Self::Struct(MESSAGES.get(id))
            }
            (Shape::Plain | Shape::Optional | Shape::List, _) => Self::Other,
        }
    }
}

fn no_struct(kind: &str) -> StrategicError {
    StrategicError::Other(format!(
        "merging an object in json but data type is not struct, instead is: {kind}"
    ))
}

/// Merges the object `patch` into the object `original`.
///
/// Source: `mergeMap`.
fn merge(mut original: Object, mut patch: Object, of: Type) -> Result<Object> {
    match patch.get(DIRECTIVE) {
        None => {}
        Some(directive) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(directive) if directive == "delete" => return Ok(Object::new()),
        Some(directive) => return Err(unknown_directive(directive, &patch)),
    }
    retain_keys(&mut original, &mut patch)?;
    order_lists(&mut original, &mut patch, of)?;
    for (key, value) in patch {
        let (key, deletes) = match key.strip_prefix(DELETE_FROM_LIST) {
            Some(rest) => (rest.strip_prefix('/').ok_or(WRONG_DELETE_LIST)?.to_owned(), true),
            None => (key, false),
        };
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        let present = original.get_mut(&key).filter(|present| go_type(present) == go_type(&value));
        let merged = match (present.map(Value::take), value) {
            (Some(Value::Object(present)), Value::Object(patch)) => {
                let field = of.field(&key)?;
                Some(Value::Object(match field.patch {
                    PatchStrategy::Replace => patch,
                    PatchStrategy::Usual | PatchStrategy::Merge(_) => {
                        merge(present, patch, Type::for_field(field))?
                    }
                }))
            }
            (Some(Value::Array(present)), Value::Array(patch)) => {
                let field = of.list(&key)?;
                Some(Value::Array(merge_lists(present, patch, field, deletes)?))
            }
            // Nothing can be deleted from a value that is not a list.
            (None, _) if deletes => original.remove(&key),
            (_, value) => without_directives(without_nulls(value)),
        };
        match merged {
            Some(merged) => original.insert(key, merged),
            None => original.remove(&key),
        };
    }
    Ok(original)
}

/// Merges the list `patch` into the list `original`.
///
/// Source: `mergeSliceHandler`.
fn merge_lists(original: Vec<Value>, patch: Vec<Value>, field: &Field, deletes: bool) -> Result<Vec<Value>> {
    let key = match &field.patch {
        PatchStrategy::Merge(key) => key.as_str(),
        PatchStrategy::Usual | PatchStrategy::Replace if deletes => "",
        PatchStrategy::Usual | PatchStrategy::Replace => return Ok(patch),
    };
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if !are_objects(&[&original, &patch])? {
        let of_patch: HashSet<&Value> = patch.iter().collect();
        if deletes {
            return Ok(original.into_iter().filter(|item| !of_patch.contains(item)).collect());
        }
        let merged = distinct([original.clone(), patch.clone()].concat());
        if !key.is_empty() {
            merged.iter().try_for_each(object)?;
        }
        let (ours, theirs) = merged.into_iter().partition(|item| of_patch.contains(item));
        return normalized(ours, theirs, &patch, &original, None);
    }
    if key.is_empty() {
        return Err(StrategicError::Other("cannot merge lists without merge key for struct".to_owned()));
    }
    let (original, patch) = after_directives(original, patch, key)?;
    let mut merged = original.clone();
    let mut places: HashMap<&Value, usize> = HashMap::new();
    for (place, present) in original.iter().enumerate() {
        if let Some(value) = present.get(key) {
            places.entry(value).or_insert(place);
        }
    }
    for item in &patch {
        let wanted = keyed(item, key)?;
        let Value::Object(item) = item else { continue };
        let place = *places.entry(wanted).or_insert(merged.len());
        match merged.get_mut(place) {
            Some(place) => {
                let present = place.as_object_mut().map(std::mem::take).unwrap_or_default();
                *place = Value::Object(merge(present, item.clone(), Type::for_field(field))?);
                // Merging a null removes the key.
                if wanted.is_null() {
                    places.remove(wanted);
                }
            }
            None => merged.push(Value::Object(item.clone())),
        }
    }
    let (ours, theirs) = partitioned(merged, &patch, key)?;
    normalized(ours, theirs, &patch, &original, Some(key))
}

/// Applies the directives in the patch's items. Returns the remaining original items and the remaining patch items.
///
/// Source: `mergeSliceWithSpecialElements`.
fn after_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut rest = Vec::with_capacity(patch.len());
    let mut deleted = HashSet::new();
    let mut replaces = false;
    for item in patch {
        match item.get(DIRECTIVE) {
            None => rest.push(item),
            Some(directive) if directive == "delete" => {
                deleted.insert(keyed(&item, key)?.clone());
            }
            Some(directive) if directive == "replace" => replaces = true,
            Some(directive) if directive == "merge" => {
                let why = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Other(why.to_owned()));
            }
            Some(directive) => {
                return Err(unknown_directive(directive, item.as_object().unwrap_or(&Object::new())));
            }
        }
    }
    original.retain(|present| present.get(key).is_none_or(|value| !deleted.contains(value)));
    Ok(if replaces { (rest, Vec::new()) } else { (original, rest) })
}

/// Applies the `$retainKeys` directive: removes all other keys from `original`.
///
/// Source: `applyRetainKeysDirective`.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<()> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keys) = keys else { return Err(WRONG_RETAIN_KEYS) };
    scalars(&keys)?;
    let kept: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_kept = |key: &str| kept.contains(key);
    let is_directive = |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(SET_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !is_directive(key) && !is_kept(key)) {
        return Err(WRONG_RETAIN_KEYS);
    }
    original.retain(|key, _| is_kept(key));
    Ok(())
}

/// Merges the lists for which the patch specifies an order, and removes them from the patch.
///
/// Source: `mergePatchIntoOriginal`.
fn order_lists(original: &mut Object, patch: &mut Object, of: Type) -> Result<()> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let order = list(patch.remove(&directive).unwrap_or_default())?;
        let name =
            directive.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/')).ok_or(WRONG_ORDER)?;
        let present = original.get(name).cloned().map(list).transpose()?;
        let given = patch.get(name).cloned().map(list).transpose()?;
        let field = of.list(name)?;
        let key = match &field.patch {
            PatchStrategy::Merge(key) => key.as_str(),
            PatchStrategy::Usual | PatchStrategy::Replace => "",
        };
        check_order(given.as_deref().unwrap_or_default(), &order, key)?;
        let server =
            overwritten(present.as_deref().unwrap_or_default(), given.as_deref().unwrap_or_default(), key)?;
        let merged = match (present, &given) {
            (None, None) => continue,
            (Some(present), None) => present,
            (None, Some(given)) => given.iter().cloned().filter_map(without_directives).collect(),
            (Some(present), Some(given)) => merge_lists(present, given.clone(), field, false)?,
        };
        let (ours, theirs) = if key.is_empty() {
            scalars(merged.iter().chain(&order))?;
            let known: HashSet<&Value> = order.iter().collect();
            merged.into_iter().partition(|item| known.contains(item))
        } else {
            partitioned(merged, &order, key)?
        };
        let are_objects = are_objects(&[&server, given.as_deref().unwrap_or_default()])?;
        let ordered = normalized(ours, theirs, &order, &server, are_objects.then_some(key))?;
        original.insert(name.to_owned(), Value::Array(ordered));
        patch.remove(name);
    }
    Ok(())
}

/// Returns the content of Go's array for a list after the merge, including the items that the merge overwrites.
///
/// Deleting an item overwrites it with the items after it, and new items use the freed slots.
///
/// Source: `deleteMatchingEntries`; `mergeSliceWithoutSpecialElements`.
fn overwritten(present: &[Value], patch: &[Value], key: &str) -> Result<Vec<Value>> {
    let mut array = present.to_vec();
    if key.is_empty() || patch.iter().all(|item| item.get(DIRECTIVE).is_none()) {
        return Ok(array);
    }
    if array.len().saturating_mul(patch.len()) > MAX_COMPARED_PAIRS {
        return Err(StrategicError::Unsupported("$setElementOrder of very long lists"));
    }
    let mut length = array.len();
    let place_of = |array: &[Value], length: usize, wanted: Option<&Value>| {
        array.iter().take(length).position(|item| wanted.is_some() && item.get(key) == wanted)
    };
    for item in patch.iter().filter(|item| is_directed(item, "delete")) {
        while let Some(place) = place_of(&array, length, item.get(key)) {
            let last = array.get(length - 1).cloned();
            array.remove(place);
            length -= 1;
            array.insert(length, last.unwrap_or_default());
        }
    }
    if patch.iter().any(|item| is_directed(item, "replace")) {
        return Ok(array);
    }
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        if place_of(&array, length, item.get(key)).is_some() {
            continue;
        }
        // Without a free slot, Go allocates another array.
        let Some(room) = array.get_mut(length) else { break };
        *room = item.clone();
        length += 1;
    }
    Ok(array)
}

/// Checks that the patch's items, except for deleted items, appear in `order` in the same sequence.
///
/// Source: `validatePatchWithSetOrderList`.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if !key.is_empty() {
        patch.iter().try_for_each(object)?;
    }
    let stays = |item: &&Value| key.is_empty() || !is_directed(item, "delete");
    let items: Vec<&Value> = patch.iter().filter(stays).collect();
    let (mut items, mut places) = (items.as_slice(), order);
    while let ([item, other_items @ ..], [place, other_places @ ..]) = (items, places) {
        if item.get(DIRECTIVE).is_some() {
            items = other_items;
            continue;
        }
        if are_same(item, place, key)? {
            items = other_items;
        }
        places = other_places;
    }
    if items.is_empty() {
        return Ok(());
    }
    let (patch, order) = (printed(&patch.into()), printed(&order.into()));
    Err(StrategicError::Other(format!(
        "The order in patch list:\n{patch}\n doesn't match {SET_ORDER} list:\n{order}\n"
    )))
}

/// Returns whether two items have the same merge key or, if the list does not have a merge key, are equal.
///
/// Source: `mergeKeyValueEqual`.
fn are_same(item: &Value, other: &Value, key: &str) -> Result<bool> {
    if !key.is_empty() {
        object(item)?;
        object(other)?;
        return Ok(keyed(item, key)? == keyed(other, key)?);
    }
    if !is_scalar(item) && go_type(item) == go_type(other) {
        return Err(NOT_COMPARABLE);
    }
    Ok(item == other)
}

/// Checks that each of the `values` can be a map key in Go. Lists and objects cannot be map keys.
fn scalars<'a>(values: impl IntoIterator<Item = &'a Value>) -> Result<()> {
    if values.into_iter().all(is_scalar) { Ok(()) } else { Err(NOT_COMPARABLE) }
}

fn list(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(items) => Ok(items),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            let found = go_type_as_string(&other);
            Err(StrategicError::Other(format!("expected a []interface {{}}, but received a {found}")))
        }
    }
}

/// Returns whether all items in `lists` are objects. Items of different types are an error.
///
/// Source: `sliceElementType`.
fn are_objects(lists: &[&[Value]]) -> Result<bool> {
    let mut items = lists.iter().copied().flatten();
    let Some(first) = items.next() else {
        return Err(StrategicError::Other("no elements in any of the given slices".to_owned()));
    };
    match first {
        Value::Null => return Err(StrategicError::Unsupported("a list of nulls in a strategic merge patch")),
        Value::Array(_) => return Err(StrategicError::Unprocessable("lists of lists are not supported")),
        Value::Object(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    if items.any(|item| go_type(item) != go_type(first)) {
        let lists: Vec<Value> = lists.iter().map(|list| Value::from(list.to_vec())).collect();
        let lists = printed(&lists.into());
        return Err(StrategicError::Other(format!("list element types are not identical: {lists}")));
    }
    Ok(first.is_object())
}

fn unknown_directive(directive: &Value, patch: &Object) -> StrategicError {
    let (directive, patch) = (printed_as_string(directive), printed(&patch.clone().into()));
    StrategicError::Other(format!("unknown patch type: {directive} in map: {patch}"))
}
