//! Validates devices as upstream's generated validation does. These errors follow all other errors.
//!
//! Source: kubernetes `pkg/apis/resource/v1/zz_generated.validations.go`; apimachinery pkg/api/validate.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use kubernetes_types::names as formats_of_names;
use kubernetes_types::quoting::quote;
use kubernetes_types::schema::Type;
use kubernetes_types::status::FieldError;
use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, entries, list, set, text, texts};
use crate::kinds::common::formats;
use crate::kinds::resource::devices::{most, names};

/// Validates a `DeviceClaim`.
///
/// Source: `Validate_DeviceClaim`.
pub(crate) fn claim(errors: &mut Errors, path: &Path<'_>, claim: &Value) {
    let of = Type::for_name("resource/v1.DeviceClaim");
    let requests = path.child("requests");
    if few(errors, &requests, claim, "requests", most::REQUESTS) {
        once(errors, &requests, list(claim, "requests"), of.member("requests"), |item| text(item, "name"));
        for (index, request) in list(claim, "requests").iter().enumerate() {
            self::request(errors, &requests.index(index), request, of.member("requests").item());
        }
    }
    let constraints = path.child("constraints");
    if few(errors, &constraints, claim, "constraints", most::REQUESTS) {
        for (index, constraint) in list(claim, "constraints").iter().enumerate() {
            let path = constraints.index(index);
            names_of_requests(errors, &path, constraint);
            for field in ["matchAttribute", "distinctAttribute"] {
                if let Some(name) = set(constraint, field).and_then(Value::as_str) {
                    names::full_by_type(errors, &path.child(field), name);
                }
            }
        }
    }
    let configs = path.child("config");
    if few(errors, &configs, claim, "config", most::REQUESTS) {
        for (index, config) in list(claim, "config").iter().enumerate() {
            let path = configs.index(index);
            names_of_requests(errors, &path, config);
            configuration(errors, &path, config);
        }
    }
}

/// Validates a `DeviceRequest`.
///
/// Source: `Validate_DeviceRequest`.
fn request(errors: &mut Errors, path: &Path<'_>, request: &Value, of: Type) {
    if let Some(exactly) = set(request, "exactly") {
        wanted(errors, &path.child("exactly"), exactly);
    }
    let (path, alternatives) = (path.child("firstAvailable"), list(request, "firstAvailable"));
    if few(errors, &path, request, "firstAvailable", most::ALTERNATIVES) {
        once(errors, &path, alternatives, of.member("firstAvailable"), |item| text(item, "name"));
        for (index, alternative) in alternatives.iter().enumerate() {
            let path = path.index(index);
            let (class_path, class) = (path.child("deviceClassName"), text(alternative, "deviceClassName"));
            if class.is_empty() {
                errors.required_by_type(&class_path);
            } else {
                all_invalid(errors, &class_path, class, formats_of_names::dns1123_subdomain(class));
            }
            wanted(errors, &path, alternative);
        }
    }
}

/// Validates an `ExactDeviceRequest` or a `DeviceSubRequest`.
///
/// Source: `Validate_ExactDeviceRequest` and `Validate_DeviceSubRequest`.
fn wanted(errors: &mut Errors, path: &Path<'_>, request: &Value) {
    few(errors, &path.child("selectors"), request, "selectors", most::SELECTORS);
    one_of(errors, &path.child("allocationMode"), text(request, "allocationMode"), &["All", "ExactCount"]);
    tolerations(errors, path, request);
}

/// Validates the device tolerations of `owner`.
///
/// Source: `Validate_DeviceToleration`.
pub(crate) fn tolerations(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    let path = path.child("tolerations");
    for (index, toleration) in list(owner, "tolerations").iter().enumerate() {
        let path = path.index(index);
        let key = text(toleration, "key");
        if !key.is_empty() {
            all_invalid(errors, &path.child("key"), key, formats_of_names::label_key(key));
        }
        one_of(errors, &path.child("operator"), text(toleration, "operator"), &["Equal", "Exists"]);
        effect(errors, &path, toleration);
    }
}

