//! Implements Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_types::json;
use kubernetes_types::json::{at, keep, set};
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, count, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, fill, remove};
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, entries, get, map, text};
use crate::kinds::common::formats;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::core::config_map::{MAX_SECRET_SIZE, Maps, decoded_length, frozen};
use crate::kinds::kind::Kind;

/// The behavior of Secrets.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "secrets",
    kind: "Secret",
    set_defaults: Some(set_defaults),
    through_internal: Some(through_internal),
    validate,
    warn,
    cells: Some(cells),
    prepare_update: keep_type,
    selectable_fields: Some(&["metadata.name", "metadata.namespace", "type"]),
    ..Kind::PLAIN
};

fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    validate_data(errors, object, change);
    if has_unreadable_docker_config(object) {
        errors.cannot_validate("the message for a Secret whose Docker configuration is not a JSON object");
    }
}

/// Keeps the type in an update that does not set it.
fn keep_type(object: &mut Value, old: &Value) {
    if object.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
        keep(object, old, "type");
    }
}

/// Sets the defaults of a Secret.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Secret`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    fill(object, "type", "Opaque");
}

/// Source: `Convert_v1_Secret_To_core_Secret`.
pub(crate) fn through_internal(object: &mut Value) {
    if let Some(Value::Object(plain)) = remove(object, "stringData")
        && !plain.is_empty()
        && let Some(encoded) = ensure(object, "data")
    {
        for (key, value) in plain {
            let value = STANDARD.encode(value.as_str().unwrap_or_default());
            set(encoded, &[&key], value);
        }
    }
}

/// Validates a Secret.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateSecret` and `ValidateSecretUpdate`.
/// Rule: VLO-03.
pub(crate) fn validate_data(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
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

/// Warns about a TLS Secret whose certificate or key does not contain a PEM block.
///
/// Does not check the content of PEM blocks.
///
/// Source: kubernetes pkg/registry/core/secret/strategy.go, `warningsForSecret`, which shows the errors of Go's
/// crypto/tls, `X509KeyPair`.
/// Rule: VLO-28.
pub(crate) fn warn(warnings: &mut Warnings, secret: &Value, _: Option<&Value>) {
    if text(secret, "type") != "kubernetes.io/tls" {
        return;
    }
    for (field, what) in [("tls.crt", "certificate"), ("tls.key", "key")] {
        let data = STANDARD.decode(text(get(secret, "data"), field)).unwrap_or_default();
        let has_block = data.windows(BEGIN.len()).any(|found| found == BEGIN);
        if !has_block {
            warnings.push(format!("tls: failed to find any PEM data in {what} input"));
            return;
        }
    }
}

const BEGIN: &[u8] = b"-----BEGIN ";

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), json::text(object, &["type"]), count(at(object, &["data"])), age_of(object, context)]
}
