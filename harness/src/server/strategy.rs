//! What a resource's strategy does to an object before it is stored: names, times, status, generation.

use serde_json::{Value, json};

use super::admission;
use super::authorization;
use super::custom_resources;
use super::custom_validation;
use super::defaulting;
use super::discovery::Resource;
use super::metadata;
use crate::attributes::GroupVersionKind;
use crate::authorizer::RBAC_GROUP;
use crate::config::{self, ConfigError};
use crate::status::{FieldError, Status, Unsupported};

/// The letters of generated names: no vowels, so that no words come to be.
///
/// Source: apimachinery pkg/util/rand/rand.go.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
/// Source: apiserver pkg/storage/names/generate.go.
const LONGEST_BASE: usize = 63 - SUFFIX;

/// The resources whose strategy counts `metadata.generation`.
///
/// Source: `PrepareForCreate` in kubernetes `pkg/registry/*/*/strategy.go`; apiextensions-apiserver
/// pkg/registry/customresourcedefinition/strategy.go.
const COUNTED: [&str; 28] = [
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

/// The resources that an update must not change without saying what it has read.
///
/// Source: `AllowUnconditionalUpdate` in kubernetes `pkg/registry/*/*/strategy.go`, apiextensions-apiserver
/// `pkg/registry/*/strategy.go` and kube-aggregator pkg/registry/apiservice/strategy.go.
const CONDITIONAL: [&str; 19] = [
    "clustertrustbundles.certificates.k8s.io",
    "podcertificaterequests.certificates.k8s.io",
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

/// Where `apps/v1` keeps the generation of a `DaemonSet`'s template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// A name from `generateName`.
pub(super) fn generated_name(base: &str) -> String {
    let mut end = base.len().min(LONGEST_BASE);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let random = uuid::Uuid::new_v4();
    // The first bytes of a random UUID are random throughout.
    let suffix = random.as_bytes().iter().take(SUFFIX).map(|byte| {
        let letter = ALPHABET.get(usize::from(*byte) % ALPHABET.len()).copied().unwrap_or(b'b');
        char::from(letter)
    });
    base.get(..end).unwrap_or_default().chars().chain(suffix).collect()
}

fn counts_generation(resource: &Resource) -> bool {
    resource.custom.is_some() || COUNTED.contains(&resource.gvr.group_resource().as_str())
}

/// Source: apiserver pkg/registry/rest/create.go, `BeforeCreate`.
pub(super) fn prepare_for_create(object: &mut Value, resource: &Resource) {
    metadata::remove(object, "deletionTimestamp");
    metadata::remove(object, "deletionGracePeriodSeconds");
    metadata::set(object, "uid", uuid::Uuid::new_v4().to_string().into());
    metadata::set(object, "creationTimestamp", metadata::now().into());
    if counts_generation(resource) {
        metadata::set(object, "generation", 1.into());
    }
    // The kubelet writes a Node's status with its create.
    let keeps_status = resource.gvr.group_resource() == "nodes";
    if resource.has_status() && !keeps_status {
        reset_status(object);
    }
    match resource.gvr.group_resource().as_str() {
        "namespaces" => {
            let name = metadata::text(object, "name").to_owned();
            if let Some(spec) =
                object.as_object_mut().map(|members| members.entry("spec").or_insert_with(|| json!({})))
            {
                let finalizers =
                    spec.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
                let missing = !finalizers.iter().any(|finalizer| finalizer == "kubernetes");
                let all: Vec<Value> =
                    finalizers.into_iter().chain(missing.then(|| "kubernetes".into())).collect();
                *spec = json!({"finalizers": all});
            }
            set_status(object, json!({"phase": "Active"}));
            set_label(object, "kubernetes.io/metadata.name", &name);
        }
        "pods" => {
            let quality = quality_of_service(object);
            set_status(object, json!({"phase": "Pending", "qosClass": quality}));
        }
        // The phase comes with the defaults, when the claim is read from the storage.
        "persistentvolumeclaims" => set_status(object, json!({})),
        "persistentvolumes" => {
            set_status(object, json!({"phase": "Pending", "lastPhaseTransitionTime": metadata::now()}));
        }
        "daemonsets.apps" => set_annotation(object, TEMPLATE_GENERATION, "1"),
        "customresourcedefinitions.apiextensions.k8s.io" => custom_resources::begin(object),
        // Source: kube-aggregator pkg/registry/apiservice/strategy.go, `PrepareForCreate`.
        "apiservices.apiregistration.k8s.io" if object.pointer("/spec/service").is_none() => {
            let available = json!({
                "type": "Available", "status": "True", "lastTransitionTime": metadata::now(), "reason": "Local",
                "message": "Local APIServices are always available",
            });
            set_status(object, json!({"conditions": [available]}));
        }
        _ => {}
    }
}

fn set_annotation(object: &mut Value, key: &str, value: &str) {
    let mut annotations = object.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({}));
    if let Some(members) = annotations.as_object_mut() {
        members.insert(key.to_owned(), value.into());
    }
    metadata::set(object, "annotations", annotations);
}

fn set_status(object: &mut Value, status: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert("status".to_owned(), status);
    }
}

