//! Validates objects of dynamic resource allocation: claims, templates, device classes, and slices.

pub(crate) mod capacity;
pub(crate) mod expressions;
pub(crate) mod generated;
pub(crate) mod names;
pub(crate) mod slices;
pub(crate) mod status;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kubernetes_types::names as formats_of_names;
use kubernetes_types::quoting::encode;
use kubernetes_types::status::{FieldError, Unsupported};
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, flag, get, int, list, set, text, texts};
use crate::kinds::common::{conditions, formats};
use crate::kinds::validation::{devices, storage};

/// Validates a `ResourceClaim`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateResourceClaim` and
/// `ValidateResourceClaimUpdate`; `pkg/apis/resource/v1/zz_generated.validations.go`.
/// Rule: VLO-45.
///
/// # Errors
/// Returns an error for a construct that admit cannot validate as kube-apiserver does.
pub(crate) fn claim(
    errors: &mut Errors,
    object: &Value,
    change: Option<Change<'_>>,
) -> Result<(), Unsupported> {
    let path = Path::new("spec");
    match change {
        None => claim_spec(errors, &path, get(object, "spec")),
        Some(change) => {
            if !change.is_same(&["spec"]) {
                errors.generated(FieldError::invalid(path.to_string(), "null", IMMUTABLE));
            }
            Ok(())
        }
    }
}

/// Validates a `ResourceClaimTemplate`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateResourceClaimTemplate` and
/// `ValidateResourceClaimTemplateUpdate`.
/// Rule: VLO-45.
///
/// # Errors
/// Returns an error for a construct that admit cannot validate as kube-apiserver does.
pub(crate) fn template(
    errors: &mut Errors,
    object: &Value,
    change: Option<Change<'_>>,
) -> Result<(), Unsupported> {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    storage::template_metadata(errors, &path.child("metadata"), get(spec, "metadata"));
    claim_spec(errors, &path.child("spec"), get(spec, "spec"))?;
    if change.is_some_and(|change| !change.is_same(&["spec"])) {
        errors.invalid_structure(&path, "resource.ResourceClaimTemplateSpec", spec, IMMUTABLE);
    }
    Ok(())
}

/// Validates a `DeviceClass`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateDeviceClass` and
/// `ValidateDeviceClassUpdate`; `pkg/apis/resource/v1/zz_generated.validations.go`.
/// Rule: VLO-45.
///
/// # Errors
/// Returns an error for a construct that admit cannot validate as kube-apiserver does.
pub(crate) fn class(
    errors: &mut Errors,
    object: &Value,
    change: Option<Change<'_>>,
) -> Result<(), Unsupported> {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let is_stored = |field: &str| {
        change.is_some_and(|change| set(spec, field).is_some() && change.is_same(&["spec", field]))
    };
    selectors(errors, &path, spec, is_stored("selectors"))?;
    let configs = path.child("config");
    if list(spec, "config").len() <= most::REQUESTS {
        for (index, config) in list(spec, "config").iter().enumerate() {
            configuration(errors, &configs.index(index), config, is_stored("config"));
        }
    }
    formats::name_by_type(errors, object);
    generated::class_spec(errors, &path, spec);
    Ok(())
}

/// Validates a `DeviceTaintRule`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateDeviceTaintRule` and
/// `ValidateDeviceTaintRuleUpdate`.
/// Rule: VLO-45.
pub(crate) fn taint_rule(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    if let Some(selector) = set(spec, "deviceSelector") {
        let path = path.child("deviceSelector");
        let member = |field| set(selector, field).and_then(Value::as_str);
        if let Some(driver) = member("driver") {
            storage::driver_name(errors, &path.child("driver"), driver);
        }
        if let Some(pool) = member("pool") {
            names::pool(errors, &path.child("pool"), pool);
        }
        if let Some(device) = member("device") {
            formats::dns_label(errors, &path.child("device"), device);
        }
    }
    let path = path.child("taint");
    taint(errors, &path, get(spec, "taint"));
    generated::taint(errors, &path, get(spec, "taint"));
}

