//! L08: the Service of the `clientConfig` is in the manifests.

use admission_webhook_client::cleaned_path;
use kubernetes_admission::config::{ServiceReference, WebhookTarget};
use kubernetes_api_server::{ClusterFixture, WebhookManifests};
use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "L08",
    title: "Service reference: the Service is in the manifests, has the port, and selects a Pod",
    severity: Severity::Error,
    why: "A misspelled Service, namespace, or port is a valid configuration, but each call fails: `service \
          \"x\" not found`, `no service port 443 found for service \"x\"`, `no endpoints available`. The \
          port is the Service's port, 443 if not set, and not the container's. kube-apiserver removes a \
          trailing slash from the path, so a server that distinguishes `/mutate/` from `/mutate` redirects or \
          returns 404.",
    help: "Correct the Service, or the name, namespace, or port in clientConfig.service.",
    source: "Dynamic Admission Control, Service reference; kube-aggregator pkg/apiserver/resolvers.go; \
             apiserver \
             pkg/util/proxy/proxy.go, ResolveCluster",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let reference = match &subject.webhook.client_config.target {
        WebhookTarget::Service(reference) => reference,
        WebhookTarget::Url(url) => {
            let path =
                url.split_once("://").and_then(|(_, rest)| rest.find('/').and_then(|at| rest.get(at..)));
            return match path.and_then(|path| cleaned(path, "clientConfig.url")) {
                Some(violation) => Ok(vec![violation]),
                None => Err(Skipped::not_applicable("clientConfig has a URL")),
            };
        }
    };
    let mut violations = Vec::new();
    violations.extend(cleaned(&reference.path, "clientConfig.service.path"));
    let given = cluster_fixture.webhook_manifests();
    match given.service(&reference.namespace, &reference.name) {
        Some(service) => violations.extend(judge(reference, service, given)),
        None if given.services().next().is_some() => violations.push(missing(reference, given)),
        None if violations.is_empty() && !reference.path.is_empty() => {
            return Err(Skipped::not_applicable("the manifests do not contain a Service"));
        }
        None => {}
    }
    if reference.path.is_empty() {
        let message = "clientConfig.service.path is not set: the webhook is called at `/`";
        let violation = Violation::new("no path", message).with_severity(Severity::Note);
        let violation = violation
            .with_help("Set clientConfig.service.path to the path that the webhook serves, even if it is /.");
        violations.push(violation.at("clientConfig.service.path"));
    }
    Ok(violations)
}

/// Reports a path that kube-apiserver changes before it calls the webhook.
///
/// Source: client-go rest/request.go, `NewRequest`, which joins the path with Go's `path.Join`.
fn cleaned(path: &str, field: &str) -> Option<Violation> {
    let called = cleaned_path(path.as_bytes());
    // The API server rejects a path without a slash: see L01.
    if !path.starts_with('/') || called == path.as_bytes() {
        return None;
    }
    let called = String::from_utf8_lossy(&called);
    let message = format!(
        "kube-apiserver calls `{called}` instead of `{path}`: it removes trailing slashes and empty, `.`, and `..` \
         segments"
    );
    let violation = Violation::new("path is changed", message).with_severity(Severity::Warning);
    Some(violation.at(field).with_help("Write the path as kube-apiserver calls it, and serve it there."))
}

fn missing(reference: &ServiceReference, given: &WebhookManifests) -> Violation {
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

fn judge(reference: &ServiceReference, service: &Value, given: &WebhookManifests) -> Vec<Violation> {
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
        let message = format!(
            "the selector of the Service {namespace}/{name} matches no Pod in the \
                               manifests"
        );
        let violation = Violation::new("selects no Pod", message).with_severity(Severity::Warning);
        violations.push(violation.at("clientConfig.service.name"));
    } else if let Some(target) = own.and_then(|port| port.get("targetPort")?.as_str())
        && !selected.iter().any(|pod| has_port(pod, target))
    {
        let message = format!(
            "port {port} of the Service {namespace}/{name} targets port {target:?}, which no container in \
             the manifests has"
        );
        let violation = Violation::new("no such target port", message).with_severity(Severity::Warning);
        violations.push(violation.at("clientConfig.service.port"));
    }
    violations
}

/// Returns whether a container of a Pod or of a Pod template has a port with the given name.
fn has_port(pod: &Value, name: &str) -> bool {
    let containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|field| at(pod, &["spec", field]).as_array().into_iter().flatten());
    containers
        .flat_map(|it| at(it, &["ports"]).as_array().into_iter().flatten())
        .any(|port| port["name"] == name)
}
