//! Computes the fields, differences, and merges of typed values.

mod compare;
mod configuration;
mod errors;
mod field_set;
mod items;
mod merge;
mod reconcile;
mod remove;
mod validate;

use serde_json::{Map, Value};

pub use self::compare::{Comparison, compare};
pub use self::configuration::merge_configuration;
pub use self::errors::{ValidationError, ValidationErrors};
pub use self::field_set::field_set;
pub use self::merge::merge;
pub(crate) use self::reconcile::reconcile;
pub use self::remove::{extract_items, remove_items};
pub use self::validate::{Duplicates, validate};
use crate::schema::{Atom, Schema};

/// Narrows a type that allows several kinds of values to the kind of the value.
///
/// If the type does not allow that kind, the type is returned unchanged, so that visiting the value reports an error.
///
/// Source: structured-merge-diff typed/helpers.go, `deduceAtom`.
fn deduced<T: Schema>(atom: Atom<T>, value: Option<&Value>) -> Atom<T> {
    match value {
        Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) => {
            atom.scalar.map_or(atom, Atom::from_scalar)
        }
        Some(Value::Array(_)) => atom.list.map_or(atom, Atom::from_list),
        Some(Value::Object(_)) => atom.map.map_or(atom, Atom::from_map),
        Some(Value::Null) | None => atom,
    }
}

/// Returns whether two atoms allow the same kinds of values: scalar, list, and map.
fn same_kinds<T>(left: &Atom<T>, right: &Atom<T>) -> bool {
    left.scalar.is_some() == right.scalar.is_some()
        && left.list.is_some() == right.list.is_some()
        && left.map.is_some() == right.map.is_some()
}

/// The error for a type that does not allow any values.
const NO_TYPE: &str = "schema error: invalid atom: inlined";

/// Returns the items of a list, or `None` if the value is absent or not a list.
fn items(value: Option<&Value>) -> Option<&Vec<Value>> {
    value.and_then(Value::as_array)
}

/// Returns the members of a map, or `None` if the value is absent or not a map.
fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

/// One of two values that are visited together, or `None` if only the other value exists.
type Side<'a> = Option<&'a Value>;

/// Pairs the members of two maps by name: those of `left` in their order, then those only in `right`.
fn paired<'a>(
    left: &'a Map<String, Value>,
    right: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a String, Side<'a>, Side<'a>)> {
    let of_left = left.iter().map(|(name, value)| (name, Some(value), right.get(name)));
    let of_right = right.iter().filter(|(name, _)| !left.contains_key(*name));
    of_left.chain(of_right.map(|(name, value)| (name, None, Some(value))))
}
