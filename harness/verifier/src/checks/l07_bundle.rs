//! L07: the caBundle is one that a certificate can be verified with, for a while.

use admission_webhook_client::{bundled, verified};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_admission::config::{ClientConfig, ServiceReference, WebhookTarget};
use kubernetes_types::json::{at, text};
use serde_json::Value;

use super::v45_certificate::{ends_soon, name};
use crate::check::{Audience, Check, Probe, Severity, Violation};
use crate::lint::{Defect, Manifests};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "L07",
    title: "its caBundle is there, can be read, is the certificate's authority, and does not end soon",
    severity: Severity::Error,
    why: "Without a valid caBundle no call reaches the webhook, and with failurePolicy Fail all that it matches is \
          refused. Empty, the roots of the API server's machine count, which issue no certificates for services. A \
          serving certificate in the place of its authority has to be replaced each time that it is renewed. Of the \
          certificate, what counts is the Secret in the manifests that the pods of the Service mount; what the running \
          webhook shows is V45's.",
    source: "apiserver pkg/util/webhook/client.go; client-go transport/transport.go, TLSConfigFor; Go crypto/x509; \
             cert-manager, CA Injector; OpenShift, Service CA certificates",
    audience: Audience::All,
    probe: Probe::Manifests(run),
};

/// Annotations of a configuration by which a controller replaces the caBundle.
///
/// Source: cert-manager pkg/apis/certmanager/v1/types.go; openshift/service-ca-operator.
const INJECTED_BY: [&str; 4] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle",
];

/// Source: kubernetes core/v1 types.go, `TLSCertKey`.
const CERTIFICATE: &str = "tls.crt";

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let mut defects = Vec::new();
    for (subject, position) in manifests.webhooks() {
        for violation in judge(subject, manifests) {
            let violation = violation.at("clientConfig.caBundle");
            defects.push(manifests.located(violation, Some((subject, position))));
        }
    }
    defects
}

fn judge(subject: &Subject, manifests: &Manifests<'_>) -> Vec<Violation> {
    let annotations = at(&subject.configuration, &["metadata", "annotations"]);
    let is_injected =
        |key: &&str| annotations.get(*key).and_then(Value::as_str).is_some_and(|it| !it.is_empty());
    if INJECTED_BY.iter().any(is_injected) {
        return Vec::new();
    }
    let config = &subject.webhook.client_config;
    if config.ca_bundle.is_empty() {
        return match config.target {
            // Who has a certificate of a public authority needs none.
            WebhookTarget::Url(_) => Vec::new(),
            WebhookTarget::Service(_) => {
                let message = "there is no caBundle, and no annotation asks a controller to inject one: until it is set, \
                               the API server trusts only the system's root certificates";
                vec![Violation::new("no caBundle", message).with_severity(Severity::Note)]
            }
        };
    }
    if config.ca_bundle.trim_ascii().is_empty() {
        let message = "it is a placeholder of white space, and no annotation asks a controller to replace it: until it \
                       is replaced, each call fails";
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
            "it has no certificate of an authority, only{}: it is right for that very certificate, and wrong once that is \
             renewed",
            if names.is_empty() { " one without a name" } else { &names }
        );
        violations.push(Violation::new("no authority", message).with_severity(Severity::Warning));
    }
    violations.extend(does_not_sign(config, manifests));
    violations
}

/// That the API server would refuse the certificate that the backend mounts: of several Secrets with one that is for the
/// Service, each.
fn does_not_sign(config: &ClientConfig, manifests: &Manifests<'_>) -> Option<Violation> {
    let WebhookTarget::Service(reference) = &config.target else { return None };
    let given = manifests.cluster_fixture.given();
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
                "each call fails: the pods of the Service {namespace}/{name} show the certificate in the Secret {secret}, \
                 which the API server refuses: {complaint}"
            );
            Violation::new("does not sign", message)
        });
    }
    first
}

/// `tls.crt` of a Secret.
fn certificate(secret: &Value) -> Option<Vec<u8>> {
    let plain = at(secret, &["stringData", CERTIFICATE]).as_str().map(|pem| pem.as_bytes().to_vec());
    plain.or_else(|| STANDARD.decode(at(secret, &["data", CERTIFICATE]).as_str()?).ok())
}
