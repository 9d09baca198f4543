//! Validates the status of claims: allocated devices and consumers.

use std::collections::HashSet;

use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::schema::Type;
use kubernetes_types::status::FieldError;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, list, set, text, texts};
use crate::kinds::common::{addresses, conditions, formats};
use crate::kinds::core::pod::validation::scheduling;
use crate::kinds::resource::devices::{
    RequestNames, configuration, few, free_object, generated, most, names,
};
use crate::kinds::resource::{devices, resource_slice};

const RESOURCE_CLAIM_RESERVED_FOR_MAX_SIZE: usize = 256;

const ALLOCATION_RESULTS_MAX_SIZE: usize = 32;

const MAX_CONFIGS: usize = 64;

const NETWORK_DEVICE_DATA_MAX_IPS: usize = 16;

const ALLOCATED_DEVICE_STATUS_DATA_MAX_LENGTH: usize = 10 * 1024;

/// Returns the fields that identify an allocated device.
///
/// Source: dynamic-resource-allocation structured/schedulerapi/types.go, `SharedDeviceID`.
pub(crate) fn device_id(of: &Value) -> [&str; 4] {
    ["driver", "pool", "device", "shareID"].map(|field| text(of, field))
}

pub(crate) fn results(status: &Value) -> &[Value] {
    list(get(get(status, "allocation"), "devices"), "results")
}

/// Validates the status of a claim, except for the user's permission to bind devices and report their status.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateResourceClaimStatusUpdate`;
/// `pkg/apis/resource/v1/zz_generated.validations.go`.
/// Rule: VLO-47.
pub(crate) fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    let (path, status) = (Path::new("status"), get(object, "status"));
    let old = get(change.old, "status");
    let consumers_path = path.child("reservedFor");
    let consumers = list(status, "reservedFor");
    if consumers.len() <= RESOURCE_CLAIM_RESERVED_FOR_MAX_SIZE {
        for (index, consumer) in consumers.iter().enumerate() {
            let path = consumers_path.index(index);
            for field in ["resource", "name", "uid"] {
                if text(consumer, field).is_empty() {
                    errors.required(&path.child(field), "");
                }
            }
        }
    }
    let allocated: HashSet<[&str; 4]> = results(status).iter().map(device_id).collect();
    let devices_path = path.child("devices");
    for (index, device) in list(status, "devices").iter().enumerate() {
        self::device(errors, &devices_path.index(index), device, &allocated);
    }
    if !consumers.is_empty() {
        let added = || consumers.iter().any(|consumer| !list(old, "reservedFor").contains(consumer));
        if set(status, "allocation").is_none() {
            errors.forbidden(&consumers_path, "may not be specified when `allocated` is not set");
        } else if set(get(object, "metadata"), "deletionTimestamp").is_some() && added() {
            let why =
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.forbidden(&consumers_path, why);
        }
    }
    let allocation_path = path.child("allocation");
    let is_new = set(old, "allocation").is_none();
    if let Some(allocation) = set(status, "allocation") {
        if is_new {
            let names = RequestNames::from_claim(get(get(object, "spec"), "devices"));
            self::allocation(errors, &allocation_path, allocation, &names);
            generated_for_allocation(errors, &allocation_path, allocation);
        } else if !change.is_same(&["status", "allocation"]) {
            let why = "field cannot be modified once set";
            errors.invalid_by_type(&allocation_path, "null", why);
        }
    }
    let of = Type::for_name("resource/v1.ResourceClaimStatus");
    if generated::few(errors, &consumers_path, status, "reservedFor", RESOURCE_CLAIM_RESERVED_FOR_MAX_SIZE) {
        let of = of.member("reservedFor");
        generated::once(errors, &consumers_path, consumers, of, |item| text(item, "uid"));
    }
    let devices = list(status, "devices");
    generated::once(errors, &devices_path, devices, of.member("devices"), |item| {
        (device_id(item), set(item, "shareID").is_some())
    });
    for (index, device) in devices.iter().enumerate() {
        generated_for_device(errors, &devices_path.index(index), device);
    }
}

