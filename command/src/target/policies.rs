//! Records the admission policies that a run creates.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::fakes::Kind;

/// A type of policies. The server refreshes the policies of each type separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PolicyType {
    Validating,
    Mutating,
}

impl PolicyType {
    /// Both types.
    pub(crate) const ALL: [Self; 2] = [Self::Validating, Self::Mutating];

    /// Returns the type that the `kind` of a policy or a binding belongs to.
    pub(crate) fn of_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.kinds().iter().any(|known| known.name == kind))
    }

    /// Returns the kind of the policies and the kind of the bindings.
    pub(crate) fn kinds(self) -> [Kind; 2] {
        match self {
            Self::Validating => [Kind::VALIDATING_POLICY, Kind::VALIDATING_BINDING],
            Self::Mutating => [Kind::MUTATING_POLICY, Kind::MUTATING_BINDING],
        }
    }
}

/// The admission policies of a run. Clones share the records.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunPolicies(Arc<Records>);

#[derive(Debug, Default)]
struct Records {
    /// The types of the policies and bindings that the run may have created.
    types: Mutex<BTreeSet<PolicyType>>,
    /// Is set when the validating policy that keeps params watched exists.
    validating: OnceCell<()>,
    /// Is set when the mutating policy that keeps params watched exists.
    mutating: OnceCell<()>,
}

impl RunPolicies {
    /// Records that the run creates policies or bindings of a type.
    pub(crate) fn record(&self, of: PolicyType) {
        self.0.types.lock().unwrap_or_else(PoisonError::into_inner).insert(of);
    }

    /// Returns whether the run has a policy of a type that keeps params watched.
    pub(crate) fn keeper(&self, of: PolicyType) -> &OnceCell<()> {
        match of {
            PolicyType::Validating => &self.0.validating,
            PolicyType::Mutating => &self.0.mutating,
        }
    }

    /// Returns the kinds of the policies and bindings that the run may have created.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        let types = self.0.types.lock().unwrap_or_else(PoisonError::into_inner);
        types.iter().flat_map(|of| of.kinds()).collect()
    }
}
