//! Validates certificate bundles and Pod certificates.

use std::collections::{BTreeMap, HashSet};

use kubernetes_types::names;
use serde_json::Value;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, list, set, text};
use crate::kinds::common::{conditions, formats};
use crate::kinds::validation::{certificate_extensions, pod_certificates, signing_requests};

const HIDDEN: &str = "<value omitted>";

/// Validates a `ClusterTrustBundle`.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `ValidateClusterTrustBundle` and
/// `ValidateClusterTrustBundleUpdate`.
/// Rule: VLO-48.
pub(crate) fn trust_bundle(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let (signer_path, signer) = (path.child("signerName"), text(spec, "signerName"));
    if !signer.is_empty() {
        signing_requests::signer_name(errors, &signer_path, signer);
    }
    if change.is_none_or(|change| !change.is_same(&["spec", "trustBundle"])) {
        anchors(errors, &path.child("trustBundle"), text(spec, "trustBundle"));
    }
    if change.is_some_and(|change| !change.is_same(&["spec", "signerName"])) {
        errors.invalid_text(&signer_path, signer, IMMUTABLE);
    }
}

/// Validates the certificates in a trust bundle.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `validateTrustBundle`.
fn anchors(errors: &mut Errors, path: &Path<'_>, bundle: &str) {
    const MAX_TRUST_BUNDLE_SIZE: usize = 1024 * 1024;
    if bundle.len() > MAX_TRUST_BUNDLE_SIZE {
        errors.too_long(path, MAX_TRUST_BUNDLE_SIZE);
        return;
    }
    let before = errors.len();
    let mut found: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for (index, block) in blocks(bundle).enumerate() {
        let wrong = if block.tag() == "CERTIFICATE" {
            wrong_anchor(&block).map(str::to_owned)
        } else {
            Some(format!("has bad block type: {}", block.tag()))
        };
        match wrong {
            Some(wrong) => errors.invalid_text(path, HIDDEN, format!("entry {index} {wrong}")),
            None => found.entry(block.into_contents()).or_default().push(index),
        }
    }
    if errors.len() > before {
        return;
    }
    if found.is_empty() {
        errors.invalid_text(path, HIDDEN, "at least one trust anchor must be provided");
    }
    for indices in found.values().filter(|indices| indices.len() > 1) {
        let indices: Vec<String> = indices.iter().map(usize::to_string).collect();
        let why = format!("duplicate trust anchor (indices [{}])", indices.join(" "));
        errors.invalid_text(path, HIDDEN, why);
    }
}

/// Returns the PEM blocks in a string and ignores other text.
///
/// Source: Go encoding/pem, `Decode`.
pub(crate) fn blocks(text: &str) -> impl Iterator<Item = pem::Pem> {
    const BEGIN: &str = "-----BEGIN ";
    text.match_indices(BEGIN)
        .filter_map(|(begin, _)| text.get(begin..))
        .map(|rest| {
            let end = rest.get(BEGIN.len()..).and_then(|rest| rest.find(BEGIN));
            end.and_then(|end| rest.get(..end + BEGIN.len())).unwrap_or(rest)
        })
        .filter_map(|block| pem::parse(block).ok())
}

fn wrong_anchor(block: &pem::Pem) -> Option<&'static str> {
    if block.headers().iter().next().is_some() {
        return Some("has PEM block headers");
    }
    let Some(certificate) = parsed_certificate(block.contents()) else {
        return Some("does not parse as X.509");
    };
    let is_ca = certificate.extensions().iter().any(certificate_extensions::is_authority);
    (!is_ca).then_some("does not have the CA bit set")
}

/// Returns a certificate, or `None` if Go cannot parse it.
///
/// Source: Go crypto/x509/parser.go, `parseCertificate` and `processExtensions`.
pub(crate) fn parsed_certificate(der: &[u8]) -> Option<X509Certificate<'_>> {
    let Ok(([], certificate)) = X509Certificate::from_der(der) else { return None };
    let inner = &certificate.tbs_certificate;
    let serial = inner.raw_serial();
    let is_canonical = !matches!(serial, [0, next, ..] if next & 0x80 == 0);
    let mut seen = HashSet::new();
    let is_valid = inner.version.0 <= 2
        && is_canonical
        && serial.first().is_some_and(|first| first & 0x80 == 0)
        && inner.signature == certificate.signature_algorithm
        && !pod_certificates::has_invalid_key(certificate.public_key())
        && inner.extensions().iter().all(|extension| {
            certificate_extensions::is_valid(extension) && seen.insert(extension.oid.to_id_string())
        });
    is_valid.then_some(certificate)
}

/// Validates a Pod certificate request.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `ValidatePodCertificateRequestCreate` and
/// `ValidatePodCertificateRequestUpdate`.
/// Rule: VLO-48.
pub(crate) fn pod_request(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    const MAX_UID_LENGTH: usize = 128;
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    if let Some(change) = change {
        if !change.is_same(&["spec"]) {
            errors.invalid_structure(&path, "certificates.PodCertificateRequestSpec", spec, IMMUTABLE);
        }
        return;
    }
    signing_requests::signer_name(errors, &path.child("signerName"), text(spec, "signerName"));
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
        pod_certificates::stub_request(errors, &path, spec);
    } else {
        pod_certificates::key(errors, &path, spec);
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
    signing_requests::signer_name(errors, &path.child("signerName"), signer);
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
pub(crate) fn pod_request_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
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
        pod_certificates::issued(errors, object, change.old, jiff::Timestamp::now());
    } else if !is_same {
        let why = "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"";
        errors.invalid_unshown(&path, why);
    }
}
