//! Validates the parts of `resource.k8s.io` that its kinds share.

pub(crate) mod capacity;
pub(crate) mod expressions;
pub(crate) mod generated;
pub(crate) mod names;

use std::collections::{HashMap, HashSet};

use kubernetes_types::names as formats_of_names;
use kubernetes_types::quoting::encode;
use kubernetes_types::status::Unsupported;
use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text, texts};
use crate::kinds::common::formats;

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
pub(crate) fn claim_spec(errors: &mut Errors, path: &Path<'_>, spec: &Value) -> Result<(), Unsupported> {
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
pub(crate) fn request(errors: &mut Errors, path: &Path<'_>, request: &Value) -> Result<(), Unsupported> {
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
pub(crate) fn selectors(
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
    pub(crate) fn from_claim(claim: &'a Value) -> Self {
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
    pub(crate) fn check(&self, errors: &mut Errors, path: &Path<'_>, owner: &Value) {
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
    pub(crate) fn check_one(&self, errors: &mut Errors, path: &Path<'_>, name: &str) {
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
pub(crate) mod most {
    pub(crate) const REQUESTS: usize = 32;
    pub(crate) const ALTERNATIVES: usize = 8;
    pub(crate) const SELECTORS: usize = 32;
    pub(crate) const CONDITIONS: usize = 8;
}
