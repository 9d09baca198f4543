//! L07: the `caBundle` verifies the certificate and does not expire soon.

use std::collections::BTreeSet;

use admission_webhook_client::{bundled, verified};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_admission::config::{ClientConfig, ServiceReference, WebhookTarget};
use kubernetes_types::json::{at, text};
use serde_json::Value;

use super::v45_certificate::{ends_soon, name};
use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::manifests::{About, Manifests};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "L07",
    title: "caBundle: it is set, readable, contains the certificate's authority, and does not expire soon",
    severity: Severity::Error,
    why: "Without a valid caBundle, no call reaches the webhook, and with failurePolicy Fail everything \
          that it matches is rejected. If it is empty, the API server uses the root certificates of its \
          machine, which do not issue certificates for Services. A serving certificate in place of its \
          authority has to be replaced at each renewal. The check compares the caBundle with the Secret in \
          the manifests that the Service's Pods mount; V45 checks the certificate that the running webhook \
          presents.",
    help: "Set caBundle to the base64-encoded PEM certificate of the authority, or let cert-manager inject it with \
           the annotation cert-manager.io/inject-ca-from: NAMESPACE/CERTIFICATE.",
    source: "apiserver pkg/util/webhook/client.go; client-go transport/transport.go, TLSConfigFor; Go \
             crypto/x509; \
             cert-manager, CA Injector; OpenShift, Service CA certificates",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Configurations, run),
};

/// The annotations that ask a controller to inject the `caBundle`.
///
/// Source: cert-manager pkg/apis/certmanager/v1/types.go; openshift/service-ca-operator.
const INJECTED_BY: [&str; 4] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle",
];

/// The key of the certificate in a Secret.
///
/// Source: kubernetes core/v1 types.go, `TLSCertKey`.
const CERTIFICATE: &str = "tls.crt";

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let mut defects = Vec::new();
    let mut configurations = BTreeSet::new();
    for (subject, position) in manifests.webhooks() {
        if configurations.insert(position) {
            let injected = injection(subject, manifests).into_iter();
            defects.extend(injected.map(|violation| Defect { position, violation }));
        }
        for violation in judge(subject, manifests) {
            let violation = violation.at("clientConfig.caBundle");
            defects.push(manifests.located(violation, Some((subject, position))));
        }
    }
    defects
}

/// Reports an injection annotation that names an object outside the manifests.
///
/// Source: cert-manager pkg/controller/cainjector/sources.go: both annotations have the form `NAMESPACE/NAME`.
fn injection(subject: &Subject, manifests: &Manifests<'_>) -> Option<Violation> {
    let [certificate, secret, ..] = INJECTED_BY;
    [(certificate, "Certificate"), (secret, "Secret")].into_iter().find_map(|(key, kind)| {
        let named = text(&subject.configuration, &["metadata", "annotations", key]);
        if named.is_empty() {
            return None;
        }
        let violation = |kind, message: String| {
            Violation::new(kind, message).at("metadata.annotations").with_help(
                "Correct the annotation, or add the object that it names to the manifests.",
            )
        };
        let Some((namespace, name)) = named.split_once('/') else {
            let message = format!("invalid {key} {named:?}: must be NAMESPACE/NAME; the caBundle is not injected");
            return Some(violation("invalid annotation", message));
        };
        let of_kind: Vec<String> = manifests
            .objects
            .iter()
            .filter(|object| text(object, &["kind"]) == kind)
            .map(|object| format!("{}/{}", text(object, &["metadata", "namespace"]), text(object, &["metadata", "name"])))
            .collect();
        // An object without a namespace is created in the namespace of the command that applies it.
        let is_given = of_kind.iter().any(|it| it == named || *it == format!("/{name}"));
        if of_kind.is_empty() || is_given {
            return None;
        }
        let of_kind = super::listed(of_kind.iter().map(String::as_str).collect::<Vec<_>>());
        let message = format!(
            "the manifests have no {kind} {namespace}/{name}, from which {key} requests the caBundle; they have {of_kind}"
        );
        Some(violation("no such source", message).with_severity(Severity::Warning))
    })
}

/// Returns whether an annotation of `configuration` requests a controller to inject the `caBundle`.
pub(super) fn is_injected(configuration: &Value) -> bool {
    let annotations = at(configuration, &["metadata", "annotations"]);
    let is_set = |key: &&str| annotations.get(*key).and_then(Value::as_str).is_some_and(|it| !it.is_empty());
    INJECTED_BY.iter().any(is_set)
}

/// The maximum length of a placeholder; a certificate is longer.
const MAX_PLACEHOLDER: usize = 80;

/// The marks of a template, and words in placeholders, in lower case without separators.
const PLACEHOLDERS: [&str; 16] = [
    "${",
    "$(",
    "$ca",
    "{{",
    "<",
    "@",
    "__",
    "cabundle",
    "cacert",
    "capem",
    "placeholder",
    "replace",
    "changeme",
    "todo",
    "fixme",
    "base64",
];

