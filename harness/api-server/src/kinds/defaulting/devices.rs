//! Sets the defaults of objects for dynamic resource allocation.

use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::common::defaults::{each, fill, fill_zero, text, with};

/// Sets the defaults of a `ResourceClaim`.
///
/// Source: kubernetes `pkg/apis/resource/v1/zz_generated.defaults.go`, `SetObjectDefaults_ResourceClaim`.
pub(crate) fn resource_claim(object: &mut Value) {
    with(object, "spec", claim_spec);
    with(object, "status", |status| {
        with(status, "allocation", |allocation| {
            with(allocation, "devices", |devices| each(devices, "results", tolerations));
        });
    });
}

/// Sets the defaults of a `ResourceClaimTemplate`.
///
/// Source: kubernetes `pkg/apis/resource/v1/zz_generated.defaults.go`, `SetObjectDefaults_ResourceClaimTemplate`.
pub(crate) fn resource_claim_template(object: &mut Value) {
    with(object, "spec", |template| with(template, "spec", claim_spec));
}

/// Sets the defaults of a `DeviceTaintRule`.
///
/// Source: kubernetes pkg/apis/resource/v1/defaults.go, `SetDefaults_DeviceTaint`.
pub(crate) fn device_taint_rule(object: &mut Value) {
    with(object, "spec", |spec| with(spec, "taint", taint));
}

/// Sets the defaults of a `ResourceSlice`.
///
/// Source: kubernetes pkg/apis/resource/v1/defaults.go, `SetDefaults_DeviceTaint`.
pub(crate) fn resource_slice(object: &mut Value) {
    with(object, "spec", |spec| each(spec, "devices", |device| each(device, "taints", taint)));
}

fn claim_spec(spec: &mut Value) {
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

fn tolerations(owner: &mut Value) {
    each(owner, "tolerations", |toleration| fill(toleration, "operator", "Equal"));
}

fn taint(taint: &mut Value) {
    fill(taint, "timeAdded", metadata::now());
}
