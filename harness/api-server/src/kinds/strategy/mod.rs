//! Implements the strategies of resources.
//!
//! A strategy prepares objects before they are stored. It sets names, times, the status, and the generation.

pub(crate) mod create;
pub(crate) mod deletion;
pub(crate) mod update;

use std::collections::HashSet;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::cluster_state::ClusterState;
use kubernetes_admission::config;
use kubernetes_admission::config::ConfigError;
use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::apiextensions::{custom_validation, definitions};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::discovery::Resource;
use crate::kinds::kind::{FieldPath, Kind, StatusKeeps};
use crate::kinds::{metadata_validation, table, validation};

/// The characters in the random suffixes of generated names.
///
/// Vowels are excluded so that suffixes do not form words.
///
/// Source: apimachinery pkg/util/rand/rand.go.
const ALPHANUMS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

const RANDOM_LENGTH: usize = 5;

/// The maximum length of the prefix of a generated name.
///
/// Source: apiserver pkg/storage/names/generate.go.
const MAX_GENERATED_NAME_LENGTH: usize = 63 - RANDOM_LENGTH;

/// Returns a name that consists of the prefix `base` and a random suffix.
pub(crate) fn generated_name(base: &str) -> String {
    let mut end = base.len().min(MAX_GENERATED_NAME_LENGTH);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let random = uuid::Uuid::new_v4();
    // The first bytes of a random UUID are fully random.
    let suffix = random.as_bytes().iter().take(RANDOM_LENGTH).map(|byte| {
        let letter = ALPHANUMS.get(usize::from(*byte) % ALPHANUMS.len()).copied().unwrap_or(b'b');
        char::from(letter)
    });
    base.get(..end).unwrap_or_default().chars().chain(suffix).collect()
}

/// Returns the fields whose ownership a write of this resource or subresource does not change.
///
/// Source: `GetResetFields` in kubernetes `pkg/registry/*/*/strategy.go` and in apiextensions-apiserver
/// `pkg/registry/customresource/{strategy,status_strategy}.go`.
pub(crate) fn reset_fields(resource: &Resource, subresource: &str) -> &'static [FieldPath] {
    let kind = table::of(resource);
    if let Some(fields) = Kind::on(kind.reset_fields, subresource) {
        return fields;
    }
    match subresource {
        "status" if resource.custom.is_some() || !matches!(kind.status_keeps, StatusKeeps::Fields(_)) => {
            &[&["metadata"], &["spec"]]
        }
        "status" => &[&["spec"]],
        // Some of these subresources discard changes to fields but still change the ownership.
        "scale" | "binding" | "eviction" | "token" | "ephemeralcontainers" | "resize" => &[],
        _ if resource.has_status() => &[&["status"]],
        _ => &[],
    }
}

/// Returns whether an update creates a missing object.
///
/// Rule: APY-21.
pub(crate) fn allows_creation_by_update(resource: &Resource) -> bool {
    table::of(resource).is_created_by_update
}

/// Returns whether an update may omit the resource version.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/strategy.go for custom resources;
/// `AllowUnconditionalUpdate` in kubernetes `pkg/registry/*/*/strategy.go` for other kinds.
/// Rule: POL-B.
pub(crate) fn allows_unconditional_update(resource: &Resource) -> bool {
    resource.custom.is_none() && !table::of(resource).requires_resource_version
}

/// Validates an object of any kind.
///
/// # Errors
/// Returns 422 for an invalid object, or 501 for constructs that admit does not support.
pub(crate) fn validate(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
) -> Result<(), Box<Status>> {
    validate_after(Vec::new(), object, old, resource, subresource, &mut Vec::new())
}

