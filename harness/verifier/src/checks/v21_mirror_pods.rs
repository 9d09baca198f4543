//! V21: mirror pods are left alone.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, UserInfo};
use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;
use crate::plugins;

pub(super) const CHECK: Check = Check {
    id: "V21",
    title: "mirror pods: it neither changes nor refuses the image of a pod that runs on a node anyway",
    severity: Severity::Warning,
    why: "The kubelet runs static pods from files and shows each of them in the API as a mirror pod with the annotation \
          kubernetes.io/config.mirror. Changing that changes nothing on the node: the API then shows sidecars and \
          settings that do not exist. Refusing it hides a pod that runs, often one of the control plane, from the \
          scheduler, from metrics and from whoever looks for it.",
    source: "Admission Webhook Good Practices, Don't change immutable objects; kubernetes pkg/kubelet/types/pod_update.go",
    audience: Audience::All,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

const NODE: &str = "node-1";

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    if object_probe.request.kind.kind != "Pod" || !object_probe.request.kind.group.is_empty() {
        return Err(Obstacle::not_applicable("only a pod can be a mirror"));
    }
    // A pod that is denied as it is may be denied as a mirror, too.
    let plain = object_probe.admitted(&object_probe.alone(), object_probe.request).await?;
    let request = mirrored(object_probe.request, object_probe.object());
    let outcome = object_probe.answered(&object_probe.alone(), &request).await?;
    let steps = [plain, Arc::clone(&outcome)];
    if let Verdict::Denied(status) = outcome.verdict() {
        let message = format!("it denies the mirror of a pod that it admits itself: {}", status.message);
        return Ok(vec![Violation::new("denies a mirror pod", message).with_steps(steps)]);
    }
    let (Some(before), Some(after)) = (&request.object, &outcome.object) else { return Ok(Vec::new()) };
    let differences = object_probe.differences(before, after, Order::Counts);
    if differences.is_empty() {
        return Ok(Vec::new());
    }
    let message = format!("it changes {} of a mirror pod", super::fields(&differences));
    Ok(vec![Violation::new("changes a mirror pod", message).with_differences(differences).with_steps(steps)])
}

/// The creation of the same pod as a mirror, by the kubelet of its node: without a service account, since the API server
/// refuses mirror pods that have one.
///
/// Source: kubernetes plugin/pkg/admission/serviceaccount/admission.go, `Validate`.
pub(super) fn mirrored(request: &Attributes, object: &Value) -> Attributes {
    let mut pod = object.clone();
    plugins::without_service_account(&mut pod);
    let hash = "5d41402abc4b2a76b9719d911017c592";
    for (annotation, value) in [
        (plugins::MIRROR, hash),
        ("kubernetes.io/config.hash", hash),
        ("kubernetes.io/config.source", "file"),
    ] {
        set(&mut pod, &["metadata", "annotations", annotation], value);
    }
    let owner = json!({
        "apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "6f3d1d2e-0000-4000-8000-00000000000c",
        "controller": true,
    });
    set(&mut pod, &["metadata", "ownerReferences"], json!([owner]));
    set(&mut pod, &["spec", "nodeName"], NODE);
    let user = UserInfo {
        username: format!("system:node:{NODE}"),
        groups: vec!["system:nodes".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    };
    Attributes { object: Some(pod), user, ..request.clone() }
}
