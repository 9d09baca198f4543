//! Counts the denials of a webhook by reason.

use std::collections::BTreeMap;

use super::causes::word_masked;
use super::environment::Verdict;
use super::object_probe::{Memory, ObjectProbe};
use super::reasons;
use super::shape;
use super::subject::Subject;

/// The number of corpus objects whose creation requests a webhook answered, and the denials among them.
#[derive(Clone, Debug, Default)]
pub(super) struct Denials {
    /// The number of objects whose creation requests the webhook answered.
    pub(super) objects: u64,
    /// The number of denials by reason.
    pub(super) reasons: BTreeMap<String, u64>,
}

/// The verdict of a webhook on the creation of an object.
#[derive(Debug)]
pub(super) enum CreationVerdict {
    Admitted,
    /// The webhook denied the object; contains the reason without the object's name.
    Denied(String),
}

impl Denials {
    pub(super) fn count(&mut self, said: CreationVerdict) {
        self.objects += 1;
        if let CreationVerdict::Denied(reason) = said {
            reasons::count(&mut self.reasons, reason);
        }
    }
}

/// Returns the cached verdict on the creation of the object when only this webhook is called.
///
/// Returns `None` if no probe sent the request, or if the webhook was not called or failed.
pub(super) fn creation_verdict(object_probe: &ObjectProbe<'_>) -> Option<CreationVerdict> {
    let outcome = object_probe.memory.find(&object_probe.alone(), object_probe.request)?;
    outcome.calls_of(&object_probe.subject.webhook.id).next()?;
    match outcome.verdict() {
        Verdict::Admitted => Some(CreationVerdict::Admitted),
        Verdict::Denied(status) => Some(CreationVerdict::Denied(reason(
            &status.message,
            object_probe.subject,
            &shape::object_name(object_probe.object()),
        ))),
        Verdict::Failed(_) | Verdict::ServerError(_) | Verdict::NoConditions(_) | Verdict::Unsupported(_) => {
            None
        }
    }
}

/// Returns whether a probe sent a request to this webhook only.
pub(super) fn was_asked(memory: &Memory, subject: &Subject) -> bool {
    memory.knows(&subject.alone())
}

/// Returns the webhook's own message, without the prefix that the server adds.
///
/// `NAME` replaces the name of the object.
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
    fn reason_is_independent_of_the_object() {
        let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "c"}, "webhooks": [{"name": "w.example.com",
                "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"]}]});
        let subject = Subject::from_configurations(&[configuration]).unwrap().remove(0);
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
