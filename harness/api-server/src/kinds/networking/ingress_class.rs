//! Implements `IngressClass` objects.

use crate::kinds::kind::Kind;

/// The behavior of `IngressClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ingressclasses",
    kind: "IngressClass",
    set_defaults: Some(crate::kinds::defaulting::extensions::ingress_class),
    validate: crate::kinds::validation::networking::ingress_class,
    cells: Some(crate::kinds::tables::network::ingress_class),
    ..Kind::COUNTED
};
