//! Lists the conflicts between a write and the fields of other managers.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use go_std::quote::quote;

use crate::managed::{Manager, Operation};
use crate::path;
use crate::set::Set;

/// The fields that a write would change although other managers own them; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(BTreeMap<Manager, Set>);

/// A cause of type `FieldManagerConflict` in the details of a conflict's Status.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause {
    /// The message. It contains the manager that owns the field.
    pub message: String,
    /// The path of the field, such as `.spec.replicas`.
    pub field: String,
}

/// The maximum total length, in bytes, of the listed conflicts.
///
/// Without this limit, 100,000 fields below a field with a name of one megabyte would exhaust the memory.
const MAX_LISTED_BYTES: usize = 1 << 20;

impl Conflicts {
    /// Creates a conflict for each field in each manager's set.
    pub(crate) const fn new(sets: BTreeMap<Manager, Set>) -> Self {
        Self(sets)
    }

    /// Returns the fields by manager. Upstream orders managers randomly.
    pub const fn by_manager(&self) -> &BTreeMap<Manager, Set> {
        &self.0
    }

    /// Returns the conflicts about fields that are not in `fields`, or `None` if no conflicts remain.
    pub(crate) fn except(self, fields: &Set) -> Option<Self> {
        let rest = self.0.into_iter().map(|(manager, set)| (manager, set.difference(fields)));
        let rest: BTreeMap<_, _> = rest.filter(|(_, set)| !set.is_empty()).collect();
        (!rest.is_empty()).then_some(Self(rest))
    }

    /// Returns the number of fields with a conflict.
    fn count(&self) -> usize {
        self.0.values().map(Set::len).sum()
    }

    /// Returns the fields of each manager, up to a limit of 1 MiB.
    fn listed(&self) -> Vec<(&Manager, Vec<String>)> {
        let mut bytes = 0;
        let mut fields_of = |set: &Set| {
            let mut fields = Vec::new();
            // The iteration stops when the limit is reached.
            let _ = set.try_for_each(&mut |path| {
                let field = path::text(path);
                bytes += field.len();
                fields.push(field);
                if bytes > MAX_LISTED_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            fields
        };
        self.0.iter().map(|(manager, set)| (manager, fields_of(set))).collect()
    }

    /// Returns the message of the Status. The message lists conflicts up to a limit of 1 MiB.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/conflict.go, `getConflictMessage`.
    pub fn message(&self) -> String {
        let (count, listed) = (self.count(), self.listed());
        if count == 1
            && let Some((manager, fields)) = listed.first()
        {
            return format!("Apply failed with 1 conflict: conflict with {manager}: {}", fields.concat());
        }
        let mut lines = Vec::new();
        for (manager, fields) in listed {
            lines.push(format!("conflicts with {manager}:"));
            lines.extend(fields.into_iter().map(|field| format!("- {field}")));
        }
        format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
    }

    /// Returns the causes in the details of the Status, up to a limit of 1 MiB.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/conflict.go, `NewConflictError`.
    pub fn causes(&self) -> Vec<Cause> {
        let causes = |(manager, fields): (&Manager, Vec<String>)| {
            let message = format!("conflict with {manager}");
            let cause = move |field| Cause { message: message.clone(), field };
            fields.into_iter().map(cause).collect::<Vec<_>>()
        };
        self.listed().into_iter().flat_map(causes).collect()
    }
}

/// Formats a manager for the message of a conflict.
///
/// Source: apimachinery pkg/util/managedfields/internal/conflict.go, `printManager`.
impl fmt::Display for Manager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&quote(self.name()))?;
        if !self.subresource().is_empty() {
            write!(formatter, " with subresource {}", quote(self.subresource()))?;
        }
        if self.operation() == Operation::Update {
            write!(formatter, " using {}", self.api_version())?;
        }
        Ok(())
    }
}
