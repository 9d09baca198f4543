//! V27: audit annotations have keys that the audit log takes.

use std::sync::Arc;

use kubernetes_admission::audit;
use kubernetes_types::json::at;

use super::said::Said;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V27",
    title: "audit annotations: keys without a domain, which the audit log takes",
    severity: Severity::Warning,
    why: "kube-apiserver puts the webhook's name and a slash in front of each key. What is then no qualified name, \
          because the key has a domain of its own or letters that no key has, is dropped with a line in the server's \
          log and nowhere else: the trail that somebody relies on in an audit is not there.",
    source: "Dynamic Admission Control, Response; apiserver pkg/admission/attributes.go, checkKeyFormat",
    audience: Audience::All,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let said = Said::accepted(object_probe).await?;
    let annotations = at(&said.response, &["auditAnnotations"]);
    let Some(annotations) = annotations.as_object().filter(|all| !all.is_empty()) else {
        return Err(Obstacle::not_applicable("it answers the creation without audit annotations"));
    };
    let name = &object_probe.subject.webhook.id.name;
    let dropped: Vec<String> = annotations
        .keys()
        .map(|key| format!("{name}/{key}"))
        .filter(|key| !audit::is_qualified_name(key))
        .collect();
    if dropped.is_empty() {
        return Ok(Vec::new());
    }
    let message = format!("the audit log does not take {}", dropped.join(", "));
    Ok(vec![Violation::new("key is dropped", message).with_steps([Arc::clone(&said.outcome)])])
}
