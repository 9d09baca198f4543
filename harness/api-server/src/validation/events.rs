//! Validation of Events and certificate signing requests.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_types::names;
use kubernetes_types::quoting::{encode, quote};
use serde_json::Value;

use super::fields::{Errors, IMMUTABLE, Path, get, int, list, set, text, texts};
use super::internal::Form;
use super::{Change, formats};

/// Validates an Event; `is_strict` selects the stricter rules of `events.k8s.io`.
///
/// Source: kubernetes pkg/apis/core/validation/events.go.
/// Rule: VLO-35.
pub(super) fn event(errors: &mut Errors, object: &Value, is_strict: bool) {
    let field = |core: &'static str, strict: &'static str| if is_strict { strict } else { core };
    let of = |name| text(object, name);
    let namespace = text(get(object, "metadata"), "namespace");
    let involved = text(get(object, field("involvedObject", "regarding")), "namespace");
    let path = Path::new("involvedObject");
    let path = path.child("namespace");
    let mut unlike = |matches: bool| {
        if !matches {
            errors.invalid_text(&path, involved, "does not match event.namespace");
        }
    };
    if set(object, "eventTime").is_none() {
        unlike(if involved.is_empty() {
            ["", "default"].contains(&namespace)
        } else {
            namespace == involved
        });
    } else {
        unlike(!involved.is_empty() || ["default", "kube-system"].contains(&namespace));
        let name = field("reportingComponent", "reportingController");
        let path = Path::new(name);
        if of(name).is_empty() {
            errors.required(&path, "");
        }
        formats::qualified_name(errors, &path, of(name));
        bounded(errors, "reportingInstance", of("reportingInstance"), 128);
        bounded(errors, "action", of("action"), 128);
        bounded(errors, "reason", of("reason"), 128);
        if of(field("message", "note")).len() > 1024 {
            errors.invalid_text(&Path::new("message"), "", "can have at most 1024 characters");
        }
    }
}

fn bounded(errors: &mut Errors, field: &str, found: &str, most: usize) {
    let path = Path::new(field);
    if found.is_empty() {
        errors.required(&path, "");
    }
    if found.len() > most {
        errors.invalid_text(&path, "", format!("can have at most {most} characters"));
    }
}

fn series(errors: &mut Errors, event: &Value) {
    if let Some(series) = set(event, "series") {
        if int(series, "count").unwrap_or(0) < 2 {
            errors.invalid_text(&Path::new("series.count"), "", "should be at least 2");
        }
        if set(series, "lastObservedTime").is_none() {
            errors.required(&Path::new("series.lastObservedTime"), "");
        }
    }
}

/// Validates a new Event of `events.k8s.io`.
///
/// Source: kubernetes pkg/apis/core/validation/events.go, `ValidateEventCreate`.
/// Rule: VLO-35.
pub(super) fn new_event(errors: &mut Errors, event: &Value) {
    series(errors, event);
    if set(event, "eventTime").is_none() {
        errors.required(&Path::new("eventTime"), "");
    }
    let kind = text(event, "type");
    if !["Normal", "Warning"].contains(&kind) {
        errors.invalid_text(&Path::new("type"), "", format!("has invalid value: {kind}"));
    }
    let source = get(event, "deprecatedSource");
    let unwanted = [
        ("firstTimestamp", set(event, "deprecatedFirstTimestamp").is_some()),
        ("lastTimestamp", set(event, "deprecatedLastTimestamp").is_some()),
        ("count", int(event, "deprecatedCount").unwrap_or(0) != 0),
        ("source", ["component", "host"].iter().any(|field| !text(source, field).is_empty())),
    ];
    for (field, _) in unwanted.into_iter().filter(|(_, is_set)| *is_set) {
        errors.invalid_text(&Path::new(field), "", "needs to be unset");
    }
}

/// Validates an update of an Event of `events.k8s.io`, which may change only the series.
///
/// Errors contain the field names of the internal type.
///
/// Source: kubernetes pkg/apis/core/validation/events.go, `ValidateEventUpdate`.
/// Rule: VLO-41.
pub(super) fn changed_event(errors: &mut Errors, event: &Value, change: Change<'_>) {
    if !change.is_same(&["series"]) {
        series(errors, event);
    }
    let fields = [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    for (field, shown_field) in fields.into_iter().filter(|(field, _)| !change.is_same(&[field])) {
        let value = get(event, field);
        let shown = match field {
            "regarding" => errors.shown(Form::Plain, "core.ObjectReference", value),
            "related" => errors.shown(Form::Pointer, "core.ObjectReference", value),
            "deprecatedSource" => errors.shown(Form::Plain, "core.EventSource", value),
            "deprecatedCount" => int(event, field).unwrap_or(0).to_string(),
            "deprecatedFirstTimestamp" | "deprecatedLastTimestamp" | "eventTime" => encode(value),
            _ => quote(text(event, field)),
        };
        errors.invalid(&Path::new(shown_field), shown, IMMUTABLE);
    }
}

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

/// Validates a new certificate signing request, but not the content of its PEM block.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `validateCertificateSigningRequest`.
/// Rule: VLO-35.
pub(super) fn signing_request(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let request = text(spec, "request");
    let data = STANDARD.decode(request).unwrap_or_default();
    let begin = b"-----BEGIN CERTIFICATE REQUEST-----";
    if !data.windows(begin.len()).any(|found| found == begin) {
        let why = "PEM block type must be CERTIFICATE REQUEST";
        // Absent bytes are shown as null.
        let shown = if set(spec, "request").is_none() { "null".to_owned() } else { quote(request) };
        errors.invalid(&path.child("request"), shown, why);
    }
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

/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateSignerName`.
pub(super) fn signer_name(errors: &mut Errors, path: &Path<'_>, signer: &str) {
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

/// Reports the first invalid label.
fn labels(errors: &mut Errors, path: &Path<'_>, text: &str, wrong: fn(&str) -> Vec<String>) {
    let mut all = text.split('.').map(|label| (label, wrong(label)));
    if let Some((label, wrong)) = all.find(|(_, wrong)| !wrong.is_empty()) {
        for why in wrong {
            errors.invalid_text(path, text, format!("validating label {}: {why}", quote(label)));
        }
    }
}
