//! Validates `PodCertificateRequest`s.

use kubernetes_types::names;
use serde_json::Value;

use crate::kinds::certificates::certificate_signing_request;
use crate::kinds::certificates::pod_certificate_request::keys;
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, list, set, text};
use crate::kinds::common::{conditions, formats};

/// Validates a Pod certificate request.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `ValidatePodCertificateRequestCreate` and
/// `ValidatePodCertificateRequestUpdate`.
/// Rule: VLO-48.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    const MAX_UID_LENGTH: usize = 128;
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    if let Some(change) = change {
        if !change.is_same(&["spec"]) {
            errors.invalid_structure(&path, "certificates.PodCertificateRequestSpec", spec, IMMUTABLE);
        }
        return;
    }
    certificate_signing_request::validation::signer_name(
        errors,
        &path.child("signerName"),
        text(spec, "signerName"),
    );
    user_annotations(
        errors,
        &path.child("unverifiedUserAnnotations"),
        get(spec, "unverifiedUserAnnotations"),
    );
    for (name, uid) in
        [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")]
    {
        formats::dns_subdomain(errors, &path.child(name), text(spec, name));
        let (path, uid) = (path.child(uid), text(spec, uid));
        if uid.is_empty() {
            errors.invalid_text(&path, uid, "must not be empty");
        }
        if uid.len() > MAX_UID_LENGTH {
            errors.too_long(&path, MAX_UID_LENGTH);
        }
    }
    lifetime(errors, &path.child("maxExpirationSeconds"), spec);
    if set(spec, "maxExpirationSeconds").is_none() {
        return;
    }
    let has = |field: &str| !text(spec, field).is_empty();
    if !matches!(
        (has("stubPKCS10Request"), has("pkixPublicKey"), has("proofOfPossession")),
        (true, false, false) | (false, true, true)
    ) {
        let why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
        errors.invalid_unshown(&path, why);
    } else if has("stubPKCS10Request") {
        keys::stub_request(errors, &path, spec);
    } else {
        keys::key(errors, &path, spec);
    }
}

/// The number of seconds in an hour.
const HOUR: i64 = 60 * 60;

/// Returns the maximum lifetime of a signer's certificates in seconds.
fn longest_life(signer: &str) -> i64 {
    let domain = signer.split('/').next().unwrap_or_default();
    let is_ours = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    if is_ours { 24 * HOUR } else { 91 * 24 * HOUR }
}

fn lifetime(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let Some(seconds) = int(spec, "maxExpirationSeconds") else {
        errors.required(path, "must be set");
        return;
    };
    let most = longest_life(text(spec, "signerName"));
    if !(HOUR..=most).contains(&seconds) {
        errors.invalid(path, seconds, format!("must be in the range [{HOUR}, {most}]"));
    }
}

/// Validates a projected Pod certificate except for the paths of its files.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateProjectionSources`.
pub(crate) fn projected(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    const KEYS: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    let signer = text(source, "signerName");
    certificate_signing_request::validation::signer_name(errors, &path.child("signerName"), signer);
    user_annotations(errors, &path.child("userAnnotations"), get(source, "userAnnotations"));
    errors.one_of(&path.child("keyType"), Some(text(source, "keyType")), &KEYS);
    if let Some(seconds) = int(source, "maxExpirationSeconds") {
        let (path, most) = (path.child("maxExpirationSeconds"), longest_life(signer));
        if seconds < HOUR {
            errors.invalid(&path, seconds, format!("if provided, maxExpirationSeconds must be >= {HOUR}"));
        }
        if seconds > most {
            errors.invalid(&path, seconds, format!("if provided, maxExpirationSeconds must be <= {most}"));
        }
    }
}

/// Validates the user annotations of a Pod certificate.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateUserAnnotations`; apimachinery
/// pkg/util/validation/validation.go, `IsDomainPrefixedKey`.
fn user_annotations(errors: &mut Errors, path: &Path<'_>, annotations: &Value) {
    const TOTAL_ANNOTATION_SIZE_LIMIT_B: usize = 256 * 1024;
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        size += key.len() + value.as_str().unwrap_or_default().len();
        prefixed_key(errors, path, &key.to_lowercase());
    }
    if size > TOTAL_ANNOTATION_SIZE_LIMIT_B {
        errors.too_long(path, TOTAL_ANNOTATION_SIZE_LIMIT_B);
    }
}

fn prefixed_key(errors: &mut Errors, path: &Path<'_>, key: &str) {
    if key.is_empty() {
        errors.required(path, "");
        return;
    }
    let wrong = names::label_key(key);
    let is_label = wrong.is_empty();
    errors.all_invalid(path, key, wrong);
    if is_label && !key.contains('/') {
        errors.invalid_text(path, key, "must be a domain-prefixed key (such as \"acme.io/foo\")");
    }
}

/// Validates the status of a request.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `ValidatePodCertificateRequestStatusUpdate`.
/// Rule: VLO-48.
pub(crate) fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    const KNOWN: [&str; 3] = ["Issued", "Denied", "Failed"];
    let mut count = 0;
    let of_status = |object: &Value| -> Vec<Value> { list(get(object, "status"), "conditions").to_vec() };
    for (index, condition) in of_status(object).iter().enumerate() {
        let base = format!("status.conditions.[{index}]");
        let (path, kind) = (Path::new(&base), text(condition, "type"));
        if !KNOWN.contains(&kind) {
            errors.unsupported(&path.child("type"), kind, &KNOWN);
            continue;
        }
        count += 1;
        if count > 1 {
            let why = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.invalid_text(&path.child("type"), kind, why);
        }
        errors.one_of(&path.child("status"), Some(text(condition, "status")), &["True"]);
    }
    conditions::of_status(errors, object);
    if errors.len() > 0 {
        return;
    }
    let is = |object: &Value, kind: &str| {
        let all = of_status(object);
        let found = all.iter().find(|condition| text(condition, "type") == kind);
        found.is_some_and(|condition| text(condition, "status") == "True")
    };
    let is_same = change.is_same(&["status"]);
    let further = get(object, "status").as_object().into_iter().flatten();
    let has_more = further.filter(|(field, _)| *field != "conditions").any(|(_, found)| !found.is_null());
    let path = Path::new("status");
    if KNOWN.iter().any(|kind| is(change.old, kind)) {
        if !is_same {
            let why = "immutable after PodCertificateRequest is issued, denied, or failed";
            errors.invalid_unshown(&path, why);
        }
    } else if is(object, "Denied") || is(object, "Failed") {
        if has_more {
            let why =
                "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
            errors.invalid_unshown(&path, why);
        }
    } else if is(object, "Issued") {
        keys::issued(errors, object, change.old, jiff::Timestamp::now());
    } else if !is_same {
        let why = "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"";
        errors.invalid_unshown(&path, why);
    }
}
