//! Validates the keys, proofs, and certificates of `PodCertificateRequest`s.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use kubernetes_types::quoting::quote;
use ring::agreement;
use ring::agreement::{ECDH_P256, ECDH_P384, EphemeralPrivateKey};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ED25519, RSA_PSS_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use serde_json::Value;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::kinds::certificates::certificate_signing_request::validation::{
    P256, P384, parsed_request, signature_error,
};
use crate::kinds::certificates::cluster_trust_bundle::{blocks, parsed_certificate};
use crate::kinds::common::fields::{Errors, Path, get, int, set, text};

const UNKNOWN_KEY_TYPE: &str = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";

const UNVERIFIED: &str = "could not verify proof-of-possession signature";

const INVALID_KEY: &str = "must be a valid PKIX-serialized public key";

const INVALID_REQUEST: &str = "must be a valid PKCS#10 CSR";

/// The maximum size, in bytes, of a key, a proof, or a PKCS #10 request.
///
/// Source: kubernetes pkg/apis/certificates/types.go, `MaxPKIXPublicKeySize`, `MaxProofOfPossessionSize`, and
/// `MaxStubPKCS10RequestSize`.
const MAX_KEY_SIZE: usize = 10 * 1024;

const P224: &str = "1.3.132.0.33";

const P521: &str = "1.3.132.0.35";

/// The type of a public key that Go can parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyType {
    Ed25519,
    P224,
    P256,
    P384,
    P521,
    /// An RSA key with this number of bits, rounded up to whole bytes.
    Rsa(usize),
    /// A key of a type that Pod certificates do not support.
    Other,
}

/// Returns the type of a public key; `None` if the key is invalid or Go does not support its type.
///
/// Source: Go crypto/x509/parser.go, `parsePublicKey`.
fn key_type(key: &SubjectPublicKeyInfo<'_>) -> Option<KeyType> {
    let data = &*key.subject_public_key.data;
    match key.algorithm.algorithm.to_id_string().as_str() {
        "1.2.840.10045.2.1" => {
            let curve = key.algorithm.parameters.as_ref()?.as_oid().ok()?.to_id_string();
            let (found, length) = match curve.as_str() {
                P224 => (KeyType::P224, 28),
                P256 => (KeyType::P256, 32),
                P384 => (KeyType::P384, 48),
                P521 => (KeyType::P521, 66),
                _ => return None,
            };
            let is_point =
                data.first() == Some(&4) && data.len() == 1 + 2 * length && is_on_curve(found, data);
            is_point.then_some(found)
        }
        "1.3.101.112" => (data.len() == 32).then_some(KeyType::Ed25519),
        "1.2.840.113549.1.1.1" => match key.parsed() {
            Ok(PublicKey::RSA(rsa)) => {
                let digits = rsa.modulus.iter().skip_while(|byte| **byte == 0).count();
                (digits > 0).then_some(KeyType::Rsa(8 * digits))
            }
            Ok(_) | Err(_) => None,
        },
        "1.3.101.110" | "1.2.840.10040.4.1" => Some(KeyType::Other),
        _ => None,
    }
}

/// Returns whether a point is on its curve. Does not check points on curves that `ring` does not support.
fn is_on_curve(of: KeyType, point: &[u8]) -> bool {
    let algorithm = match of {
        KeyType::P256 => &ECDH_P256,
        KeyType::P384 => &ECDH_P384,
        KeyType::Ed25519 | KeyType::P224 | KeyType::P521 | KeyType::Rsa(_) | KeyType::Other => return true,
    };
    let Ok(own) = EphemeralPrivateKey::generate(algorithm, &SystemRandom::new()) else { return false };
    agreement::agree_ephemeral(own, &agreement::UnparsedPublicKey::new(algorithm, point), |_| ()).is_ok()
}

fn bytes(spec: &Value, field: &str) -> Vec<u8> {
    STANDARD.decode(text(spec, field)).unwrap_or_default()
}

