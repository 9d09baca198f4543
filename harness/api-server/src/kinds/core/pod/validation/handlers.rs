//! Validates probes and lifecycle handlers.

use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text};
use crate::kinds::common::formats;

/// Validates the lifecycle handlers and probes of a container that runs for the lifetime of its Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateLifecycle`, `validateLivenessProbe`,
/// `validateReadinessProbe` and `validateStartupProbe`.
/// Rule: VLO-10.
pub(crate) fn of_container(
    errors: &mut Errors,
    path: &Path<'_>,
    container: &Value,
    grace_period: Option<i64>,
) {
    if let Some(lifecycle) = set(container, "lifecycle") {
        let path = path.child("lifecycle");
        for field in ["postStart", "preStop"] {
            if let Some(hook) = set(lifecycle, field) {
                handler(errors, &path.child(field), hook, grace_period);
            }
        }
    }
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(value) = set(container, field) else { continue };
        let path = path.child(field);
        probe(errors, &path, value, grace_period);
        if field == "readinessProbe" {
            if let Some(seconds) = int(value, "terminationGracePeriodSeconds") {
                let path = path.child("terminationGracePeriodSeconds");
                errors.invalid(&path, seconds, "must not be set for readinessProbes");
            }
        } else if let Some(threshold) = int(value, "successThreshold").filter(|threshold| *threshold != 1) {
            errors.invalid(&path.child("successThreshold"), threshold, "must be 1");
        }
    }
}

/// Validates a probe.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateProbe`.
fn probe(errors: &mut Errors, path: &Path<'_>, probe: &Value, grace_period: Option<i64>) {
    handler(errors, path, probe, grace_period);
    let numbers =
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    errors.none_negative(path, probe, &numbers);
    if let Some(seconds) = int(probe, "terminationGracePeriodSeconds").filter(|seconds| *seconds <= 0) {
        let path = path.child("terminationGracePeriodSeconds");
        errors.invalid(&path, seconds, "must be greater than 0");
    }
}

/// Validates the action of a probe or a lifecycle handler.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateHandler`.
fn handler(errors: &mut Errors, path: &Path<'_>, handler: &Value, grace_period: Option<i64>) {
    let mut found = false;
    for field in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = set(handler, field) else { continue };
        let path = path.child(field);
        if found {
            errors.forbidden(&path, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match field {
            "exec" => {
                if list(action, "command").is_empty() {
                    errors.required(&path.child("command"), "");
                }
            }
            "httpGet" => http(errors, &path, action),
            "tcpSocket" | "grpc" => formats::port_or_name(errors, &path.child("port"), get(action, "port")),
            _ => {
                let seconds = int(action, "seconds").unwrap_or(0);
                if let Some(limit) = grace_period.filter(|limit| seconds < 0 || seconds > *limit) {
                    let why =
                        format!("must be non-negative and less than terminationGracePeriodSeconds ({limit})");
                    errors.invalid(&path, seconds, why);
                }
            }
        }
    }
    if !found {
        errors.required(path, "must specify a handler type");
    }
}

/// Validates an HTTP GET action.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateHTTPGetAction`.
fn http(errors: &mut Errors, path: &Path<'_>, action: &Value) {
    if text(action, "path").is_empty() {
        errors.required(&path.child("path"), "");
    }
    formats::port_or_name(errors, &path.child("port"), get(action, "port"));
    let scheme = text(action, "scheme");
    errors.one_of(&path.child("scheme"), Some(scheme), &["HTTP", "HTTPS"]);
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        errors.all_invalid(&path.child("httpHeaders"), name, formats::header_name(name));
    }
}
