//! V31: subresources show other kinds, or keep other fields.

use std::sync::Arc;

use serde_json::{Value, json};

use super::requests::{self, Side};
use super::v10_write_loop::as_stored;
use crate::attributes::{Attributes, Operation};
use crate::event::Phase;
use crate::verify::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::verify::comparison::{self, Difference, Order};
use crate::verify::laboratory::Outcome;
use crate::verify::station::Station;

pub(super) const CHECK: Check = Check {
    id: "V31",
    title: "subresources: it reads what scale, eviction, binding, token and resize show, and keeps to the status on status",
    severity: Severity::Error,
    why: "A rule for `pods/*` or `*/*` brings more than Pods: pods/eviction is a policy/v1 Eviction, pods/binding a \
          Binding, deployments/scale an autoscaling/v1 Scale, and a webhook that takes them for the object denies or \
          breaks drains, scheduling and autoscaling. On /status the server keeps the status and drops the rest, so that \
          a mutation of the spec there never arrives.",
    source: "admissionregistration.k8s.io/v1 types, resources; kubernetes/kubernetes#113594; \
             pkg/registry/core/pod/strategy.go, podStatusStrategy",
    audience: Audience::All,
    probe: Probe::Webhook(|station| Box::pin(run(station))),
};

async fn run(station: &Station<'_>) -> Observed {
    let id = &station.subject.webhook.id;
    let mut violations: Vec<Violation> = Vec::new();
    let mut looked = false;
    for request in subresources(station) {
        let outcome = Arc::new(station.laboratory.admit(&station.alone(), &request).await);
        if outcome.calls_of(id).next().is_none() {
            continue;
        }
        looked = true;
        let what = format!("{} of {}/{}", request.operation, request.resource.resource, request.subresource);
        violations.extend(requests::upset(&what, &outcome));
        if request.subresource == "status" && station.subject.phase == Phase::Mutating {
            violations.extend(beyond_the_status(station, &what, &outcome));
        }
    }
    if looked { Ok(violations) } else { Err(Obstacle::not_applicable("its rules pick no subresource")) }
}

/// What it changes of the spec in an update of the status.
fn beyond_the_status(station: &Station<'_>, what: &str, outcome: &Arc<Outcome>) -> Option<Violation> {
    let (before, after) = (outcome.request.object.as_ref()?, outcome.object.as_ref()?);
    let built_in = station.laboratory.is_built_in(&outcome.request);
    let dropped: Vec<Difference> = comparison::differences(before, after, built_in, Order::Counts)
        .into_iter()
        .filter(|difference| difference.path.starts_with("spec"))
        .collect();
    if dropped.is_empty() {
        return None;
    }
    let message = format!("on {what} it changes {}, which the server drops there", super::fields(&dropped));
    let violation = Violation::new(format!("changes the spec on {what}"), message);
    let violation = violation.with_severity(Severity::Warning).with_differences(dropped);
    Some(violation.with_steps([Arc::clone(outcome)]))
}

/// A request for each subresource that a rule may name, and for the status of each kind of the samples.
fn subresources(station: &Station<'_>) -> Vec<Attributes> {
    const NAME: &str = "admit-verify";
    let namespace = requests::namespace(station);
    let metadata = json!({"name": NAME, "namespace": namespace});
    let pod = as_stored(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "example.com/app:1"}]}}));
    let with = |part: &str, field: &str, value: Value| {
        let mut changed = pod.clone();
        changed[part][field] = value;
        changed
    };
    let debugger =
        json!([{"name": "debugger", "image": "example.com/debug:1", "targetContainerName": "app"}]);
    let resized =
        json!([{"name": "app", "image": "example.com/app:1", "resources": {"requests": {"cpu": "200m"}}}]);
    let create = |subresource, resource, object| Side {
        operation: Operation::Create,
        resource,
        subresource,
        name: NAME,
        namespace,
        object,
        old_object: None,
    };
    let update = |subresource, resource, object, old| Side {
        operation: Operation::Update,
        resource,
        subresource,
        name: NAME,
        namespace,
        object,
        old_object: Some(old),
    };
    let pods = ("", "v1", "pods");
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": "node-1"});
    let mut sides = vec![
        update("status", pods, with("status", "phase", "Running".into()), pod.clone()),
        update("ephemeralcontainers", pods, with("spec", "ephemeralContainers", debugger), pod.clone()),
        update("resize", pods, with("spec", "containers", resized), pod.clone()),
        create(
            "eviction",
            pods,
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}),
        ),
        create(
            "binding",
            pods,
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}),
        ),
        create(
            "token",
            ("", "v1", "serviceaccounts"),
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"audiences": ["vault"], "expirationSeconds": 3600}}),
        ),
    ];
    for resource in ["deployments", "replicasets", "statefulsets"] {
        let scale = |replicas: u32| {
            as_stored(&json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata,
                "spec": {"replicas": replicas}, "status": {"replicas": 1, "selector": "app=app"}}))
        };
        sides.push(update("scale", ("apps", "v1", resource), scale(2), scale(1)));
    }
    let mut requests: Vec<Attributes> = sides.into_iter().map(|side| side.request(station)).collect();
    for sample in station.samples {
        let is_known =
            |known: &Attributes| known.subresource == "status" && known.resource == sample.resource;
        if requests.iter().any(is_known) {
            continue;
        }
        let Some(object) = &sample.object else { continue };
        let stored = as_stored(object);
        requests.push(Attributes {
            operation: Operation::Update,
            subresource: "status".to_owned(),
            name: stored["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            object: Some(stored.clone()),
            old_object: Some(stored),
            options: Some(json!({"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"})),
            ..sample.clone()
        });
    }
    requests
}
