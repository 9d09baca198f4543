//! Implements `DeviceClass` objects.

use kubernetes_types::status::Unsupported;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, list, set};
use crate::kinds::common::{cells, formats};
use crate::kinds::kind::Kind;
use crate::kinds::resource::devices::{configuration, generated, most, selectors};

/// The behavior of `DeviceClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "deviceclasses",
    kind: "DeviceClass",
    has_name_by_type: true,
    returns_deleted_object: true,
    validate: |errors, object, change| {
        let result = validate_class(errors, object, change);
        errors.note(result);
    },
    cells: Some(cells::name_and_age),
    ..Kind::COUNTED
};

/// Validates a `DeviceClass`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateDeviceClass` and
/// `ValidateDeviceClassUpdate`; `pkg/apis/resource/v1/zz_generated.validations.go`.
/// Rule: VLO-45.
///
/// # Errors
/// Returns an error for a construct that admit cannot validate as kube-apiserver does.
pub(crate) fn validate_class(
    errors: &mut Errors,
    object: &Value,
    change: Option<Change<'_>>,
) -> Result<(), Unsupported> {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let is_stored = |field: &str| {
        change.is_some_and(|change| set(spec, field).is_some() && change.is_same(&["spec", field]))
    };
    selectors(errors, &path, spec, is_stored("selectors"))?;
    let configs = path.child("config");
    if list(spec, "config").len() <= most::REQUESTS {
        for (index, config) in list(spec, "config").iter().enumerate() {
            configuration(errors, &configs.index(index), config, is_stored("config"));
        }
    }
    formats::name_by_type(errors, object);
    generated::class_spec(errors, &path, spec);
    Ok(())
}
