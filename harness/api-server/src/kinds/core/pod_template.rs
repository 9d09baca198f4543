//! Implements `PodTemplate` objects.

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::common::fields::{Path, get};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;
use serde_json::Value;

/// The behavior of `PodTemplate` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "podtemplates",
    kind: "PodTemplate",
    set_defaults: Some(crate::kinds::defaulting::workloads::pod_template),
    returns_deleted_object: true,
    drop_disabled_fields: |object| {
        crate::kinds::strategy::disabled_fields::drop_of_pod(object.pointer_mut("/template/spec"))
    },
    validate: validate,
    warn: warn,
    cells: Some(crate::kinds::tables::workloads::pod_template),
    ..Kind::COUNTED
};

fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    crate::kinds::validation::pod::template(errors, &Path::new("template"), get(object, "template"), None);
}

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    if crate::kinds::common::warnings::has_next_generation(object, old) {
        crate::kinds::validation::warnings::pod::template(
            warnings,
            &Path::new("template"),
            get(object, "template"),
        );
    }
}
