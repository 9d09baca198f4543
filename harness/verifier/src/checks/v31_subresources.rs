//! V31: a webhook handles subresource requests, whose objects have other kinds.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_admission::event::Phase;
use kubernetes_api_server::{ClusterFixture, ServedResource, ServedSubresource};
use kubernetes_types::json::{self, set};
use kubernetes_types::selector::Selector;
use serde_json::{Value, json};

use super::requests::{self, Side};
use super::typical_status::add_status;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::{self, Order};
use crate::corpus;
use crate::environment::Outcome;
use crate::rejection;
use crate::shape;
use crate::stored::as_stored;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V31",
    title: "subresources: the webhook reads the kinds of scale, eviction, binding, token, and resize, and \
            changes only the status on /status",
    severity: Severity::Error,
    why: "A rule for `pods/*` or `*/*` matches more than Pods: pods/eviction is a policy/v1 Eviction, \
          pods/binding a Binding, deployments/scale an autoscaling/v1 Scale. A webhook that treats them as \
          the parent object denies or breaks drains, scheduling, and autoscaling. On /status, the API \
          server keeps only the status, so a mutation of the spec is lost.",
    help: "Check request.subResource and request.kind before you decode the object, or match only the \
           subresources that you handle.",
    source: "admissionregistration.k8s.io/v1 types, resources; kubernetes/kubernetes#113594; \
             pkg/registry/core/pod/strategy.go, podStatusStrategy",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let cluster_fixture = &webhook_probe.environment.cluster_fixture;
    let id = &webhook_probe.subject.webhook.id;
    let mut found = SubresourceViolations::default();
    let (mut not_selected, mut untried) = (Vec::new(), Vec::new());
    let mut tested = false;
    for (resource, subresource) in served(cluster_fixture) {
        let name = format!("{}/{}", resource.name.resource, subresource.name);
        let Some(request) = request(webhook_probe, &resource, &subresource) else {
            if webhook_probe
                .subject
                .asks_for(&unknown(webhook_probe, &resource, &subresource), cluster_fixture)
            {
                untried.push(name);
            }
            continue;
        };
        if !webhook_probe.subject.asks_for(&request, cluster_fixture) {
            continue;
        }
        let outcome = Arc::new(webhook_probe.environment.admit(&webhook_probe.alone(), &request).await);
        if outcome.calls_of(id).next().is_none() {
            not_selected.push(name);
            continue;
        }
        tested = true;
        let what = format!("{} of {name}", request.operation);
        let kind = format!("{} of {}", request.operation, subresource.name);
        found.add(&name, &what, &kind, requests::failure(&what, &outcome));
        if webhook_probe.subject.webhook.phase == Phase::Mutating {
            found.add(&name, &what, &kind, dropped(&what, &outcome));
            found.add(&name, &what, &kind, lost_status(&what, &outcome));
        }
        let rejected = rejection::rejection(webhook_probe.environment, &what, &outcome, &[]);
        found.add(&name, &what, &kind, rejected);
    }
    let untold = (!untried.is_empty()).then(|| {
        format!("admit cannot build a request for {}", super::listed(untried.iter().map(String::as_str)))
    });
    if tested {
        let not_selected = (!not_selected.is_empty()).then(|| requests::not_selected(&not_selected));
        untold.into_iter().chain(not_selected).for_each(|note| webhook_probe.note(note));
        return Ok(found.violations());
    }
    Err(match untold {
        Some(untold) => Skipped::not_checked(untold),
        None if not_selected.is_empty() => {
            Skipped::not_applicable("the webhook's rules match no subresource")
        }
        None => Skipped::not_applicable(requests::not_selected(&not_selected)),
    })
}

/// Returns the requests for subresources that the webhook's rules match, except CONNECT requests.
pub(super) fn matched(webhook_probe: &WebhookProbe<'_>) -> Vec<Attributes> {
    let cluster_fixture = &webhook_probe.environment.cluster_fixture;
    served(cluster_fixture)
        .filter_map(|(resource, subresource)| request(webhook_probe, &resource, &subresource))
        .filter(|request| webhook_probe.subject.asks_for(request, cluster_fixture))
        .collect()
}

/// The violations, each with the other subresources that have the same violation.
#[derive(Default)]
pub(crate) struct SubresourceViolations(Vec<(Violation, Vec<String>)>);

impl SubresourceViolations {
    /// Adds a violation for the subresource `name`, or adds `name` to a known violation of the same `kind`.
    fn add(&mut self, name: &str, what: &str, kind: &str, violation: Option<Violation>) {
        let Some(mut violation) = violation else { return };
        violation.kind = violation.kind.replace(what, kind);
        match self.0.iter_mut().find(|(known, _)| known.kind == violation.kind) {
            Some((_, others)) if others.iter().any(|other| other == name) => {}
            Some((_, others)) => others.push(name.to_owned()),
            None => self.0.push((violation, Vec::new())),
        }
    }

