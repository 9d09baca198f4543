//! Implements `PodTemplate` objects.

use kubernetes_types::json::at;
use serde_json::Value;

use crate::kinds::common;
use crate::kinds::common::cells::{Context, containers, items, labels, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::ensure;
use crate::kinds::common::fields::{Errors, Path, get};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::core::pod;
use crate::kinds::core::pod::disabled_fields;
use crate::kinds::kind::Kind;

/// The behavior of `PodTemplate` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "podtemplates",
    kind: "PodTemplate",
    set_defaults: Some(set_defaults),
    returns_deleted_object: true,
    drop_disabled_fields: |object| disabled_fields::drop_of_pod(object.pointer_mut("/template/spec")),
    validate,
    warn,
    cells: Some(cells),
    ..Kind::COUNTED
};

fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    pod::validation::template(errors, &Path::new("template"), get(object, "template"), None);
}

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    if common::warnings::has_next_generation(object, old) {
        pod::warnings::template(warnings, &Path::new("template"), get(object, "template"));
    }
}

/// Sets the defaults of a `PodTemplate`.
///
/// Source: kubernetes `pkg/apis/core/v1/zz_generated.defaults.go`, `SetObjectDefaults_PodTemplate`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(template) = ensure(object, "template") {
        pod::defaults::template(template);
    }
}

pub(crate) fn cells(object: &Value, _: &Context<'_>) -> Vec<Value> {
    let (names, images) = containers(items(object, &["template", "spec", "containers"]));
    row![name(object), names, images, labels(at(object, &["template", "metadata", "labels"]))]
}
