//! Selects the fields that a request can set.

use crate::path::PathElement;
use crate::set::{Builder, Node, Set};

/// Selects which of the fields in a request count as set.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "upstream has these two")]
pub enum Filter {
    /// Selects all fields except these and the fields below them.
    Exclude(Set),
    /// Selects only the fields at, below, or above one of these prefixes.
    Include(Vec<Vec<Pattern>>),
}

/// An element of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "upstream has these two")]
pub enum Pattern {
    /// Matches any field or item.
    Any,
    /// Matches only this field or item.
    Element(PathElement),
}

impl Pattern {
    fn matches(&self, element: &PathElement) -> bool {
        match self {
            Self::Any => true,
            Self::Element(expected) => expected == element,
        }
    }
}

impl Filter {
    /// Returns the fields in the set that the filter selects.
    ///
    /// Source: structured-merge-diff fieldpath/set.go, `NewExcludeSetFilter` and `FilterIncludeMatches`.
    pub(crate) fn apply(&self, fields: &Set) -> Set {
        match self {
            Self::Exclude(excluded) => fields.recursive_difference(excluded),
            Self::Include(prefixes) => {
                include(fields, &prefixes.iter().map(Vec::as_slice).collect::<Vec<_>>())
            }
        }
    }
}

fn include(fields: &Set, prefixes: &[&[Pattern]]) -> Set {
    if prefixes.iter().any(|prefix| prefix.is_empty()) {
        return fields.clone();
    }
    let below = |element: &PathElement| -> Vec<&[Pattern]> {
        prefixes
            .iter()
            .filter_map(|prefix| prefix.split_first())
            .filter_map(|(pattern, rest)| pattern.matches(element).then_some(rest))
            .collect()
    };
    let mut included = Builder::default();
    for element in fields.members() {
        if !below(element).is_empty() {
            included.insert(element.clone());
        }
    }
    for (element, set) in fields.children() {
        let rest = below(element);
        if !rest.is_empty() {
            let below = Builder::from_set(include(set, &rest));
            included.attach(element, Node { is_member: false, below });
        }
    }
    included.finish()
}
