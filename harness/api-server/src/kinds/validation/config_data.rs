//! Validates `ConfigMap`s and Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, entries, flag, get, map, text};
use crate::kinds::common::formats;

/// The maximum total size of all values, in bytes.
///
/// Source: kubernetes pkg/apis/core/types.go, `MaxSecretSize`.
const MAX_SECRET_SIZE: usize = 1024 * 1024;

const IMMUTABLE_FIELDS: &str = "field is immutable when `immutable` is set";

/// Validates a `ConfigMap`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateConfigMap` and `ValidateConfigMapUpdate`.
/// Rule: VLO-02.
pub(crate) fn config_map(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let old = change.map(|change| change.old);
    if let Some(old) = old {
        frozen(errors, object, old, &["data", "binaryData"], Maps::EmptyIsAbsent);
    }
    let mut size = 0;
    let (data, binary) = (Path::new("data"), Path::new("binaryData"));
    let is_binary = |key: &str| map(object, "binaryData").is_some_and(|binary| binary.contains_key(key));
    for (key, value) in entries(object, "data") {
        errors.all_invalid(&data.key(key), key, formats::config_key(key));
        if is_binary(key) {
            errors.invalid_text(&data.key(key), key, "duplicate of key present in binaryData");
        }
        size += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in entries(object, "binaryData") {
        errors.all_invalid(&binary.key(key), key, formats::config_key(key));
        size += decoded_length(value);
    }
    if size > MAX_SECRET_SIZE {
        errors.too_long(&Path::new("[]"), MAX_SECRET_SIZE);
    }
}

/// Validates a Secret.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateSecret` and `ValidateSecretUpdate`.
/// Rule: VLO-03.
pub(crate) fn secret(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let old = change.map(|change| change.old);
    let kind = text(object, "type");
    if let Some(old) = old {
        if kind != text(old, "type") {
            errors.invalid_text(&Path::new("type"), kind, IMMUTABLE);
        }
        frozen(errors, object, old, &["data"], Maps::EmptyIsPresent);
    }
    let data = Path::new("data");
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        errors.all_invalid(&data.key(key), key, formats::config_key(key));
        size += decoded_length(value);
    }
    if size > MAX_SECRET_SIZE {
        errors.too_long(&data, MAX_SECRET_SIZE);
    }
    let find = |key: &str| map(object, "data").and_then(|data| data.get(key));
    let mut required = |key: &str| errors.required(&data.key(key), "");
    match kind {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            let annotations = get(get(object, "metadata"), "annotations");
            if text(annotations, key).is_empty() {
                errors.required(&Path::new("metadata").child("annotations").key(key), "");
            }
        }
        "kubernetes.io/dockercfg" if find(".dockercfg").is_none() => required(".dockercfg"),
        "kubernetes.io/dockerconfigjson" if find(".dockerconfigjson").is_none() => {
            required(".dockerconfigjson");
        }
        "kubernetes.io/basic-auth" if find("username").is_none() && find("password").is_none() => {
            required("username");
            required("password");
        }
        "kubernetes.io/ssh-auth" if find("ssh-privatekey").is_none_or(|key| decoded_length(key) == 0) => {
            required("ssh-privatekey");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if find(key).is_none() {
                    required(key);
                }
            }
        }
        _ => {}
    }
}

/// Returns whether a Secret's Docker config is neither a JSON object nor `null`.
///
/// In this case, kube-apiserver's response contains the message of Go's decoder.
pub(crate) fn has_unreadable_docker_config(object: &Value) -> bool {
    let key = match text(object, "type") {
        "kubernetes.io/dockercfg" => ".dockercfg",
        "kubernetes.io/dockerconfigjson" => ".dockerconfigjson",
        _ => return false,
    };
    let Some(value) = map(object, "data").and_then(|data| data.get(key)) else { return false };
    let Ok(bytes) = STANDARD.decode(value.as_str().unwrap_or_default()) else { return true };
    !serde_json::from_slice::<Value>(&bytes).is_ok_and(|value| value.is_object() || value.is_null())
}

/// Determines how the maps of an immutable object are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maps {
    /// An empty map equals an absent map, because the defaults of a `ConfigMap` replace absent maps with empty maps.
    EmptyIsAbsent,
    /// An empty map differs from an absent map.
    EmptyIsPresent,
}

/// Validates that an immutable object does not change.
fn frozen(errors: &mut Errors, object: &Value, old: &Value, fields: &[&'static str], maps: Maps) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(object, "immutable") {
        errors.forbidden(&Path::new("immutable"), IMMUTABLE_FIELDS);
    }
    for field in fields {
        let of =
            |object| map(object, field).filter(|members| maps == Maps::EmptyIsPresent || !members.is_empty());
        if of(object) != of(old) {
            errors.forbidden(&Path::new(field), IMMUTABLE_FIELDS);
        }
    }
}

/// Returns the decoded length of a base64 string in bytes.
fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}
