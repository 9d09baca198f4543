//! V48: a webhook that fails closed does not stand in the way of its own backend.

use crate::attributes::Operation;
use crate::config::{FailurePolicy, WebhookTarget};
use crate::server::Surroundings;
use crate::verify::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::verify::checks::matched::{self, Place};
use crate::verify::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V48",
    title: "no self-lockout: failing closed, it is not called for what its own backend is made of",
    severity: Severity::Error,
    why: "With failurePolicy Fail a webhook whose backend is down refuses everything that it matches. If that \
          includes the backend's own Pods, ReplicaSets, Services, Endpoints, Secrets or Leases, nothing can bring the \
          backend back, and somebody has to delete the configuration by hand, often at night.",
    source: "Dynamic Admission Control, Avoiding deadlocks in self-hosted webhooks; Admission Webhook Good Practices",
    audience: Audience::All,
    probe: Probe::Configuration(run),
};

/// What a backend needs to come up, by group, version, resource and kind.
const NEEDED: [(&str, &str, &str, &str); 8] = [
    ("", "v1", "pods", "Pod"),
    ("apps", "v1", "replicasets", "ReplicaSet"),
    ("apps", "v1", "deployments", "Deployment"),
    ("", "v1", "services", "Service"),
    ("", "v1", "endpoints", "Endpoints"),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    ("", "v1", "secrets", "Secret"),
    ("coordination.k8s.io", "v1", "leases", "Lease"),
];

fn run(subject: &Subject, surroundings: &Surroundings) -> Observed {
    let webhook = &subject.webhook;
    let WebhookTarget::Service(service) = &webhook.client_config.target else {
        let reason = "the clientConfig has a URL: where the backend runs is not known";
        return Err(Obstacle::not_applicable(reason));
    };
    if webhook.failure_policy == FailurePolicy::Ignore {
        return Err(Obstacle::not_applicable("failurePolicy is Ignore: it refuses nothing when it is down"));
    }
    let namespace = service.namespace.as_str();
    let is_caught = |(group, version, resource, kind): &(&str, &str, &str, &str)| {
        [Operation::Create, Operation::Update].into_iter().any(|operation| {
            let place =
                Place { group, version, resource, kind, subresource: "", namespace, name: &service.name };
            matched::is_called(webhook, &place, operation, surroundings)
        })
    };
    let caught: Vec<&str> =
        NEEDED.iter().filter(|needed| is_caught(needed)).map(|(_, _, resource, _)| *resource).collect();
    if caught.is_empty() {
        return Ok(Vec::new());
    }
    // Labels might keep the backend's objects out, and they are not known here.
    let (severity, unless) = if webhook.object_selector.is_everything() {
        (Severity::Error, String::new())
    } else {
        (Severity::Warning, ", unless their labels keep them out of the objectSelector".to_owned())
    };
    let message = format!(
        "with failurePolicy Fail it is called for {} in {namespace}, where its backend {} runs{unless}; leave the \
         namespace out with a namespaceSelector on kubernetes.io/metadata.name",
        caught.join(", "),
        service.name,
    );
    let violation = Violation::new("locks itself out", message).with_severity(severity);
    matched::unless_conditions([subject], vec![violation])
}
