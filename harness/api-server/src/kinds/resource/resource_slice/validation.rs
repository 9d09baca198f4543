//! Validates resource slices.

use std::collections::HashSet;

use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::schema::Type;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{
    Errors, IMMUTABLE, Path, entries, flag, get, int, list, set, text, texts,
};
use crate::kinds::common::formats;
use crate::kinds::common::internal::Form;
use crate::kinds::core::pod::validation::scheduling;
use crate::kinds::resource::devices::{capacity, few, generated, names, taint};

const RESOURCE_SLICE_MAX_DEVICES: usize = 128;

const RESOURCE_SLICE_MAX_DEVICES_WITH_ADVANCED_FEATURES: usize = 64;

const RESOURCE_SLICE_MAX_COUNTER_SETS: usize = 8;

const RESOURCE_SLICE_MAX_DEVICE_COUNTER_CONSUMPTIONS: usize = 2;

const RESOURCE_SLICE_MAX_COUNTERS: usize = 32;

const RESOURCE_SLICE_MAX_ATTRIBUTES_AND_CAPACITIES: usize = 32;

const RESOURCE_SLICE_MAX_ATTRIBUTE_VALUES: usize = 48;

const DEVICE_TAINTS_MAX_LENGTH: usize = 16;

const BINDING_CONDITIONS_MAX_SIZE: usize = 4;

/// The maximum length of an attribute key in error messages. Longer keys are truncated.
const MAX_SHOWN_KEY_LENGTH: usize = 63 + 1 + 32;