/// Validates a `DeviceTaint`.
///
/// Source: `Validate_DeviceTaint`.
pub(crate) fn taint(errors: &mut Errors, path: &Path<'_>, taint: &Value) {
    if text(taint, "effect").is_empty() {
        errors.required_by_type(&path.child("effect"));
    }
    effect(errors, path, taint);
}

fn effect(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    one_of(errors, &path.child("effect"), text(owner, "effect"), &["NoExecute", "NoSchedule", "None"]);
}

/// Validates a `DeviceClassSpec`.
///
/// Source: `Validate_DeviceClassSpec`.
pub(crate) fn class_spec(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    few(errors, &path.child("selectors"), spec, "selectors", most::SELECTORS);
    let configs = path.child("config");
    if few(errors, &configs, spec, "config", most::REQUESTS) {
        for (index, config) in list(spec, "config").iter().enumerate() {
            configuration(errors, &configs.index(index), config);
        }
    }
    if let Some(name) = set(spec, "extendedResourceName").and_then(Value::as_str) {
        extended_resource(errors, &path.child("extendedResourceName"), name);
    }
}

/// Validates the name of an extended resource.
///
/// Source: apimachinery pkg/api/validate/strfmt.go, `ExtendedResourceName`.
fn extended_resource(errors: &mut Errors, path: &Path<'_>, name: &str) {
    let shown = quote(name);
    if !name.contains('/') {
        let why = "a name must be a domain-prefixed path, such as 'example.com/my-prop'";
        errors.invalid_by_type(path, &shown, why);
    } else if name.contains("kubernetes.io/") {
        errors.invalid_by_type(path, &shown, "must not have \"kubernetes.io/\" domain");
    }
    if name.starts_with("requests.") {
        errors.invalid_by_type(path, &shown, "must not have \"requests.\" prefix");
    }
    all_invalid(errors, path, name, formats_of_names::label_key(&format!("requests.{name}")));
}

/// Validates an opaque device configuration.
///
/// Source: `Validate_OpaqueDeviceConfiguration`.
pub(crate) fn configuration(errors: &mut Errors, path: &Path<'_>, config: &Value) {
    if let Some(opaque) = set(config, "opaque") {
        driver(errors, &path.child("opaque").child("driver"), text(opaque, "driver"));
    }
}

