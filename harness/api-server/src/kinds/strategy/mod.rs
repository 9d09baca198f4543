//! Implements the strategies of resources.
//!
//! A strategy prepares objects before they are stored. It sets names, times, the status, and the generation.

pub(crate) mod app_armor;
pub(crate) mod certificate;
pub(crate) mod claim;
pub(crate) mod create;
pub(crate) mod deletion;
pub(crate) mod disabled_fields;
pub(crate) mod job;
pub(crate) mod pod;
pub(crate) mod service;
pub(crate) mod update;

use std::collections::HashSet;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::authorizer::RBAC_GROUP;
use kubernetes_admission::cluster_state::ClusterState;
use kubernetes_admission::config;
use kubernetes_admission::config::ConfigError;
use kubernetes_types::json::text;
use kubernetes_types::status::{FieldError, Status};
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::apiextensions::{custom_resources, custom_validation, definitions};
use crate::kinds::discovery::Resource;
use crate::kinds::validation::devices;
use crate::kinds::{metadata_validation, rbac, strategy, validation, webhook_configurations};

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

/// The resources whose strategy increments `metadata.generation`.
///
/// Source: `PrepareForCreate` in kubernetes `pkg/registry/*/*/strategy.go`; apiextensions-apiserver
/// pkg/registry/customresourcedefinition/strategy.go.
const GENERATION_RESOURCES: [&str; 28] = [
    "horizontalpodautoscalers.autoscaling",
    "pods",
    "replicationcontrollers",
    "podtemplates",
    "deployments.apps",
    "replicasets.apps",
    "daemonsets.apps",
    "statefulsets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "poddisruptionbudgets.policy",
    "ingresses.networking.k8s.io",
    "ingressclasses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
    "endpointslices.discovery.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "deviceclasses.resource.k8s.io",
    "devicetaintrules.resource.k8s.io",
    "resourceslices.resource.k8s.io",
];

/// The resources whose updates require a resource version.
///
/// Source: `AllowUnconditionalUpdate` in kubernetes `pkg/registry/*/*/strategy.go`, apiextensions-apiserver
/// `pkg/registry/*/strategy.go` and kube-aggregator pkg/registry/apiservice/strategy.go.
/// Rule: POL-B.
const CONDITIONAL_UPDATE_RESOURCES: [&str; 20] = [
    "clustertrustbundles.certificates.k8s.io",
    "podcertificaterequests.certificates.k8s.io",
    "devicetaintrules.resource.k8s.io",
    "runtimeclasses.node.k8s.io",
    "storageversionmigrations.storagemigration.k8s.io",
    "poddisruptionbudgets.policy",
    "csidrivers.storage.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "leases.coordination.k8s.io",
    "leasecandidates.coordination.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "apiservices.apiregistration.k8s.io",
];

/// The `apps/v1` annotation for the template generation of a `DaemonSet`. The internal type has a field for it.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

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

pub(crate) fn counts_generation(resource: &Resource) -> bool {
    resource.custom.is_some() || GENERATION_RESOURCES.contains(&resource.gvr.group_resource().as_str())
}

/// Returns the fields whose ownership a write of this resource or subresource does not change.
///
/// Source: `GetResetFields` in kubernetes `pkg/registry/*/*/strategy.go` and in apiextensions-apiserver
/// `pkg/registry/customresource/{strategy,status_strategy}.go`.
pub(crate) fn reset_fields(resource: &Resource, subresource: &str) -> &'static [&'static [&'static str]] {
    match (subresource, resource.gvr.group_resource().as_str()) {
        ("status", kind) if resource.custom.is_some() || strategy::update::keeps_metadata(kind) => {
            &[&["metadata"], &["spec"]]
        }
        ("status", "deployments.apps") => &[&["spec"], &["metadata", "labels"]],
        ("status", "pods") => {
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
        }
        ("status", "certificatesigningrequests.certificates.k8s.io") => {
            &[&["spec"], &["status", "conditions"]]
        }
        ("status", _) => &[&["spec"]],
        ("", "certificatesigningrequests.certificates.k8s.io") => &[&["spec"], &["status"]],
        ("approval", _) => &[&["spec"], &["status", "certificate"]],
        // Some of these subresources discard changes to fields but still change the ownership.
        ("scale" | "binding" | "eviction" | "token" | "ephemeralcontainers" | "resize", _) => &[],
        _ if resource.has_status() => &[&["status"]],
        _ => &[],
    }
}

/// The resources whose objects an update creates if they do not exist.
///
/// Source: `AllowCreateOnUpdate` in kubernetes `pkg/registry/*/*/strategy.go`.
const CREATE_ON_UPDATE_RESOURCES: [&str; 11] = [
    "runtimeclasses.node.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "leases.coordination.k8s.io",
    "leasecandidates.coordination.k8s.io",
    "limitranges",
    "events",
    "services",
    "endpoints",
];

/// Returns whether an update creates a missing object.
///
/// Rule: APY-21.
pub(crate) fn allows_creation_by_update(resource: &Resource) -> bool {
    let name = format!("{}.{}", resource.gvr.resource, resource.storage_group());
    CREATE_ON_UPDATE_RESOURCES.contains(&name.trim_end_matches('.'))
}

/// Returns whether an update may omit the resource version.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/strategy.go for custom resources; else see the table.
pub(crate) fn allows_unconditional_update(resource: &Resource) -> bool {
    resource.custom.is_none()
        && !CONDITIONAL_UPDATE_RESOURCES.contains(&resource.gvr.group_resource().as_str())
}

