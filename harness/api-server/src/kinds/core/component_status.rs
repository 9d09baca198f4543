//! Implements `ComponentStatus` objects.

use crate::kinds::kind::Kind;

/// The behavior of `ComponentStatus` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "componentstatuses",
    kind: "ComponentStatus",
    cells: Some(crate::kinds::tables::cluster::component_status),
    ..Kind::PLAIN
};