fn parsed_key(bytes: &[u8]) -> Option<SubjectPublicKeyInfo<'_>> {
    SubjectPublicKeyInfo::from_der(bytes).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, key)| key)
}

/// Validates the public key and the proof of possession of a request.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `validateDeprecatedPKIXPublicKey`.
/// Rule: VLO-48.
pub(crate) fn key(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let (key, proof) = (bytes(spec, "pkixPublicKey"), bytes(spec, "proofOfPossession"));
    let (key_path, proof_path) = (path.child("pkixPublicKey"), path.child("proofOfPossession"));
    for (path, bytes) in [(&key_path, &key), (&proof_path, &proof)] {
        if bytes.len() > MAX_KEY_SIZE {
            errors.too_long(path, MAX_KEY_SIZE);
            return;
        }
    }
    let shown = quote(text(spec, "pkixPublicKey"));
    let parsed = parsed_key(&key);
    let Some((parsed, of)) = parsed.as_ref().and_then(|key| Some((key, key_type(key)?))) else {
        errors.invalid(&key_path, shown, INVALID_KEY);
        return;
    };
    let algorithm: &dyn VerificationAlgorithm = match of {
        KeyType::Ed25519 => &ED25519,
        KeyType::P256 => &ECDSA_P256_SHA256_ASN1,
        KeyType::P384 => &ECDSA_P384_SHA256_ASN1,
        KeyType::Rsa(3072 | 4096) => &RSA_PSS_2048_8192_SHA256,
        KeyType::P224 => {
            let why = "elliptic public keys must use curve P256 or P384";
            errors.invalid_text(&key_path, "curve P-224", why);
            return;
        }
        KeyType::P521 => {
            errors.cannot_validate("Pod certificate requests with a key on the curve P-521");
            return;
        }
        KeyType::Rsa(bits) => {
            wrong_modulus(errors, &key_path, bits);
            return;
        }
        KeyType::Other => {
            errors.invalid(&key_path, shown, UNKNOWN_KEY_TYPE);
            return;
        }
    };
    let verifier = UnparsedPublicKey::new(algorithm, &parsed.subject_public_key.data);
    if verifier.verify(text(spec, "podUID").as_bytes(), &proof).is_ok() {
        return;
    }
    if matches!(of, KeyType::Rsa(bits) if proof.len() * 8 == bits) {
        // Go accepts salts of any length.
        errors.cannot_validate("an RSA proof of possession that is invalid or has a salt of unusual length");
    } else {
        errors.invalid_unshown(&proof_path, UNVERIFIED);
    }
}

fn wrong_modulus(errors: &mut Errors, path: &Path<'_>, bits: usize) {
    let shown = format!("{bits}-bit modulus");
    errors.invalid_text(path, &shown, "RSA keys must have modulus size 3072 or 4096");
}

/// Validates the PKCS #10 request.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `validateStubPKCS10Request`.
/// Rule: VLO-48.
pub(crate) fn stub_request(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let data = bytes(spec, "stubPKCS10Request");
    let path = path.child("stubPKCS10Request");
    if data.len() > MAX_KEY_SIZE {
        errors.too_long(&path, MAX_KEY_SIZE);
        return;
    }
    let Some(request) = parsed_request(&data) else {
        errors.invalid_unshown(&path, INVALID_REQUEST);
        return;
    };
    let key = &request.certification_request_info.subject_pki;
    match key_type(key) {
        Some(
            KeyType::Ed25519 | KeyType::P256 | KeyType::P384 | KeyType::P521 | KeyType::Rsa(3072 | 4096),
        ) => {}
        Some(KeyType::P224) => {
            let why = "elliptic public keys must use curve P256, P384, or P521";
            errors.invalid_text(&path, "curve P-224", why);
            return;
        }
        Some(KeyType::Rsa(bits)) => {
            wrong_modulus(errors, &path, bits);
            return;
        }
        None if has_invalid_key(key) => {
            errors.invalid_unshown(&path, INVALID_REQUEST);
            return;
        }
        Some(KeyType::Other) | None => {
            errors.invalid_unshown(&path, UNKNOWN_KEY_TYPE);
            return;
        }
    }
    match signature_error(&request) {
        None => errors.cannot_validate("the signature algorithm of this certificate request"),
        Some(Ok(())) => {}
        Some(Err(_)) => errors.invalid_unshown(&path, "invalid signature"),
    }
}

