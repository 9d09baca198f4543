//! Unions, intersections, and differences of sets of fields. Each operation walks both sets once.
//!
//! Source: structured-merge-diff fieldpath/set.go.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Builder, Node, Set};
use crate::path::PathElement;
use crate::schema::{Schema, Type};

/// Merges two sorted lists in order, and pairs the items with equal keys.
fn zip<'a, A, B>(
    left: &'a [A],
    right: &'a [B],
    key: impl Fn(&A) -> &PathElement,
    other_key: impl Fn(&B) -> &PathElement,
) -> impl Iterator<Item = (Option<&'a A>, Option<&'a B>)> {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => key(a).cmp(other_key(b)),
        };
        Some(match order {
            Ordering::Less => (left.next(), None),
            Ordering::Greater => (None, right.next()),
            Ordering::Equal => (left.next(), right.next()),
        })
    })
}

type Child = (PathElement, Arc<Set>);

/// The factor by which one list must be longer for binary search to be faster than a linear merge.
const MUCH_LONGER: usize = 16;

/// Pairs each item of the first sorted list with the item of the other list that has the same key, if any.
fn pair<'a, A, B>(
    left: &'a [A],
    right: &'a [B],
    key: impl Fn(&A) -> &PathElement + 'a,
    other_key: impl Fn(&B) -> &PathElement + 'a,
) -> impl Iterator<Item = (&'a A, Option<&'a B>)> {
    let is_short = left.len().saturating_mul(MUCH_LONGER) < right.len();
    let mut rest = right;
    left.iter().map(move |item| {
        let key = key(item);
        let skipped = if is_short {
            rest.partition_point(|other| other_key(other) < key)
        } else {
            rest.iter().take_while(|other| other_key(other) < key).count()
        };
        rest = rest.get(skipped..).unwrap_or_default();
        (item, rest.first().filter(|other| other_key(other) == key))
    })
}

fn members<'a>(
    set: &'a Set,
    other: &'a Set,
) -> impl Iterator<Item = (&'a PathElement, Option<&'a PathElement>)> {
    pair(&set.members, &other.members, |member| member, |member| member)
}

fn children<'a>(set: &'a Set, other: &'a Set) -> impl Iterator<Item = (&'a Child, Option<&'a Child>)> {
    pair(&set.children, &other.children, |(element, _)| element, |(element, _)| element)
}

fn push(children: &mut Vec<Child>, element: &PathElement, set: Set) {
    if !set.is_empty() {
        children.push((element.clone(), Arc::new(set)));
    }
}

impl Set {
    /// Returns the union of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let members = zip(&self.members, &other.members, |member| member, |member| member);
        let children = zip(&self.children, &other.children, |(element, _)| element, |(element, _)| element);
        Self {
            members: members.filter_map(|(one, other)| one.or(other)).cloned().collect(),
            children: children
                .filter_map(|pair| match pair {
                    (Some(child @ (_, set)), Some((_, other))) if Arc::ptr_eq(set, other) => {
                        Some(child.clone())
                    }
                    (Some((element, set)), Some((_, other))) => {
                        Some((element.clone(), Arc::new(set.union(other))))
                    }
                    (one, other) => one.or(other).cloned(),
                })
                .collect(),
        }
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Self::new();
        both.members.extend(members(self, other).filter_map(|(_, other)| other.cloned()));
        for ((element, set), other) in children(self, other) {
            if let Some((_, other)) = other {
                push(&mut both.children, element, set.intersection(other));
            }
        }
        both
    }

    /// Returns the fields of this set that are not in `other`. Fields below a member of `other` are kept.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = Self::new();
        rest.members = self.members_without(other);
        for (child @ (element, set), other) in children(self, other) {
            match other {
                Some((_, other)) => push(&mut rest.children, element, set.difference(other)),
                None => rest.children.push(child.clone()),
            }
        }
        rest
    }

    /// Returns the fields of this set that are neither in `other` nor below one of its members.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let mut rest = Self::new();
        rest.members = self.members_without(other);
        for (child @ (element, set), below) in children(self, other) {
            if other.has_member(element) {
                continue;
            }
            match below {
                Some((_, other)) => push(&mut rest.children, element, set.recursive_difference(other)),
                None => rest.children.push(child.clone()),
            }
        }
        rest
    }

    fn members_without(&self, other: &Self) -> Vec<PathElement> {
        let members = members(self, other).filter(|(_, other)| other.is_none());
        members.map(|(member, _)| member.clone()).collect()
    }

    /// Returns the members without other members below them.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let pairs = pair(&self.members, &self.children, |member| member, |(element, _)| element);
        Self {
            members: pairs.filter(|(_, child)| child.is_none()).map(|(member, _)| member.clone()).collect(),
            children: self
                .children
                .iter()
                .map(|(element, set)| (element.clone(), Arc::new(set.leaves())))
                .collect(),
        }
    }

    /// Returns the set, and the declared struct fields that contain its members.
    ///
    /// Members of maps and items of lists are not added.
    pub(crate) fn with_named_fields<T: Schema>(&self, of: Option<Type<T>>) -> Self {
        let mut named = Builder::default();
        for member in &self.members {
            named.insert(member.clone());
        }
        let atom = of.map(|of| (of, of.atom()));
        let map = atom.and_then(|(of, atom)| atom.map.map(|map| (of, map)));
        let list = atom.and_then(|(_, atom)| atom.list);
        for (element, set) in &self.children {
            let declared = match (element, map) {
                (PathElement::Field(name), Some((of, _))) => of.field(name),
                _ => None,
            };
            let below = match element {
                PathElement::Field(_) => declared.or_else(|| map.and_then(|(_, map)| map.element)),
                PathElement::Key(_) => list.map(|list| list.element),
                PathElement::Value(_) | PathElement::Index(_) | PathElement::Unknown => None,
            };
            let below = Builder::from_set(set.with_named_fields(below));
            named.attach(element, Node { is_member: declared.is_some(), below });
        }
        named.finish()
    }
}
