//! Merges an applied configuration into an object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::errors::{Findings, ValidationErrors};
use super::items::Items;
use super::validate::scalar_error;
use super::{NO_TYPE, Side, deduced, items, members, paired, same_kinds};
use crate::path::PathElement;
use crate::schema::{Atom, ListType, MapType, Relation, Schema, Type};

/// Returns the result of merging `applied` into `live`; both must be of type `of`.
///
/// Fields of `live` are never removed. Items that are in both lists have the order of `applied`.
///
/// # Errors
/// Returns an error for each part that the merge inspects and that does not match the type.
///
/// Source: structured-merge-diff typed/merge.go.
pub fn merge<T: Schema>(live: &Value, applied: &Value, of: Type<T>) -> Result<Value, ValidationErrors> {
    let mut findings = Findings::default();
    let merged = visit(Some(live), Some(applied), of, &mut findings);
    findings.into_result()?;
    Ok(merged.unwrap_or_default())
}

fn visit<T: Schema>(
    live: Side<'_>,
    applied: Side<'_>,
    of: Type<T>,
    findings: &mut Findings,
) -> Option<Value> {
    let atom = of.atom();
    let (of_live, of_applied) = (deduced(atom, live), deduced(atom, applied));
    if applied.is_none() {
        return visit_atom(live, applied, of, &of_live, findings);
    }
    if live.is_some() && !same_kinds(&of_live, &of_applied) {
        // Visits both values as the kind of the live value only to report errors: the kind of the applied value takes
        // precedence.
        visit_atom(live, applied, of, &of_live, findings);
    }
    visit_atom(live, applied, of, &of_applied, findings)
}

fn visit_atom<T: Schema>(
    live: Side<'_>,
    applied: Side<'_>,
    of: Type<T>,
    atom: &Atom<T>,
    findings: &mut Findings,
) -> Option<Value> {
    if let Some(map) = atom.map {
        visit_map(live, applied, of, map, findings)
    } else if let Some(scalar) = atom.scalar {
        let errors = (scalar_error(scalar, live, "lhs: "), scalar_error(scalar, applied, "rhs: "));
        if let (Some(error), Some(other)) = errors {
            findings.push(error);
            findings.push(other);
            return None;
        }
        leaf(live, applied)
    } else if let Some(list) = atom.list {
        visit_list(live, applied, of, list, findings)
    } else {
        findings.push(NO_TYPE);
        None
    }
}

fn leaf(live: Side<'_>, applied: Side<'_>) -> Option<Value> {
    applied.or(live).cloned()
}

fn visit_map<T: Schema>(
    live: Side<'_>,
    applied: Side<'_>,
    of: Type<T>,
    map: MapType<T>,
    findings: &mut Findings,
) -> Option<Value> {
    let nothing = Map::new();
    let ours = members(live).unwrap_or(&nothing);
    let theirs = members(applied).unwrap_or(&nothing);
    // Preserves the difference between an empty map, null, and an absent value.
    if map.is_atomic || (ours.is_empty() && theirs.is_empty()) {
        return leaf(live, applied);
    }
    let mut merged = Map::new();
    for (name, ours, theirs) in paired(ours, theirs) {
        let element = PathElement::field(name);
        let value = findings.below(&element, |findings| {
            let of = of.field(name).or(map.element);
            if of.is_none() {
                findings.push(NO_TYPE);
            }
            of.and_then(|of| visit(ours, theirs, of, findings))
        });
        merged.extend(value.map(|value| (name.clone(), value)));
    }
    (!merged.is_empty()).then(|| merged.into())
}

