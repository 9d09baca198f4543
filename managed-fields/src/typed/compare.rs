//! Compares two values of the same type.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::errors::{Findings, ValidationErrors};
use super::items::Items;
use super::validate::scalar_error;
use super::{NO_TYPE, Side, deduced, items, members, paired, same_kinds};
use crate::path::PathElement;
use crate::schema::{Atom, ListType, MapType, Relation, Schema, Type};
use crate::set::{Node, Set};
use crate::value;

/// The differences between two values; each field is in at most one of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// The fields that the new value does not have.
    pub removed: Set,
    /// The fields whose values changed.
    pub modified: Set,
    /// The fields that the old value does not have.
    pub added: Set,
}

impl Comparison {
    /// Returns whether there are no differences.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }
}

/// Compares two values of type `of`.
///
/// # Errors
/// Returns an error for each part that the comparison inspects and that does not match the type.
///
/// Source: structured-merge-diff typed/compare.go.
pub fn compare<T: Schema>(old: &Value, new: &Value, of: Type<T>) -> Result<Comparison, ValidationErrors> {
    let mut findings = Findings::default();
    let mut marks = Marks::default();
    visit(Some(old), Some(new), of, &mut marks, &mut findings);
    findings.into_result()?;
    Ok(Comparison {
        removed: marks.removed.below.finish(),
        modified: marks.modified.below.finish(),
        added: marks.added.below.finish(),
    })
}

/// The removed, modified, and added fields at and below the current position.
#[derive(Default)]
struct Marks {
    removed: Node,
    modified: Node,
    added: Node,
}

impl Marks {
    fn attach(&mut self, element: &PathElement, below: Self) {
        self.removed.below.attach(element, below.removed);
        self.modified.below.attach(element, below.modified);
        self.added.below.attach(element, below.added);
    }

    /// Marks a leaf whose values differ as added, removed, or modified.
    ///
    /// Source: structured-merge-diff typed/compare.go, `doLeaf`.
    fn leaf(&mut self, old: Side<'_>, new: Side<'_>) {
        match (old, new) {
            (None, _) => self.added.is_member = true,
            (_, None) => self.removed.is_member = true,
            (Some(old), Some(new)) if !value::equal(old, new) => self.modified.is_member = true,
            (Some(_), Some(_)) => {}
        }
    }
}

/// Whether the value that is visited is atomic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Leaf,
    Tree,
}

fn visit<T: Schema>(old: Side<'_>, new: Side<'_>, of: Type<T>, marks: &mut Marks, findings: &mut Findings) {
    let atom = of.atom();
    let (of_old, of_new) = (deduced(atom, old), deduced(atom, new));
    let form = if new.is_none() {
        visit_atom(old, new, of, &of_old, marks, findings)
    } else {
        if old.is_some() && !same_kinds(&of_old, &of_new) {
            visit_atom(old, new, of, &of_old, marks, findings);
        }
        visit_atom(old, new, of, &of_new, marks, findings)
    };
    if form == Form::Tree {
        marks.added.is_member |= old.is_none();
        marks.removed.is_member |= old.is_some() && new.is_none();
    }
}

fn visit_atom<T: Schema>(
    old: Side<'_>,
    new: Side<'_>,
    of: Type<T>,
    atom: &Atom<T>,
    marks: &mut Marks,
    findings: &mut Findings,
) -> Form {
    if let Some(map) = atom.map {
        visit_map(old, new, of, map, marks, findings)
    } else if let Some(scalar) = atom.scalar {
        let errors = (scalar_error(scalar, old, "lhs: "), scalar_error(scalar, new, "rhs: "));
        if let (Some(error), Some(other)) = errors {
            findings.push(error);
            findings.push(other);
            return Form::Tree;
        }
        marks.leaf(old, new);
        Form::Leaf
    } else if let Some(list) = atom.list {
        visit_list(old, new, of, list, marks, findings)
    } else {
        findings.push(NO_TYPE);
        Form::Tree
    }
}

fn visit_map<T: Schema>(
    old: Side<'_>,
    new: Side<'_>,
    of: Type<T>,
    map: MapType<T>,
    marks: &mut Marks,
    findings: &mut Findings,
) -> Form {
    let nothing = Map::new();
    let before = members(old).unwrap_or(&nothing);
    let after = members(new).unwrap_or(&nothing);
    if map.is_atomic || (before.is_empty() && after.is_empty()) {
        marks.leaf(old, new);
        return Form::Leaf;
    }
    for (name, old, new) in paired(before, after) {
        let element = PathElement::field(name);
        let mut below = Marks::default();
        findings.below(&element, |findings| match of.field(name).or(map.element) {
            Some(of) => visit(old, new, of, &mut below, findings),
            None => findings.push(NO_TYPE),
        });
        marks.attach(&element, below);
    }
    Form::Tree
}

fn visit_list<T: Schema>(
    old: Side<'_>,
    new: Side<'_>,
    of: Type<T>,
    list: ListType<T>,
    marks: &mut Marks,
    findings: &mut Findings,
) -> Form {
    let nothing = Vec::new();
    let before = items(old).unwrap_or(&nothing);
    let after = items(new).unwrap_or(&nothing);
    if list.relation == Relation::Atomic || (before.is_empty() && after.is_empty()) {
        marks.leaf(old, new);
        return Form::Leaf;
    }
    let path = Items::new(&of, list);
    let mut pairs: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for (items, is_new) in [(before, false), (after, true)] {
        for (index, item) in items.iter().enumerate() {
            match path.element(item) {
                Ok(element) => {
                    let (old, new) = pairs.entry(element).or_default();
                    if is_new { new.push(item) } else { old.push(item) }
                }
                Err(error) => findings.push(format!("element {index}: {error}")),
            }
        }
    }
    for (element, (before, after)) in pairs {
        let mut below = Marks::default();
        let mut one = |old: Side<'_>, new: Side<'_>, below: &mut Marks| {
            findings.below(&element, |findings| visit(old, new, list.element, below, findings));
        };
        match (before.as_slice(), after.as_slice()) {
            ([] | [_], [] | [_]) => one(before.first().copied(), after.first().copied(), &mut below),
            // Duplicate items are compared as a single value.
            ([_, _, ..], [_, _, ..]) => {
                let is_same = before.len() == after.len()
                    && before.iter().zip(&after).all(|(old, new)| value::equal(old, new));
                below.modified.is_member |= !is_same;
            }
            ([_, _, ..], _) => {
                if let [new] = after.as_slice() {
                    one(None, Some(new), &mut below);
                }
                below.removed.is_member = true;
            }
            (_, [_, _, ..]) => {
                if let [old] = before.as_slice() {
                    one(Some(old), None, &mut below);
                }
                below.added.is_member = true;
            }
        }
        marks.attach(&element, below);
    }
    Form::Tree
}
