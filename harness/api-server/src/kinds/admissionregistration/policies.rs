//! Provides what both kinds of admission policies share.

use kubernetes_types::json::at;
use kubernetes_types::status::FieldError;
use kubernetes_types::{json, names};
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::admissionregistration::matching;
use crate::kinds::common::cells::{Context, age_of, items, name, row};
use crate::kinds::common::fields::{Errors, Path, set, text, word};

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];

/// Validates an optional string field whose default is set before the validation.
pub(crate) fn one_of(errors: &mut Errors, path: &Path<'_>, value: Option<&str>, supported: &[&str]) {
    if value.is_none() {
        errors.required(path, "");
    }
    errors.one_of(path, value, supported);
}

/// Validates the fields that both kinds of policies have before their expressions.
pub(crate) fn definition(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    one_of(errors, &path.child("failurePolicy"), word(spec, "failurePolicy"), &FAILURE_POLICIES);
    if let Some(kind) = set(spec, "paramKind") {
        param_kind(errors, &path.child("paramKind"), kind);
    }
    let path = path.child("matchConstraints");
    match set(spec, "matchConstraints") {
        None => errors.required(&path, ""),
        Some(constraints) => matching::constraints(errors, &path, constraints),
    }
}

/// Validates the `paramKind` of a policy.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateParamKind`.
fn param_kind(errors: &mut Errors, path: &Path<'_>, param_kind: &Value) {
    let (version_path, api_version) = (path.child("apiVersion"), text(param_kind, "apiVersion"));
    let joined = |whys: Vec<String>| (!whys.is_empty()).then(|| whys.join(","));
    let mut parts = api_version.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        _ if api_version.is_empty() => errors.required(&version_path, ""),
        (.., Some(_)) => {
            let why = format!("unexpected GroupVersion string: {api_version}");
            errors.invalid_text(&version_path, api_version, why);
        }
        (first, second, None) => {
            let (group, version) = match second {
                Some(version) => (first.unwrap_or_default(), version),
                None => ("", api_version),
            };
            if !group.is_empty()
                && let Some(why) = joined(names::dns1123_subdomain(group))
            {
                errors.invalid_text(&version_path, group, why);
            }
            if version.is_empty() {
                errors.invalid_text(&version_path, api_version, "version must be specified");
            } else if let Some(why) = joined(names::dns1035_label(version)) {
                errors.invalid_text(&version_path, version, why);
            }
        }
    }
    let (path, kind) = (path.child("kind"), text(param_kind, "kind"));
    if kind.is_empty() {
        errors.required(&path, "");
    } else if let Some(why) = joined(names::dns1035_label(&kind.to_lowercase())) {
        errors.invalid_text(&path, kind, format!("may have mixed case, but should otherwise match: {why}"));
    }
}

/// Rejects a new object with a name that is reserved for static manifests.
///
/// Source: kubernetes `pkg/apis/admissionregistration/validation/static_suffix.go`, `ValidateStaticSuffix`.
pub(crate) fn static_suffix(errors: &mut Errors, object: &Value) {
    const SUFFIX: &str = ".static.k8s.io";
    let name = metadata::text(object, "name");
    if name.ends_with(SUFFIX) {
        let why = format!(
            "names ending with \"{SUFFIX}\" are reserved for static manifest-based configurations and cannot be managed \
             via the API"
        );
        errors.push(FieldError::invalid("metadata.name", Value::from(name), why));
    }
}

pub(crate) fn policy_cells(object: &Value, context: &Context<'_>, rules: &str) -> Vec<Value> {
    let kind = at(object, &["spec", "paramKind"]);
    let kind = if kind.is_null() {
        "<unset>".to_owned()
    } else {
        format!("{}/{}", json::text(kind, &["apiVersion"]), json::text(kind, &["kind"]))
    };
    row![name(object), items(object, &["spec", rules]).len(), kind, age_of(object, context)]
}
