//! Generates `docs/reference/faults.md`: the fault catalog with the responses of a real kube-apiserver.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fake_webhooks::{Class, Family, Fault, Reference, catalog};
use serde_json::Value;

use super::{Measured, PolicyOutcome, case_name};
use crate::recording::RecordingError;

/// The page that lists all faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The page as Markdown.
    pub text: String,
}

/// An error that prevents the generation of the page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// A fault does not have a recording.
    #[error("{case}: no recording: {source}\n  make it with: just record {case}")]
    Recording {
        /// The case without a recording.
        case: String,
        /// The error from reading the recording.
        source: RecordingError,
    },
    /// The page cannot be written to disk.
    #[error("docs/reference/faults.md: {0}")]
    File(#[from] io::Error),
}

impl Page {
    /// Returns the path of the page.
    pub fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/faults.md")
    }

    /// Generates the page from the catalog and the recordings.
    ///
    /// The date of the page is `today` if the recorded messages have changed.
    ///
    /// # Errors
    /// Returns an error if a fault does not have a recording.
    pub fn make(today: &str) -> Result<Self, PageError> {
        let mut measured = Vec::new();
        for fault in catalog() {
            let found = Measured::read(fault)
                .map_err(|source| PageError::Recording { case: case_name(fault), source })?;
            measured.push((fault, found));
        }
        let old = fs::read_to_string(Self::path()).unwrap_or_default();
        let date = old.split_once(DATE).and_then(|(_, rest)| rest.get(..today.len())).unwrap_or(today);
        let same = text(&measured, date);
        let is_recorded_again = messages(&same) != messages(&old);
        Ok(Self { text: if is_recorded_again { text(&measured, today) } else { same } })
    }

    /// Writes the page to [`Page::path`].
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self) -> Result<(), PageError> {
        let path = Self::path();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(fs::write(path, &self.text)?)
    }
}