/// Takes the status away, and puts the one in its place with which the kind begins.
fn reset_status(object: &mut Value) {
    let mut bare = json!({"apiVersion": object.get("apiVersion"), "kind": object.get("kind")});
    defaulting::set_defaults(&mut bare);
    let Some(members) = object.as_object_mut() else { return };
    match bare.get_mut("status").map(Value::take) {
        Some(status) => members.insert("status".to_owned(), status),
        None => members.remove("status"),
    };
}

/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Namespace`.
fn set_label(object: &mut Value, key: &str, value: &str) {
    let mut labels = object.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    if let Some(members) = labels.as_object_mut() {
        members.insert(key.to_owned(), value.into());
    }
    metadata::set(object, "labels", labels);
}

/// Source: kubernetes pkg/apis/core/v1/helper/qos/qos.go.
fn quality_of_service(pod: &Value) -> &'static str {
    let mut any = false;
    let mut all_limited = true;
    for pointer in ["/spec/containers", "/spec/initContainers"] {
        for container in pod.pointer(pointer).and_then(Value::as_array).into_iter().flatten() {
            let amount = |kind: &str, name: &str| container.pointer(&format!("/resources/{kind}/{name}"));
            for name in ["cpu", "memory"] {
                let (request, limit) = (amount("requests", name), amount("limits", name));
                any |= request.is_some() || limit.is_some();
                all_limited &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
            }
        }
    }
    match (any, all_limited) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Source: apiserver pkg/registry/rest/update.go, `BeforeUpdate`, and the resources' `PrepareForUpdate`.
pub(super) fn prepare_for_update(object: &mut Value, old: &Value, resource: &Resource, subresource: &str) {
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let keep = field == "uid" && !metadata::text(object, "uid").is_empty();
        if keep {
            continue;
        }
        match old.pointer(&format!("/metadata/{field}")) {
            Some(value) => metadata::set(object, field, value.clone()),
            None => {
                metadata::remove(object, field);
            }
        }
    }
    if resource.gvr.group_resource() == "namespaces" {
        let name = metadata::text(object, "name").to_owned();
        set_label(object, "kubernetes.io/metadata.name", &name);
    }
    if subresource == "status" {
        keep_all_but_status(object, old, resource);
        if let (Some(quality), Some(status)) =
            (old.pointer("/status/qosClass"), object.get_mut("status").and_then(Value::as_object_mut))
        {
            status.insert("qosClass".to_owned(), quality.clone());
        }
    } else if resource.has_status() {
        keep(object, old, "status");
        if resource.gvr.group_resource() == "namespaces" && subresource != "finalize" {
            keep(object, old, "spec");
        }
    }
    if resource.gvr.group_resource() == "daemonsets.apps" {
        let pointer = format!("/metadata/annotations/{TEMPLATE_GENERATION}");
        let generation = old.pointer(&pointer).and_then(Value::as_str).unwrap_or_default();
        let mut generation: i64 = generation.parse().unwrap_or(0);
        if object.pointer("/spec/template") != old.pointer("/spec/template") {
            generation += 1;
        }
        set_annotation(object, TEMPLATE_GENERATION, &generation.to_string());
    }
    let changed = subresource != "status" && counts_change(object, old, resource);
    metadata::set(object, "generation", (generation(old) + i64::from(changed)).into());
}

/// How many intents an object has had.
pub(super) fn generation(object: &Value) -> i64 {
    object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0)
}

/// Whether an update is a new generation.
///
/// Source: `PrepareForUpdate` in kubernetes `pkg/registry/*/*/strategy.go` and in apiextensions-apiserver
/// pkg/registry/customresource/strategy.go.
fn counts_change(object: &Value, old: &Value, resource: &Resource) -> bool {
    let differs = |pointer: &str| object.pointer(pointer) != old.pointer(pointer);
    match resource.gvr.group_resource().as_str() {
        "priorityclasses.scheduling.k8s.io" => false,
        "csidrivers.storage.k8s.io" => differs("/spec"),
        "deployments.apps" => differs("/spec") || differs("/metadata/annotations"),
        "endpointslices.discovery.k8s.io" => differs("/metadata/labels") || !same_intent(object, old),
        // Without a subresource of its own the status is like every other field.
        _ if resource.custom.is_some() => !same_but_for(&["metadata"], object, old),
        _ => counts_generation(resource) && !same_intent(object, old),
    }
}

/// The fields that nobody comes to own by a write of this resource or subresource.
///
/// Source: `GetResetFields` in kubernetes `pkg/registry/*/*/strategy.go` and in apiextensions-apiserver
/// `pkg/registry/customresource/{strategy,status_strategy}.go`.
pub(super) fn reset_fields(resource: &Resource, subresource: &str) -> &'static [&'static [&'static str]] {
    match (subresource, resource.gvr.group_resource().as_str()) {
        ("status", _) if resource.custom.is_some() => &[&["metadata"], &["spec"]],
        ("status", "deployments.apps") => &[&["spec"], &["metadata", "labels"]],
        ("status", "pods") => {
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
        }
        ("status", _) => &[&["spec"]],
        ("scale", _) => &[],
        _ if resource.has_status() => &[&["status"]],
        _ => &[],
    }
}

/// What `/status` may not change.
fn keep_all_but_status(object: &mut Value, old: &Value, resource: &Resource) {
    let fields: Vec<String> = object
        .as_object()
        .into_iter()
        .chain(old.as_object())
        .flat_map(|members| members.keys().cloned())
        .filter(|field| !["apiVersion", "kind", "metadata", "status"].contains(&field.as_str()))
        .collect();
    for field in fields {
        keep(object, old, &field);
    }
    match resource.gvr.group_resource().as_str() {
        "deployments.apps" => keep_in_metadata(object, old, "labels"),
        "pods" => keep_in_metadata(object, old, "ownerReferences"),
        _ => {}
    }
    if resource.custom.is_some() {
        keep(object, old, "apiVersion");
        keep(object, old, "kind");
        // Of the metadata nothing but the managed fields may change.
        let resource_version = object.pointer("/metadata/resourceVersion").cloned();
        keep(object, old, "metadata");
        if let Some(resource_version) = resource_version {
            metadata::set(object, "resourceVersion", resource_version);
        }
    }
}

fn keep_in_metadata(object: &mut Value, old: &Value, field: &str) {
    match old.pointer(&format!("/metadata/{field}")) {
        Some(value) => metadata::set(object, field, value.clone()),
        None => {
            metadata::remove(object, field);
        }
    }
}

fn keep(object: &mut Value, old: &Value, field: &str) {
    let Some(members) = object.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => members.insert(field.to_owned(), value.clone()),
        None => members.remove(field),
    };
}

/// Whether two objects differ at most in metadata and status.
fn same_intent(object: &Value, old: &Value) -> bool {
    same_but_for(&["metadata", "status"], object, old)
}

fn same_but_for(parts: &[&str], object: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut members = object.as_object().cloned().unwrap_or_default();
        members.retain(|name, _| !parts.contains(&name.as_str()));
        members
    };
    rest(object) == rest(old)
}

/// Whether an update may leave out the resource version.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/strategy.go for custom resources; else see the table.
pub(super) fn allows_unconditional_update(resource: &Resource) -> bool {
    resource.custom.is_none() && !CONDITIONAL.contains(&resource.gvr.group_resource().as_str())
}

/// What the server itself has to understand: metadata, webhook configurations and definitions of custom resources.
///
/// # Errors
/// 422 for what is wrong, 501 for what is not imitated.
pub(super) fn validate(object: &Value, old: Option<&Value>, resource: &Resource) -> Result<(), Box<Status>> {
    let (group, plural) = (resource.gvr.group.as_str(), resource.gvr.resource.as_str());
    if group == admission::GROUP && plural.contains("admissionpolic") {
        // Stored, they would have no effect, and nobody would be told.
        let what = format!("admission policies ({plural})");
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    if group == "apiregistration.k8s.io" {
        let what = format!("aggregated API servers ({plural})");
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    if resource.custom.is_some() {
        let found = GroupVersionKind::of(object);
        let errors = custom_validation::wrong_type(&found, &resource.kind);
        if !errors.is_empty() {
            let name = metadata::text(object, "name");
            return Err(Box::new(Status::invalid(&found.group, &found.kind, name, &errors)));
        }
    }
    let is_configuration = is_configuration(resource);
    let custom = resource.custom.as_ref().map(|custom| custom_validation::errors(object, custom));
    let mut errors = match old {
        _ if custom.as_ref().is_some_and(|errors| !errors.is_empty()) => custom.unwrap_or_default(),
        Some(old) if is_configuration => config::validate_update(object, old),
        None if is_configuration => config::validate(object),
        Some(_) if resource.custom.is_some() => told_three_times(metadata::validate(object, resource)),
        Some(_) | None => metadata::validate(object, resource),
    };
    if resource.gvr.group_resource() == "namespaces" {
        errors.extend(wrong_phase(object));
    }
    if group == RBAC_GROUP {
        errors.extend(authorization::validation::errors(object, old, resource));
    }
    if !errors.is_empty() {
        let name = metadata::text(object, "name");
        return Err(Box::new(Status::invalid(group, &resource.kind.kind, name, &errors)));
    }
    if is_configuration {
        return validate_configuration(object);
    }
    if group == custom_resources::GROUP && plural == custom_resources::RESOURCE {
        return custom_resources::validate(object);
    }
    Ok(())
}

/// In an update of a custom resource labels, annotations and owners are validated as those of a new object, as those of a
/// changed one, and once more as those of a custom resource.
///
/// Source: apiserver pkg/registry/rest/update.go, `validateCommonFields`; apiextensions-apiserver
/// pkg/registry/customresource/validator.go, `ValidateUpdate`.
fn told_three_times(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    let fields = ["metadata.labels", "metadata.annotations", "metadata.ownerReferences"];
    let is_repeated = |error: &&FieldError| fields.iter().any(|field| error.field.starts_with(field));
    let repeated: Vec<FieldError> = errors.iter().filter(is_repeated).cloned().collect();
    errors.extend(repeated.iter().cloned().chain(repeated.clone()));
    errors
}

/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNamespaceStatusUpdate`.
fn wrong_phase(namespace: &Value) -> Option<FieldError> {
    let phase = namespace.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    let (only, when) =
        if metadata::is_deleting(namespace) { ("Terminating", "not ") } else { ("Active", "") };
    let why = format!("may only be '{only}' if `deletionTimestamp` is {when}empty");
    (phase != only).then(|| FieldError::invalid("status.Phase", Value::from(phase), why))
}

