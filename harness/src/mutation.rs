//! What the patch of a mutating webhook does to the object.

use serde_json::Value;

use crate::attributes::{Attributes, GroupVersionKind};
use crate::cluster_state::{ClusterState, ConversionError};
use crate::equality::semantically_equal;
use crate::event::CallFailure;
use crate::failure;
use crate::ownership::Times;
use crate::patch::Patch;
use crate::quoting::quote;
use crate::review::decode;
use crate::review::response::Response;
use crate::schema;
use crate::status::Status;
use crate::typed;

/// The object of a request on its way through the webhooks.
///
/// While it is on its way, `attributes.object` may be in another version than `attributes.kind` says.
#[derive(Debug)]
pub(crate) struct WorkingCopy {
    /// The version that the object is in.
    kind: GroupVersionKind,
    /// Whether a patch was applied: only then the object is converted back.
    patched: bool,
}

/// What a patch did.
#[derive(Debug)]
pub(crate) struct Patched {
    /// The operations, never empty.
    pub(crate) operations: Vec<Value>,
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
}

impl WorkingCopy {
    pub(crate) fn new(attributes: &Attributes) -> Self {
        Self { kind: attributes.kind.clone(), patched: false }
    }

    /// Makes `attributes.object` be in the version of `kind`.
    ///
    /// Source: apiserver pkg/admission/conversion.go, `ConvertVersionedAttributes`.
    pub(crate) fn convert(
        &mut self,
        kind: &GroupVersionKind,
        attributes: &mut Attributes,
        state: &dyn ClusterState,
    ) -> Result<(), ConversionError> {
        if self.kind == *kind {
            return Ok(());
        }
        if let Some(object) = &mut attributes.object {
            if self.kind != attributes.kind {
                *object = state.convert(object, &attributes.kind)?;
            }
            if attributes.kind != *kind {
                *object = state.convert(object, kind)?;
            }
        }
        self.kind.clone_from(kind);
        Ok(())
    }

    /// Applies the patch of `response` to `attributes.object` and fills in the defaults. None: there is no patch.
    ///
    /// `times` are those of the server's own copy of the object. To lose fractions of a second is a change: the first patch
    /// sends the object through JSON.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, `callAttrMutatingHook`.
    pub(crate) fn apply(
        &mut self,
        webhook: &str,
        response: &Response,
        attributes: &mut Attributes,
        times: &mut Times,
        state: &dyn ClusterState,
    ) -> Result<Option<Patched>, PatchError> {
        if response.patch.is_empty() {
            return Ok(None);
        }
        let patch = Patch::decode(&response.patch).map_err(|error| {
            let reason = format!("received undecodable patch in webhook response: {error}");
            PatchError::Failure(CallFailure { reason, code: 503 })
        })?;
        if patch.is_empty() {
            return Ok(None);
        }
        let Some(object) = &attributes.object else {
            return Err(PatchError::Server(failure::nothing_to_patch(webhook)));
        };
        if response.patch_type != "JSONPatch" {
            let code = response.status.as_ref().map_or(400, failure::denial_code);
            let reason = format!("unsupported patch type {}", quote(&response.patch_type));
            let code = u16::try_from(code).unwrap_or(u16::MAX);
            return Err(PatchError::Failure(CallFailure { reason, code }));
        }
        let patched = patch.apply(object).map_err(|error| internal_error(&error.to_string()))?;
        let mut patched = self.decoded(patched, state)?;
        let built_in = state.is_built_in(&self.kind);
        let loses_fractions = built_in && *times == Times::Fine;
        let changed = loses_fractions || !semantically_equal(object, &patched, built_in);
        *times = Times::Whole;
        self.patched = true;
        state.set_defaults(&mut patched);
        attributes.object = Some(patched);
        Ok(Some(Patched { operations: patch.operations().to_vec(), changed }))
    }

    /// Converts `attributes.object` back to the version of the request.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, `Dispatch`.
    pub(crate) fn fold_back(
        self,
        attributes: &mut Attributes,
        state: &dyn ClusterState,
    ) -> Result<(), ConversionError> {
        let Some(object) = &mut attributes.object else { return Ok(()) };
        let found = GroupVersionKind::of(object);
        if self.patched && state.is_built_in(&attributes.kind) && found != self.kind {
            return Err(ConversionError::Refused(format!(
                "converting ({}.{}) to ({}.{}): unknown conversion",
                found.version,
                found.kind,
                internal_package(&attributes.kind.group),
                attributes.kind.kind
            )));
        }
        if self.patched && found.version.is_empty() {
            return Err(ConversionError::Refused(format!(
                "{found} is unstructured and is not suitable for converting to {}",
                quote(&attributes.kind.api_version())
            )));
        }
        // A custom resource that became another kind is refused later, by its validation.
        if found != attributes.kind && found.kind == attributes.kind.kind {
            *object = state.convert(object, &attributes.kind)?;
        }
        Ok(())
    }

    /// The patched document as an object of the server.
    ///
    /// Source: apimachinery pkg/runtime/serializer/json/json.go, `Decode`; pkg/runtime/error.go.
    fn decoded(&self, mut patched: Value, state: &dyn ClusterState) -> Result<Value, PatchError> {
        let found = decode::type_meta(&patched).map_err(|error| internal_error(&error.into_text()))?;
        let built_in = state.is_built_in(&self.kind);
        if !built_in && found.kind.is_empty() {
            return Err(internal_error(&format!("Object 'Kind' is missing in '{patched}'")));
        }
        let Value::Object(object) = &mut patched else {
            return Err(internal_error("the patched document is not an object"));
        };
        if !built_in {
            schema::settle_numbers(&mut patched);
            return Ok(patched);
        }
        let mut meant = found.clone();
        if meant.kind.is_empty() {
            meant.kind.clone_from(&self.kind.kind);
        }
        if meant.version.is_empty() && meant.group.is_empty() {
            meant.group.clone_from(&self.kind.group);
            meant.version.clone_from(&self.kind.version);
        }
        if meant != self.kind && !state.is_built_in(&meant) {
            return Err(internal_error(&format!(
                "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
                quote(&meant.kind),
                quote(&meant.api_version()),
            )));
        }
        typed::check(object, &meant).map_err(|text| internal_error(&text))?;
        object.insert("apiVersion".to_owned(), meant.api_version().into());
        object.insert("kind".to_owned(), meant.kind.clone().into());
        // Nobody is told of what its type does not have.
        drop(schema::settle(&mut patched, &meant));
        Ok(patched)
    }
}

/// The Go package of a group's internal types.
fn internal_package(group: &str) -> &str {
    if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) }
}

fn internal_error(message: &str) -> PatchError {
    PatchError::Server(Box::new(Status::internal_error(message)))
}