/// Validates the status of a `DeviceTaintRule`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateDeviceTaintRuleStatusUpdate`.
/// Rule: VLO-45.
pub(crate) fn taint_rule_status(errors: &mut Errors, object: &Value, _: Change<'_>) {
    conditions::of_status(errors, object);
    let path = Path::new("status");
    few(errors, &path.child("conditions"), get(object, "status"), "conditions", most::CONDITIONS);
}

/// Rejects admin access in a new claim or its status if the namespace does not allow admin access.
///
/// Source: kubernetes pkg/registry/resource/utils.go, `AuthorizedForAdmin` and `AuthorizedForAdminStatus`.
/// Rule: VLO-45.
pub(crate) fn admin_access(
    object: &Value,
    old: Option<&Value>,
    subresource: &str,
    namespace: &dyn Fn(&str) -> Option<Arc<Value>>,
) -> Option<FieldError> {
    let results = |object| first_admin(devices::status::results(get(object, "status")).iter());
    match (subresource, old) {
        ("", None) => admin_access_of(object, get(object, "spec"), namespace),
        ("status", Some(old)) if results(old).is_none() => {
            let index = results(object)?;
            forbidden_admin(object, "status.allocation.devices.results", index, namespace)
        }
        _ => None,
    }
}

/// Rejects admin access in a new claim template. The error has the path of a claim.
pub(crate) fn template_admin_access(
    object: &Value,
    old: Option<&Value>,
    subresource: &str,
    namespace: &dyn Fn(&str) -> Option<Arc<Value>>,
) -> Option<FieldError> {
    if !subresource.is_empty() || old.is_some() {
        return None;
    }
    admin_access_of(object, get(get(object, "spec"), "spec"), namespace)
}

fn admin_access_of(
    object: &Value,
    claim: &Value,
    namespace: &dyn Fn(&str) -> Option<Arc<Value>>,
) -> Option<FieldError> {
    let requests = list(get(claim, "devices"), "requests").iter();
    let index = first_admin(requests.map(|request| get(request, "exactly")))?;
    forbidden_admin(object, "spec.devices.requests", index, namespace)
}

fn first_admin<'a>(mut items: impl Iterator<Item = &'a Value>) -> Option<usize> {
    items.position(|item| flag(item, "adminAccess"))
}

fn forbidden_admin(
    object: &Value,
    list: &str,
    index: usize,
    namespace: &dyn Fn(&str) -> Option<Arc<Value>>,
) -> Option<FieldError> {
    const LABEL: &str = "resource.kubernetes.io/admin-access";
    let namespace = namespace(text(get(object, "metadata"), "namespace"));
    let is_theirs =
        namespace.is_some_and(|found| text(get(get(&found, "metadata"), "labels"), LABEL) == "true");
    let why =
        format!("admin access to devices requires the `{LABEL}: true` label on the containing namespace");
    (!is_theirs).then(|| FieldError::forbidden(format!("{list}[{index}].adminAccess"), why))
}

/// Returns whether a list has at most `most` items; reports an error if not.
pub(crate) fn few(errors: &mut Errors, path: &Path<'_>, owner: &Value, field: &str, most: usize) -> bool {
    let count = list(owner, field).len();
    if count > most {
        errors.too_many(path, count, most);
    }
    count <= most
}

