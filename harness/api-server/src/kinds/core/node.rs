//! Implements Nodes.

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::common::fields::get;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;
use serde_json::Value;

/// The behavior of Nodes.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "nodes",
    kind: "Node",
    set_defaults: Some(crate::kinds::defaulting::core::node),
    through_internal: Some(crate::kinds::defaulting::internal::node),
    keeps_status: true,
    drop_disabled_fields: drop_disabled_fields,
    validate: validate,
    validate_subresources: &[("status", crate::kinds::validation::nodes::changed_node)],
    warn: warn,
    cells: Some(crate::kinds::tables::cluster::node),
    selectable_fields: Some(&["metadata.name", "spec.unschedulable"]),
    ..Kind::PLAIN
};

/// Removes the fields of dynamic kubelet configuration, which was removed.
fn drop_disabled_fields(object: &mut Value) {
    crate::kinds::strategy::disabled_fields::drop_all(
        object.get_mut("spec"),
        &[&["configSource"], &["podPreemptionPolicy"]],
    );
    crate::kinds::strategy::disabled_fields::drop_all(object.get_mut("status"), &[&["config"]]);
}

fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    crate::kinds::validation::nodes::node(errors, object);
    if let Some(change) = change {
        crate::kinds::validation::nodes::changed_node(errors, object, change);
    }
}

fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    crate::kinds::validation::warnings::node(warnings, get(object, "spec"));
}
