//! Implements `FlowSchema` objects.

use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `FlowSchema` objects.
pub(crate) const KIND: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    resource: "flowschemas",
    kind: "FlowSchema",
    status_keeps: StatusKeeps::AllMetadata,
    set_defaults: Some(crate::kinds::defaulting::flow_control::flow_schema),
    validate: crate::kinds::validation::flow_control::schema,
    validate_subresources: &[("status", crate::kinds::validation::flow_control::conditions)],
    cells: Some(crate::kinds::tables::cluster::flow_schema),
    ..Kind::COUNTED
};
