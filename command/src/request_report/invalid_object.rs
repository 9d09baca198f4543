//! Explains which webhook or admission policy made an object invalid.

use harness::chain::Verdict;
use harness::event::Phase;
use harness::verify::{Severity, is_within, without_positions};
use serde_json::Value;

use super::Report;
use super::difference::Change;
use super::rejection::{self, Places};
use super::steps::{By, Step};
use crate::diagnostic::Diagnostic;

/// Returns a diagnostic about an object that is invalid because of a webhook or an admission policy.
///
/// Names the last actor that changed an invalid field. Returns `None` if the fields were in the request, or if the request
/// was not rejected for an invalid object.
pub(super) fn diagnostic(report: &Report, places: &Places) -> Option<Diagnostic> {
    if report.verdict() == Verdict::Admitted || report.decision.code != 422 {
        return None;
    }
    let causes = report.decision.status.as_ref()?.pointer("/details/causes")?.as_array()?;
    let fields = || causes.iter().filter_map(|cause| cause.get("field").and_then(Value::as_str));
    let (field, step, change) = fields().find_map(|field| {
        let (step, change) = last_change(&report.steps, field)?;
        Some((field, step, change))
    })?;
    let mut shown = Diagnostic::new(Severity::Error, rejection::message(report));
    let (actor, id) = match step.by {
        By::Policy => ("policy", step.name.clone()),
        By::Webhook | By::Defaults | By::Plugin | By::Server => {
            ("webhook", format!("{}/{}", step.configuration, step.name))
        }
    };
    if let Some(place) = rejection::place(&id, Phase::Mutating, places).filter(|_| actor == "webhook") {
        shown = shown.place(&place.file, place.line);
    }
    shown.note(actor, id);
    shown.note("request", rejection::request(report));
    let is_removal = change.to.is_none();
    shown.note(
        "why",
        if is_removal {
            format!("the {actor} removed {field}, and the object is invalid without it")
        } else {
            format!("the {actor} set {field} to an invalid value")
        },
    );
    let help = match earlier(&report.steps, step, change) {
        Some(earlier) => {
            shown.note(
                "note",
                format!(
                    "the {actor} added {} in the first round and {} in the second: it is not idempotent",
                    earlier.path, change.path
                ),
            );
            "add the item only if the list does not contain it"
        }
        None if is_removal => "do not remove the field",
        None => "correct the value, or set the field only if the object does not have it",
    };
    shown.note("help", help.to_owned());
    Some(shown)
}

/// Returns the last change of `field` by a webhook or a policy. A later change by another actor takes precedence.
fn last_change<'a>(steps: &'a [Step], field: &str) -> Option<(&'a Step, &'a Change)> {
    let change_of = |step: &'a Step| {
        let change = step.changes.iter().find(|change| concerns(change, field))?;
        Some((step, change))
    };
    let last = steps.iter().rev().find_map(change_of)?;
    matches!(last.0.by, By::Webhook | By::Policy).then_some(last)
}

/// Returns whether a change includes `field`, or changes a part of it.
fn concerns(change: &Change, field: &str) -> bool {
    is_within(field, &change.path) || is_within(&change.path, field)
}

/// Returns the addition in the first round by the actor of `step` to the same list as `change`, an addition in the second.
fn earlier<'a>(steps: &'a [Step], step: &Step, change: &Change) -> Option<&'a Change> {
    let is_same = |other: &&Step| {
        other.round < step.round
            && (other.by, &other.name, &other.configuration, &other.binding, &other.param)
                == (step.by, &step.name, &step.configuration, &step.binding, &step.param)
    };
    let list = without_positions(&change.path);
    let additions = steps.iter().filter(is_same).flat_map(|step| &step.changes);
    let mut additions = additions.filter(|addition| addition.from.is_none() && change.from.is_none());
    additions.find(|addition| addition.path != change.path && without_positions(&addition.path) == list)
}
