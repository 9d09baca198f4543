//! Validates the address of a webhook.

use go_std::url::Url;
use kubernetes_types::names;
use serde_json::Value;

use super::error::Errors;
use crate::config::text;

const FORM: &str = "; desired format: https://host[/path]";

/// Validates that exactly one of `url` and `service` is set, and validates its value.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateMutatingWebhook`.
/// Rule: VLD-20, VLD-25.
pub(super) fn validate(client_config: &Value, path: &str, errors: &mut Errors) {
    let url = text(client_config, "url");
    let service = client_config.get("service").filter(|service| !service.is_null());
    match (url, service) {
        (Some(url), None) => validate_url(url, &format!("{path}.url"), errors),
        (None, Some(service)) => validate_service(service, &format!("{path}.service"), errors),
        (None, None) | (Some(_), Some(_)) => {
            errors.required(path, "exactly one of url or service is required");
        }
    }
}

/// Validates the `url` of a webhook.
///
/// Source: apiserver pkg/util/webhook/validation.go, `ValidateWebhookURL`.
/// Rule: VLD-21.
fn validate_url(text: &str, path: &str, errors: &mut Errors) {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            errors.required(path, &format!("url must be a valid URL: {error}{FORM}"));
            return;
        }
    };
    if url.scheme != "https" {
        errors.invalid(path, &url.scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        errors.invalid(path, "", &format!("host must be specified{FORM}"));
    }
    if let Some(user) = url.userinfo() {
        errors.invalid(path, &user, "user information is not permitted in the URL");
    }
    if !url.fragment().is_empty() {
        let fragment = String::from_utf8_lossy(url.fragment());
        errors.invalid(path, &fragment, "fragments are not permitted in the URL");
    }
    if !url.query().is_empty() {
        errors.invalid(path, url.query(), "query parameters are not permitted in the URL");
    }
}

/// Validates the `service` of a webhook.
///
/// Source: apiserver pkg/util/webhook/validation.go, `ValidateWebhookService`.
/// Rule: VLD-22, VLD-23.
fn validate_service(service: &Value, path: &str, errors: &mut Errors) {
    // kube-apiserver swaps name and namespace: each is reported missing in the other's place.
    if text(service, "namespace").unwrap_or_default().is_empty() {
        errors.required(format!("{path}.name"), "");
    }
    if text(service, "name").unwrap_or_default().is_empty() {
        errors.required(format!("{path}.namespace"), "");
    }
    let port = service.get("port").and_then(Value::as_i64);
    if let Some(port) = port.filter(|port| !(1..=65535).contains(port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid_value(format!("{path}.port"), &Value::from(port), detail);
    }
    service_path(text(service, "path").unwrap_or_default(), &format!("{path}.path"), errors);
}

/// Validates the path of a service, segment by segment.
///
/// Rule: VLD-24.
fn service_path(text: &str, path: &str, errors: &mut Errors) {
    match text {
        "" | "/" => return,
        "//" => {
            errors.invalid(path, text, "segment[0] may not be empty");
            return;
        }
        _ => {}
    }
    if !text.starts_with('/') {
        errors.invalid(path, text, "must start with a '/'");
    }
    // The first character is skipped even if it is not a slash; the remainder of a multi-byte character is not empty.
    let mut rest = text.chars();
    let first = rest.next().filter(|first| !first.is_ascii());
    let rest = first.map_or_else(|| rest.as_str().to_owned(), |_| text.to_owned());
    for (index, segment) in rest.strip_suffix('/').unwrap_or(&rest).split('/').enumerate() {
        if segment.is_empty() {
            errors.invalid(path, text, &format!("segment[{index}] may not be empty"));
            continue;
        }
        for wrong in names::dns1123_subdomain(segment) {
            errors.invalid(path, text, &format!("segment[{index}]: {wrong}"));
        }
    }
}
