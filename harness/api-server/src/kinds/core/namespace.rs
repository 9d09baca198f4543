//! Implements Namespaces.

use crate::apimachinery::metadata;
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::kind::Kind;
use kubernetes_types::json::keep;
use kubernetes_types::names;
use serde_json::Value;

/// The behavior of Namespaces.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "namespaces",
    kind: "Namespace",
    set_defaults: Some(crate::kinds::defaulting::core::namespace),
    validate_name: |name, _| {
        if name.contains('.') { vec!["must not contain dots".to_owned()] } else { names::dns1123_label(name) }
    },
    returns_deleted_object: true,
    prepare_create: crate::kinds::strategy::create::namespace,
    prepare_update: prepare_update,
    prepare_status: |object, _| set_name_label(object),
    prepare_subresources: &[("finalize", prepare_finalize)],
    validate: validate,
    validate_subresources: &[
        ("status", |errors, object, _| errors.extend(crate::kinds::strategy::wrong_phase(object))),
        ("finalize", validate_finalize),
    ],
    delete: crate::kinds::deletion::delete_namespace,
    waits_for_controllers: crate::kinds::deletion::has_finalizers_in_spec,
    failed_precondition: [Some("Precondition failed"), Some("Precondition failed")],
    has_uid_precondition: [true, true],
    cells: Some(crate::kinds::tables::cluster::namespace),
    selectable_fields: Some(&["metadata.name", "status.phase"]),
    ..Kind::PLAIN
};

fn set_name_label(object: &mut Value) {
    let name = metadata::text(object, "name").to_owned();
    crate::kinds::strategy::set_label(object, "kubernetes.io/metadata.name", &name);
}

fn prepare_update(object: &mut Value, old: &Value) {
    keep(object, old, "spec");
    set_name_label(object);
}

fn prepare_finalize(object: &mut Value, old: &Value) {
    keep(object, old, "status");
    set_name_label(object);
}

fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    errors.extend(crate::kinds::strategy::wrong_phase(object));
    if change.is_none() {
        crate::kinds::validation::drivers::namespace(errors, object, true);
    }
}

fn validate_finalize(errors: &mut Errors, object: &Value, _: Change<'_>) {
    errors.extend(crate::kinds::strategy::wrong_phase(object));
    crate::kinds::validation::drivers::namespace(errors, object, false);
}
