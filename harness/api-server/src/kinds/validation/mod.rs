//! Validates built-in kinds except for metadata, with one module for each group of kinds.
//!
//! Each rule is a function of an object and its old version, and reports errors in kube-apiserver's order.

pub(crate) mod admission_policies;
pub(crate) mod api_services;
pub(crate) mod attachments;
pub(crate) mod autoscaling;
pub(crate) mod certificate_extensions;
pub(crate) mod certificates;
pub(crate) mod config_data;
pub(crate) mod devices;
pub(crate) mod drivers;
pub(crate) mod endpoints;
pub(crate) mod events;
pub(crate) mod flow_control;
pub(crate) mod job_policies;
pub(crate) mod job_status;
pub(crate) mod jobs;
pub(crate) mod migrations;
pub(crate) mod networking;
pub(crate) mod nodes;
pub(crate) mod pod;
pub(crate) mod pod_certificates;
pub(crate) mod policies;
pub(crate) mod quotas;
pub(crate) mod schedule;
pub(crate) mod service_addresses;
pub(crate) mod services;
pub(crate) mod signing_requests;
pub(crate) mod statuses;
pub(crate) mod storage;
pub(crate) mod volumes;
pub(crate) mod warnings;
pub(crate) mod workloads;

use kubernetes_types::schema::Type;
use kubernetes_types::status::{FieldError, Unsupported};
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path};
use crate::kinds::common::internal::Form;
use crate::kinds::discovery::Resource;
use crate::kinds::kind::Kind;
use crate::kinds::table;

/// Returns an error for each reason why the versions of a definition are invalid.
///
/// # Errors
/// Returns an error if the error messages would be too large.
pub(crate) fn of_versions(versions: &Value, whys: &[&str]) -> Result<Vec<FieldError>, Unsupported> {
    let (mut errors, spec) = (Errors::default(), Path::new("spec"));
    for why in whys {
        let shown = errors.shown(Form::List, "apiextensions.CustomResourceDefinitionVersion", versions);
        errors.invalid(&spec.child("versions"), shown, why);
    }
    errors.into_list()
}

/// Validates an object. For an update of the object or of a subresource, `old` is the previous object.
///
/// Rule: VLO-01.
///
/// # Errors
/// Returns an error if the object requires validation that admit does not support.
pub(crate) fn errors(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
) -> Result<Vec<FieldError>, Unsupported> {
    let mut errors = Errors::default();
    let change = old.map(|old| Change { new: object, old, of: Type::for_kind(&resource.kind) });
    let kind = table::of(resource);
    if subresource.is_empty() {
        (kind.validate)(&mut errors, object, change);
    } else if let (Some(validate), Some(change)) = (Kind::on(kind.validate_subresources, subresource), change)
    {
        validate(&mut errors, object, change);
    }
    errors.into_list()
}
