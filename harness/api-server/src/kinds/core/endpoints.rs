//! Implements Endpoints.

use crate::kinds::kind::Kind;

/// The behavior of Endpoints.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "endpoints",
    kind: "Endpoints",
    set_defaults: Some(crate::kinds::defaulting::core::endpoints),
    is_created_by_update: true,
    validate: crate::kinds::validation::endpoints::endpoints,
    warn: crate::kinds::validation::warnings::endpoints,
    cells: Some(crate::kinds::tables::network::endpoints),
    ..Kind::PLAIN
};