/// Validates the name of a driver.
///
/// Source: apimachinery pkg/api/validate/strfmt.go, `LongNameCaseless`, and limits.go, `MaxLength`.
pub(crate) fn driver(errors: &mut Errors, path: &Path<'_>, name: &str) {
    const DRIVER_NAME_MAX_LENGTH: usize = 63;
    const INVALID_SUBDOMAIN: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end \
                         with an alphanumeric character (e.g. 'Example.com', regex used for validation is \
                         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    if name.is_empty() {
        errors.required_by_type(path);
        return;
    }
    for why in formats_of_names::dns1123_subdomain(&name.to_lowercase()) {
        let is_long = why.starts_with("must be no more");
        let why = if is_long { formats::in_bytes(&why) } else { INVALID_SUBDOMAIN.to_owned() };
        errors.invalid_by_type(path, &quote(name), why);
    }
    if name.chars().count() > DRIVER_NAME_MAX_LENGTH {
        let mut error = FieldError::too_long(path.to_string(), DRIVER_NAME_MAX_LENGTH);
        error.detail = error.detail.replace("bytes", "characters");
        errors.generated(error);
    }
}

/// Validates the request names to which a part of a claim refers.
pub(crate) fn names_of_requests(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    let path = path.child("requests");
    if few(errors, &path, owner, "requests", most::REQUESTS) {
        let names: Vec<&str> = texts(owner, "requests").collect();
        duplicates(errors, &path, &names, |index| quote(names.get(index).copied().unwrap_or_default()));
    }
}

/// Validates the name of a counter set, which is in the field `name`, and its `counters`.
///
/// Source: `Validate_CounterSet` and `Validate_DeviceCounterConsumption`.
pub(crate) fn counters(errors: &mut Errors, path: &Path<'_>, owner: &Value, name: &str) {
    let (name_path, found) = (path.child(name), text(owner, name));
    if found.is_empty() {
        errors.required_by_type(&name_path);
    } else {
        all_invalid(errors, &name_path, found, formats_of_names::dns1123_label(found));
    }
    let path = path.child("counters");
    if entries(owner, "counters").next().is_none() {
        errors.required_by_type(&path);
    }
    for (key, _) in entries(owner, "counters") {
        all_invalid(errors, &path, key, formats_of_names::dns1123_label(key));
    }
}

/// Validates a `DeviceAttribute`.
///
/// Source: `Validate_DeviceAttribute`; apimachinery pkg/api/validate/union.go, `Union`.
pub(crate) fn attribute(errors: &mut Errors, path: &Path<'_>, attribute: &Value) {
    const ALL: &str = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`";
    let is_set = |field: &&str| set(attribute, field).is_some();
    let found: Vec<&str> = ["int", "bool", "string", "version"].into_iter().filter(is_set).collect();
    match found.as_slice() {
        [] => errors.invalid_by_type(path, "\"\"", format!("must specify one of: {ALL}")),
        [_] => {}
        _ => {
            let shown = quote(&format!("{{{}}}", found.join(", ")));
            errors.invalid_by_type(path, &shown, format!("must specify exactly one of: {ALL}"));
        }
    }
}

/// Validates the ID of a share. The ID must be a UUID.
///
/// Source: apimachinery pkg/api/validate/strfmt.go, `UUID`.
pub(crate) fn share(errors: &mut Errors, path: &Path<'_>, id: &str) {
    let fits = |(index, byte): (usize, u8)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    };
    if id.len() != 36 || !id.bytes().enumerate().all(fits) {
        errors.invalid_by_type(path, &quote(id), "must be a lowercase UUID in 8-4-4-4-12 format");
    }
}

/// Returns whether a list has at most `most` items; reports an error if not.
pub(crate) fn few(errors: &mut Errors, path: &Path<'_>, owner: &Value, field: &str, most: usize) -> bool {
    let count = list(owner, field).len();
    if count > most {
        errors.generated(FieldError::too_many(path.to_string(), count, most));
    }
    count <= most
}

/// Reports items with duplicate keys. The error contains the whole item.
pub(crate) fn once<'a, K: Debug + Eq + Hash>(
    errors: &mut Errors,
    path: &Path<'_>,
    items: &'a [Value],
    of: Type,
    key: impl Fn(&'a Value) -> K,
) {
    let keys: Vec<K> = items.iter().map(key).collect();
    let shown = |index| of.item().in_order(items.get(index).unwrap_or(&Value::Null));
    duplicates(errors, path, &keys, shown);
}

/// Reports duplicate keys. `shown` formats the value at an index for the error.
///
/// Source: apimachinery pkg/api/validate/each.go, `ValSliceUnique`.
pub(crate) fn duplicates<K: Eq + Hash>(
    errors: &mut Errors,
    path: &Path<'_>,
    keys: &[K],
    shown: impl Fn(usize) -> String,
) {
    let mut seen = HashSet::new();
    for (index, key) in keys.iter().enumerate() {
        if !seen.insert(key) {
            errors.generated(FieldError::duplicate(path.index(index).to_string(), shown(index)));
        }
    }
}

pub(crate) fn one_of(errors: &mut Errors, path: &Path<'_>, found: &str, supported: &[&str]) {
    if !found.is_empty() && !supported.contains(&found) {
        let supported: Vec<String> = supported.iter().map(|value| quote(value)).collect();
        errors.generated(FieldError::not_supported(path.to_string(), quote(found), supported.join(", ")));
    }
}

fn all_invalid(errors: &mut Errors, path: &Path<'_>, found: &str, whys: Vec<String>) {
    for why in whys {
        errors.invalid_by_type(path, &quote(found), formats::in_bytes(&why));
    }
}
