//! Values of a known type: which fields they have, how two of them differ, and what both together are.

mod compare;
mod errors;
mod field_set;
mod items;
mod merge;
mod reconcile;
mod remove;
mod validate;

use serde_json::{Map, Value};

pub use self::compare::{Comparison, compare};
pub use self::errors::{ValidationError, ValidationErrors};
pub use self::field_set::field_set;
pub use self::merge::merge;
pub(crate) use self::reconcile::reconcile;
pub use self::remove::{extract_items, remove_items};
pub use self::validate::{Duplicates, validate};
use crate::schema::{Atom, Schema};

/// What is left of a type that allows several kinds of values once the value is known; all of it if the value is of
/// another kind, so that what looks at it says so.
///
/// Source: structured-merge-diff typed/helpers.go, `deduceAtom`.
fn deduced<T: Schema>(atom: Atom<T>, value: Option<&Value>) -> Atom<T> {
    match value {
        Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) => {
            atom.scalar.map_or(atom, Atom::of_scalar)
        }
        Some(Value::Array(_)) => atom.list.map_or(atom, Atom::of_list),
        Some(Value::Object(_)) => atom.map.map_or(atom, Atom::of_map),
        Some(Value::Null) | None => atom,
    }
}

/// Whether two values of one type are of the same kind, or might be.
fn same_kinds<T>(left: &Atom<T>, right: &Atom<T>) -> bool {
    left.scalar.is_some() == right.scalar.is_some()
        && left.list.is_some() == right.list.is_some()
        && left.map.is_some() == right.map.is_some()
}

/// The error of a type that allows no value at all.
const NO_TYPE: &str = "schema error: invalid atom: inlined";

/// The items of a list; none if it is not there, or no list.
fn items(value: Option<&Value>) -> Option<&Vec<Value>> {
    value.and_then(Value::as_array)
}

/// The members of a map; none if it is not there, or no map.
fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

/// One of two values that are looked at together; none where only the other is there.
type Side<'a> = Option<&'a Value>;

/// The members of two maps by name: those of `left` in their order, then those that only `right` has.
fn paired<'a>(
    left: &'a Map<String, Value>,
    right: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a String, Side<'a>, Side<'a>)> {
    let of_left = left.iter().map(|(name, value)| (name, Some(value), right.get(name)));
    let of_right = right.iter().filter(|(name, _)| !left.contains_key(*name));
    of_left.chain(of_right.map(|(name, value)| (name, None, Some(value))))
}
