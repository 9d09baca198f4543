//! V21: mirror Pods are not changed or denied.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, UserInfo};
use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;
use crate::plugins;

pub(super) const CHECK: Check = Check {
    id: "V21",
    title: "mirror Pods: the webhook does not change or deny the mirror Pod of a static Pod",
    severity: Severity::Warning,
    why: "The kubelet runs static Pods from files. It publishes each of them in the API as a mirror Pod \
          with the annotation kubernetes.io/config.mirror. Changing a mirror Pod changes nothing on the \
          node: the API then shows sidecars and settings that do not exist. Denying it hides a running Pod, \
          often one of the control plane, from the scheduler, from metrics, and from cluster operators.",
    help: "Allow Pods with the annotation kubernetes.io/config.mirror, without a patch.",
    source: "Admission Webhook Good Practices, Don't change immutable objects; kubernetes \
             pkg/kubelet/types/pod_update.go",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

const NODE: &str = "node-1";

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    if object_probe.request.kind.kind != "Pod" || !object_probe.request.kind.group.is_empty() {
        return Err(Skipped::not_applicable("only a Pod can be a mirror Pod"));
    }
    // A Pod that is denied may also be denied as a mirror Pod.
    let plain = object_probe.admitted(&object_probe.alone(), object_probe.request).await?;
    let request = mirrored(object_probe.request, object_probe.object());
    let outcome = object_probe.answered(&object_probe.alone(), &request).await?;
    let steps = [plain, Arc::clone(&outcome)];
    if let Verdict::Denied(status) = outcome.verdict() {
        let message =
            format!("the webhook denies the mirror Pod of a Pod that it allows: {}", status.message);
        return Ok(vec![
            Violation::new("denies a mirror Pod", message).with_sent(request.object).with_steps(steps),
        ]);
    }
    let (Some(before), Some(after)) = (&request.object, &outcome.object) else { return Ok(Vec::new()) };
    let differences = object_probe.differences(before, after, Order::Counts);
    if differences.is_empty() {
        return Ok(Vec::new());
    }
    let message = format!("the webhook changes {} of a mirror Pod", super::fields(&differences));
    let violation = Violation::new("changes a mirror Pod", message).with_differences(differences);
    Ok(vec![violation.with_sent(request.object).with_steps(steps)])
}

/// Returns the request that the kubelet sends to create the mirror Pod of the same Pod.
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