    fn violations(self) -> Vec<Violation> {
        let told = self.0.into_iter().map(|(mut violation, others)| {
            if !others.is_empty() {
                let others = super::listed(others.iter().map(String::as_str));
                violation.message = format!("{}; the same on {others}", violation.message);
            }
            violation
        });
        told.collect()
    }
}

/// Returns the subresources that can be created or updated, except those for CONNECT requests.
fn served(cluster_fixture: &ClusterFixture) -> impl Iterator<Item = (ServedResource, ServedSubresource)> {
    cluster_fixture.resources().into_iter().flat_map(|resource| {
        let subresources = resource.subresources.clone().into_iter().filter(|subresource| {
            let is_written = subresource.verbs.iter().any(|verb| verb == "create" || verb == "update");
            is_written && !subresource.kind.kind.ends_with("Options")
        });
        subresources.map(|subresource| (resource.clone(), subresource)).collect::<Vec<_>>()
    })
}

/// Reports changes that the API server drops: changes to the spec on `/status`, and to the status of a Scale.
fn dropped(what: &str, outcome: &Arc<Outcome>) -> Option<Violation> {
    let Attributes { object, kind, subresource, .. } = &outcome.request;
    let (before, after) = (object.as_ref()?, outcome.object.as_ref()?);
    let part = match subresource.as_str() {
        "status" => "spec",
        "scale" => "status",
        _ => return None,
    };
    let mut dropped = comparison::differences(before, after, kind, Order::Counts);
    dropped.retain(|difference| difference.path.starts_with(part));
    if dropped.is_empty() {
        return None;
    }
    let message =
        format!("on {what}, the webhook changes {}, which the API server drops", super::fields(&dropped));
    let violation = Violation::new(format!("changes the {part} on {what}"), message);
    let violation = violation.with_severity(Severity::Warning).with_differences(dropped);
    Some(violation.with_steps([Arc::clone(outcome)]))
}

/// Reports status fields that the client wrote and that the webhook removes or overwrites.
fn lost_status(what: &str, outcome: &Arc<Outcome>) -> Option<Violation> {
    if outcome.request.subresource != "status" {
        return None;
    }
    let (before, after) = (outcome.request.object.as_ref()?, outcome.object.as_ref()?);
    let mut lost = comparison::differences(before, after, &outcome.request.kind, Order::Counts);
    lost.retain(|difference| difference.path.starts_with("status") && difference.expected.is_some());
    if lost.is_empty() {
        return None;
    }
    let message = format!(
        "on {what}, the webhook overwrites the status that the client wrote: {}",
        super::fields(&lost)
    );
    let violation = Violation::new(format!("overwrites the status on {what}"), message);
    let violation = violation.with_severity(Severity::Warning).with_differences(lost);
    Some(violation.with_steps([Arc::clone(outcome)]))
}

const NAME: &str = "admit-verify";

/// Returns a client's request for the subresource, or `None` if admit cannot build the request.
fn request(
    webhook_probe: &WebhookProbe<'_>,
    resource: &ServedResource,
    subresource: &ServedSubresource,
) -> Option<Attributes> {
    let metadata = json!({"name": NAME, "namespace": requests::namespace(webhook_probe)});
    let body = |fields: Value| {
        let mut body = fields;
        set(&mut body, &["apiVersion"], subresource.kind.api_version());
        set(&mut body, &["kind"], &*subresource.kind.kind);
        body
    };
    let scale = |replicas: u32| {
        as_stored(
            &body(json!({"metadata": metadata, "spec": {"replicas": replicas},
            "status": {"replicas": 1, "selector": "app=app"}})),
            &webhook_probe.environment.user,
            &webhook_probe.environment.cluster_fixture,
        )
    };
    let (old_object, object) = match subresource.name.as_str() {
        "scale" => (Some(scale(1)), scale(2)),
        "eviction" => (None, body(json!({"metadata": metadata}))),
        "binding" => {
            let target = json!({"apiVersion": "v1", "kind": "Node", "name": "node-1"});
            (None, body(json!({"metadata": metadata, "target": target})))
        }
        "token" => {
            // The server sets the name after the mutating webhooks.
            let metadata = match webhook_probe.subject.webhook.phase {
                Phase::Mutating => json!({"namespace": json::at(&metadata, &["namespace"])}),
                Phase::Validating => metadata,
            };
            let spec = json!({"audiences": ["vault"], "expirationSeconds": 3600});
            (None, body(json!({"metadata": metadata, "spec": spec})))
        }
        name => {
            let mut old_object = stored(webhook_probe, resource)?;
            if name == "resize" {
                // A Pod with resource requests keeps its QoS class.
                ask_for_cpu(&mut old_object, "100m")?;
                old_object = as_stored(
                    &old_object,
                    &webhook_probe.environment.user,
                    &webhook_probe.environment.cluster_fixture,
                );
            }
            if name == "ephemeralcontainers" {
                let first = json!({"name": "first-debugger", "image": "example.com/debug:1"});
                set(&mut old_object, &["spec", "ephemeralContainers"], json!([first]));
                // The generation also counts the update that added this container.
                set(&mut old_object, &["metadata", "generation"], 2);
                webhook_probe.environment.cluster_fixture.set_defaults(&mut old_object);
            }
            if name == "status" {
                let schema = webhook_probe.environment.cluster_fixture.schema_of(&resource.kind);
                add_status(&mut old_object, schema.as_ref());
            }
            let mut object = old_object.clone();
            change(&mut object, name)?;
            (Some(old_object), object)
        }
    };
    Some(side(webhook_probe, resource, subresource, object, old_object))
}