/// Validates the spec of a claim.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateDeviceClaim`.
fn claim_spec(errors: &mut Errors, path: &Path<'_>, spec: &Value) -> Result<(), Unsupported> {
    let (path, claim) = (path.child("devices"), get(spec, "devices"));
    let names = RequestNames::from_claim(claim);
    let requests = path.child("requests");
    if list(claim, "requests").len() <= most::REQUESTS {
        for (index, request) in list(claim, "requests").iter().enumerate() {
            self::request(errors, &requests.index(index), request)?;
        }
    }
    let constraints = path.child("constraints");
    if list(claim, "constraints").len() <= most::REQUESTS {
        for (index, constraint) in list(claim, "constraints").iter().enumerate() {
            let path = constraints.index(index);
            names.check(errors, &path, constraint);
            if ["matchAttribute", "distinctAttribute"].iter().all(|field| set(constraint, field).is_none()) {
                let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields \
                           are set";
                errors.required(&path, why);
            }
        }
    }
    let configs = path.child("config");
    if list(claim, "config").len() <= most::REQUESTS {
        for (index, config) in list(claim, "config").iter().enumerate() {
            let path = configs.index(index);
            names.check(errors, &path, config);
            configuration(errors, &path, config, false);
        }
    }
    generated::claim(errors, &path, claim);
    Ok(())
}

/// Validates a device request.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateDeviceRequest`.
fn request(errors: &mut Errors, path: &Path<'_>, request: &Value) -> Result<(), Unsupported> {
    formats::dns_label(errors, &path.child("name"), text(request, "name"));
    let alternatives = list(request, "firstAvailable");
    match (set(request, "exactly"), alternatives) {
        (None, []) => errors.required(path, "exactly one of `exactly` or `firstAvailable` is required"),
        (Some(exactly), []) => {
            let path = path.child("exactly");
            let (class_path, class) = (path.child("deviceClassName"), text(exactly, "deviceClassName"));
            if class.is_empty() {
                errors.required(&class_path, "");
            } else {
                formats::dns_subdomain(errors, &class_path, class);
            }
            wanted(errors, &path, exactly)?;
        }
        (None, alternatives) => {
            if alternatives.len() <= most::ALTERNATIVES {
                let path = path.child("firstAvailable");
                for (index, alternative) in alternatives.iter().enumerate() {
                    let path = path.index(index);
                    formats::dns_label(errors, &path.child("name"), text(alternative, "name"));
                    wanted(errors, &path, alternative)?;
                }
            }
        }
        (Some(_), _) => {
            let why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            errors.invalid(path, "null", why);
        }
    }
    Ok(())
}

