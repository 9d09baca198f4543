//! Which labels a `metav1.LabelSelector` picks.

use std::collections::BTreeMap;

/// The labels of an object: `metadata.labels`.
pub type Labels = BTreeMap<String, String>;

/// A parsed label selector; without requirements it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl Selector {
    /// Whether every requirement holds for `labels`.
    ///
    /// Source: apimachinery pkg/labels/selector.go, `Requirement.Matches`.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            match &requirement.operator {
                Operator::In(values) => value.is_some_and(|value| values.contains(value)),
                Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }

    /// Whether the selector has no requirements, and so matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}