/// Returns whether a key is invalid although Go supports its type.
pub(crate) fn has_invalid_key(key: &SubjectPublicKeyInfo<'_>) -> bool {
    let known = ["1.2.840.10045.2.1", "1.3.101.112", "1.2.840.113549.1.1.1"];
    known.contains(&key.algorithm.algorithm.to_id_string().as_str()) && key_type(key).is_none()
}

/// Validates the certificates and the times of an issued request.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `ValidatePodCertificateRequestStatusUpdate`.
/// Rule: VLO-48.
pub(crate) fn issued(errors: &mut Errors, object: &Value, old: &Value, now: Timestamp) {
    const MAX_CERTIFICATE_CHAIN_SIZE: usize = 100 * 1024;
    let (root, status) = (Path::new("status"), get(object, "status"));
    let (path, chain) = (root.child("certificateChain"), text(status, "certificateChain"));
    if chain.len() > MAX_CERTIFICATE_CHAIN_SIZE {
        errors.too_long(&path, MAX_CERTIFICATE_CHAIN_SIZE);
        return;
    }
    let mut blocks = blocks(chain);
    let Some(block) = blocks.next() else {
        errors.invalid_text(&path, chain, "issued certificate chain must contain at least one certificate");
        return;
    };
    if block.tag() != "CERTIFICATE" {
        let why = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks";
        errors.invalid_text(&path, chain, why);
        return;
    }
    let Some(leaf) = parsed_certificate(block.contents()) else {
        errors.invalid_text(&path, chain, "leaf certificate does not parse as valid X.509");
        return;
    };
    names(errors, &path, &leaf);
    if !is_of_requested_key(errors, &path, chain, get(old, "spec"), leaf.public_key()) {
        return;
    }
    let before = errors.len();
    times(errors, &root, &path, object, &leaf, now);
    if errors.len() > before {
        return;
    }
    for block in blocks {
        let why = if block.tag() != "CERTIFICATE" {
            // The spelling is upstream's.
            "issued certificate chain must consist entirely of CERTFICATE PEM blocks"
        } else if parsed_certificate(block.contents()).is_none() {
            "intermediate certificate does not parse as valid X.509"
        } else {
            continue;
        };
        errors.invalid_text(&path, chain, why);
        return;
    }
}

/// Validates the DNS names and email addresses of a leaf certificate.
fn names(errors: &mut Errors, path: &Path<'_>, leaf: &X509Certificate<'_>) {
    let extensions = leaf.extensions().iter();
    let names = extensions.filter_map(|extension| {
        let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() else {
            return None;
        };
        Some(&names.general_names)
    });
    let names: Vec<&GeneralName<'_>> = names.flatten().collect();
    for name in &names {
        let GeneralName::DNSName(name) = name else { continue };
        if name.is_empty() {
            errors.invalid_text(path, name, "leaf certificate should not contain empty DNSName");
        }
        if name.contains("..") {
            errors.invalid_text(path, name, "leaf certificate's DNSName should not contain '..'");
        }
        if name.starts_with('.') || name.ends_with('.') {
            errors.invalid_text(path, name, "leaf certificate's DNSName should not start or end with '.'");
        }
    }
    for name in &names {
        let GeneralName::RFC822Name(address) = name else { continue };
        let is_word = |text: &str| {
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+".contains(&byte);
            text.split('.').all(|part| !part.is_empty() && part.bytes().all(is_letter))
        };
        match address.split_once('@') {
            None => {
                let why = "leaf certificate should not contain invalid EmailAddress";
                errors.invalid_text(path, address, why);
            }
            Some((user, host)) if is_word(user) && is_word(host) => {}
            Some(_) => errors.cannot_validate("unusual email addresses in Pod certificates"),
        }
    }
}