/// Validates a request except for its name and class.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateExactDeviceRequest` and
/// `validateDeviceSubRequest`.
fn wanted(errors: &mut Errors, path: &Path<'_>, request: &Value) -> Result<(), Unsupported> {
    selectors(errors, path, request, false)?;
    let (count_path, count) = (path.child("count"), int(request, "count").unwrap_or(0));
    match text(request, "allocationMode") {
        "All" if count != 0 => {
            errors.invalid(&count_path, count, "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if count <= 0 => errors.invalid(&count_path, count, "must be greater than zero"),
        _ => {}
    }
    tolerations(errors, path, request);
    Ok(())
}

/// Validates device tolerations.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateDeviceToleration`.
pub(crate) fn tolerations(errors: &mut Errors, path: &Path<'_>, owner: &Value) {
    let path = path.child("tolerations");
    for (index, toleration) in list(owner, "tolerations").iter().enumerate() {
        let path = path.index(index);
        let (value_path, value) = (path.child("value"), text(toleration, "value"));
        match text(toleration, "operator") {
            "Exists" if !value.is_empty() => {
                errors.invalid_text(&value_path, value, "must be empty for operator `Exists`");
            }
            "Equal" => errors.all_invalid(&value_path, value, formats_of_names::label_value(value)),
            _ => {}
        }
    }
}

/// Validates a device taint.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateDeviceTaint`.
pub(crate) fn taint(errors: &mut Errors, path: &Path<'_>, taint: &Value) {
    formats::qualified_name(errors, &path.child("key"), text(taint, "key"));
    let value = text(taint, "value");
    errors.all_invalid(&path.child("value"), value, formats_of_names::label_value(value));
}

/// Validates device selectors.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateSelectorSlice`.
fn selectors(
    errors: &mut Errors,
    path: &Path<'_>,
    owner: &Value,
    is_stored: bool,
) -> Result<(), Unsupported> {
    let path = path.child("selectors");
    if list(owner, "selectors").len() > most::SELECTORS {
        return Ok(());
    }
    for (index, selector) in list(owner, "selectors").iter().enumerate() {
        let path = path.index(index);
        let path = path.child("cel");
        match set(selector, "cel") {
            None => errors.required(&path, ""),
            Some(_) if is_stored => {}
            Some(cel) => expressions::check(errors, &path.child("expression"), text(cel, "expression"))?,
        }
    }
    Ok(())
}

/// Validates an opaque device configuration.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateDeviceConfiguration`.
pub(crate) fn configuration(errors: &mut Errors, path: &Path<'_>, config: &Value, is_stored: bool) {
    const OPAQUE_PARAMETERS_MAX_LENGTH: usize = 10 * 1024;
    let path = path.child("opaque");
    match set(config, "opaque") {
        None => errors.required(&path, ""),
        Some(opaque) => {
            let largest = if is_stored { usize::MAX } else { OPAQUE_PARAMETERS_MAX_LENGTH };
            free_object(errors, &path.child("parameters"), get(opaque, "parameters"), largest);
        }
    }
}

/// Validates opaque JSON. It must be an object of at most `largest` bytes.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateRawExtension`.
pub(crate) fn free_object(errors: &mut Errors, path: &Path<'_>, found: &Value, largest: usize) {
    if found.is_null() {
        errors.required(path, "");
    } else if encode(found).len() > largest {
        errors.too_long(path, largest);
    } else if !found.is_object() {
        errors.invalid_text(path, "<value omitted>", "must be a valid JSON object");
    }
}

/// The names of a claim's requests, each with the names of its subrequests.
pub(crate) struct RequestNames<'a>(HashMap<&'a str, HashSet<&'a str>>);

impl<'a> RequestNames<'a> {
    /// Collects the request names of a claim.
    ///
    /// Source: kubernetes pkg/apis/resource/validation/validation.go, `gatherRequestNames`.
    fn from_claim(claim: &'a Value) -> Self {
        let alternatives = |request: &'a Value| {
            list(request, "firstAvailable").iter().map(|alternative| text(alternative, "name")).collect()
        };
        let requests = list(claim, "requests").iter();
        Self(requests.map(|request| (text(request, "name"), alternatives(request))).collect())
    }

    fn has(&self, name: &str) -> bool {
        match name.split_once('/') {
            None => self.0.contains_key(name),
            Some((request, alternative)) => {
                self.0.get(request).is_some_and(|alternatives| alternatives.contains(alternative))
            }
        }
    }

    /// Validates the names of requests in `owner`, a part of the claim.
    fn check(&self, errors: &mut Errors, path: &Path<'_>, owner: &Value) {
        let path = path.child("requests");
        if list(owner, "requests").len() > most::REQUESTS {
            return;
        }
        for (index, name) in texts(owner, "requests").enumerate() {
            self.check_one(errors, &path.index(index), name);
        }
    }

    /// Validates a reference to a request or a subrequest.
    ///
    /// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateRequestNameRef`.
    fn check_one(&self, errors: &mut Errors, path: &Path<'_>, name: &str) {
        const UNKNOWN: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated \
                               by '/'";
        if name.split('/').count() > 2 {
            errors.invalid_text(path, name, UNKNOWN);
            return;
        }
        for part in name.split('/') {
            formats::dns_label(errors, path, part);
        }
        if !self.has(name) {
            errors.invalid_text(path, name, UNKNOWN);
        }
    }
}

/// The maximum lengths of the lists in objects of dynamic resource allocation.
///
/// Source: kubernetes pkg/apis/resource/types.go.
mod most {
    pub(super) const REQUESTS: usize = 32;
    pub(super) const ALTERNATIVES: usize = 8;
    pub(super) const SELECTORS: usize = 32;
    pub(super) const CONDITIONS: usize = 8;
}
