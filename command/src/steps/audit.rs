//! Defines steps about the audit log.

use std::collections::BTreeMap;

use cucumber::then;
use gherkin::Step;
use serde_json::{Value, json};

use super::failure::{Outcome, StepFailure};
use super::names::Names;
use super::parameter::{Admission, Ordinal};
use super::world::World;
use super::{StepHelp, document, outcome, then as step};

pub(super) const PATCH: StepHelp = step(
    "the audit log records the patch of {string} in the {ordinal} round:",
    "The patch annotation of the call has these JSON Patch operations; requires the audit level Request or higher",
    r#"Then the audit log records the patch of "labels" in the first round:
  """yaml
  - {op: add, path: /metadata/labels, value: {team: blue}}
  """"#,
);

/// The annotations of the audit event for the last request.
enum Audit {
    /// The annotations of the event.
    Available(BTreeMap<String, String>),
    /// The target does not provide its audit log.
    Unavailable,
}

impl World {
    async fn audit(&self, step: &Step) -> Outcome<Audit> {
        let (target, id) = (self.target()?, &self.answer()?.audit_id);
        match (target.audit.annotations(id).await, target.audit.is_available()) {
            (Some(annotations), _) => Ok(Audit::Available(annotations)),
            (None, false) => {
                self.tell(
                    step,
                    "not checked: the audit log of this cluster is not available; see --audit-log",
                );
                Ok(Audit::Unavailable)
            }
            (None, true) => Err(StepFailure::new("the audit log does not contain an event for the request")),
        }
    }

    /// Checks that the webhook exists, because a negative statement about an unknown webhook would always pass.
    fn expect_webhook(&self, short: &str) -> Outcome {
        if self.installation.has_own_webhook(short) {
            return Ok(());
        }
        self.webhook(short).map(drop)
    }

    /// Checks that the webhook exists and is mutating, because validating webhooks do not have rounds or patches.
    fn expect_mutating(&self, short: &str) -> Outcome {
        self.expect_webhook(short)?;
        let is_mutating = self.installation.has_own_mutating_webhook(short)
            || self.webhook(short).is_ok_and(|webhook| webhook.admission == Admission::Mutating);
        if is_mutating {
            return Ok(());
        }
        Err(StepFailure::new(format!(
            "\"{short}\" is a validating webhook: the audit log records rounds and changes only of mutating webhooks; use '\"{short}\" is called …' instead"
        )))
    }

    /// Checks the annotations of the last request with `holds`; the error message lists all annotations.
    async fn expect_audit(
        &self,
        step: &Step,
        expected: &str,
        holds: impl FnOnce(&BTreeMap<String, String>) -> bool,
    ) -> Outcome {
        match self.audit(step).await? {
            Audit::Unavailable => Ok(()),
            Audit::Available(annotations) if holds(&annotations) => Ok(()),
            Audit::Available(annotations) => {
                let found: Vec<String> = annotations
                    .iter()
                    .map(|(key, value)| self.names.shorten(&format!("\n  {key}: {value}")))
                    .collect();
                let found = if found.is_empty() { " none".to_owned() } else { found.concat() };
                Err(StepFailure::new(format!("expected {expected}\naudit annotations:{found}")))
            }
        }
    }
}

/// Returns the value `mutated` for a call to a webhook, or `None` if the webhook was not called in the round.
///
/// The index at the end of the key is ignored, because it also counts webhooks of other scenarios.
///
/// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, mutationAnnotationValue
fn mutated(annotations: &BTreeMap<String, String>, short: &str, round: Ordinal) -> Option<bool> {
    call_annotation(annotations, "mutation", short, round)?.get("mutated")?.as_bool()
}

/// Returns a webhook's annotation `KIND.webhook.admission.k8s.io/round_N_index_M`, parsed as JSON.
fn call_annotation(
    annotations: &BTreeMap<String, String>,
    kind: &str,
    short: &str,
    round: Ordinal,
) -> Option<Value> {
    let prefix = format!("{kind}.webhook.admission.k8s.io/round_{}_index_", round.0 - 1);
    let name = Names::webhook(short);
    let of_round = annotations.iter().filter(|(key, _)| key.starts_with(&prefix));
    let values = of_round.filter_map(|(_, value)| serde_json::from_str::<Value>(value).ok());
    let mut own = values.filter(|value| value.get("webhook").and_then(Value::as_str) == Some(&name));
    own.next_back()
}

/// Returns whether the webhook failed open in the given round, or in any round if `round` is `None`.
///
/// Source: apiserver pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go, the failed-open annotations
fn failed_open(annotations: &BTreeMap<String, String>, short: &str, round: Option<Ordinal>) -> bool {
    let round = round.map_or_else(|| "round_".to_owned(), |round| format!("round_{}_index_", round.0 - 1));
    let name = Names::webhook(short);
    ["mutation", "validating"].iter().any(|kind| {
        let prefix = format!("failed-open.{kind}.webhook.admission.k8s.io/{round}");
        annotations.iter().any(|(key, value)| key.starts_with(&prefix) && *value == name)
    })
}

