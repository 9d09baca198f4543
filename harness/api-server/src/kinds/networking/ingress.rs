//! Implements `Ingress` objects.

use crate::kinds::kind::Kind;

/// The behavior of `Ingress` objects.
pub(crate) const KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ingresses",
    kind: "Ingress",
    set_defaults: Some(crate::kinds::defaulting::extensions::ingress),
    validate: crate::kinds::validation::networking::ingress,
    validate_subresources: &[("status", crate::kinds::validation::networking::ingress_status)],
    warn: |warnings, object, old| {
        if old.is_none() {
            crate::kinds::validation::warnings::deprecated_class(warnings, object);
        }
    },
    warn_status: crate::kinds::validation::warnings::balancer,
    cells: Some(crate::kinds::tables::network::ingress),
    ..Kind::COUNTED
};