/// Validates the status of a device.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateDeviceStatus`.
fn device(errors: &mut Errors, path: &Path<'_>, device: &Value, allocated: &HashSet<[&str; 4]>) {
    formats::driver_name(errors, &path.child("driver"), text(device, "driver"));
    names::pool(errors, &path.child("pool"), text(device, "pool"));
    formats::dns_label(errors, &path.child("device"), text(device, "device"));
    if !allocated.contains(&device_id(device)) {
        let [driver, pool, device, share] = device_id(device).map(quote);
        let shown =
            format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{device},\"ShareID\":{share}}}");
        errors.invalid(path, shown, "must be an allocated device in the claim");
    }
    let conditions_path = path.child("conditions");
    few(errors, &conditions_path, device, "conditions", most::CONDITIONS);
    conditions::all(errors, &conditions_path, device);
    if let Some(data) = set(device, "data") {
        free_object(errors, &path.child("data"), data, ALLOCATED_DEVICE_STATUS_DATA_MAX_LENGTH);
    }
    let (path, network) = (path.child("networkData"), get(device, "networkData"));
    let path = path.child("ips");
    if list(network, "ips").len() <= NETWORK_DEVICE_DATA_MAX_IPS {
        for (index, address) in texts(network, "ips").enumerate() {
            addresses::of_interface(errors, &path.index(index), address);
        }
    }
}

/// Validates the allocation of a claim.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateAllocationResult`.
fn allocation(errors: &mut Errors, path: &Path<'_>, allocation: &Value, names: &RequestNames<'_>) {
    let devices_path = path.child("devices");
    let devices = get(allocation, "devices");
    let results_path = devices_path.child("results");
    if list(devices, "results").len() <= ALLOCATION_RESULTS_MAX_SIZE {
        for (index, result) in list(devices, "results").iter().enumerate() {
            let path = results_path.index(index);
            names.check_one(errors, &path.child("request"), text(result, "request"));
            formats::dns_label(errors, &path.child("device"), text(result, "device"));
            resource_slice::validation::binding(errors, &path, result);
            devices::tolerations(errors, &path, result);
        }
    }
    let configs = devices_path.child("config");
    if list(devices, "config").len() <= MAX_CONFIGS {
        for (index, config) in list(devices, "config").iter().enumerate() {
            let path = configs.index(index);
            names.check(errors, &path, config);
            configuration(errors, &path, config, false);
        }
    }
    if let Some(selector) = set(allocation, "nodeSelector") {
        scheduling::node_selector(errors, &path.child("nodeSelector"), selector);
    }
}

/// Validates the allocation of a claim as upstream's generated validation does.
///
/// Source: `Validate_AllocationResult`.
fn generated_for_allocation(errors: &mut Errors, path: &Path<'_>, allocation: &Value) {
    let (path, devices) = (path.child("devices"), get(allocation, "devices"));
    let results = path.child("results");
    if generated::few(errors, &results, devices, "results", ALLOCATION_RESULTS_MAX_SIZE) {
        for (index, result) in list(devices, "results").iter().enumerate() {
            let path = results.index(index);
            generated::driver(errors, &path.child("driver"), text(result, "driver"));
            names::pool_by_type(errors, &path.child("pool"), text(result, "pool"));
            generated::tolerations(errors, &path, result);
            resource_slice::validation::few_conditions(errors, &path, result);
            if let Some(id) = set(result, "shareID").and_then(Value::as_str) {
                generated::share(errors, &path.child("shareID"), id);
            }
        }
    }
    let configs = path.child("config");
    if generated::few(errors, &configs, devices, "config", MAX_CONFIGS) {
        for (index, config) in list(devices, "config").iter().enumerate() {
            let path = configs.index(index);
            let (source_path, source) = (path.child("source"), text(config, "source"));
            if source.is_empty() {
                errors.required_by_type(&source_path);
            }
            generated::one_of(errors, &source_path, source, &["FromClaim", "FromClass"]);
            generated::names_of_requests(errors, &path, config);
            generated::configuration(errors, &path, config);
        }
    }
}

/// Validates the status of a device as upstream's generated validation does.
///
/// Source: `Validate_AllocatedDeviceStatus`.
fn generated_for_device(errors: &mut Errors, path: &Path<'_>, device: &Value) {
    if let Some(id) = set(device, "shareID").and_then(Value::as_str) {
        generated::share(errors, &path.child("shareID"), id);
    }
    let (path, network) = (path.child("networkData"), get(device, "networkData"));
    let long = |errors: &mut Errors, field: &str, longest: usize| {
        if text(network, field).len() > longest {
            errors.generated(FieldError::too_long(path.child(field).to_string(), longest));
        }
    };
    long(errors, "interfaceName", 256);
    let addresses_path = path.child("ips");
    if generated::few(errors, &addresses_path, network, "ips", NETWORK_DEVICE_DATA_MAX_IPS) {
        let addresses = list(network, "ips");
        let shown = |index| encode(addresses.get(index).unwrap_or(&Value::Null));
        let keys: Vec<&str> = texts(network, "ips").collect();
        generated::duplicates(errors, &addresses_path, &keys, shown);
    }
    long(errors, "hardwareAddress", 128);
}
