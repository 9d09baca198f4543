//! V48: a webhook with the `failurePolicy` `Fail` does not block its own backend.

use kubernetes_admission::config::{FailurePolicy, WebhookTarget};
use kubernetes_api_server::ClusterFixture;

use super::{backend, match_outcome, outage};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V48",
    title: "self-lockout: a webhook with failurePolicy Fail is not called for its own backend's objects",
    severity: Severity::Error,
    why: "With failurePolicy Fail, a webhook whose backend is down blocks everything that it matches. If \
          that includes the backend's own Pods, ReplicaSets, Services, Endpoints, Secrets, or Leases, the \
          backend cannot come back, and a cluster operator has to delete the configuration by hand.",
    help: "Exclude the webhook's own namespace with a namespaceSelector on kubernetes.io/metadata.name.",
    source: "Dynamic Admission Control, Avoiding deadlocks in self-hosted webhooks; Admission Webhook Good \
             Practices",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    let WebhookTarget::Service(service) = &webhook.client_config.target else {
        let reason = "clientConfig has a URL: the namespace of the backend is unknown";
        return Err(Skipped::not_applicable(reason));
    };
    if webhook.failure_policy == FailurePolicy::Ignore {
        return Err(Skipped::not_applicable(
            "failurePolicy is Ignore: the webhook blocks nothing while it \
                                             is down",
        ));
    }
    let namespace = service.namespace.as_str();
    let caught = backend::caught(webhook, &backend::BACKEND, (namespace, &service.name), cluster_fixture);
    if caught.resources.is_empty() {
        let unclear = || format!("{} in {namespace}", caught.unclear.join(", "));
        return if caught.unclear.is_empty() {
            Ok(Vec::new())
        } else {
            Err(match_outcome::unclear(&unclear(), &caught.why))
        };
    }
    let (severity, unless) =
        if caught.is_certain { (Severity::Error, "") } else { backend::certainty(webhook) };
    let message = format!(
        "with failurePolicy Fail, the webhook is called for {} in {namespace}, where its backend (Service {}) \
         runs{unless}; exclude the namespace with a namespaceSelector on kubernetes.io/metadata.name",
        caught.resources.join(", "),
        service.name,
    );
    let needed = backend::BACKEND.into_iter().filter(|needed| caught.resources.contains(&needed.2));
    let mut shown = needed.filter_map(|needed| outage::request(webhook, needed, namespace, cluster_fixture));
    let violation = Violation::new("locks itself out", message).with_severity(severity);
    Ok(vec![violation.with_requests(shown.next()).at("namespaceSelector")])
}
