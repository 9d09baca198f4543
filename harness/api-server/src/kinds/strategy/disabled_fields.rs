//! Removes the fields that belong to feature gates that are off by default.
//!
//! Mutating webhooks receive these fields, but the server does not store them.
//!
//! In an update, upstream keeps a disabled field that was stored before. This server never stores disabled fields.

use serde_json::Value;

/// The path of a field: member names, and `*` for each item of a list or each value of a map.
pub(crate) type Path = &'static [&'static str];

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// The Pod fields that belong to disabled feature gates.
///
/// The feature gates are `GenericWorkload`, `EvictionRequestAPI`, `EmptyDirVolumeMode`, and
/// `AtomicWriteVolumeUserFields`.
const OF_PODS: &[Path] = &[
    &["schedulingGroup"],
    &["evictionResponders"],
    &["volumes", "*", "emptyDir", "mode"],
    &["volumes", "*", "secret", "defaultUser"],
    &["volumes", "*", "secret", "items", "*", "user"],
    &["volumes", "*", "configMap", "defaultUser"],
    &["volumes", "*", "configMap", "items", "*", "user"],
    &["volumes", "*", "downwardAPI", "defaultUser"],
    &["volumes", "*", "downwardAPI", "items", "*", "user"],
    &["volumes", "*", "projected", "defaultUser"],
    &["volumes", "*", "projected", "sources", "*", "secret", "items", "*", "user"],
    &["volumes", "*", "projected", "sources", "*", "downwardAPI", "items", "*", "user"],
    &["volumes", "*", "projected", "sources", "*", "configMap", "items", "*", "user"],
    &["volumes", "*", "projected", "sources", "*", "serviceAccountToken", "user"],
    &["volumes", "*", "projected", "sources", "*", "clusterTrustBundle", "user"],
    &["volumes", "*", "projected", "sources", "*", "podCertificate", "user"],
];

/// The container fields that belong to disabled feature gates.
///
/// The feature gates are `VolumeBindMountOptions`, `GRPCContainerProbeTLS`, and `H2CContainerProbe`.
const OF_CONTAINERS: &[Path] = &[
    &["volumeMounts", "*", "bindMountOptions"],
    &["livenessProbe", "grpc", "mode"],
    &["readinessProbe", "grpc", "mode"],
    &["startupProbe", "grpc", "mode"],
    &["livenessProbe", "httpGet", "protocol"],
    &["readinessProbe", "httpGet", "protocol"],
    &["startupProbe", "httpGet", "protocol"],
    &["lifecycle", "postStart", "httpGet", "protocol"],
    &["lifecycle", "preStop", "httpGet", "protocol"],
];

/// The Pod status fields that belong to disabled feature gates.
///
/// The feature gates are `ImageVolumeWithDigest`, `DRANodeAllocatableResources`, and `CSIVolumeHealth`.
const OF_POD_STATUSES: &[Path] = &[
    &["containerStatuses", "*", "volumeMounts", "*", "volumeStatus"],
    &["initContainerStatuses", "*", "volumeMounts", "*", "volumeStatus"],
    &["ephemeralContainerStatuses", "*", "volumeMounts", "*", "volumeStatus"],
    &["nodeAllocatableResourceClaimStatuses"],
    &["volumeHealth"],
];

/// The `ResourceClaim` fields that belong to the feature gate `DRADerivedAttributes`.
pub(crate) const OF_CLAIMS: &[Path] = &[
    &["devices", "requests", "*", "exactly", "derivedAttributes"],
    &["devices", "requests", "*", "firstAvailable", "*", "derivedAttributes"],
];

/// The `ResourceSlice` fields that belong to disabled feature gates.
///
/// The feature gates are `DRADeviceCompatibilityGroups`, `DRANodeAllocatableResources`, `DRAListTypeAttributes`,
/// `DRAPartitionableDevicesType`, and `DRAOptionalNodeOperations`.
pub(crate) const OF_SLICES: &[Path] = &[
    &["devices", "*", "consumesCounters", "*", "compatibilityGroups"],
    &["devices", "*", "nodeAllocatableResources"],
    &["devices", "*", "attributes", "*", "bools"],
    &["devices", "*", "attributes", "*", "ints"],
    &["devices", "*", "attributes", "*", "strings"],
    &["devices", "*", "attributes", "*", "versions"],
    &["partitionTypeAttribute"],
    &["skipNodeOperations"],
];

/// Removes the disabled fields from a Pod before it is stored.
///
/// Source: kubernetes `pkg/features/kube_features.go`, pkg/api/pod/util.go, `dropDisabledFields` and
/// `dropDisabledPodStatusFields`.
/// Rule: KND-19.
pub(crate) fn drop_of_pod_object(object: &mut Value) {
    drop_of_pod(object.get_mut("spec"));
    drop_all(object.get_mut("status"), OF_POD_STATUSES);
}

/// Removes the disabled fields from the pod template of a workload.
pub(crate) fn drop_of_template(object: &mut Value) {
    drop_of_pod(object.pointer_mut("/spec/template/spec"));
}

/// Removes the disabled fields from a `ResourceClaim`.
///
/// Source: kubernetes pkg/api/resourceclaimspec/util.go, `DropDisabledFields`;
/// pkg/registry/resource/resourceclaim/strategy.go, `dropDisabledFields`.
pub(crate) fn drop_of_claim(object: &mut Value) {
    drop_all(object.get_mut("spec"), OF_CLAIMS);
    let results = &["allocation", "devices", "results", "*", "skipNodeOperations"];
    drop_all(object.get_mut("status"), &[results]);
}

/// Removes the Job fields that belong to the feature gate `WorkloadWithJob`.
pub(crate) fn drop_of_job(spec: Option<&mut Value>) {
    let Some(spec) = spec else { return };
    drop_at(spec, &["scheduling"]);
    drop_of_pod(spec.pointer_mut("/template/spec"));
}

pub(crate) fn drop_of_pod(spec: Option<&mut Value>) {
    let Some(spec) = spec else { return };
    for path in OF_PODS {
        drop_at(spec, path);
    }
    for list in CONTAINERS {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            for path in OF_CONTAINERS {
                drop_at(container, path);
            }
            drop_stop_signal(container);
        }
    }
}

/// Removes the stop signal (feature gate `ContainerStopSignals`), and the lifecycle if it is empty without the signal.
fn drop_stop_signal(container: &mut Value) {
    let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) else { return };
    let was_set = lifecycle.remove("stopSignal").is_some_and(|signal| !signal.is_null());
    if was_set
        && lifecycle.values().all(Value::is_null)
        && let Some(members) = container.as_object_mut()
    {
        members.remove("lifecycle");
    }
}

pub(crate) fn drop_all(owner: Option<&mut Value>, paths: &[Path]) {
    let Some(owner) = owner else { return };
    for path in paths {
        drop_at(owner, path);
    }
}

fn drop_at(owner: &mut Value, path: &[&str]) {
    match path {
        [] => {}
        [field] => {
            if let Some(members) = owner.as_object_mut() {
                members.remove(*field);
            }
        }
        ["*", rest @ ..] => match owner {
            Value::Array(items) => items.iter_mut().for_each(|item| drop_at(item, rest)),
            Value::Object(members) => members.values_mut().for_each(|member| drop_at(member, rest)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        },
        [field, rest @ ..] => {
            if let Some(member) = owner.get_mut(*field) {
                drop_at(member, rest);
            }
        }
    }
}
