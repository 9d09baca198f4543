//! Implements `EndpointSlice` objects.

use crate::kinds::kind::{Changes, Kind};

/// The behavior of `EndpointSlice` objects.
pub(crate) const KIND: Kind = Kind {
    group: "discovery.k8s.io",
    resource: "endpointslices",
    kind: "EndpointSlice",
    set_defaults: Some(crate::kinds::defaulting::extensions::endpoint_slice),
    prepare_create: |object| crate::kinds::strategy::create::drop_topology(object, None),
    finish_update: |object, old, _| crate::kinds::strategy::create::drop_topology(object, Some(old)),
    next_generation: Changes::OfIntentOr(&[&["metadata", "labels"]]),
    validate: crate::kinds::validation::endpoints::slice,
    warn: |warnings, object, old| {
        crate::kinds::validation::warnings::endpoint_slice(warnings, object, old.is_none())
    },
    cells: Some(crate::kinds::tables::network::endpoint_slice),
    ..Kind::COUNTED
};
