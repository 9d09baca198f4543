//! Implements `NetworkPolicy` objects.

use crate::kinds::common::fields::get;
use crate::kinds::kind::{Changes, Kind};

/// The behavior of `NetworkPolicy` objects.
pub(crate) const KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "networkpolicies",
    kind: "NetworkPolicy",
    set_defaults: Some(crate::kinds::defaulting::extensions::network_policy),
    next_generation: Changes::OfIntentOrEmptyFields,
    validate: crate::kinds::validation::policies::network_policy,
    warn: |warnings, object, _| {
        crate::kinds::validation::warnings::network_policy(warnings, get(object, "spec"))
    },
    cells: Some(crate::kinds::tables::network::network_policy),
    ..Kind::COUNTED
};