/// Validates a `ResourceSlice`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateResourceSlice` and
/// `ValidateResourceSliceUpdate`; `pkg/apis/resource/v1/zz_generated.validations.go`.
/// Rule: VLO-46.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let old = change.map_or(&Value::Null, |change| get(change.old, "spec"));
    formats::driver_name(errors, &path.child("driver"), text(spec, "driver"));
    pool(errors, &path.child("pool"), get(spec, "pool"));
    if let Some(change) = change {
        let pool_path = path.child("pool");
        for (path, of, parts) in [
            (pool_path.child("name"), get(spec, "pool"), &["spec", "pool", "name"][..]),
            (path.child("driver"), spec, &["spec", "driver"]),
            (path.child("nodeName"), spec, &["spec", "nodeName"]),
        ] {
            if !change.is_same(parts) {
                let found = get(of, parts.last().copied().unwrap_or_default());
                errors.invalid(&path, encode(found), IMMUTABLE);
            }
        }
    }
    nodes(errors, &path, spec);
    if set(spec, "sharedCounters").is_some() && set(spec, "devices").is_some() {
        errors.invalid_text(&path, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    let devices = list(spec, "devices");
    let is_complex = devices
        .iter()
        .any(|device| ["taints", "consumesCounters"].iter().any(|field| !list(device, field).is_empty()));
    let most = if is_complex {
        RESOURCE_SLICE_MAX_DEVICES_WITH_ADVANCED_FEATURES
    } else {
        RESOURCE_SLICE_MAX_DEVICES
    };
    let devices_path = path.child("devices");
    if few(errors, &devices_path, spec, "devices", most) {
        for (index, found) in devices.iter().enumerate() {
            let name = text(found, "name");
            let old = list(old, "devices").iter().find(|old| text(old, "name") == name);
            device(errors, &devices_path.index(index), found, old, flag(spec, "perDeviceNodeSelection"));
        }
        let mut seen = HashSet::new();
        for (index, found) in devices.iter().enumerate() {
            let name = text(found, "name");
            if !seen.insert(name) {
                errors.duplicate(&devices_path.index(index), name);
            }
        }
    }
    let sets_path = path.child("sharedCounters");
    if list(spec, "sharedCounters").len() <= RESOURCE_SLICE_MAX_COUNTER_SETS {
        for (index, found) in list(spec, "sharedCounters").iter().enumerate() {
            few_counters(errors, &sets_path.index(index), found);
        }
    }
    generated_for_slice(errors, &path, spec);
}

/// Validates the pool of a slice.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateResourcePool`.
fn pool(errors: &mut Errors, path: &Path<'_>, pool: &Value) {
    names::pool(errors, &path.child("name"), text(pool, "name"));
    let count = int(pool, "resourceSliceCount").unwrap_or(0);
    if count <= 0 {
        errors.invalid(&path.child("resourceSliceCount"), count, "must be greater than zero");
    }
    if let Some(generation) = int(pool, "generation").filter(|generation| *generation < 0) {
        let why = "must be greater than or equal to zero";
        errors.invalid(&path.child("generation"), generation, why);
    }
}

/// Validates the node selection of a slice.
fn nodes(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const EXACTLY_ONE: &str =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let mut found = Vec::new();
    if let Some(name) = set(spec, "nodeName").and_then(Value::as_str) {
        let path = path.child("nodeName");
        if name.is_empty() {
            errors.invalid_text(&path, name, "must be either unset or set to a non-empty string");
        } else {
            found.push("`nodeName`");
            formats::dns_subdomain(errors, &path, name);
        }
    }
    if let Some(selector) = set(spec, "nodeSelector") {
        found.push("`nodeSelector`");
        let path = path.child("nodeSelector");
        scheduling::node_selector(errors, &path, selector);
        if list(selector, "nodeSelectorTerms").len() != 1 {
            let path = path.child("nodeSelectorTerms");
            let shown = errors.shown(Form::List, "core.NodeSelectorTerm", get(selector, "nodeSelectorTerms"));
            errors.invalid(&path, shown, "must have exactly one node selector term");
        }
    }
    for (field, name) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")]
    {
        match set(spec, field).and_then(Value::as_bool) {
            Some(true) => found.push(name),
            Some(false) => errors.invalid(&path.child(field), false, "must be either unset or set to true"),
            None => {}
        }
    }
    match found.as_slice() {
        [] => errors.required(path, EXACTLY_ONE),
        [_] => {}
        _ => {
            let why = format!("{EXACTLY_ONE}, but multiple fields are set");
            errors.invalid_text(path, &format!("{{{}}}", found.join(", ")), why);
        }
    }
}

/// Validates a device.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateDevice`.
fn device(errors: &mut Errors, path: &Path<'_>, device: &Value, old: Option<&Value>, chooses_node: bool) {
    formats::dns_label(errors, &path.child("name"), text(device, "name"));
    let values = entries(device, "attributes").count();
    let count = values + entries(device, "capacity").count();
    if count > RESOURCE_SLICE_MAX_ATTRIBUTES_AND_CAPACITIES {
        let why = format!(
            "the total number of attributes and capacities must not exceed {RESOURCE_SLICE_MAX_ATTRIBUTES_AND_CAPACITIES}"
        );
        errors.invalid(path, count, why);
    }
    if values > RESOURCE_SLICE_MAX_ATTRIBUTE_VALUES {
        let why = format!(
            "the total number of attribute values must not exceed {RESOURCE_SLICE_MAX_ATTRIBUTE_VALUES}"
        );
        errors.invalid(path, values, why);
    }
    let attributes = path.child("attributes");
    for (key, found) in entries(device, "attributes") {
        names::qualified(errors, &attributes, key);
        attribute(errors, &attributes.key(&cut(key)), found);
    }
    let is_new = |field: &str| old.is_none_or(|old| get(old, field) != get(device, field));
    if is_new("capacity") {
        let path = path.child("capacity");
        for (key, found) in entries(device, "capacity") {
            names::qualified(errors, &path, key);
            capacity::check(errors, &path.key(&cut(key)), found, flag(device, "allowMultipleAllocations"));
        }
    }
    if is_new("taints") {
        let path = path.child("taints");
        if few(errors, &path, device, "taints", DEVICE_TAINTS_MAX_LENGTH) {
            for (index, found) in list(device, "taints").iter().enumerate() {
                taint(errors, &path.index(index), found);
            }
        }
    }
    let consumed = path.child("consumesCounters");
    if list(device, "consumesCounters").len() <= RESOURCE_SLICE_MAX_DEVICE_COUNTER_CONSUMPTIONS {
        for (index, found) in list(device, "consumesCounters").iter().enumerate() {
            few_counters(errors, &consumed.index(index), found);
        }
    }
    let fields = ["nodeName", "nodeSelector", "allNodes"];
    if chooses_node {
        node_of_device(errors, path, device);
    } else if fields.iter().any(|field| set(device, field).is_some()) {
        let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in \
                   the ResourceSlice spec";
        errors.invalid(path, "null", why);
    }
    binding(errors, path, device);
}

/// Returns a key for the path of a field, truncated if it is too long.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `truncateIfTooLong`.
fn cut(key: &str) -> String {
    const REST: usize = MAX_SHOWN_KEY_LENGTH - "...".len();
    if key.len() <= MAX_SHOWN_KEY_LENGTH {
        return key.to_owned();
    }
    let begin = key.get(..REST.div_ceil(2)).unwrap_or_default();
    let end = key.get(key.len() - REST / 2..).unwrap_or_default();
    format!("{begin}...{end}")
}

/// Validates a device attribute.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateDeviceAttribute`.
fn attribute(errors: &mut Errors, path: &Path<'_>, attribute: &Value) {
    const DEVICE_ATTRIBUTE_MAX_VALUE_LENGTH: usize = 64;
    for (field, is_version) in [("string", false), ("version", true)] {
        let Some(value) = set(attribute, field).and_then(Value::as_str) else { continue };
        let path = path.child(field);
        if is_version && !is_semantic_version(value) {
            errors.invalid_text(&path, value, "must be a string compatible with semver.org spec 2.0.0");
        }
        if value.len() > DEVICE_ATTRIBUTE_MAX_VALUE_LENGTH {
            errors.too_long(&path, DEVICE_ATTRIBUTE_MAX_VALUE_LENGTH);
        }
    }
}

/// Returns whether a string is a semantic version.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `semverRe`.
fn is_semantic_version(text: &str) -> bool {
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| {
            pre.split('.').all(|part| is_word(part) && (!is_digits(part) || is_number(part)))
        })
        && build.is_none_or(|build| build.split('.').all(is_word))
}

