//! Implements `ControllerRevision` objects.

use crate::kinds::kind::Kind;

/// The behavior of `ControllerRevision` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apps",
    resource: "controllerrevisions",
    kind: "ControllerRevision",
    validate: crate::kinds::validation::workloads::controller_revision,
    cells: Some(crate::kinds::tables::workloads::controller_revision),
    ..Kind::PLAIN
};
