//! Validates `spec.conversion` of custom resource definitions.

use std::collections::HashSet;

use admission_webhook_client::check_bundle;
use kubernetes_admission::config::client_config_errors;
use kubernetes_types::json::{at, text};
use kubernetes_types::quoting::{encode, quote};
use kubernetes_types::status::FieldError;
use kubernetes_types::{go_base64, names};
use serde_json::Value;

const PATH: &str = "spec.conversion";

const ONLY_FOR_WEBHOOK: &str = "should not be set when strategy is not set to Webhook";

const SUPPORTED_REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Validates `spec.conversion` of a definition; `old` is `None` for a new definition.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, `validateCustomResourceConversion`
/// and `validateConversionReviewVersions`.
/// Rule: CNV-13.
pub(crate) fn errors(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = at(definition, &["spec"]);
    let conversion = at(spec, &["conversion"]);
    let strategy = text(conversion, &["strategy"]);
    let mut errors = Vec::new();
    if strategy != "None" && spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        let why = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(format!("{PATH}.strategy"), quote(strategy), why));
    }
    match strategy {
        "" => errors.push(FieldError::required(format!("{PATH}.strategy"), "")),
        "None" | "Webhook" => {}
        other => {
            let supported = "\"None\", \"Webhook\"";
            errors.push(FieldError::not_supported(format!("{PATH}.strategy"), quote(other), supported));
        }
    }
    let client_config = at(conversion, &["webhook", "clientConfig"]);
    let versions = review_versions(conversion);
    let (client_path, versions_path) =
        (format!("{PATH}.webhookClientConfig"), format!("{PATH}.conversionReviewVersions"));
    if strategy != "Webhook" {
        if !client_config.is_null() {
            errors.push(FieldError::forbidden(client_path, ONLY_FOR_WEBHOOK));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(versions_path, ONLY_FOR_WEBHOOK));
        }
        return errors;
    }
    if client_config.is_null() {
        errors.push(FieldError::required(client_path, "required when strategy is set to Webhook"));
    } else {
        errors.extend(client_config_errors(client_config, &client_path));
        errors.extend(bundle_error(client_config, old, &client_path));
    }
    errors.extend(version_errors(versions, old, &versions_path));
    errors
}

fn review_versions(conversion: &Value) -> &[Value] {
    at(conversion, &["webhook", "conversionReviewVersions"]).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the reason why the certificates of a `clientConfig` are invalid; `None` if they are valid.
fn wrong_bundle(client_config: &Value) -> Option<String> {
    let bundle =
        go_base64::bytes(at(client_config, &["caBundle"])).ok().filter(|bundle| !bundle.is_empty())?;
    check_bundle(&bundle).err()
}

/// Returns whether the conversion webhook of a definition has a `caBundle` without valid certificates.
pub(crate) fn has_invalid_bundle(definition: &Value) -> bool {
    wrong_bundle(at(definition, &["spec", "conversion", "webhook", "clientConfig"])).is_some()
}

/// Validates the `caBundle` of a conversion webhook.
///
/// A new definition with an invalid `caBundle` is accepted but not established. An update may keep an invalid
/// `caBundle`.
fn bundle_error(client_config: &Value, old: Option<&Value>, path: &str) -> Option<FieldError> {
    let why = wrong_bundle(client_config)?;
    if old.is_none_or(has_invalid_bundle) {
        return None;
    }
    let bundle = encode(at(client_config, &["caBundle"]));
    Some(FieldError::invalid(format!("{path}.caBundle"), bundle, why))
}

/// Validates `conversionReviewVersions`. An update may keep a list without a supported version.
fn version_errors(versions: &[Value], old: Option<&Value>, path: &str) -> Vec<FieldError> {
    if versions.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let knows_one = |versions: &[Value]| {
        versions.iter().any(|version| SUPPORTED_REVIEW_VERSIONS.iter().any(|known| version == known))
    };
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        let version = version.as_str().unwrap_or_default();
        let mut wrong = |why: &str| {
            errors.push(FieldError::invalid(format!("{path}[{index}]"), quote(version), why));
        };
        if seen.insert(version) {
            for why in names::dns1035_label(version) {
                wrong(&why);
            }
        } else {
            wrong("duplicate version");
        }
    }
    let before = old.map(|old| review_versions(at(old, &["spec", "conversion"]))).unwrap_or_default();
    if !knows_one(versions) && (before.is_empty() || knows_one(before)) {
        let listed = encode(&Value::from(versions));
        let why = format!("must include at least one of {}", SUPPORTED_REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, listed, why));
    }
    errors
}
