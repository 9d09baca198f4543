//! Implements `ResourceClaimTemplate` objects.

use std::sync::Arc;

use kubernetes_types::status::{FieldError, Unsupported};
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::with;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get};
use crate::kinds::common::{cells, disabled_fields};
use crate::kinds::core::persistent_volume_claim;
use crate::kinds::kind::Kind;
use crate::kinds::resource::defaults::claim_spec;
use crate::kinds::resource::resource_claim::admin_access_of;
use crate::kinds::resource::{devices, resource_claim};

/// The behavior of `ResourceClaimTemplate` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceclaimtemplates",
    kind: "ResourceClaimTemplate",
    set_defaults: Some(set_defaults),
    returns_deleted_object: true,
    drop_disabled_fields: |object| {
        disabled_fields::drop_all(object.pointer_mut("/spec/spec"), resource_claim::OF_CLAIMS);
    },
    validate: |errors, object, change| {
        let result = validate_template(errors, object, change);
        errors.note(result);
    },
    cells: Some(cells::name_and_age),
    admin_access,
    ..Kind::PLAIN
};

/// Sets the defaults of a `ResourceClaimTemplate`.
///
/// Source: kubernetes `pkg/apis/resource/v1/zz_generated.defaults.go`, `SetObjectDefaults_ResourceClaimTemplate`.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "spec", |template| with(template, "spec", claim_spec));
}

/// Validates a `ResourceClaimTemplate`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateResourceClaimTemplate` and
/// `ValidateResourceClaimTemplateUpdate`.
/// Rule: VLO-45.
///
/// # Errors
/// Returns an error for a construct that admit cannot validate as kube-apiserver does.
pub(crate) fn validate_template(
    errors: &mut Errors,
    object: &Value,
    change: Option<Change<'_>>,
) -> Result<(), Unsupported> {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    persistent_volume_claim::validation::template_metadata(
        errors,
        &path.child("metadata"),
        get(spec, "metadata"),
    );
    devices::claim_spec(errors, &path.child("spec"), get(spec, "spec"))?;
    if change.is_some_and(|change| !change.is_same(&["spec"])) {
        errors.invalid_structure(&path, "resource.ResourceClaimTemplateSpec", spec, IMMUTABLE);
    }
    Ok(())
}

/// Rejects admin access in a new claim template. The error has the path of a claim.
pub(crate) fn admin_access(
    object: &Value,
    old: Option<&Value>,
    subresource: &str,
    namespace: &dyn Fn(&str) -> Option<Arc<Value>>,
) -> Option<FieldError> {
    if !subresource.is_empty() || old.is_some() {
        return None;
    }
    admin_access_of(object, get(get(object, "spec"), "spec"), namespace)
}