/// Validates an object as [`validate`] does. Reports the errors in `first` before all others.
///
/// Adds to `warnings`, even if the object is invalid.
///
/// # Errors
/// Returns 422 for an invalid object, or 501 for constructs that admit does not support.
pub(crate) fn validate_after(
    first: Vec<FieldError>,
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
    warnings: &mut Vec<String>,
) -> Result<(), Box<Status>> {
    if resource.custom.is_some() {
        return custom_validation::validate(object, old, resource, subresource, warnings);
    }
    let kind = table::of(resource);
    let is_configuration = kind.is_webhook_configuration;
    let mut errors = match old {
        Some(old) if is_configuration => {
            let (mut errors, others): (Vec<_>, Vec<_>) = config::validate_update(object, old)
                .into_iter()
                .partition(|error| error.field.starts_with("metadata"));
            errors.extend(metadata_validation::validate_update(object, old));
            errors.extend(others);
            errors
        }
        None if is_configuration => config::validate(object),
        Some(old) if kind.is_definition => metadata_validation::validate_repeatedly(object, old, kind),
        old => metadata_validation::validate(object, old, kind),
    };
    errors.splice(..0, first);
    let further = validation::errors(object, old, resource, subresource);
    let further = further.map_err(|unsupported| Status::unsupported(&unsupported))?;
    if old.is_none() && kind.validates_metadata_last && !further.is_empty() {
        errors = further;
    } else {
        errors.extend(further);
    }
    if kind.is_definition {
        warnings.extend(definitions::validate(object, old, subresource, errors)?);
        return Ok(());
    }
    // All other kinds have generated validation, so upstream reports each error only once.
    metadata_validation::report_once(&mut errors);
    if !errors.is_empty() {
        let name = metadata::text(object, "name");
        let group = resource.storage_group();
        return Err(Box::new(Status::invalid(group, &resource.kind.kind, name, &errors)));
    }
    if is_configuration {
        validate_configuration(object)?;
    }
    Ok(())
}

/// Changes a valid object as its validation upstream does.
///
/// # Errors
/// Returns 501 for constructs that admit does not support.
pub(crate) fn canonicalize(object: &mut Value, resource: &Resource) -> Result<(), Box<Status>> {
    (table::of(resource).canonicalize)(object)
}

/// Returns an error for admin access to devices if the namespace does not allow it.
pub(crate) fn admin_access(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
    state: &dyn ClusterState,
) -> Option<FieldError> {
    (table::of(resource).admin_access)(object, old, subresource, &|name| state.namespace(name))
}

/// Validates an object in an update of a subresource, after other validation.
///
/// # Errors
/// Returns 422 for an invalid object.
pub(crate) fn validate_conditions(
    object: &Value,
    old: &Value,
    resource: &Resource,
    subresource: &str,
) -> Result<(), Box<Status>> {
    let errors = (table::of(resource).validate_after)(object, old, subresource);
    if errors.is_empty() {
        return Ok(());
    }
    let (kind, name) = (&resource.kind, metadata::text(object, "name"));
    Err(Box::new(Status::invalid(&kind.group, &kind.kind, name, &errors)))
}

/// Returns the server's warnings about an object, without the warnings of webhooks.
pub(crate) fn warnings(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
) -> Vec<String> {
    if resource.custom.is_some() {
        return unqualified_finalizers(object, old);
    }
    let (kind, mut warnings) = (table::of(resource), Warnings::default());
    match subresource {
        "" => (kind.warn)(&mut warnings, object, old),
        "status" => (kind.warn_status)(&mut warnings, object),
        _ => {}
    }
    warnings.into_texts()
}

/// Returns warnings about new finalizers that are not domain-qualified.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/strategy.go, `generateWarningsFromObj`, and
/// pkg/registry/customresource/validator.go, `validateKubeFinalizerName`.
fn unqualified_finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let before: HashSet<&str> = old.into_iter().flat_map(metadata::finalizers).collect();
    let known = ["orphan", "foregroundDeletion", "kubernetes"];
    metadata::finalizers(object)
        .filter(|name| !name.contains('/') && !known.contains(name) && !before.contains(name))
        .map(|name| {
            let path = if name.contains('.') { " including a path (/)" } else { "" };
            format!(
                "metadata.finalizers: {}: prefer a domain-qualified finalizer name{path} to avoid accidental \
                 conflicts with other finalizer writers",
                Value::from(name)
            )
        })
        .collect()
}

/// Checks that the dispatcher can load a webhook configuration.
fn validate_configuration(configuration: &Value) -> Result<(), Box<Status>> {
    match config::stored_webhooks(configuration) {
        Ok(_) => Ok(()),
        Err(ConfigError::Unsupported(unsupported)) => Err(Box::new(Status::unsupported(&unsupported))),
        Err(error @ ConfigError::Field { .. }) => Err(Box::new(Status::bad_request(error.to_string()))),
    }
}

/// Returns whether `given` is the kind `Eviction` of `policy/v1beta1`. The subresource also accepts this kind.
///
/// Source: kubernetes pkg/registry/core/pod/storage/eviction.go, `EvictionREST.AcceptsGroupVersion`.
pub(crate) fn accepts_beta_eviction(given: &GroupVersionKind, kind: &GroupVersionKind) -> bool {
    let beta = GroupVersionKind::new("policy", "v1beta1", "Eviction");
    *given == beta && (&kind.group, &kind.kind) == (&beta.group, &beta.kind)
}