/// Makes a typical change through the subresource.
///
/// Returns `None` if admit does not support changes to the subresource, or if the object does not have the field to
/// change.
pub(super) fn change(object: &mut Value, subresource: &str) -> Option<()> {
    let is_written = match subresource {
        "status" if object["kind"] == "Pod" => set(object, &["status", "phase"], "Running"),
        // The content of a status is unknown, so it is not changed.
        "status" => true,
        "finalize" => set(object, &["spec", "finalizers"], json!([])),
        "approval" => {
            let approved =
                json!({"type": "Approved", "status": "True", "reason": "Checked", "message": "by hand"});
            set(object, &["status", "conditions"], json!([approved]))
        }
        "ephemeralcontainers" => {
            let debugger =
                json!({"name": "debugger", "image": "example.com/debug:1", "targetContainerName": "app"});
            let mut all =
                json::at(object, &["spec", "ephemeralContainers"]).as_array().cloned().unwrap_or_default();
            all.push(debugger);
            set(object, &["spec", "ephemeralContainers"], all)
        }
        "resize" => return ask_for_cpu(object, "200m"),
        _ => false,
    };
    is_written.then_some(())
}

/// Sets the CPU request of a Pod's first container; returns `None` if the Pod does not have containers.
fn ask_for_cpu(pod: &mut Value, cpu: &str) -> Option<()> {
    let container = pod.pointer_mut("/spec/containers/0")?;
    set(container, &["resources"], json!({"requests": {"cpu": cpu}})).then_some(())
}

/// Returns an object of the resource whose labels the webhook selects, or `None` if there is no such object.
fn stored(webhook_probe: &WebhookProbe<'_>, resource: &ServedResource) -> Option<Value> {
    let mut of_kind = webhook_probe.samples.iter().filter(|sample| sample.resource == resource.name);
    if let Some(object) = of_kind.find_map(|sample| sample.object.as_ref()) {
        return Some(as_stored(
            object,
            &webhook_probe.environment.user,
            &webhook_probe.environment.cluster_fixture,
        ));
    }
    let mut object = corpus::example(&resource.kind, &webhook_probe.environment.cluster_fixture)?;
    let labels = Selector::common_labels(&[&webhook_probe.subject.webhook.object_selector]);
    for (label, value) in labels.unwrap_or_default() {
        set(&mut object, &["metadata", "labels", &label], value);
    }
    if resource.namespaced {
        set(&mut object, &["metadata", "namespace"], requests::namespace(webhook_probe));
    } else {
        shape::remove(&mut object, "/metadata/namespace");
    }
    webhook_probe.environment.cluster_fixture.set_defaults(&mut object);
    Some(as_stored(&object, &webhook_probe.environment.user, &webhook_probe.environment.cluster_fixture))
}

fn side(
    webhook_probe: &WebhookProbe<'_>,
    resource: &ServedResource,
    subresource: &ServedSubresource,
    object: Value,
    old_object: Option<Value>,
) -> Attributes {
    let old = old_object.as_ref().unwrap_or(&Value::Null);
    let name = json::at(old, &["metadata", "name"]).as_str().unwrap_or(NAME).to_owned();
    let own = json::text(old, &["metadata", "namespace"]);
    let namespace = match (resource.namespaced, resource.name.resource.as_str()) {
        (true, _) if own.is_empty() => requests::namespace(webhook_probe).to_owned(),
        (true, _) => own.to_owned(),
        (false, "namespaces") => name.clone(),
        (false, _) => String::new(),
    };
    let gvr = &resource.name;
    let side = Side {
        operation: if old_object.is_some() { Operation::Update } else { Operation::Create },
        resource: (&gvr.group, &gvr.version, &gvr.resource),
        subresource: &subresource.name,
        name: &name,
        namespace: &namespace,
        object,
        old_object,
    };
    side.request(webhook_probe)
}

/// Returns a request with only the fields that rules match.
fn unknown(
    webhook_probe: &WebhookProbe<'_>,
    resource: &ServedResource,
    subresource: &ServedSubresource,
) -> Attributes {
    let kind = &subresource.kind;
    let object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": NAME}});
    let is_updated = subresource.verbs.iter().any(|verb| verb == "update");
    side(webhook_probe, resource, subresource, object.clone(), is_updated.then_some(object))
}