#[then(expr = "the audit log records that {string} changed the object in the {ordinal} round")]
async fn changed(world: &mut World, step: &Step, short: String, round: Ordinal) -> Outcome {
    world.expect_mutating(&short)?;
    let expected = format!("\"{short}\" to have changed the object in the {round} round");
    world.expect_audit(step, &expected, |all| mutated(all, &short, round) == Some(true)).await
}

#[then(expr = "the audit log records that {string} did not change the object in the {ordinal} round")]
async fn did_not_change(world: &mut World, step: &Step, short: String, round: Ordinal) -> Outcome {
    world.expect_mutating(&short)?;
    let expected = format!("\"{short}\" to have been called in the {round} round without a change");
    world.expect_audit(step, &expected, |all| mutated(all, &short, round) == Some(false)).await
}

#[then(expr = "the audit log records that {string} was not called in the {ordinal} round")]
async fn was_not_called(world: &mut World, step: &Step, short: String, round: Ordinal) -> Outcome {
    world.expect_mutating(&short)?;
    let expected = format!("\"{short}\" not to have been called in the {round} round");
    world.expect_audit(step, &expected, |all| mutated(all, &short, round).is_none()).await
}

#[then(expr = "the audit log records the patch of {string} in the {ordinal} round:")]
async fn has_patch(world: &mut World, step: &Step, short: String, round: Ordinal) -> Outcome {
    world.expect_mutating(&short)?;
    let operations = document::parse(&world.names.expand(&document::text(step)?))?;
    let Audit::Available(annotations) = world.audit(step).await? else { return Ok(()) };
    let found = call_annotation(&annotations, "patch", &short, round).unwrap_or_default();
    let expected = json!({"patchType": "JSONPatch", "patch": operations});
    outcome::contains(&format!("the patch of \"{short}\" in the audit log"), &expected, &found)
}

#[then(expr = "the audit log records that {string} failed open")]
async fn has_failed_open(world: &mut World, step: &Step, short: String) -> Outcome {
    world.expect_webhook(&short)?;
    let expected = format!("\"{short}\" to have failed open");
    world.expect_audit(step, &expected, |all| failed_open(all, &short, None)).await
}

#[then(expr = "the audit log records that {string} failed open in the {ordinal} round")]
async fn has_failed_open_in(world: &mut World, step: &Step, short: String, round: Ordinal) -> Outcome {
    world.expect_webhook(&short)?;
    let expected = format!("\"{short}\" to have failed open in the {round} round");
    world.expect_audit(step, &expected, |all| failed_open(all, &short, Some(round))).await
}

#[then(expr = "the audit log does not record that {string} failed open")]
async fn has_not_failed_open(world: &mut World, step: &Step, short: String) -> Outcome {
    world.expect_webhook(&short)?;
    let expected = format!("\"{short}\" not to have failed open");
    world.expect_audit(step, &expected, |all| !failed_open(all, &short, None)).await
}

#[then(expr = "the audit annotation {string} of {string} is {string}")]
async fn annotation_is(world: &mut World, step: &Step, key: String, short: String, value: String) -> Outcome {
    let key = if world.has_policy(&short) {
        format!("{}.{short}/{key}", world.names.id())
    } else {
        world.expect_webhook(&short)?;
        format!("{}/{key}", Names::webhook(&short))
    };
    let expected = world.names.shorten(&format!("{key}: {value}"));
    world.expect_audit(step, &expected, |all| all.get(&key) == Some(&value)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations() -> BTreeMap<String, String> {
        let called = |mutated| {
            format!(r#"{{"configuration":"c","webhook":"a.admit.example.com","mutated":{mutated}}}"#)
        };
        BTreeMap::from([
            ("mutation.webhook.admission.k8s.io/round_0_index_7".to_owned(), called(true)),
            ("mutation.webhook.admission.k8s.io/round_1_index_7".to_owned(), called(false)),
            (
                "failed-open.validating.webhook.admission.k8s.io/round_0_index_0".to_owned(),
                "b.admit.example.com".to_owned(),
            ),
        ])
    }

    #[test]
    fn calls_are_found_by_round_and_webhook() {
        assert_eq!(mutated(&annotations(), "a", Ordinal(1)), Some(true));
        assert_eq!(mutated(&annotations(), "a", Ordinal(2)), Some(false));
        assert_eq!(mutated(&annotations(), "b", Ordinal(1)), None);
    }

    #[test]
    fn patches_are_found_by_round_and_webhook() {
        let key = "patch.webhook.admission.k8s.io/round_1_index_3".to_owned();
        let value =
            r#"{"configuration":"c","webhook":"a.admit.example.com","patch":[],"patchType":"JSONPatch"}"#;
        let annotations = BTreeMap::from([(key, value.to_owned())]);
        let found = call_annotation(&annotations, "patch", "a", Ordinal(2)).unwrap();
        assert_eq!(found.pointer("/patch"), Some(&json!([])));
        assert_eq!(call_annotation(&annotations, "patch", "a", Ordinal(1)), None);
        assert_eq!(call_annotation(&annotations, "patch", "b", Ordinal(2)), None);
    }

    #[test]
    fn failed_open_is_found_for_both_plugins() {
        assert!(failed_open(&annotations(), "b", None));
        assert!(!failed_open(&annotations(), "b", Some(Ordinal(2))));
        assert!(!failed_open(&annotations(), "a", None));
    }
}