/// Returns whether the metadata of a new object is validated only if there are no other errors.
///
/// Source: kubernetes pkg/apis/policy/validation/validation.go, `ValidatePodDisruptionBudget`, which leaves it to
/// apiserver pkg/registry/rest/create.go, `ValidateCreate`; pkg/apis/core/validation/events.go, `ValidateEventCreate`.
/// Rule: VLO-22.
fn validates_metadata_last(resource: &Resource) -> bool {
    ["poddisruptionbudgets.policy", "events"].contains(&resource.gvr.group_resource().as_str())
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
    let (group, plural) = (resource.gvr.group.as_str(), resource.gvr.resource.as_str());
    if resource.custom.is_some() {
        return custom_validation::validate(object, old, resource, subresource, warnings);
    }
    let is_configuration = is_configuration(resource);
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
        Some(old) if group == custom_resources::GROUP => {
            metadata_validation::validate_repeatedly(object, old, resource)
        }
        old => metadata_validation::validate(object, old, resource),
    };
    errors.splice(..0, first);
    if resource.gvr.group_resource() == "namespaces" {
        errors.extend(wrong_phase(object));
    }
    if group == RBAC_GROUP {
        errors.extend(rbac::validation::errors(object, old, resource));
    }
    let further = validation::errors(object, old, resource, subresource);
    let further = further.map_err(|unsupported| Status::unsupported(&unsupported))?;
    if old.is_none() && validates_metadata_last(resource) && !further.is_empty() {
        errors = further;
    } else {
        errors.extend(further);
    }
    if group == custom_resources::GROUP && plural == custom_resources::RESOURCE {
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
    match resource.gvr.group_resource().as_str() {
        "customresourcedefinitions.apiextensions.k8s.io" => definitions::coerce_defaults(object),
        _ => Ok(()),
    }
}

/// Returns an error for admin access to devices if the namespace does not allow it.
pub(crate) fn admin_access(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
    state: &dyn ClusterState,
) -> Option<FieldError> {
    let kind = resource.gvr.group_resource();
    devices::admin_access(object, old, &kind, subresource, |name| state.namespace(name))
}

/// Validates the conditions of a `CertificateSigningRequest` in an update of its status or its approval.
///
/// # Errors
/// Returns 422 for an invalid condition.
pub(crate) fn validate_conditions(
    object: &Value,
    old: &Value,
    resource: &Resource,
    subresource: &str,
) -> Result<(), Box<Status>> {
    if resource.gvr.group_resource() != certificate::RESOURCE || subresource.is_empty() {
        return Ok(());
    }
    let errors = certificate::errors(object, old, subresource);
    if errors.is_empty() {
        return Ok(());
    }
    let (kind, name) = (&resource.kind, metadata::text(object, "name"));
    Err(Box::new(Status::invalid(&kind.group, &kind.kind, name, &errors)))
}

/// Returns an error if the phase of a Namespace does not match its deletion timestamp.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNamespaceStatusUpdate`.
fn wrong_phase(namespace: &Value) -> Option<FieldError> {
    let phase = text(namespace, &["status", "phase"]);
    let (only, when) =
        if metadata::is_deleting(namespace) { ("Terminating", "not ") } else { ("Active", "") };
    let why = format!("may only be '{only}' if `deletionTimestamp` is {when}empty");
    (phase != only).then(|| FieldError::invalid("status.Phase", Value::from(phase), why))
}

/// Returns whether the objects of a resource are webhook configurations.
pub(crate) fn is_configuration(resource: &Resource) -> bool {
    let plural = resource.gvr.resource.as_str();
    resource.gvr.group == webhook_configurations::GROUP
        && [webhook_configurations::MUTATING, webhook_configurations::VALIDATING].contains(&plural)
}

/// Returns whether setting an absent list or map to an empty list or map counts as a change.
///
/// The strategies of other resources treat absent and empty fields alike.
///
/// Source: `reflect.DeepEqual` in `PrepareForUpdate` in kubernetes
/// `pkg/registry/admissionregistration/*webhookconfiguration/strategy.go` and
/// pkg/registry/networking/networkpolicy/strategy.go.
pub(crate) fn counts_empty_fields(resource: &Resource) -> bool {
    is_configuration(resource) || resource.gvr.group_resource() == "networkpolicies.networking.k8s.io"
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
    if !is_configuration(resource) {
        return validation::warnings::warnings(object, old, resource, subresource);
    }
    let mut warnings = config::warnings(object);
    if old.is_some() {
        warnings.extend(config::update_warnings(object));
    }
    warnings
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

pub(crate) fn set_annotation(object: &mut Value, key: &str, value: &str) {
    set_in_metadata(object, "annotations", key, value);
}

/// Sets a label of an object.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Namespace`.
pub(crate) fn set_label(object: &mut Value, key: &str, value: &str) {
    set_in_metadata(object, "labels", key, value);
}

fn set_in_metadata(object: &mut Value, field: &str, key: &str, value: &str) {
    let mut texts = object.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_else(|| json!({}));
    if let Some(members) = texts.as_object_mut() {
        members.insert(key.to_owned(), value.into());
    }
    metadata::set(object, field, texts);
}

/// Returns whether `given` is the kind `Eviction` of `policy/v1beta1`. The subresource also accepts this kind.
///
/// Source: kubernetes pkg/registry/core/pod/storage/eviction.go, `EvictionREST.AcceptsGroupVersion`.
pub(crate) fn accepts_beta_eviction(given: &GroupVersionKind, kind: &GroupVersionKind) -> bool {
    let beta = GroupVersionKind::new("policy", "v1beta1", "Eviction");
    *given == beta && (&kind.group, &kind.kind) == (&beta.group, &beta.kind)
}