fn few_counters(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    let count = entries(owner, "counters").count();
    if count > RESOURCE_SLICE_MAX_COUNTERS {
        errors.too_many(&path.child("counters"), count, RESOURCE_SLICE_MAX_COUNTERS);
    }
}

/// Validates the node selection of a single device.
fn node_of_device(errors: &mut Errors, path: &Path<'_>, device: &Value) {
    const EXACTLY_ONE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set \
                       to true in the ResourceSlice spec";
    let mut found = Vec::new();
    if let Some(name) = set(device, "nodeName").and_then(Value::as_str) {
        let path = path.child("nodeName");
        if name.is_empty() {
            errors.invalid_text(&path, name, "must not be empty");
        } else {
            found.push("`nodeName`");
            formats::dns_subdomain(errors, &path, name);
        }
    }
    if let Some(selector) = set(device, "nodeSelector") {
        found.push("`nodeSelector`");
        scheduling::node_selector(errors, &path.child("nodeSelector"), selector);
    }
    match set(device, "allNodes").and_then(Value::as_bool) {
        Some(true) => found.push("`allNodes`"),
        Some(false) => {
            errors.invalid(&path.child("allNodes"), false, "must be either unset or set to true");
        }
        None => {}
    }
    match found.as_slice() {
        [] => errors.required(path, EXACTLY_ONE),
        [_] => {}
        _ => errors.invalid_text(path, &format!("{{{}}}", found.join(", ")), EXACTLY_ONE),
    }
}

