//! Implements `ClusterTrustBundle` objects.

use std::collections::{BTreeMap, HashSet};

use kubernetes_types::{json, names};
use serde_json::Value;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::kinds::certificates::pod_certificate_request::keys;
use crate::kinds::certificates::{certificate_signing_request, extensions};
use crate::kinds::common::cells::{Context, name, row, text_or};
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, text};
use crate::kinds::kind::Kind;

/// The behavior of `ClusterTrustBundle` objects.
pub(crate) const KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "clustertrustbundles",
    kind: "ClusterTrustBundle",
    validate_name: |name, object| name_errors(name, json::text(object, &["spec", "signerName"])),
    requires_resource_version: true,
    validate,
    cells: Some(cells),
    selectable_fields: Some(&["metadata.name", "spec.signerName"]),
    ..Kind::PLAIN
};

/// Validates the name of a `ClusterTrustBundle` with this signer. The `signer` may be empty.
///
/// Source: kubernetes pkg/apis/core/validation/names.go, `ValidateClusterTrustBundleName`.
pub(crate) fn name_errors(name: &str, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        if name.contains(':') {
            return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
        }
        return names::dns1123_subdomain(name);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(rest) => names::dns1123_subdomain(rest),
        None => {
            vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")]
        }
    }
}

const HIDDEN: &str = "<value omitted>";

/// Validates a `ClusterTrustBundle`.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `ValidateClusterTrustBundle` and
/// `ValidateClusterTrustBundleUpdate`.
/// Rule: VLO-48.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let (signer_path, signer) = (path.child("signerName"), text(spec, "signerName"));
    if !signer.is_empty() {
        certificate_signing_request::validation::signer_name(errors, &signer_path, signer);
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
    let is_ca = certificate.extensions().iter().any(extensions::is_authority);
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
        && !keys::has_invalid_key(certificate.public_key())
        && inner
            .extensions()
            .iter()
            .all(|extension| extensions::is_valid(extension) && seen.insert(extension.oid.to_id_string()));
    is_valid.then_some(certificate)
}

pub(crate) fn cells(object: &Value, _: &Context<'_>) -> Vec<Value> {
    row![name(object), text_or(object, &["spec", "signerName"], "<none>")]
}
