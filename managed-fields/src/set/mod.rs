//! Sets of fields, as encoded in `fieldsV1`.

mod builder;
mod operations;
mod serialize;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::builder::{Builder, Node};
use crate::path::{Path, PathElement};

/// A set of the fields of an object.
///
/// The set is a tree. A field and the fields below it are independent members: the owner of `f:labels` in `f:metadata`
/// does not own `f:metadata`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// The members of the set; sorted.
    members: Vec<PathElement>,
    /// The elements with members below them; sorted, without empty sets.
    children: Vec<(PathElement, Arc<Set>)>,
}

impl Set {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self { members: Vec::new(), children: Vec::new() }
    }

    /// Creates a set of these fields. The empty path, which is the object itself, is never a member.
    pub fn from_paths(paths: impl IntoIterator<Item = Path>) -> Self {
        let mut paths: Vec<Path> = paths.into_iter().collect();
        paths.sort();
        Self::from_sorted(&paths, 0)
    }

    /// Creates a set of struct members, by their paths from the root of the object.
    pub fn from_fields(paths: &[&[&str]]) -> Self {
        Self::from_paths(paths.iter().map(|path| path.iter().map(|name| PathElement::field(name)).collect()))
    }

    fn from_sorted(paths: &[Path], depth: usize) -> Self {
        let mut set = Self::new();
        let groups = paths.chunk_by(|path, other| path.get(depth) == other.get(depth));
        for group in groups {
            let Some(element) = group.first().and_then(|path| path.get(depth)) else { continue };
            let longer = group.iter().position(|path| path.len() > depth + 1).unwrap_or(group.len());
            if longer > 0 {
                set.members.push(element.clone());
            }
            let below = group.get(longer..).unwrap_or_default();
            if !below.is_empty() {
                set.children.push((element.clone(), Arc::new(Self::from_sorted(below, depth + 1))));
            }
        }
        set
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.iter().map(|(_, set)| set.len()).sum::<usize>()
    }

    /// Returns whether the field is in the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [element] => self.has_member(element),
            [element, rest @ ..] => self.child(element).is_some_and(|set| set.has(rest)),
        }
    }

    /// Returns whether an element directly below the root is in the set.
    pub(crate) fn has_member(&self, element: &PathElement) -> bool {
        self.members.binary_search(element).is_ok()
    }

    /// Returns the members below one element, or `None` if the set does not contain such members.
    pub(crate) fn child(&self, element: &PathElement) -> Option<&Self> {
        let index = self.children.binary_search_by(|(child, _)| child.cmp(element)).ok()?;
        self.children.get(index).map(|(_, set)| set.as_ref())
    }

    pub(crate) fn members(&self) -> &[PathElement] {
        &self.members
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = (&PathElement, &Self)> {
        self.children.iter().map(|(element, set)| (element, set.as_ref()))
    }

    /// Returns the fields of the set in depth-first order, except that the members of each level come first.
    ///
    /// Source: structured-merge-diff fieldpath/set.go, `Iterate`.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        // The callback never breaks.
        let _ = self.try_for_each(&mut |path| {
            paths.push(path.to_vec());
            ControlFlow::Continue(())
        });
        paths
    }

    /// Calls `visit` with each field, in the order of [`Self::paths`], until `visit` breaks.
    pub(crate) fn try_for_each(
        &self,
        visit: &mut impl FnMut(&[PathElement]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.walk(&mut Vec::new(), visit)
    }

    fn walk(
        &self,
        prefix: &mut Path,
        visit: &mut impl FnMut(&[PathElement]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for member in &self.members {
            prefix.push(member.clone());
            let flow = visit(prefix);
            prefix.pop();
            flow?;
        }
        for (element, set) in &self.children {
            prefix.push(element.clone());
            let flow = set.walk(prefix, visit);
            prefix.pop();
            flow?;
        }
        ControlFlow::Continue(())
    }

    /// Decodes a set from `fieldsV1`.
    ///
    /// # Errors
    /// Returns kube-apiserver's error if the value is invalid.
    pub fn from_value(value: &Value) -> Result<Self, String> {
        Self::from_json(&value.to_string())
    }
}

impl FromIterator<Path> for Set {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        Self::from_paths(paths)
    }
}
