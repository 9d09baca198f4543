//! Implements Namespaces.

use kubernetes_types::json::{keep, set, text};
use kubernetes_types::names;
use kubernetes_types::status::FieldError;
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::common;
use crate::kinds::common::cells::{Context, age_of, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, fill};
use crate::kinds::common::fields::{Errors, Path, get, texts};
use crate::kinds::common::finalizers::{FOREGROUND, ORPHAN};
use crate::kinds::common::preparation;
use crate::kinds::common::preparation::set_status;
use crate::kinds::kind::{DeleteEffect, Kind};

/// The behavior of Namespaces.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "namespaces",
    kind: "Namespace",
    set_defaults: Some(set_defaults),
    validate_name: |name, _| {
        if name.contains('.') { vec!["must not contain dots".to_owned()] } else { names::dns1123_label(name) }
    },
    returns_deleted_object: true,
    prepare_create,
    prepare_update,
    prepare_status: |object, _| set_name_label(object),
    prepare_subresources: &[("finalize", prepare_finalize)],
    validate,
    validate_subresources: &[
        ("status", |errors, object, _| errors.extend(wrong_phase(object))),
        ("finalize", validate_finalize),
    ],
    delete,
    waits_for_controllers: has_finalizers_in_spec,
    failed_precondition: [Some("Precondition failed"), Some("Precondition failed")],
    has_uid_precondition: [true, true],
    cells: Some(cells),
    selectable_fields: Some(&["metadata.name", "status.phase"]),
    ..Kind::PLAIN
};

fn set_name_label(object: &mut Value) {
    let name = metadata::text(object, "name").to_owned();
    preparation::set_label(object, "kubernetes.io/metadata.name", &name);
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
    errors.extend(wrong_phase(object));
    if change.is_none() {
        validate_finalizers(errors, object, true);
    }
}

fn validate_finalize(errors: &mut Errors, object: &Value, _: Change<'_>) {
    errors.extend(wrong_phase(object));
    validate_finalizers(errors, object, false);
}

/// Returns the effect of a DELETE on a Namespace; `None` if the DELETE removes the Namespace like any other object.
///
/// Source: kubernetes pkg/registry/core/namespace/storage/storage.go, `Delete`.
pub(crate) fn delete(stored: &Value, options: &Value, _: bool) -> Option<DeleteEffect> {
    if metadata::is_deleting(stored) {
        return has_finalizers_in_spec(stored).then_some(DeleteEffect::Pending);
    }
    let mut object = stored.clone();
    metadata::set(&mut object, "deletionTimestamp", metadata::now().into());
    metadata::set(&mut object, "finalizers", finalizers_of_namespace(stored, options).into());
    set(&mut object, &["status", "phase"], "Terminating");
    kubernetes_types::schema::normalize_metadata(&mut object);
    Some(DeleteEffect::Changed { object, gone: false })
}

/// Returns the finalizers of a namespace being deleted. `orphanDependents: false` means a foreground deletion.
///
/// Source: kubernetes pkg/registry/core/namespace/storage/storage.go, `shouldHaveOrphanFinalizer` and
/// `shouldHaveDeleteDependentsFinalizer`.
/// Rule: REQ-24.
fn finalizers_of_namespace(stored: &Value, options: &Value) -> Vec<String> {
    let own: Vec<&str> = metadata::finalizers(stored).collect();
    let orphans = options.get("orphanDependents").and_then(Value::as_bool);
    let policy = options.get("propagationPolicy").and_then(Value::as_str);
    let has = |finalizer: &str, wants_orphans: bool, wanted: &str| match (orphans, policy) {
        (Some(orphans), _) => orphans == wants_orphans,
        (None, Some(policy)) => policy == wanted,
        (None, None) => own.contains(&finalizer),
    };
    let of_collector =
        [(ORPHAN, has(ORPHAN, true, "Orphan")), (FOREGROUND, has(FOREGROUND, false, "Foreground"))];
    let mut all: Vec<&str> = own.clone();
    all.retain(|own| of_collector.iter().all(|(finalizer, has)| finalizer != own || *has));
    for (finalizer, has) in of_collector {
        if has && !all.contains(&finalizer) {
            all.push(finalizer);
        }
    }
    all.into_iter().map(str::to_owned).collect()
}

/// Returns whether the `spec` of a Namespace still has finalizers.
///
/// Source: kubernetes pkg/registry/core/namespace/storage/storage.go, `ShouldDeleteNamespaceDuringUpdate`.
pub(crate) fn has_finalizers_in_spec(namespace: &Value) -> bool {
    let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Sets the defaults of a Namespace. A Namespace without a name does not get the name label.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Namespace` and `SetDefaults_NamespaceStatus`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "spec");
    if let Some(status) = ensure(object, "status") {
        fill(status, "phase", "Active");
    }
    let Some(metadata) = ensure(object, "metadata") else { return };
    let name = common::defaults::text(metadata, "name").to_owned();
    if !name.is_empty()
        && let Some(labels) = ensure(metadata, "labels")
    {
        set(labels, &["kubernetes.io/metadata.name"], name);
    }
}

/// Returns an error if the phase of a Namespace does not match its deletion timestamp.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNamespaceStatusUpdate`.
pub(crate) fn wrong_phase(namespace: &Value) -> Option<FieldError> {
    let phase = text(namespace, &["status", "phase"]);
    let (only, when) =
        if metadata::is_deleting(namespace) { ("Terminating", "not ") } else { ("Active", "") };
    let why = format!("may only be '{only}' if `deletionTimestamp` is {when}empty");
    (phase != only).then(|| FieldError::invalid("status.Phase", Value::from(phase), why))
}

pub(crate) fn prepare_create(object: &mut Value) {
    let name = metadata::text(object, "name").to_owned();
    if let Some(spec) =
        object.as_object_mut().map(|members| members.entry("spec").or_insert_with(|| json!({})))
    {
        let finalizers = spec.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        let missing = !finalizers.iter().any(|finalizer| finalizer == "kubernetes");
        let all: Vec<Value> = finalizers.into_iter().chain(missing.then(|| "kubernetes".into())).collect();
        *spec = json!({"finalizers": all});
    }
    set_status(object, json!({"phase": "Active"}));
    preparation::set_label(object, "kubernetes.io/metadata.name", &name);
}

/// Validates the finalizers of a namespace. In an update, errors include the index of the finalizer.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNamespace` and
/// `ValidateNamespaceFinalizeUpdate`.
/// Rule: VLO-38.
pub(crate) fn validate_finalizers(errors: &mut Errors, object: &Value, is_new: bool) {
    let path = Path::new("spec");
    let path = path.child("finalizers");
    for (index, name) in texts(get(object, "spec"), "finalizers").enumerate() {
        let path = if is_new { path } else { path.index(index) };
        errors.all_invalid(&path, name, names::label_key(name));
        if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid_text(&path, name, why);
        }
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), text(object, &["status", "phase"]), age_of(object, context)]
}
