//! Implements `IPAddress` objects.

use crate::kinds::kind::Kind;

/// The behavior of `IPAddress` objects.
pub(crate) const KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ipaddresses",
    kind: "IPAddress",
    validate_name: |name, _| crate::kinds::object_names::ip_address(name),
    validate: crate::kinds::validation::service_addresses::address,
    cells: Some(crate::kinds::tables::network::ip_address),
    ..Kind::PLAIN
};