/// Returns whether the certificate has the key of the request. Otherwise reports an error.
fn is_of_requested_key(
    errors: &mut Errors,
    path: &Path<'_>,
    chain: &str,
    spec: &Value,
    key: &SubjectPublicKeyInfo<'_>,
) -> bool {
    let (request, wanted) = (bytes(spec, "stubPKCS10Request"), bytes(spec, "pkixPublicKey"));
    let request = parsed_request(&request);
    let own = parsed_key(&wanted);
    let wanted =
        request.as_ref().map(|request| &request.certification_request_info.subject_pki).or(own.as_ref());
    // The spec was valid when the request was created.
    let Some(wanted) = wanted else { return true };
    let is_same = key_type(wanted) == key_type(key)
        && wanted.algorithm.algorithm == key.algorithm.algorithm
        && wanted.subject_public_key.data == key.subject_public_key.data;
    if !is_same {
        let why = "leaf certificate was not issued to the requested public key";
        errors.invalid_text(path, chain, why);
    }
    is_same
}

/// Validates the times in the status of an issued request.
fn times(
    errors: &mut Errors,
    root: &Path<'_>,
    chain: &Path<'_>,
    object: &Value,
    leaf: &X509Certificate<'_>,
    now: Timestamp,
) {
    const MINUTE: i64 = 60;
    let status = get(object, "status");
    let [before, after, refresh] = ["notBefore", "notAfter", "beginRefreshAt"].map(|field| root.child(field));
    let consistent = "must be present and consistent with the issued certificate";
    let in_range = "must be present and in the range [notbefore+10min, notafter-10min]";
    let count = errors.len();
    for (path, field, why) in [
        (&before, "notBefore", consistent),
        (&after, "notAfter", consistent),
        (&refresh, "beginRefreshAt", in_range),
    ] {
        if set(status, field).is_none() {
            errors.required(path, why);
        }
    }
    if errors.len() > count {
        return;
    }
    let at = |field: &str| text(status, field).parse::<Timestamp>().ok();
    let (Some(not_before), Some(not_after), Some(begin_refresh)) =
        (at("notBefore"), at("notAfter"), at("beginRefreshAt"))
    else {
        errors.cannot_validate("Pod certificates with invalid times");
        return;
    };
    let seconds = |time: Timestamp| time.as_second();
    let validity = leaf.validity();
    let (start, end) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let shown = |field: &str| quote(text(status, field));
    if seconds(not_before) != start {
        let why = "must be set to the NotBefore time encoded in the leaf certificate";
        errors.invalid(&before, shown("notBefore"), why);
    } else if now.duration_since(not_before).abs() > SignedDuration::from_secs(5 * MINUTE) {
        let why = "must be set to within 5 minutes of kube-apiserver's current time";
        errors.invalid(&before, shown("notBefore"), why);
    } else if seconds(not_after) != end {
        let why = "must be set to the NotAfter time encoded in the leaf certificate";
        errors.invalid(&after, shown("notAfter"), why);
    } else if end - start < 60 * MINUTE {
        let why = "leaf certificate lifetime must be >= 1 hour";
        errors.invalid(chain, i128::from(end - start) * 1_000_000_000, why);
    } else if let Some(most) =
        int(get(object, "spec"), "maxExpirationSeconds").filter(|most| end - start > *most)
    {
        let why = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({most})");
        errors.invalid(chain, i128::from(end - start) * 1_000_000_000, why);
    } else if seconds(begin_refresh) < start + 10 * MINUTE {
        let why = "must be at least 10 minutes after status.notBefore";
        errors.invalid(&refresh, shown("beginRefreshAt"), why);
    } else if seconds(begin_refresh) > end - 10 * MINUTE {
        let why = "must be at least 10 minutes before status.notAfter";
        errors.invalid(&refresh, shown("beginRefreshAt"), why);
    }
}