fn visit_list<T: Schema>(
    live: Side<'_>,
    applied: Side<'_>,
    of: Type<T>,
    list: ListType<T>,
    findings: &mut Findings,
) -> Option<Value> {
    let nothing = Vec::new();
    let ours = items(live).unwrap_or(&nothing);
    let theirs = items(applied).unwrap_or(&nothing);
    if list.relation == Relation::Atomic || (ours.is_empty() && theirs.is_empty()) {
        return leaf(live, applied);
    }
    let path = Items::new(&of, list);
    let errors = findings.count();
    let theirs = Indexed::new(theirs, &path, false, findings);
    let ours = Indexed::new(ours, &path, true, findings);
    if findings.count() > errors {
        return None;
    }
    let merged: Vec<_> = steps(&ours, &theirs)
        .into_iter()
        .filter_map(|step| {
            let (ours, theirs) = match step {
                Step::Ours(index) => (ours.items.get(index).map(|(_, item)| *item), None),
                Step::Theirs(element) => {
                    (ours.by_element.get(element).copied(), theirs.by_element.get(element).copied())
                }
            };
            // Like upstream, ignore errors in items.
            findings.ignoring(|findings| visit(ours, theirs, list.element, findings))
        })
        .collect();
    (!merged.is_empty()).then(|| merged.into())
}

/// The items of a list, with their path elements.
struct Indexed<'a> {
    items: Vec<(PathElement, &'a Value)>,
    /// The items by their path element; null for duplicate items.
    by_element: BTreeMap<PathElement, &'a Value>,
}

impl<'a> Indexed<'a> {
    fn new<T: Schema>(
        items: &'a [Value],
        path: &Items<'_, T>,
        has_duplicates: bool,
        findings: &mut Findings,
    ) -> Self {
        let mut indexed = Self { items: Vec::with_capacity(items.len()), by_element: BTreeMap::new() };
        for (index, item) in items.iter().enumerate() {
            let element = match path.element(item) {
                Ok(element) => element,
                Err(error) => {
                    findings.push(format!("element {index}: {error}"));
                    continue;
                }
            };
            if !indexed.by_element.contains_key(&element) {
                indexed.by_element.insert(element.clone(), item);
            } else if has_duplicates {
                indexed.by_element.insert(element.clone(), &Value::Null);
            } else {
                findings.push(format!("duplicate entries for key {element}"));
                continue;
            }
            indexed.items.push((element, item));
        }
        indexed
    }
}

/// The next item of the merged list.
enum Step<'a> {
    /// The live item at this index. The applied list does not contain it.
    Ours(usize),
    /// The applied item, merged with the live item, if it exists.
    Theirs(&'a PathElement),
}

/// Returns the order of the merged list.
///
/// Items that are in both lists have the order of the applied list; items in only one list stay between their
/// neighbors.
///
/// Source: structured-merge-diff typed/merge.go, `visitListItems`.
fn steps<'a>(ours: &Indexed<'_>, theirs: &'a Indexed<'_>) -> Vec<Step<'a>> {
    let is_ours = |element: &PathElement| ours.by_element.contains_key(element);
    let is_theirs = |element: &PathElement| theirs.by_element.contains_key(element);
    let mut shared: VecDeque<&PathElement> =
        theirs.items.iter().map(|(element, _)| element).filter(|element| is_ours(element)).collect();
    let mut merged: BTreeSet<&PathElement> = BTreeSet::new();
    let mut steps = Vec::new();
    let (mut left, mut right) = (0, 0);
    loop {
        let ours_next = ours.items.get(left).map(|(element, _)| element);
        let theirs_next = theirs.items.get(right).map(|(element, _)| element);
        if let (Some(live), Some(applied)) = (ours_next, theirs_next) {
            if live == applied {
                merged.insert(applied);
                steps.push(Step::Theirs(applied));
                left += 1;
                right += 1;
                shared.pop_front();
                continue;
            }
            if is_theirs(live) && shared.front().is_some_and(|next| *next != live) {
                // The item is in both lists, and its position comes later.
                left += 1;
                continue;
            }
        }
        if let Some(live) = ours_next {
            if !is_theirs(live) {
                steps.push(Step::Ours(left));
                left += 1;
                continue;
            }
            if merged.contains(live) {
                left += 1;
            }
        }
        if let Some(applied) = theirs_next {
            merged.insert(applied);
            steps.push(Step::Theirs(applied));
            right += 1;
            if shared.front().is_some_and(|next| *next == applied) {
                shared.pop_front();
            }
        }
        if ours_next.is_none() && theirs_next.is_none() {
            return steps;
        }
    }
}
