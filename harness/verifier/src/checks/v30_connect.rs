//! V30: a webhook handles CONNECT requests, in which `object` contains the connection options.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_types::json::set;
use serde_json::{Value, json};

use super::requests::{self, Side};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V30",
    title: "CONNECT requests: the webhook reads PodExecOptions and similar kinds, and does not need options",
    severity: Severity::Error,
    why: "For exec, attach, port-forward, and proxy, `object` is not the Pod but a kind such as \
          PodExecOptions, without metadata and labels; oldObject and `options` are null. A webhook that \
          matches CONNECT and decodes a Pod, or reads the metadata of the object, fails, and users cannot \
          open a shell exactly when they need it.",
    help: "On CONNECT, decode the kind in request.kind, and read the Pod's name from the request.",
    source: "KEP-492, Connection Options; apiserver pkg/endpoints/handlers/rest.go, ConnectResource",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// Returns the resources and subresources to test, with the objects of their CONNECT requests.
fn connections() -> [(&'static str, &'static str, Value); 6] {
    let options = |kind: &str, fields: Value| {
        let mut options = fields;
        set(&mut options, &["apiVersion"], "v1");
        set(&mut options, &["kind"], kind);
        options
    };
    let streams = json!({"stdin": true, "stdout": true, "tty": true, "container": "app"});
    let mut exec = streams.clone();
    set(&mut exec, &["command"], json!(["sh"]));
    [
        ("pods", "exec", options("PodExecOptions", exec)),
        ("pods", "attach", options("PodAttachOptions", streams)),
        ("pods", "portforward", options("PodPortForwardOptions", json!({"ports": [8080]}))),
        ("pods", "proxy", options("PodProxyOptions", json!({"path": "/metrics"}))),
        ("services", "proxy", options("ServiceProxyOptions", json!({"path": "/metrics"}))),
        ("nodes", "proxy", options("NodeProxyOptions", json!({"path": "/metrics"}))),
    ]
}

/// Returns the CONNECT requests that the webhook's rules match, each with its resource and subresource.
pub(super) fn matched(webhook_probe: &WebhookProbe<'_>) -> Vec<(String, Attributes)> {
    let namespace = requests::namespace(webhook_probe);
    let all = connections().into_iter().map(|(resource, subresource, object)| {
        let side = Side {
            operation: Operation::Connect,
            resource: ("", "v1", resource),
            subresource,
            name: "admit-verify",
            namespace: if resource == "nodes" { "" } else { namespace },
            object,
            old_object: None,
        };
        (format!("{resource}/{subresource}"), side.request(webhook_probe))
    });
    let cluster_fixture = &webhook_probe.environment.cluster_fixture;
    all.filter(|(_, request)| webhook_probe.subject.asks_for(request, cluster_fixture)).collect()
}

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let id = &webhook_probe.subject.webhook.id;
    let mut violations: Vec<Violation> = Vec::new();
    let mut tested = false;
    let mut not_selected = Vec::new();
    for (name, request) in matched(webhook_probe) {
        let outcome = Arc::new(webhook_probe.environment.admit(&webhook_probe.alone(), &request).await);
        if outcome.calls_of(id).next().is_none() {
            not_selected.push(name);
            continue;
        }
        tested = true;
        violations.extend(requests::failure(&format!("CONNECT to {name}"), &outcome));
    }
    if tested {
        return Ok(violations);
    }
    Err(Skipped::not_applicable(if not_selected.is_empty() {
        "the webhook's rules do not match CONNECT".to_owned()
    } else {
        requests::not_selected(&not_selected)
    }))
}
