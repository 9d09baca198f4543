//! Sets the defaults of objects in the storage group.

use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::kinds::common::defaults::{ensure, fill, fill_pointer, is_empty, resource_list, with};
use crate::kinds::common::volume_defaults;

/// Sets the defaults of a `StorageClass`.
///
/// Source: kubernetes pkg/apis/storage/v1/defaults.go, `SetDefaults_StorageClass`.
pub(crate) fn storage_class(object: &mut Value) {
    ensure(object, "metadata");
    fill_pointer(object, "reclaimPolicy", "Delete");
    fill_pointer(object, "volumeBindingMode", "Immediate");
}

/// Sets the defaults of a `CSIDriver`.
///
/// Source: kubernetes pkg/apis/storage/v1/defaults.go, `SetDefaults_CSIDriver`.
pub(crate) fn csi_driver(object: &mut Value) {
    with(object, "spec", |spec| {
        fill(spec, "attachRequired", true);
        for field in [
            "podInfoOnMount",
            "storageCapacity",
            "requiresRepublish",
            "seLinuxMount",
            "preventPodSchedulingIfMissing",
        ] {
            fill(spec, field, false);
        }
        fill_pointer(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if is_empty(spec, "volumeLifecycleModes") {
            set(spec, &["volumeLifecycleModes"], json!(["Persistent"]));
        }
    });
}

/// Sets the defaults of a `VolumeAttachment`.
///
/// Source: kubernetes `pkg/apis/storage/v1/zz_generated.defaults.go`, `SetObjectDefaults_VolumeAttachment`.
pub(crate) fn volume_attachment(object: &mut Value) {
    with(object, "spec", |spec| {
        with(spec, "source", |source| {
            with(source, "inlineVolumeSpec", |volume_defaults| {
                resource_list(volume_defaults, "capacity");
                volume_defaults::persistent_source(volume_defaults);
            });
        });
    });
}
