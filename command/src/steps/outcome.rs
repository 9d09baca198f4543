//! Defines steps about the response to the client: the decision, the object, and the warnings.

use std::borrow::Borrow;
use std::fmt::Write as _;

use cucumber::then;
use gherkin::Step;
use harness::secrets::Masker;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::api::{self, Answer};
use super::containment::{self, differences};
use super::document;
use super::failure::{Outcome, StepFailure};
use super::world::World;
use super::{StepHelp, then as step};
use crate::narrator::NoteKind;

pub(super) const OBJECT_LACKS: StepHelp = step(
    "the object does not contain:",
    "The returned object lacks at least one of these fields; the run prints which",
    r#"Then the object does not contain:
  """yaml
  metadata:
    labels: {team: blue}
  """"#,
);

impl World {
    /// Returns the object in the last response. The response must be successful.
    pub(super) fn object(&self) -> Outcome<&Value> {
        let answer = self.answer()?;
        if answer.is_success() {
            return Ok(&answer.body);
        }
        Err(StepFailure::new(format!(
            "the response contains no object because the request was rejected: {}",
            self.decision()
        )))
    }

    /// Formats the decision about the last request, with the names in the feature file.
    pub(super) fn decision(&self) -> String {
        self.last.as_ref().map(|answer| self.names.shorten(&answer.decision())).unwrap_or_default()
    }

    /// Returns the last response. It must be a rejection.
    fn rejection(&self) -> Outcome<&Answer> {
        let answer = self.answer()?;
        if answer.is_success() {
            let calls = self.call_notes();
            return Err(StepFailure::new(format!(
                "expected the request to be rejected, found {}{calls}",
                answer.code
            )));
        }
        Ok(answer)
    }

    /// Checks that `actual` contains `expected`; the error lists every difference.
    pub(super) fn check_contains(
        &self,
        step: &Step,
        what: &str,
        expected: &Value,
        actual: &Value,
    ) -> Outcome {
        contains(what, expected, actual).inspect_err(|_| self.note_whole(step, what, actual))
    }

    /// Checks that `actual` does not contain all of `unexpected`.
    ///
    /// If `unexpected` has several fields, prints the names of the missing fields below the step.
    pub(super) fn check_contains_not(
        &self,
        step: &Step,
        what: &str,
        unexpected: &Value,
        actual: &Value,
    ) -> Outcome {
        let missing =
            contains_not(what, unexpected, actual).inspect_err(|_| self.note_whole(step, what, actual))?;
        if let Some(missing) = missing {
            self.tell(step, format!("missing {missing}"));
        }
        Ok(())
    }

    /// Adds the whole document to the notes, for reports and for `--verbose`. Masks the values of Secrets.
    pub(super) fn note_whole(&self, step: &Step, what: &str, document: &Value) {
        let mut document = document.clone();
        Masker::default().document(&mut document);
        self.note(step, NoteKind::Whole, format!("{what}:\n{}", indented(&document::show(&document))));
    }

    async fn stored(&mut self, word: &str, name: &str) -> Outcome<Answer> {
        let path = self.path_of(word, name).await?;
        api::send(self.client()?, Method::GET, &path, None).await
    }
}

/// Checks that `actual` contains `expected`; the error lists every difference, and the fields next to missing ones.
pub(super) fn contains(what: &str, expected: &Value, actual: &Value) -> Outcome {
    let differences = differences(expected, actual);
    if differences.is_empty() {
        return Ok(());
    }
    let mut message = format!("{what} differs:\n  {}", differences.join("\n  "));
    for (path, name) in containment::misplaced(expected, actual) {
        let _ = write!(
            message,
            "\nthe expected item \"{name}\" does not match any remaining item of {path}, so it was compared with the item \
             at its position"
        );
        if path == "spec.containers" && what == "the object" {
            let _ =
                write!(message, "; to check only the name, use `the object has the container \"{name}\"`");
        }
    }
    for (path, found) in containment::incomplete(expected, actual) {
        let place = if path.is_empty() { what.to_owned() } else { format!("{path} of {what}") };
        let _ = write!(message, "\n{place}:\n{}", indented(&document::excerpt(found)));
    }
    Err(StepFailure::new(message))
}

