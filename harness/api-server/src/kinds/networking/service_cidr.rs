//! Implements `ServiceCIDR` objects.

use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `ServiceCIDR` objects.
pub(crate) const KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "servicecidrs",
    kind: "ServiceCIDR",
    status_keeps: StatusKeeps::Metadata,
    validate: crate::kinds::validation::service_addresses::range,
    cells: Some(crate::kinds::tables::network::service_cidr),
    ..Kind::PLAIN
};
