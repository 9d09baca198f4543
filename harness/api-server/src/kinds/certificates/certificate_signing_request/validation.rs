//! Validates `CertificateSigningRequest`s and the names of signers.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519,
    RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA384, UnparsedPublicKey,
    VerificationAlgorithm,
};
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text, texts};

/// The key usages that a request may contain.
///
/// Source: kubernetes pkg/apis/certificates/types.go, `KeyUsage`, in alphabetical order.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Validates a new `CertificateSigningRequest`.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `validateCertificateSigningRequest`.
/// Rule: VLO-35.
pub(crate) fn validate(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    request_errors(errors, &path.child("request"), spec);
    let usages = path.child("usages");
    if list(spec, "usages").is_empty() {
        errors.required(&usages, "");
    }
    for (index, usage) in texts(spec, "usages").enumerate() {
        errors.one_of(&usages.index(index), Some(usage), &USAGES);
    }
    let mut seen = HashSet::new();
    for (index, usage) in texts(spec, "usages").enumerate() {
        if !seen.insert(usage) {
            errors.duplicate(&usages.index(index), usage);
        }
    }
    let signer = text(spec, "signerName");
    if signer == "kubernetes.io/legacy-unknown" {
        let why = "the legacy signerName is not allowed via this API version";
        errors.invalid_text(&path.child("signerName"), signer, why);
    } else {
        signer_name(errors, &path.child("signerName"), signer);
    }
    if let Some(seconds) = int(spec, "expirationSeconds").filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid(&path.child("expirationSeconds"), seconds, why);
    }
}

/// Validates the name of a signer.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateSignerName`.
pub(crate) fn signer_name(errors: &mut Errors, path: &Path<'_>, signer: &str) {
    const DNS1123_SUBDOMAIN_MAX_LENGTH: usize = 253;
    const MAX_LENGTH: usize = DNS1123_SUBDOMAIN_MAX_LENGTH + 1 + 253 + 63 + 1;
    if signer.is_empty() {
        errors.required(path, "");
        return;
    }
    let Some((domain, name)) = signer.split_once('/').filter(|(_, name)| !name.contains('/')) else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.invalid_text(path, signer, why);
        return;
    };
    if domain.len() > DNS1123_SUBDOMAIN_MAX_LENGTH {
        errors.too_long(path, DNS1123_SUBDOMAIN_MAX_LENGTH);
    }
    labels(errors, path, domain, names::dns1123_label);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.invalid_text(path, domain, why);
    }
    labels(errors, path, name, names::dns1123_subdomain);
    if signer.len() > MAX_LENGTH {
        errors.too_long(path, MAX_LENGTH);
    }
}

/// Reports the first invalid label of a domain.
fn labels(errors: &mut Errors, path: &Path<'_>, text: &str, wrong: fn(&str) -> Vec<String>) {
    let mut all = text.split('.').map(|label| (label, wrong(label)));
    if let Some((label, wrong)) = all.find(|(_, wrong)| !wrong.is_empty()) {
        for why in wrong {
            errors.invalid_text(path, text, format!("validating label {}: {why}", quote(label)));
        }
    }
}

/// Validates the encoded PKCS #10 request.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `validateCSR`; pkg/apis/certificates/helpers.go,
/// `ParseCSR`.
fn request_errors(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let request = text(spec, "request");
    let data = STANDARD.decode(request).unwrap_or_default();
    // Absent bytes are shown as null.
    let shown = if set(spec, "request").is_none() { "null".to_owned() } else { quote(request) };
    let blocks = pem::parse_many(&data).unwrap_or_default();
    let Some(block) = blocks.first().filter(|block| block.tag() == "CERTIFICATE REQUEST") else {
        errors.invalid(path, shown, "PEM block type must be CERTIFICATE REQUEST");
        return;
    };
    let Some(request) = parsed_request(block.contents()) else {
        errors.cannot_validate("the error message for a certificate request that cannot be parsed");
        return;
    };
    match signature_error(&request) {
        None => errors.cannot_validate("the signature algorithm of this certificate request"),
        Some(Ok(())) => {}
        Some(Err(why)) => errors.invalid(path, shown, why),
    }
}

/// Returns a PKCS #10 request, or `None` if it cannot be parsed.
pub(crate) fn parsed_request(der: &[u8]) -> Option<X509CertificationRequest<'_>> {
    X509CertificationRequest::from_der(der)
        .ok()
        .filter(|(rest, _)| rest.is_empty())
        .map(|(_, request)| request)
}

/// Verifies the signature of a request. Returns `None` if admit does not support the signature algorithm.
///
/// Source: Go crypto/x509, `CertificateRequest.CheckSignature`.
pub(crate) fn signature_error(request: &X509CertificationRequest<'_>) -> Option<Result<(), &'static str>> {
    const RSA: &str = "crypto/rsa: verification error";
    const ECDSA: &str = "x509: ECDSA verification failure";
    let key = &request.certification_request_info.subject_pki;
    let curve = key.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
    let curve = curve.map(|curve| curve.to_id_string());
    let (algorithm, why): (&dyn VerificationAlgorithm, _) =
        match (request.signature_algorithm.algorithm.to_id_string().as_str(), curve.as_deref()) {
            ("1.2.840.113549.1.1.5", _) => (&RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA),
            ("1.2.840.113549.1.1.11", _) => (&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RSA),
            ("1.2.840.113549.1.1.12", _) => (&RSA_PKCS1_2048_8192_SHA384, RSA),
            ("1.2.840.113549.1.1.13", _) => (&RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA),
            ("1.2.840.10045.4.3.2", Some(P256)) => (&ECDSA_P256_SHA256_ASN1, ECDSA),
            ("1.2.840.10045.4.3.2", Some(P384)) => (&ECDSA_P384_SHA256_ASN1, ECDSA),
            ("1.2.840.10045.4.3.3", Some(P256)) => (&ECDSA_P256_SHA384_ASN1, ECDSA),
            ("1.2.840.10045.4.3.3", Some(P384)) => (&ECDSA_P384_SHA384_ASN1, ECDSA),
            ("1.3.101.112", _) => (&ED25519, "x509: Ed25519 verification failure"),
            _ => return None,
        };
    let key = UnparsedPublicKey::new(algorithm, &key.subject_public_key.data);
    let signed = request.certification_request_info.raw;
    Some(key.verify(signed, &request.signature_value.data).map_err(|_unspecified| why))
}

pub(crate) const P256: &str = "1.2.840.10045.3.1.7";

pub(crate) const P384: &str = "1.3.132.0.34";