/// Whether these are webhook configurations.
pub(super) fn is_configuration(resource: &Resource) -> bool {
    let plural = resource.gvr.resource.as_str();
    resource.gvr.group == admission::GROUP && [admission::MUTATING, admission::VALIDATING].contains(&plural)
}

/// What the server itself warns of.
pub(super) fn warnings(object: &Value, old: Option<&Value>, resource: &Resource) -> Vec<String> {
    if resource.custom.is_some() {
        return unqualified_finalizers(object, old);
    }
    if !is_configuration(resource) {
        return Vec::new();
    }
    let mut warnings = config::warnings(object);
    if old.is_some() {
        warnings.extend(config::update_warnings(object));
    }
    warnings
}

/// Source: apiextensions-apiserver pkg/registry/customresource/strategy.go, `generateWarningsFromObj`, and
/// pkg/registry/customresource/validator.go, `validateKubeFinalizerName`.
fn unqualified_finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let finalizers = |object: &Value| -> Vec<String> {
        let all = object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let before = old.map(finalizers).unwrap_or_default();
    let known = ["orphan", "foregroundDeletion", "kubernetes"];
    finalizers(object)
        .into_iter()
        .filter(|name| !name.contains('/') && !known.contains(&name.as_str()) && !before.contains(name))
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

/// Whether the dispatcher can take the configuration over.
fn validate_configuration(configuration: &Value) -> Result<(), Box<Status>> {
    match config::stored_webhooks(configuration) {
        Ok(_) => Ok(()),
        Err(ConfigError::Unsupported(unsupported)) => Err(Box::new(Status::unsupported(&unsupported))),
        Err(error @ ConfigError::Field { .. }) => Err(Box::new(Status::bad_request(error.to_string()))),
    }
}