/// Checks that `actual` does not contain all of `unexpected`; returns the missing fields if there are several fields.
pub(super) fn contains_not(what: &str, unexpected: &Value, actual: &Value) -> Outcome<Option<String>> {
    let differences = differences(unexpected, actual);
    let fields = containment::fields(unexpected);
    let count = fields.len();
    if differences.is_empty() {
        let found = indented(&fields.join("\n"));
        let all = if count > 1 { format!(", all {count} fields") } else { String::new() };
        return Err(StepFailure::new(format!("{what} contains the unexpected value{all}:\n{found}")));
    }
    Ok((count > 1).then(|| format!("{} of {count} fields: {}", differences.len(), differences.join("; "))))
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

#[then(expr = "the request is admitted")]
fn is_admitted(world: &mut World) -> Outcome {
    let answer = world.answer()?;
    if answer.is_success() {
        return Ok(());
    }
    Err(StepFailure::new(format!("expected the request to be admitted, found {}", world.decision())))
}

#[then(expr = "the request is rejected with {int}")]
fn is_rejected(world: &mut World, code: u16) -> Outcome {
    let rejection = world.rejection()?;
    if rejection.code.as_u16() == code {
        world.suspect_failed_policies();
        return Ok(());
    }
    let failure = StepFailure::new(format!("expected {code}, found {}", world.decision()));
    Err(failure.with_help(without_code(rejection).then(|| missing_code(&format!("code: {code}")))))
}

/// Returns whether the rejection has the code of a webhook's response without `status.code`.
fn without_code(rejection: &Answer) -> bool {
    let is_denial = rejection.message().contains(" denied the request");
    rejection.code == StatusCode::BAD_REQUEST && rejection.reason().is_empty() && is_denial
}

/// Returns help for a denial without a code; `status` are the fields that the step expects.
fn missing_code(status: &str) -> String {
    format!(
        "kube-apiserver responds with 400 if `status.code` in the webhook's response is missing or less than 400: return \
         `status: {{{status}}}`, or expect 400"
    )
}

#[then(expr = "the request is rejected with {int} {word}")]
fn is_rejected_with(world: &mut World, code: u16, reason: String) -> Outcome {
    let rejection = world.rejection()?;
    if rejection.code.as_u16() == code && rejection.reason() == reason {
        world.suspect_failed_policies();
        return Ok(());
    }
    let failure = StepFailure::new(format!("expected {code} {reason}, found {}", world.decision()));
    if without_code(rejection) && code != 400 {
        return Err(failure.with_help(Some(missing_code(&format!("code: {code}, reason: {reason}")))));
    }
    let is_code = rejection.code.as_u16() == code;
    Err(failure.with_help((is_code && rejection.reason().is_empty()).then(|| {
        format!(
            "the webhook's status has a code but no reason: return the reason \"{reason}\", or use the step `the \
             request is rejected with {code}`"
        )
    })))
}

#[then(expr = "the message is {string}")]
fn message_is(world: &mut World, message: String) -> Outcome {
    let found = world.names.shorten(world.rejection()?.message());
    if found == message {
        world.accept_failed_policies();
        return Ok(());
    }
    Err(StepFailure::new(format!("expected the message\n  {message}\nfound\n  {found}")))
}

#[then(expr = "the message contains {string}")]
fn message_contains(world: &mut World, fragment: String) -> Outcome {
    let found = world.names.shorten(world.rejection()?.message());
    if found.contains(&fragment) {
        world.accept_failed_policies();
        return Ok(());
    }
    Err(StepFailure::new(format!("expected a message that contains\n  {fragment}\nfound\n  {found}")))
}

#[then(expr = "the client receives the warning {string}")]
fn receives_warning(world: &mut World, text: String) -> Outcome {
    let warnings = world.answer()?.warnings.iter().map(|warning| world.names.shorten(warning));
    let warnings: Vec<String> = warnings.collect();
    if warnings.contains(&text) {
        return Ok(());
    }
    let is_part = warnings.iter().any(|warning| warning.contains(&text));
    let failure = StepFailure::new(format!("expected the warning \"{text}\", found {}", listed(&warnings)));
    Err(failure.with_help(is_part.then_some("the step compares the whole text of the warning")))
}

#[then(expr = "the client receives no warnings")]
fn receives_no_warnings(world: &mut World) -> Outcome {
    let warnings = &world.answer()?.warnings;
    if warnings.is_empty() {
        return Ok(());
    }
    Err(StepFailure::new(format!("expected no warning, found {}", listed(warnings))))
}

#[then(expr = "the object contains:")]
fn object_contains(world: &mut World, step: &Step) -> Outcome {
    world.check_contains(step, "the object", &world.yaml(step)?, world.object()?)
}

#[then(expr = "the object does not contain:")]
fn object_does_not_contain(world: &mut World, step: &Step) -> Outcome {
    world.check_contains_not(step, "the object", &world.yaml(step)?, world.object()?)
}

#[then(expr = "the container {string} has the CPU limit {string}")]
fn container_has_cpu_limit(world: &mut World, step: &Step, name: String, cpu: String) -> Outcome {
    let container = json!({"name": name, "resources": {"limits": {"cpu": cpu}}});
    let expected = json!({"spec": {"containers": [container]}});
    world.check_contains(step, "the object", &expected, world.object()?)
}

#[then(expr = "the object has the label {string}")]
fn object_has_label(world: &mut World, step: &Step, label: String) -> Outcome {
    let (key, value) = super::webhook::label_parts(&label)?;
    world.check_contains(step, "the object", &json!({"metadata": {"labels": {key: value}}}), world.object()?)
}

#[then(expr = "the stored {word} {string} contains:")]
async fn stored_contains(world: &mut World, step: &Step, resource: String, name: String) -> Outcome {
    let (expected, stored) = (world.yaml(step)?, world.stored(&resource, &name).await?.successful()?);
    world.check_contains(step, "the stored object", &expected, &stored.body)
}

#[then(expr = "the {word} {string} exists")]
async fn exists(world: &mut World, resource: String, name: String) -> Outcome {
    world.stored(&resource, &name).await?.successful().map(drop)
}

#[then(expr = "the {word} {string} does not exist")]
async fn does_not_exist(world: &mut World, step: &Step, resource: String, name: String) -> Outcome {
    let stored = world.stored(&resource, &name).await?;
    if stored.code == http::StatusCode::NOT_FOUND {
        return Ok(());
    }
    if !stored.is_success() {
        return stored.successful().map(drop);
    }
    world.note_whole(step, &format!("the {resource}"), &stored.body);
    Err(StepFailure::new(format!("expected no {resource} \"{name}\", but it exists")))
}

/// Returns the quoted names or texts, or `none`.
pub(super) fn listed<S: Borrow<str>>(texts: &[S]) -> String {
    if texts.is_empty() { "none".to_owned() } else { format!("\"{}\"", texts.join("\", \"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_missing_field_is_enough_and_is_named() {
        let actual = json!({"a": {"x": 1, "y": 2}, "b": [{"n": "c"}]});
        let lacks = |unexpected: Value| {
            contains_not("it", &unexpected, &actual).map_err(|failure| failure.to_string())
        };
        assert_eq!(lacks(json!({"a": {"x": 2}})), Ok(None));
        let missing = "1 of 2 fields: a.x: expected 2, found 1".to_owned();
        assert_eq!(lacks(json!({"a": {"x": 2, "y": 2}})), Ok(Some(missing)));
        let failure = lacks(json!({"a": {"x": 1}, "b": [{"n": "c"}]})).unwrap_err();
        assert!(failure.starts_with("it contains the unexpected value, all 2 fields:"), "{failure}");
        let failure = lacks(json!({"a": {"x": 1}})).unwrap_err();
        assert_eq!(failure, "it contains the unexpected value:\n  a.x: 1");
    }

    #[test]
    fn only_the_fields_next_to_a_missing_one_are_shown() {
        let actual = json!({
            "metadata": {"name": "web", "labels": {"app": "web", "team": "blue"}},
            "spec": {"tolerations": [{"key": "a"}], "nodeName": "n"},
        });
        let message = |expected: Value| contains("the object", &expected, &actual).unwrap_err().to_string();
        assert_eq!(
            message(json!({"metadata": {"labels": {"stamp": "on"}}, "spec": {"nodeName": "m"}})),
            "the object differs:\n  metadata.labels.stamp: expected \"on\", found nothing\n  \
             spec.nodeName: expected \"m\", found \"n\"\n\
             metadata.labels of the object:\n  app: web\n  team: blue"
        );
    }
}
