//! L08: the service that it names is the one of the manifests.

use kubernetes_admission::config::{ServiceReference, WebhookTarget};
use kubernetes_api_server::{ClusterFixture, Given};
use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "L08",
    title: "the Service that it names is in the manifests, has the port, and selects a pod",
    severity: Severity::Error,
    why: "A service, a namespace or a port that is misspelt is a valid configuration of which each call fails: `service \
          \"x\" not found`, `no service port 443 found for service \"x\"`, `no endpoints available`. The port is the \
          Service's, 443 if none is written, and not that of the container.",
    source: "Dynamic Admission Control, Service reference; kube-aggregator pkg/apiserver/resolvers.go; apiserver \
             pkg/util/proxy/proxy.go, ResolveCluster",
    audience: Audience::All,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let WebhookTarget::Service(reference) = &subject.webhook.client_config.target else {
        return Err(Obstacle::not_applicable("the clientConfig has a URL"));
    };
    let mut violations = Vec::new();
    let given = cluster_fixture.given();
    match given.service(&reference.namespace, &reference.name) {
        Some(service) => violations.extend(judge(reference, service, given)),
        None if given.services().next().is_some() => violations.push(missing(reference, given)),
        // Nothing but the configuration was given.
        None => {}
    }
    if reference.path.is_empty() {
        let message = "it has no path: it is called at `/`";
        let violation = Violation::new("no path", message).with_severity(Severity::Note);
        violations.push(violation.at("clientConfig.service.path"));
    }
    Ok(violations)
}

fn missing(reference: &ServiceReference, given: &Given) -> Violation {
    let ServiceReference { namespace, name, .. } = reference;
    let full = |service: &Value| {
        format!("{}/{}", text(service, &["metadata", "namespace"]), text(service, &["metadata", "name"]))
    };
    let services: Vec<String> = given.services().map(full).collect();
    let services: Vec<&str> = services.iter().map(String::as_str).collect();
    let message =
        format!("the manifests have no Service {namespace}/{name}; they have {}", super::listed(services));
    let violation = Violation::new("no such Service", message).with_severity(Severity::Warning);
    violation.at("clientConfig.service.name")
}

fn judge(reference: &ServiceReference, service: &Value, given: &Given) -> Vec<Violation> {
    let ServiceReference { namespace, name, port, .. } = reference;
    if text(service, &["spec", "type"]) == "ExternalName" {
        return Vec::new();
    }
    let mut violations = Vec::new();
    let ports = at(service, &["spec", "ports"]).as_array().map_or(&[][..], Vec::as_slice);
    let own = ports.iter().find(|it| it["port"] == *port);
    if own.is_none() {
        let known: Vec<String> = ports.iter().map(|it| it["port"].to_string()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("the Service {namespace}/{name} has no port {port}; its ports are {known}");
        violations.push(Violation::new("no such port", message).at("clientConfig.service.port"));
    }
    let has_selector = at(service, &["spec", "selector"]).as_object().is_some_and(|it| !it.is_empty());
    if !has_selector || given.pods(namespace).next().is_none() {
        return violations;
    }
    let selected: Vec<&Value> = given.selected(service, namespace).collect();
    if selected.is_empty() {
        let message = format!("the selector of the Service {namespace}/{name} picks no pod of the manifests");
        let violation = Violation::new("selects no pod", message).with_severity(Severity::Warning);
        violations.push(violation.at("clientConfig.service.name"));
    } else if let Some(target) = own.and_then(|port| port.get("targetPort")?.as_str())
        && !selected.iter().any(|pod| has_port(pod, target))
    {
        let message = format!(
            "the port {port} of the Service {namespace}/{name} leads to the port {target:?} of its pods, which no \
             container of the manifests has"
        );
        let violation = Violation::new("no such target port", message).with_severity(Severity::Warning);
        violations.push(violation.at("clientConfig.service.port"));
    }
    violations
}

/// Whether a container of a pod, or of a template, has a port of this name.
fn has_port(pod: &Value, name: &str) -> bool {
    let containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|field| at(pod, &["spec", field]).as_array().into_iter().flatten());
    containers
        .flat_map(|it| at(it, &["ports"]).as_array().into_iter().flatten())
        .any(|port| port["name"] == name)
}
