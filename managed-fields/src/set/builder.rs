//! Sets that grow in any order without being sorted at each step.

use std::sync::Arc;

use super::Set;
use crate::path::PathElement;

/// What is known of a field: whether it is in a set, and what is below it.
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
    /// A set as it is.
    pub(crate) fn of(set: Set) -> Self {
        Self { members: set.members, children: set.children }
    }

    /// Adds what is known of the field `element`.
    pub(crate) fn attach(&mut self, element: &PathElement, node: Node) {
        self.attach_set(element, node.is_member, node.below.finish());
    }

    /// The same, with what is below it.
    pub(super) fn attach_set(&mut self, element: &PathElement, is_member: bool, below: Set) {
        if is_member {
            self.members.push(element.clone());
        }
        if !below.is_empty() {
            self.children.push((element.clone(), Arc::new(below)));
        }
    }

    /// Adds a member and nothing below it.
    pub(crate) fn insert(&mut self, element: PathElement) {
        self.members.push(element);
    }

    /// The set, sorted; what was added twice is there once.
    pub(crate) fn finish(self) -> Set {
        self.finish_with(united)
    }

    /// The same, where of what is below a field only what was added last counts.
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

/// Two at a time, so that many twins do not make their union again and again.
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
