//! Describes objects of a scenario that the server rejects, with their names and lines in the files of the user.

use gherkin::{Feature, Rule, Scenario, Step};
use harness::json;
use serde_json::Value;

use super::document;
use super::failure::StepFailure;
use super::world::World;
use crate::admission_kinds::no_matches;
use crate::field_lines;

/// The steps of a scenario, with their lines in the feature file.
#[derive(Debug, Default)]
pub(super) struct StepLines(Vec<(String, usize)>);

impl StepLines {
    /// Returns the line of the first step that names a webhook, which is the step that defines it.
    fn of_webhook(&self, short: &str) -> Option<usize> {
        let quoted = format!("\"{short}\"");
        self.0.iter().find_map(|(text, line)| text.contains(&quoted).then_some(*line))
    }
}

/// Returns the line of the invalid field in `text`, a file or a doc string, that the server's error is about.
///
/// If the error does not name a field, returns the line of the object.
pub(super) fn line_in(text: &str, error: &str) -> Option<u64> {
    let causes = error.split_once(" is invalid: ").map(|(_, causes)| causes);
    let invalid = causes.and_then(|causes| causes.trim_start_matches('[').split(": ").next());
    let objects = document::parse_objects(text).ok()?;
    let is_named = |object: &Value| {
        let text = |path: &[&str]| json::text(object, path);
        error.contains(&format!("{} \"{}\"", text(&["kind"]), text(&["metadata", "name"])))
    };
    let is_unserved = |object: &Value| {
        let text = |field: &str| json::text(object, &[field]);
        error.contains(&no_matches(text("kind"), text("apiVersion"), None))
    };
    let (position, field) = match objects.iter().position(is_unserved) {
        Some(position) => (position, "kind"),
        None => (objects.iter().position(is_named)?, invalid.unwrap_or_default()),
    };
    field_lines::outlines(text, objects.len()).get(position)?.line_of(field)
}

/// Adds the line of the feature file on which the doc string of `step` has the field that the server rejects.
pub(super) fn in_doc_string(step: &Step, failure: StepFailure) -> StepFailure {
    let line = document::text(step).ok().and_then(|text| line_in(&text, &failure.to_string()));
    match line {
        Some(line) => {
            // The doc string begins two lines below its step.
            let line = u64::try_from(step.position.line).unwrap_or_default() + 1 + line;
            failure.during(format!("line {line} of the feature file"))
        }
        None => failure,
    }
}

impl World {
    /// Keeps the steps of the scenario, for errors about the webhooks that they define.
    pub(crate) fn read_steps(&mut self, feature: &Feature, rule: Option<&Rule>, scenario: &Scenario) {
        let backgrounds = feature.background.iter().chain(rule.and_then(|rule| rule.background.as_ref()));
        let steps = backgrounds.flat_map(|background| &background.steps).chain(&scenario.steps);
        self.step_lines = StepLines(steps.map(|step| (step.value.clone(), step.position.line)).collect());
    }

    /// Returns the failure of a request that writes the object `kind` `name`, with the names in the feature file.
    pub(super) fn rejected(&self, kind: &str, name: &str, failure: StepFailure) -> StepFailure {
        let failure = failure.during(format!("the API server rejects {kind} \"{name}\""));
        StepFailure::new(self.names.shorten(&failure.to_string()))
    }

    /// Returns the failure of a request that writes a configuration, with the webhook that the server rejects.
    ///
    /// `name` is the name of the configuration in the cluster, and `webhooks` are its webhooks.
    pub(super) fn rejected_webhook(
        &self,
        name: &str,
        webhooks: &[Value],
        failure: StepFailure,
    ) -> StepFailure {
        let message = failure.to_string();
        let message = match message.split_once(&format!("\"{name}\" is invalid: ")) {
            Some((_, causes)) => causes,
            None => &message,
        };
        let index =
            message.split_once("webhooks[").and_then(|(_, rest)| rest.split_once(']')?.0.parse().ok());
        let entry = index.and_then(|index: usize| webhooks.get(index));
        let full = entry.map(|entry| json::text(entry, &["name"])).unwrap_or_default();
        let Some(webhook) = self.webhooks.iter().find(|it| json::text(&it.entry, &["name"]) == full) else {
            return StepFailure::new(message).during("the API server rejects the webhook configuration");
        };
        let short = &webhook.short;
        let line = self.step_lines.of_webhook(short);
        let line = line.map(|line| format!(" on line {line} of the feature file")).unwrap_or_default();
        StepFailure::new(message).during(format!("the API server rejects the webhook \"{short}\"{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  validations:
  - expression: object.
---
apiVersion: v2
kind: Pods
metadata: {name: web}
";

    #[test]
    fn the_line_is_that_of_the_field_or_of_the_object() {
        for (error, line) in [
            (
                "the API server rejects ValidatingAdmissionPolicy \"p\": 422 Invalid: \
                 ValidatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: \
                 spec.validations[0].expression: Invalid value: \"object.\": compilation failed",
                Some(6),
            ),
            ("the API server rejects ValidatingAdmissionPolicy \"p\": 403 Forbidden: no", Some(1)),
            ("no matches for kind \"Pods\" in version \"v2\"", Some(9)),
            ("the API server rejects Pod \"other\": 403 Forbidden: no", None),
        ] {
            assert_eq!(line_in(TEXT, error), line, "{error}");
        }
    }
}
