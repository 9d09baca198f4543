//! Implements `PriorityLevelConfiguration` objects.

use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `PriorityLevelConfiguration` objects.
pub(crate) const KIND: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    resource: "prioritylevelconfigurations",
    kind: "PriorityLevelConfiguration",
    status_keeps: StatusKeeps::AllMetadata,
    set_defaults: Some(crate::kinds::defaulting::flow_control::priority_level_configuration),
    validate: crate::kinds::validation::flow_control::level,
    validate_subresources: &[("status", crate::kinds::validation::flow_control::conditions)],
    cells: Some(crate::kinds::tables::cluster::priority_level),
    ..Kind::COUNTED
};
