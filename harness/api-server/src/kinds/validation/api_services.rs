//! Validates `APIService`s.

use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, flag, get, int, list, set, text};
use crate::kinds::common::formats;

/// Validates an `APIService`.
///
/// Source: kube-aggregator pkg/apis/apiregistration/validation/validation.go, `ValidateAPIService`.
/// Rule: VLO-50.
pub(crate) fn service(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    if group.is_empty() && version != "v1" {
        errors.required(&path.child("group"), "only v1 may have an empty group and it better be legacy kube");
    }
    if !group.is_empty() {
        formats::dns_subdomain(errors, &path.child("group"), group);
    }
    errors.all_invalid(&path.child("version"), version, names::dns1035_label(version));
    for (field, limit) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = int(spec, field).unwrap_or(0);
        if !(1..=limit).contains(&priority) {
            let why = format!("must be positive and less than {limit}");
            errors.invalid(&path.child(field), priority, why);
        }
    }
    let bundle = decoded_length(text(spec, "caBundle"));
    let (bundle_path, insecure_path) = (path.child("caBundle"), path.child("insecureSkipTLSVerify"));
    let is_insecure = flag(spec, "insecureSkipTLSVerify");
    let Some(service) = set(spec, "service") else {
        if bundle != 0 {
            let shown = quote(&format!("{bundle} bytes"));
            errors.invalid(&bundle_path, shown, "local APIServices may not have a caBundle");
        }
        if is_insecure {
            errors.invalid(&insecure_path, true, "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    };
    let path = path.child("service");
    for field in ["namespace", "name"] {
        if text(service, field).is_empty() {
            errors.required(&path.child(field), "");
        }
    }
    let port = int(service, "port").unwrap_or(0);
    if !(1..=65_535).contains(&port) {
        let why = format!("port is not valid: {}", formats::between(1, 65_535));
        errors.invalid(&path.child("port"), port, why);
    }
    if is_insecure && bundle != 0 {
        errors.invalid(&insecure_path, true, "may not be true if caBundle is present");
    }
}

/// Returns the number of bytes that a base64 string encodes.
fn decoded_length(text: &str) -> usize {
    let digits = text.trim_end_matches('=').len();
    digits * 3 / 4
}

/// Validates the status of an `APIService`.
///
/// Source: kube-aggregator pkg/apis/apiregistration/validation/validation.go, `ValidateAPIServiceStatus`.
/// Rule: VLO-50.
pub(crate) fn status(errors: &mut Errors, object: &Value, _: Change<'_>) {
    let path = Path::new("status");
    let path = path.child("conditions");
    for (index, condition) in list(get(object, "status"), "conditions").iter().enumerate() {
        let path = path.index(index);
        errors.one_of(&path.child("status"), Some(text(condition, "status")), &["True", "False", "Unknown"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_of_the_bundle_is_that_of_its_bytes() {
        for (text, length) in [("", 0), ("YQ==", 1), ("YWI=", 2), ("YWJj", 3), ("YWJjZA==", 4)] {
            assert_eq!(decoded_length(text), length, "{text}");
        }
    }
}
