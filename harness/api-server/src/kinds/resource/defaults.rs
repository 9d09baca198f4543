//! Sets the defaults that several kinds of `resource.k8s.io` share.

use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::common::defaults::{each, fill, fill_zero, text, with};

pub(crate) fn claim_spec(spec: &mut Value) {
    with(spec, "devices", |devices| {
        each(devices, "requests", |request| {
            with(request, "exactly", device_request);
            each(request, "firstAvailable", device_request);
        });
    });
}

/// Source: kubernetes pkg/apis/resource/v1/defaults.go, `SetDefaults_ExactDeviceRequest` and
/// `SetDefaults_DeviceSubRequest`.
fn device_request(request: &mut Value) {
    fill(request, "allocationMode", "ExactCount");
    if text(request, "allocationMode") == "ExactCount" {
        fill_zero(request, "count", 1);
    }
    tolerations(request);
}

pub(crate) fn tolerations(owner: &mut Value) {
    each(owner, "tolerations", |toleration| fill(toleration, "operator", "Equal"));
}

pub(crate) fn taint(taint: &mut Value) {
    fill(taint, "timeAdded", metadata::now());
}