/// Returns whether a `caBundle` is a placeholder that another program replaces, such as `${CA_BUNDLE}`.
pub fn is_placeholder(written: &str) -> bool {
    let lower = written.trim().to_ascii_lowercase();
    let words: String = lower.chars().filter(|letter| !['_', '-', ' '].contains(letter)).collect();
    let has = |mark: &&str| lower.contains(*mark) || words.contains(*mark);
    lower.len() <= MAX_PLACEHOLDER && PLACEHOLDERS.iter().any(has)
}

fn judge(subject: &Subject, manifests: &Manifests<'_>) -> Vec<Violation> {
    if is_injected(&subject.configuration) {
        return Vec::new();
    }
    let config = &subject.webhook.client_config;
    if config.ca_bundle.is_empty() {
        return match config.target {
            // A certificate of a public CA needs no caBundle.
            WebhookTarget::Url(_) => Vec::new(),
            WebhookTarget::Service(_) => {
                let message = "caBundle is not set, and no annotation requests its injection: until it is \
                               set, the API server trusts only the system's root certificates";
                vec![Violation::new("no caBundle", message).with_severity(Severity::Note)]
            }
        };
    }
    if config.ca_bundle.trim_ascii().is_empty() {
        let message = "caBundle is a placeholder that contains only whitespace, and no annotation requests its \
                       injection: kube-apiserver accepts it, but each call fails until it is replaced";
        return vec![Violation::new("a placeholder", message).with_severity(Severity::Warning)];
    }
    let written = at(subject.declaration(), &["clientConfig", "caBundle"]).as_str().unwrap_or_default();
    if is_placeholder(written) && bundled(&config.ca_bundle).is_err() {
        let message = format!(
            "caBundle is the placeholder `{written}`, and no annotation requests its injection: kube-apiserver \
             accepts it, because it is base64, but each call fails until it is replaced"
        );
        return vec![Violation::new("a placeholder", message).with_severity(Severity::Warning)];
    }
    let certificates = match bundled(&config.ca_bundle) {
        Ok(certificates) => certificates,
        Err(error) => {
            let message = format!("each call fails: {error}");
            return vec![Violation::new("cannot be read", message)];
        }
    };
    let mut violations = Vec::new();
    for certificate in &certificates {
        let ends_soon = ends_soon("the authority", certificate, manifests.now, manifests.horizon);
        violations.extend(ends_soon.map(|violation| {
            let is_over = certificate.not_after < manifests.now && certificates.len() == 1;
            if is_over { violation.with_severity(Severity::Error) } else { violation }
        }));
    }
    if certificates.iter().all(|certificate| !certificate.is_authority) {
        let names: String = certificates.iter().map(name).collect();
        let message = format!(
            "caBundle has no CA certificate, only{}: calls fail once that certificate is renewed",
            if names.is_empty() { " one without a name" } else { &names }
        );
        violations.push(Violation::new("no authority", message).with_severity(Severity::Warning));
    }
    violations.extend(does_not_sign(config, manifests));
    violations
}

/// Reports a certificate that the backend mounts and that the API server would reject.
fn does_not_sign(config: &ClientConfig, manifests: &Manifests<'_>) -> Option<Violation> {
    let WebhookTarget::Service(reference) = &config.target else { return None };
    let given = manifests.cluster_fixture.webhook_manifests();
    let ServiceReference { namespace, name, .. } = reference;
    let pods = given.selected(given.service(namespace, name)?, namespace);
    let host = reference.host();
    let mut first = None;
    for secret in pods.flat_map(|pod| given.mounted_secrets(pod, namespace)) {
        let served = certificate(secret);
        let verdict = served.and_then(|served| verified(&config.ca_bundle, &served, &host, manifests.now));
        let complaint = match verdict {
            None => continue,
            Some(Ok(())) => return None,
            Some(Err(complaint)) => complaint,
        };
        first.get_or_insert_with(|| {
            let secret = text(secret, &["metadata", "name"]);
            let message = format!(
                "each call fails: the Pods of the Service {namespace}/{name} present the certificate in the \
                 Secret {secret}, which the API server rejects: {complaint}"
            );
            Violation::new("does not sign the certificate", message)
        });
    }
    first
}

/// Returns the value of `tls.crt` in a Secret.
fn certificate(secret: &Value) -> Option<Vec<u8>> {
    let plain = at(secret, &["stringData", CERTIFICATE]).as_str().map(|pem| pem.as_bytes().to_vec());
    plain.or_else(|| STANDARD.decode(at(secret, &["data", CERTIFICATE]).as_str()?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_placeholders_are_recognized() {
        for written in [
            "${CA_BUNDLE}",
            "CA_BUNDLE",
            "caBundle",
            "$CA_PEM_B64",
            "{{ .Values.caBundle }}",
            "<ca>",
            "__CA__",
            "CHANGE-ME",
        ] {
            assert!(is_placeholder(written), "{written}");
        }
        for written in ["", "Cg==", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="] {
            assert!(!is_placeholder(written), "{written}");
        }
    }
}