/// Returns the recorded messages that a page shows.
fn messages(page: &str) -> Vec<&str> {
    page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// The text before the date in the page.
const DATE: &str = "\non ";

fn text(measured: &[(&Fault, Measured)], date: &str) -> String {
    let versions: std::collections::BTreeSet<&str> =
        measured.iter().map(|(_, measured)| measured.apiserver.as_str()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    let count = |class: Class| measured.iter().filter(|(fault, _)| fault.class == class).count();
    let mut text = format!(
        "<!-- Written by `cargo run -p tests -- faults --page` from recordings; change the catalog instead. -->
# Faults

{total} ways in which a webhook can fail, each with the response of a real kube-apiserver {version}, recorded{DATE}{date}. `admit fakes` reproduces every fault. [Find an error](#find-an-error) lists the messages
that `admit explain-error` recognizes. The faults are in these sections:

{contents}
## Classes

| Class | `failurePolicy: Fail` | `failurePolicy: Ignore` | Faults |
|---|---|---|---|
| **policy** | the request fails | the request is admitted as if the webhook did not exist | {policy} |
| **immune** | the request fails | the request fails as well: the policy does not apply | {immune} |
| **accepted** | the request is admitted | the request is admitted: kube-apiserver accepts what looks broken | {accepted} |
| **refused** | – | –: kube-apiserver rejects the configuration, so the webhook is never registered | {refused} |

The class *immune* often surprises users: `Ignore` protects against webhooks that cannot be reached or that return an invalid review, but
not against a valid review whose decision or patch makes the request fail. Conversion webhooks have no failure policy: every failure is *immune*.

## How the responses were recorded

Each fault is a [recorded case](https://github.com/admit-dev/admit/tree/main/tests/cases/faults): one webhook with `failurePolicy: Fail` and
one with `Ignore`, each for its own namespace, and the same request to both, usually the creation of a ConfigMap. For conversion
webhooks, the case has a CustomResourceDefinition whose webhook has the fault, and creates an object in a version other than the stored
one. The messages are those of the
server, word for word. Values that change from run to run are masked (`<port>`, `<time>`, `<uid-1>`).
`just record 'faults/*'` records them again on the kube-apiserver in `KUBEBUILDER_ASSETS`.

## Reproduce a fault

Name its ID or name in a file for `admit fakes -f`, or in the behavior of a webhook if the fault is one of its responses:

```yaml
version: 1
webhooks:
- name: broken
  type: validating
  fault: E07-wrong
- name: broken-at-times
  type: validating
  behavior: {{sequence: [allow, {{fault: E07-wrong}}, allow]}}
```

Faults of conversion webhooks work in the same way. Their webhook is not in a configuration; put its URL into
`spec.conversion.webhook.clientConfig` of a CustomResourceDefinition.

`admit fakes list` prints the table, and `admit fakes list -o json` all details of each fault.
",
        total = measured.len(),
        contents = contents(measured),
        version = versions.join(", "),
        policy = count(Class::Policy),
        immune = count(Class::Immune),
        accepted = count(Class::Accepted),
        refused = count(Class::Refused),
    );
    text.push_str(&super::causes::index());
    for family in Family::ALL {
        let faults: Vec<_> = measured.iter().filter(|(fault, _)| fault.family == family).collect();
        if !faults.is_empty() {
            section(&mut text, family, &faults);
        }
    }
    text
}

fn section(text: &mut String, family: Family, faults: &[&(&Fault, Measured)]) {
    let _ =
        write!(text, "\n## {}\n\n| ID | Name | Description | Class |\n|---|---|---|---|\n", title(family));
    for (fault, _) in faults {
        let _ = writeln!(
            text,
            "| [{id}](#{anchor}) | `{name}` | {help} | **{class}** |",
            id = fault.id,
            anchor = anchor(fault),
            name = fault.name,
            help = cell(&fault.help),
            class = fault.class,
        );
    }
    for (fault, measured) in faults {
        entry(text, fault, measured);
    }
}

const fn title(family: Family) -> &'static str {
    match family {
        Family::Transport => "Connections and TLS",
        Family::Http => "HTTP",
        Family::Envelope => "The review in the response",
        Family::Denials => "Denials",
        Family::Patch => "Patches",
        Family::Configuration => "Configuration",
        Family::Misbehaving => "Valid responses with bad consequences",
        Family::Conversion => "Conversion webhooks",
        _ => "Others",
    }
}

fn heading(fault: &Fault) -> String {
    format!("{} {}", fault.id, fault.name)
}

/// Returns a list of the sections with faults.
fn contents(measured: &[(&Fault, Measured)]) -> String {
    let mut text = String::new();
    for family in Family::ALL {
        let count = measured.iter().filter(|(fault, _)| fault.family == family).count();
        if count > 0 {
            let section = title(family);
            let _ = writeln!(text, "- [{section}](#{}): {count}", slug(section));
        }
    }
    text
}

/// Returns the anchor of the heading of a fault.
pub(super) fn anchor(fault: &Fault) -> String {
    slug(&heading(fault))
}

/// Returns the anchor that GitHub and mdBook generate for a heading.
fn slug(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

fn entry(text: &mut String, fault: &Fault, measured: &Measured) {
    let _ = write!(text, "\n### {}\n\n**{}**: {}.", heading(fault), fault.class, fault.help);
    if fault.reference == Reference::Service {
        text.push_str(" Recorded with a webhook behind a Service.");
    }
    if !fault.request.is_empty() && fault.then.is_empty() {
        let _ = write!(text, " The request was `{}`.", Value::Object(fault.request.clone()));
    }
    if fault.requests > 1 {
        let _ = write!(text, " The request was sent {} times; the first rejection is shown.", fault.requests);
    }
    for other in &fault.with {
        let _ = write!(text, " Another webhook was called after it: `{}`.", Value::Object(other.clone()));
    }
    if !fault.with.is_empty() {
        let _ = write!(text, " The webhooks were called {} times.", measured.fail.calls);
    } else if measured.fail.calls > usize::from(fault.requests) {
        let _ = write!(text, " The webhook was called {} times.", measured.fail.calls);
    } else if measured.fail.calls == 0 && fault.class != Class::Refused && fault.family != Family::Conversion
    {
        text.push_str(" No call reached the webhook.");
    }
    text.push_str("\n\n");
    if fault.then.is_empty() {
        said(text, fault, measured);
    } else {
        steps(text, fault, measured);
    }
    if !fault.fake.is_empty() {
        let _ = write!(text, "\n```yaml\n{}```\n", crate::yaml::write(&Value::Object(fault.fake.clone())));
    }
}

/// Writes the state of the object after each request.
fn steps(text: &mut String, fault: &Fault, measured: &Measured) {
    text.push_str(
        "| Request | Status | Labels, annotations, and finalizers of the object afterward |\n|---|---|---|\n",
    );
    let first = if fault.request.is_empty() { "create".to_owned() } else { asked(&fault.request) };
    let asked = std::iter::once(first).chain(fault.then.iter().map(asked));
    for (asked, (status, metadata)) in asked.zip(&measured.steps) {
        let _ = writeln!(text, "| `{}` | {status} | `{}` |", cell(&asked), cell(&metadata.to_string()));
    }
    if !measured.fail.is_admitted() {
        text.push('\n');
        message(text, &measured.fail);
    }
}

/// Formats a request in one line.
fn asked(request: &serde_json::Map<String, Value>) -> String {
    let verb = request.get("verb").and_then(Value::as_str).unwrap_or("create");
    match request.get("body") {
        Some(body) => format!("{verb} {body}"),
        None => verb.to_owned(),
    }
}

/// Writes the response of the server and, if it is a different rejection, the response under `Ignore`.
fn said(text: &mut String, fault: &Fault, measured: &Measured) {
    for warning in &measured.fail.warnings {
        let _ = write!(text, "```text\nWarning: {}\n```\n", plain(warning));
    }
    if fault.class == Class::Accepted {
        let _ = writeln!(text, "Admitted with HTTP {}.", measured.fail.status);
    } else {
        message(text, &measured.fail);
    }
    if !measured.ignore.is_admitted() && plain(&measured.ignore.message) != plain(&measured.fail.message) {
        text.push_str("\nWith `Ignore`:\n\n");
        message(text, &measured.ignore);
    }
}

fn message(text: &mut String, verdict: &PolicyOutcome) {
    let said = if verdict.message.is_empty() { "(no message)".to_owned() } else { plain(&verdict.message) };
    let _ = write!(text, "```text\n{} {said}\n```\n", verdict.status);
}

/// Removes the names that distinguish the two webhooks of a case.
fn plain(message: &str) -> String {
    let mut plain = message.to_owned();
    for name in ["fail", "ignore"] {
        plain = plain
            .replace(&format!("{name}.<id>.example.com"), "hook.example.com")
            .replace(&format!("<port of {name}>"), "<port>")
            .replace(&format!("<id>-{name}"), "<namespace>")
            .replace(&format!("{name}-<id>"), "<configuration>");
    }
    plain
}

pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
