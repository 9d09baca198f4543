//! Builds sets in any order and sorts them once at the end.

use std::sync::Arc;

use super::Set;
use crate::path::PathElement;

/// A field's membership in a set, and the fields below it.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) is_member: bool,
    pub(crate) below: Builder,
}

/// A set that is being built.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(super) members: Vec<PathElement>,
    pub(super) children: Vec<(PathElement, Arc<Set>)>,
}

impl Builder {
    /// Creates a builder that contains the fields of an existing set.
    pub(crate) fn from_set(set: Set) -> Self {
        Self { members: set.members, children: set.children }
    }

    /// Adds a node for the field `element`.
    pub(crate) fn attach(&mut self, element: &PathElement, node: Node) {
        self.attach_set(element, node.is_member, node.below.finish());
    }

    /// Adds the fields below `element` and, if `is_member` is set, `element` itself.
    pub(super) fn attach_set(&mut self, element: &PathElement, is_member: bool, below: Set) {
        if is_member {
            self.members.push(element.clone());
        }
        if !below.is_empty() {
            self.children.push((element.clone(), Arc::new(below)));
        }
    }

    /// Adds a field without fields below it.
    pub(crate) fn insert(&mut self, element: PathElement) {
        self.members.push(element);
    }

    /// Returns the sorted set; duplicates are merged.
    pub(crate) fn finish(self) -> Set {
        self.finish_with(united)
    }

    /// Returns the sorted set; of duplicate children, only the last one is kept.
    pub(super) fn finish_with_last(self) -> Set {
        self.finish_with(|mut twins| twins.pop().unwrap_or_default())
    }

    fn finish_with(self, one_of: impl Fn(Vec<Arc<Set>>) -> Arc<Set>) -> Set {
        let Self { mut members, children: mut parts } = self;
        if !members.is_sorted_by(|member, next| member < next) {
            members.sort();
            members.dedup();
        }
        if parts.is_sorted_by(|(element, _), (next, _)| element < next) {
            return Set { members, children: parts };
        }
        parts.sort_by(|(element, _), (next, _)| element.cmp(next));
        let mut children: Vec<(PathElement, Arc<Set>)> = Vec::with_capacity(parts.len());
        let mut parts = parts.into_iter().peekable();
        while let Some((element, set)) = parts.next() {
            let mut twins = vec![set];
            while let Some((_, twin)) = parts.next_if(|(other, _)| *other == element) {
                twins.push(twin);
            }
            children.push((element, one_of(twins)));
        }
        Set { members, children }
    }
}

/// Returns the union of the sets, merged in pairs so that many duplicates do not take quadratic time.
fn united(mut sets: Vec<Arc<Set>>) -> Arc<Set> {
    while sets.len() > 1 {
        let mut rest = sets.into_iter();
        let mut halved = Vec::new();
        while let Some(set) = rest.next() {
            halved.push(match rest.next() {
                Some(other) => Arc::new(set.union(&other)),
                None => set,
            });
        }
        sets = halved;
    }
    sets.pop().unwrap_or_default()
}
