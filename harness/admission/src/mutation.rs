//! What the patch of a mutating webhook does to the object.

use kubernetes_types::equality::semantically_equal;
use kubernetes_types::quoting::quote;
use kubernetes_types::schema;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::Value;

use crate::admission_run::AdmissionRun;
pub(crate) use crate::attributes::GroupVersionKind;
use crate::cluster_state::ClusterState;
use crate::custom_scale;
use crate::event::CallFailure;
use crate::failure;
use crate::patch::{self, ApplyError, Operations, Patch};
use crate::review::decode;
use crate::review::response::Response;

/// What a patch did.
#[derive(Debug)]
pub(crate) struct Patched {
    /// The operations, never empty.
    pub(crate) operations: Operations,
    /// Whether the object is another one now, its defaults aside.
    pub(crate) changed: bool,
}

/// Why a patch was not applied.
#[derive(Debug)]
pub(crate) enum PatchError {
    /// The webhook failed: its failure policy decides.
    Failure(CallFailure),
    /// The server cannot go on, whatever the failure policy.
    Server(Box<Status>),
    /// kube-apiserver would apply it, or hang; admit cannot.
    Unsupported(Unsupported),
}

/// Applies the patch of `response` to the object in the version of `kind` and fills in the defaults. None: there is no
/// patch.
///
/// To lose fractions of a second is a change: the first patch sends the object through JSON.
///
/// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, `callAttrMutatingHook`.
/// Rule: MUT-05, MUT-06, MUT-07, MUT-08, MUT-09, MUT-10, MUT-13, MUT-14, MUT-22.
pub(crate) fn apply(
    webhook: &str,
    response: &Response,
    kind: &GroupVersionKind,
    run: &mut AdmissionRun<'_>,
) -> Result<Option<Patched>, PatchError> {
    if response.patch.is_empty() {
        return Ok(None);
    }
    patch::check_size(&response.patch).map_err(PatchError::Unsupported)?;
    let patch = Patch::decode(&response.patch).map_err(|error| {
        let reason = format!("received undecodable patch in webhook response: {error}");
        PatchError::Failure(CallFailure { reason, code: 503 })
    })?;
    if patch.is_empty() {
        return Ok(None);
    }
    let Some(object) = run.objects(kind).object else {
        return Err(PatchError::Server(failure::nothing_to_patch(webhook)));
    };
    if response.patch_type != "JSONPatch" {
        let code = response.status.as_ref().map_or(400, failure::denial_code);
        let reason = format!("unsupported patch type {}", quote(&response.patch_type));
        let code = u16::try_from(code).unwrap_or(u16::MAX);
        return Err(PatchError::Failure(CallFailure { reason, code }));
    }
    let state = run.state();
    let patched = patch.apply(object).map_err(|error| match error {
        ApplyError::Unsupported(unsupported) => PatchError::Unsupported(unsupported),
        error @ (ApplyError::DoesNotApply(_) | ApplyError::Panic(_)) => internal_error(&error.to_string()),
    })?;
    let is_scale = custom_scale::is_meant(run.attributes());
    let built_in = state.is_built_in(kind) && !is_scale;
    let (mut patched, meant) = decoded(patched, kind, built_in, state)?;
    // Before times lose what is below a second.
    let differs = if is_scale {
        // It is of no Go type any more, which is a change.
        !run.is_patched() || *object != patched
    } else {
        !semantically_equal(object, &patched, kind)
    };
    let changed = (run.round_times() && built_in) || differs;
    if built_in {
        // Fields that its type does not have are dropped without a warning.
        drop(schema::normalize(&mut patched, &meant));
    }
    let has_labels = has_labels(&patched);
    if !is_scale {
        state.set_defaults(&mut patched);
    }
    run.patch(kind, patched, has_labels);
    Ok(Some(Patched { operations: patch.operations_of(&response.patch), changed }))
}

/// Whether an object has labels that are none of its defaults, before it gets these.
fn has_labels(object: &Value) -> bool {
    object.pointer("/metadata/labels").and_then(Value::as_object).is_some_and(|labels| !labels.is_empty())
}

/// The patched document as an object of the server that was in the version of `kind`, and its kind.
///
/// Source: apimachinery pkg/runtime/serializer/json/json.go, `Decode`; pkg/runtime/error.go.
/// Rule: MUT-09, MUT-11, MUT-12, MUT-16.
fn decoded(
    mut patched: Value,
    kind: &GroupVersionKind,
    built_in: bool,
    state: &dyn ClusterState,
) -> Result<(Value, GroupVersionKind), PatchError> {
    let found = decode::type_meta(&patched).map_err(|error| internal_error(&error.into_text()))?;
    if !built_in && found.kind.is_empty() {
        return Err(internal_error(&format!("Object 'Kind' is missing in '{patched}'")));
    }
    let Value::Object(object) = &mut patched else {
        return Err(internal_error("the patched document is not an object"));
    };
    if !built_in {
        schema::normalize_numbers(&mut patched);
        return Ok((patched, found));
    }
    let mut meant = found.clone();
    if meant.kind.is_empty() {
        meant.kind.clone_from(&kind.kind);
    }
    if meant.version.is_empty() && meant.group.is_empty() {
        meant.group.clone_from(&kind.group);
        meant.version.clone_from(&kind.version);
    }
    if meant != *kind && !state.is_built_in(&meant) {
        return Err(internal_error(&format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(&meant.kind),
            quote(&meant.api_version()),
        )));
    }
    schema::type_error(object, &meant, "").map_err(|text| internal_error(&text))?;
    object.insert("apiVersion".to_owned(), meant.api_version().into());
    object.insert("kind".to_owned(), meant.kind.clone().into());
    Ok((patched, meant))
}

fn internal_error(message: &str) -> PatchError {
    PatchError::Server(Box::new(Status::internal_error(message)))
}
