//! Computes the order of list items after a strategic merge patch.
//!
//! Source: apimachinery pkg/util/strategicpatch/patch.go, `normalizeElementOrder`.

use std::collections::{HashMap, HashSet};

use kubernetes_types::quoting::{go_type_as_string, printed};
use serde_json::Value;

use super::strategic::{NOT_COMPARABLE, StrategicError};

/// The maximum length of a list that Go sorts with insertion sort only.
///
/// Source: Go sort/zsortfunc.go, `stable_func`.
const BLOCK: usize = 20;

/// The key of the directive for the object or list item that contains it: `replace`, `delete`, or `merge`.
pub(super) const DIRECTIVE: &str = "$patch";

/// Returns whether an item has the directive `directive`.
pub(super) fn is_directed(item: &Value, directive: &str) -> bool {
    item.get(DIRECTIVE).is_some_and(|found| found == directive)
}

pub(super) fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// Checks that an item is an object.
///
/// Source: apimachinery pkg/util/mergepatch/errors.go, `ErrBadArgType`.
pub(super) fn object(item: &Value) -> Result<(), StrategicError> {
    if item.is_object() {
        return Ok(());
    }
    let found = go_type_as_string(item);
    Err(StrategicError::Other(format!("expected a map[string]interface {{}}, but received a {found}")))
}

/// Returns the value of an object's merge key.
pub(super) fn keyed<'a>(item: &'a Value, key: &str) -> Result<&'a Value, StrategicError> {
    object(item)?;
    match item.get(key) {
        Some(value) if is_scalar(value) => Ok(value),
        Some(_) => Err(NOT_COMPARABLE),
        None => {
            let item = printed(item);
            let why = format!("map: {item} does not contain declared merge key: {key}");
            Err(StrategicError::Other(why))
        }
    }
}

/// Splits `items` into the objects whose merge keys occur in `by`, and all other objects.
///
/// Source: `partitionMapsByPresentInList`.
pub(super) fn partitioned(
    items: Vec<Value>,
    by: &[Value],
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // Go searches only up to the first item that is not an object.
    let objects = by.iter().take_while(|other| other.is_object());
    let known: HashSet<&Value> = objects.clone().filter_map(|other| other.get(key)).collect();
    let end = objects.count();
    for item in items {
        if known.contains(keyed(&item, key)?) {
            ours.push(item);
        } else if end < by.len() {
            return Err(StrategicError::Other(format!("value for key {end} is not a map")));
        } else {
            theirs.push(item);
        }
    }
    Ok((ours, theirs))
}

/// Merges `ours`, in the order of `patch`, with `theirs`, in the order of `server`.
///
/// Where possible, items keep their relative order in `server`. With a `key`, items are compared by its value.
pub(super) fn normalized(
    ours: Vec<Value>,
    theirs: Vec<Value>,
    patch: &[Value],
    server: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, StrategicError> {
    let positions = ItemPositions::new(server, key);
    let position = |item: &Value| positions.get(item);
    let ours = sorted(ours, patch, key)?;
    let theirs = sorted(theirs, server, key)?;
    let mut all = Vec::with_capacity(ours.len() + theirs.len());
    let mut theirs = theirs.into_iter().peekable();
    for item in ours {
        while let Some(other) = theirs.next_if(|other| match (position(other), position(&item)) {
            (Some(other), Some(item)) => other < item,
            (Some(_) | None, None) | (None, Some(_)) => false,
        }) {
            all.push(other);
        }
        all.push(item);
    }
    all.extend(theirs);
    Ok(all)
}

/// The positions of items in a list. For equal items, it contains the position of the first.
struct ItemPositions<'a> {
    key: Option<&'a str>,
    first: HashMap<Option<&'a Value>, usize>,
}

impl<'a> ItemPositions<'a> {
    /// Indexes a list. Items are identified by the value of `key` or, if `key` is `None`, by their whole value.
    fn new(list: &'a [Value], key: Option<&'a str>) -> Self {
        let mut first = HashMap::new();
        for (place, item) in list.iter().enumerate() {
            first.entry(identity(item, key)).or_insert(place);
        }
        Self { key, first }
    }

    fn get(&self, item: &Value) -> Option<usize> {
        self.first.get(&identity(item, self.key)).copied()
    }
}

fn identity<'a>(item: &'a Value, key: Option<&str>) -> Option<&'a Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

/// Sorts `items` by `order`. As in Go, an item is moved before the preceding item if either of them is not in
/// `order`.
///
/// Source: `normalizeSliceOrder`.
fn sorted(mut items: Vec<Value>, order: &[Value], key: Option<&str>) -> Result<Vec<Value>, StrategicError> {
    if let Some(key) = key {
        for item in items.iter().chain(order) {
            keyed(item, key)?;
        }
    }
    let deleted: Vec<Value> =
        items.extract_if(.., |item| key.is_some() && is_directed(item, "delete")).collect();
    let of_order = ItemPositions::new(order, key);
    let mut places: Vec<(Option<usize>, Value)> =
        items.into_iter().map(|item| (of_order.get(&item), item)).collect();
    if places.iter().all(|(place, _)| place.is_some()) {
        places.sort_by_key(|(place, _)| *place);
    } else if places.len() <= BLOCK {
        for end in 1..places.len() {
            for at in (1..=end).rev() {
                let pair = places.get(at - 1..=at);
                let in_order = matches!(pair, Some([(Some(other), _), (Some(one), _)]) if one >= other);
                if in_order {
                    break;
                }
                places.swap(at, at - 1);
            }
        }
    } else {
        return Err(StrategicError::Unsupported("a long list that a strategic merge patch orders in part"));
    }
    Ok(places.into_iter().map(|(_, item)| item).chain(deleted).collect())
}
