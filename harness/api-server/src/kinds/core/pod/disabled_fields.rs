//! Removes the fields of Pods that belong to feature gates that are off by default.

use serde_json::Value;

use crate::kinds::common::disabled_fields::{Path, drop_all, drop_at};

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

/// Removes the disabled fields from a Pod before it is stored.
///
/// Source: kubernetes `pkg/features/kube_features.go`, pkg/api/pod/util.go, `dropDisabledFields` and
/// `dropDisabledPodStatusFields`.
/// Rule: KND-19.
pub(crate) fn drop_of_pod_object(object: &mut Value) {
    drop_of_pod(object.get_mut("spec"));
    drop_all(object.get_mut("status"), OF_POD_STATUSES);
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
