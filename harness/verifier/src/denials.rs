//! What a webhook denies of the objects that it is shown, by its reasons.

use std::collections::BTreeMap;

use super::causes::word_masked;
use super::environment::Verdict;
use super::finding_log;
use super::object_probe::{Memory, ObjectProbe};
use super::shape;
use super::subject::Subject;

/// How often a webhook was shown an object of the corpus as it is created, and what it denied.
#[derive(Clone, Debug, Default)]
pub(super) struct Denials {
    /// Objects that it answered to.
    pub(super) objects: u64,
    /// How many of them it denied, by the reason.
    pub(super) reasons: BTreeMap<String, u64>,
}

/// What a webhook said of one object.
#[derive(Debug)]
pub(super) enum Said {
    Admitted,
    /// The reason, without the name of the object.
    Denied(String),
}

impl Denials {
    pub(super) fn count(&mut self, said: Said) {
        self.objects += 1;
        if let Said::Denied(reason) = said {
            finding_log::count(&mut self.reasons, reason);
        }
    }
}

/// Whether the webhook alone admits the creation of the object: none if no probe has asked that, or it was not called or
/// gave no valid answer. Nothing is asked for it.
pub(super) fn said(object_probe: &ObjectProbe<'_>) -> Option<Said> {
    let outcome = object_probe.memory.find(&object_probe.alone(), object_probe.request)?;
    outcome.calls_of(&object_probe.subject.webhook.id).next()?;
    match outcome.verdict() {
        Verdict::Admitted => Some(Said::Admitted),
        Verdict::Denied(status) => Some(Said::Denied(reason(
            &status.message,
            object_probe.subject,
            &shape::object_name(object_probe.object()),
        ))),
        Verdict::Failed(_) | Verdict::ServerError(_) | Verdict::NoConditions(_) | Verdict::Unsupported(_) => {
            None
        }
    }
}

/// Whether any probe has asked the webhook alone.
pub(super) fn was_asked(memory: &Memory, subject: &Subject) -> bool {
    memory.knows(&subject.alone())
}

/// What the webhook says itself, the same for every object: its message without the server's words before it, with `NAME`
/// in place of the object's name.
fn reason(message: &str, subject: &Subject, object: &str) -> String {
    let by = format!("admission webhook \"{}\" denied the request", subject.webhook.id.name);
    let own = message.strip_prefix(&by).unwrap_or(message).trim_start_matches([':', ' ']);
    let own = if own.is_empty() { "without explanation" } else { own };
    let name = object.rsplit('/').next().unwrap_or(object);
    word_masked(own, name, "NAME")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reason_is_the_same_for_every_object() {
        let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "c"}, "webhooks": [{"name": "w.example.com",
                "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"]}]});
        let subject = Subject::of(&[configuration]).unwrap().remove(0);
        let by = "admission webhook \"w.example.com\" denied the request";
        for (message, object, expected) in [
            (
                format!("{by}: pod demo/object-7 needs a limit"),
                "demo/object-7",
                "pod demo/NAME needs a limit",
            ),
            (format!("{by}: object-71 is full"), "object-7", "object-71 is full"),
            (format!("{by} without explanation"), "object-7", "without explanation"),
            (by.to_owned(), "object-7", "without explanation"),
        ] {
            assert_eq!(reason(&message, &subject, object), expected);
        }
    }
}
