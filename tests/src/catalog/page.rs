//! `docs/faults.md`: the catalog with what a real kube-apiserver said, for people.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fake_webhooks::{Class, Family, Fault, Reference, catalog};
use serde_json::Value;

use super::{Measured, Verdict, case_name};
use crate::recording::RecordingError;

/// The page of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its text.
    pub text: String,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// A fault was not recorded.
    #[error("{case}: no recording: {source}\n  make it with: just record {case}")]
    Recording {
        /// Its case.
        case: String,
        /// Why not.
        source: RecordingError,
    },
    /// The page cannot be written.
    #[error("docs/faults.md: {0}")]
    File(#[from] io::Error),
}

impl Page {
    /// Where it is.
    pub fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/faults.md")
    }

    /// Made of the catalog and the recordings. `today` is when it was measured, if the page says something new; one
    /// that says the same keeps its date.
    ///
    /// # Errors
    /// A fault was not recorded.
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
        Ok(Self { text: if same == old { same } else { text(&measured, today) } })
    }

    /// Writes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self) -> Result<(), PageError> {
        let path = Self::path();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(fs::write(path, &self.text)?)
    }
}

/// What stands before the date.
const DATE: &str = "\non ";

fn text(measured: &[(&Fault, Measured)], date: &str) -> String {
    let versions: std::collections::BTreeSet<&str> =
        measured.iter().map(|(_, measured)| measured.apiserver.as_str()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    let count = |class: Class| measured.iter().filter(|(fault, _)| fault.class == class).count();
    let mut text = format!(
        "<!-- Written by `cargo run -p tests -- faults --page` from recordings; change the catalog instead. -->
# What kube-apiserver does with a webhook that misbehaves

{total} ways in which a webhook can go wrong, and what a real kube-apiserver {version} said to each of them,{DATE}{date}. Search this page for the message that you have in front of you; every fault can be had from admit.

## The classes

| class | `failurePolicy: Fail` | `failurePolicy: Ignore` | how many |
|---|---|---|---|
| **policy** | the request fails | the request is admitted, as if there were no such webhook | {policy} |
| **immune** | the request fails | the request fails all the same: the policy is not asked | {immune} |
| **accepted** | the request is admitted | the request is admitted: it looks broken, and is taken | {accepted} |
| **refused** | – | – the configuration is not accepted, so that there is no such webhook | {refused} |

*Immune* is the one that surprises people: `Ignore` protects from webhooks that cannot be reached or that talk nonsense,
not from those whose answer is understood and makes no sense for the object. Conversion webhooks have no failure policy:
whatever fails there is *immune*.

## How it was measured

Each fault is a [recorded case](../tests/cases/faults): one webhook with `failurePolicy: Fail`, one with `Ignore`, each for
a namespace of its own, and the same request to both, most often the creation of a ConfigMap. Those of conversion webhooks
have a definition whose webhook has the fault, and the creation of an object in another version than the stored one. The messages are the
server's, word for word; what differs from run to run is masked (`<port>`, `<time>`, `<uid-1>`). `just record 'faults/*'`
does it again on the kube-apiserver in `KUBEBUILDER_ASSETS`.

## How to have a fault

By id or name in a file for `admit fakes -f`, or in the behavior of a webhook where the fault is one of its answers:

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

A fault of a conversion webhook is had in the same way; its webhook is in no configuration, and its URL belongs into the
`spec.conversion.webhook.clientConfig` of a definition.

`admit fakes list` prints the table, `admit fakes list -o json` all that is known of each.
",
        total = measured.len(),
        version = versions.join(", "),
        policy = count(Class::Policy),
        immune = count(Class::Immune),
        accepted = count(Class::Accepted),
        refused = count(Class::Refused),
    );
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
        write!(text, "\n## {}\n\n| id | name | what is wrong | class |\n|---|---|---|---|\n", title(family));
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
        Family::Envelope => "The review in the answer",
        Family::Denials => "Denials",
        Family::Patch => "Patches",
        Family::Configuration => "Configuration",
        Family::Misbehaving => "Valid answers with bad consequences",
        Family::Conversion => "Conversion webhooks",
        _ => "Others",
    }
}

fn heading(fault: &Fault) -> String {
    format!("{} {}", fault.id, fault.name)
}

/// As GitHub makes it of a heading.
fn anchor(fault: &Fault) -> String {
    heading(fault).to_lowercase().replace(' ', "-")
}

fn entry(text: &mut String, fault: &Fault, measured: &Measured) {
    let _ = write!(text, "\n### {}\n\n**{}**: {}.", heading(fault), fault.class, fault.help);
    if fault.reference == Reference::Service {
        text.push_str(" Seen behind a Service.");
    }
    if !fault.request.is_empty() && fault.then.is_empty() {
        let _ = write!(text, " Asked with `{}`.", Value::Object(fault.request.clone()));
    }
    if fault.requests > 1 {
        let _ = write!(text, " Asked {} times; the first refusal counts.", fault.requests);
    }
    for other in &fault.beside {
        let _ = write!(text, " Called after it: `{}`.", Value::Object(other.clone()));
    }
    if !fault.beside.is_empty() {
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

/// What became of the object, request by request.
fn steps(text: &mut String, fault: &Fault, measured: &Measured) {
    text.push_str(
        "| request | status | the object's labels, annotations and finalizers then |\n|---|---|---|\n",
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

/// A request in one line.
fn asked(request: &serde_json::Map<String, Value>) -> String {
    let verb = request.get("verb").and_then(Value::as_str).unwrap_or("create");
    match request.get("body") {
        Some(body) => format!("{verb} {body}"),
        None => verb.to_owned(),
    }
}

/// What the server said: once, unless the policies differ in more than whether it said something.
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
        text.push_str("\nUnder `Ignore`:\n\n");
        message(text, &measured.ignore);
    }
}

fn message(text: &mut String, verdict: &Verdict) {
    let said = if verdict.message.is_empty() { "(no message)".to_owned() } else { plain(&verdict.message) };
    let _ = write!(text, "```text\n{} {said}\n```\n", verdict.status);
}

/// Without what tells one webhook of a case from the other.
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

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
