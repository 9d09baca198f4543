//! V48: a webhook that fails closed does not stand in the way of its own backend.

use kubernetes_admission::config::{FailurePolicy, WebhookTarget};
use kubernetes_api_server::ClusterFixture;

use super::{backend, down, matched};
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V48",
    title: "no self-lockout: failing closed, it is not called for what its own backend is made of",
    severity: Severity::Error,
    why: "With failurePolicy Fail a webhook whose backend is down refuses everything that it matches. If that \
          includes the backend's own Pods, ReplicaSets, Services, Endpoints, Secrets or Leases, nothing can bring the \
          backend back, and an administrator has to delete the configuration by hand, often at night.",
    source: "Dynamic Admission Control, Avoiding deadlocks in self-hosted webhooks; Admission Webhook Good Practices",
    audience: Audience::All,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    let WebhookTarget::Service(service) = &webhook.client_config.target else {
        let reason = "the clientConfig has a URL: where the backend runs is not known";
        return Err(Obstacle::not_applicable(reason));
    };
    if webhook.failure_policy == FailurePolicy::Ignore {
        return Err(Obstacle::not_applicable("failurePolicy is Ignore: it refuses nothing when it is down"));
    }
    let namespace = service.namespace.as_str();
    let caught = backend::caught(webhook, &backend::BACKEND, (namespace, &service.name), cluster_fixture);
    if caught.resources.is_empty() {
        let unclear = || format!("{} in {namespace}", caught.unclear.join(", "));
        return if caught.unclear.is_empty() {
            Ok(Vec::new())
        } else {
            Err(matched::unclear(&unclear(), &caught.why))
        };
    }
    let (severity, unless) =
        if caught.is_certain { (Severity::Error, "") } else { backend::certainty(webhook) };
    let message = format!(
        "with failurePolicy Fail it is called for {} in {namespace}, where its backend {} runs{unless}; leave the \
         namespace out with a namespaceSelector on kubernetes.io/metadata.name",
        caught.resources.join(", "),
        service.name,
    );
    let needed = backend::BACKEND.into_iter().filter(|needed| caught.resources.contains(&needed.2));
    let mut shown = needed.filter_map(|needed| down::request(webhook, needed, namespace, cluster_fixture));
    let violation = Violation::new("locks itself out", message).with_severity(severity);
    Ok(vec![violation.with_requests(shown.next()).at("namespaceSelector")])
}