/// Validates binding conditions and binding failure conditions.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateDeviceBindingParameters`.
pub(crate) fn binding(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    let fields = ["bindingConditions", "bindingFailureConditions"];
    for field in fields.into_iter().filter(|field| list(owner, field).len() <= BINDING_CONDITIONS_MAX_SIZE) {
        let path = path.child(field);
        for (index, name) in texts(owner, field).enumerate() {
            formats::qualified_name(errors, &path.index(index), name);
        }
    }
    let succeeding: HashSet<&str> = texts(owner, "bindingConditions").collect();
    for (field, others) in fields.into_iter().zip([HashSet::new(), succeeding]) {
        let path = path.child(field);
        let mut seen = HashSet::new();
        for (index, name) in texts(owner, field).enumerate() {
            if !seen.insert(name) {
                errors.duplicate(&path.index(index), name);
            }
            if others.contains(name) {
                let why = "bindingFailureConditions must not overlap with bindingConditions";
                errors.invalid_text(&path.index(index), name, why);
            }
        }
    }
    for (field, other) in fields.into_iter().zip(fields.into_iter().rev()) {
        if list(owner, field).is_empty() && !list(owner, other).is_empty() {
            let why = format!("{field} are required to use {other}");
            errors.invalid(&path.child(field), encode(get(owner, field)), why);
        }
    }
}

/// Validates the spec of a slice as upstream's generated validation does.
///
/// Source: `Validate_ResourceSliceSpec` and `Validate_Device`.
fn generated_for_slice(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let of = Type::for_name("resource/v1.ResourceSliceSpec");
    let devices = path.child("devices");
    for (index, device) in list(spec, "devices").iter().enumerate() {
        let path = devices.index(index);
        let attributes = path.child("attributes");
        for (key, found) in entries(device, "attributes") {
            generated::attribute(errors, &attributes.key(key), found);
        }
        let consumed = path.child("consumesCounters");
        if generated::few(
            errors,
            &consumed,
            device,
            "consumesCounters",
            RESOURCE_SLICE_MAX_DEVICE_COUNTER_CONSUMPTIONS,
        ) {
            let of = of.member("devices").item().member("consumesCounters");
            let items = list(device, "consumesCounters");
            generated::once(errors, &consumed, items, of, |item| text(item, "counterSet"));
            for (index, found) in items.iter().enumerate() {
                generated::counters(errors, &consumed.index(index), found, "counterSet");
            }
        }
        let taints = path.child("taints");
        for (index, found) in list(device, "taints").iter().enumerate() {
            generated::taint(errors, &taints.index(index), found);
        }
        few_conditions(errors, &path, device);
    }
    let sets = path.child("sharedCounters");
    if generated::few(errors, &sets, spec, "sharedCounters", RESOURCE_SLICE_MAX_COUNTER_SETS) {
        let items = list(spec, "sharedCounters");
        generated::once(errors, &sets, items, of.member("sharedCounters"), |item| text(item, "name"));
        for (index, found) in items.iter().enumerate() {
            generated::counters(errors, &sets.index(index), found, "name");
        }
    }
}

/// Validates the number of binding conditions as upstream's generated validation does.
pub(crate) fn few_conditions(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    for field in ["bindingConditions", "bindingFailureConditions"] {
        generated::few(errors, &path.child(field), owner, field, BINDING_CONDITIONS_MAX_SIZE);
    }
}

/// Returns the warning about an uppercase driver name.
///
/// Source: kubernetes pkg/registry/resource/resourceslice/strategy.go, `WarningsOnCreate`.
pub(crate) fn uppercase_driver(slice: &Value) -> Option<String> {
    let driver = text(get(slice, "spec"), "driver");
    let shown = quote(driver);
    (driver != driver.to_lowercase()).then(|| {
        format!("spec.driver: driver names should be lowercase; {shown} contains uppercase characters")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_three_numbers() {
        let good = ["0.0.0", "1.2.3", "1.2.3-a.1", "1.2.3-0a+01", "1.0.0+b-c.d"];
        let bad = ["", "1.2", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3+", "1.2.3.4", "v1.2.3"];
        assert!(good.iter().all(|text| is_semantic_version(text)));
        assert!(!bad.iter().any(|text| is_semantic_version(text)));
    }

    #[test]
    fn long_keys_are_truncated_in_the_middle() {
        assert_eq!(cut("a/b"), "a/b");
        let key = format!("{}{}", "a".repeat(60), "b".repeat(60));
        assert_eq!(cut(&key), format!("{}...{}", "a".repeat(47), "b".repeat(46)));
    }
}
