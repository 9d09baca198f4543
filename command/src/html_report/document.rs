//! Reads JSON reports. Rejects other JSON documents and unsupported versions.

use std::fmt::Display;

use harness::verify::report::{Report as Verification, VERSION as VERIFY_VERSION};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;
use crate::machine_readable::{LINT_VERSION, RUN_VERSION};
use crate::request_report::{API_VERSION, KIND, LIST_KIND, Report as Request};

/// A report, and the file that contains it.
#[derive(Debug)]
pub(super) struct Document {
    /// The file path as specified by the user, or the command that produced the report.
    pub(super) name: String,
    pub(super) content: Content,
    /// The report as JSON.
    pub(super) value: Value,
}

/// The content of a report that the summary shows.
#[derive(Debug)]
pub(super) enum Content {
    Run(Run),
    /// The requests of a report, or of the consecutive lines of a record.
    Review(Vec<Request>),
    Verify(Box<Verification>),
    Lint(Lint),
}

/// A report from `admit run`.
#[derive(Debug, Deserialize)]
pub(super) struct Run {
    pub(super) target: String,
    pub(super) seconds: f64,
    pub(super) counts: Counts,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
    pub(super) features: Vec<Feature>,
}

/// The number of scenarios with each result.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) flaky: u64,
    pub(super) skipped: u64,
    pub(super) not_run: u64,
}

/// A feature file.
#[derive(Debug, Deserialize)]
pub(super) struct Feature {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) scenarios: Vec<Scenario>,
    pub(super) rules: Vec<Rule>,
}

/// A rule of a feature.
#[derive(Debug, Deserialize)]
pub(super) struct Rule {
    pub(super) scenarios: Vec<Scenario>,
}

/// A scenario with the steps of each attempt.
#[derive(Debug, Deserialize)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) line: u64,
    pub(super) status: String,
    pub(super) attempts: Vec<Attempt>,
}

/// One run of a scenario.
#[derive(Debug, Deserialize)]
pub(super) struct Attempt {
    pub(super) trouble: Option<String>,
    pub(super) steps: Vec<Step>,
}

/// A step of a scenario.
#[derive(Debug, Deserialize)]
pub(super) struct Step {
    pub(super) keyword: String,
    pub(super) text: String,
    pub(super) message: Option<String>,
}

/// A report from `admit lint`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lint {
    pub(super) configurations: u64,
    pub(super) findings: Vec<Finding>,
    pub(super) not_checked: Vec<Value>,
}

/// A finding from `admit lint`.
#[derive(Debug, Deserialize)]
pub(super) struct Finding {
    pub(super) check: String,
    pub(super) severity: String,
    pub(super) file: String,
    pub(super) line: u64,
    pub(super) webhook: String,
    pub(super) field: String,
    pub(super) message: String,
    pub(super) accepted: Option<String>,
}

/// Returns the reports in a file.
///
/// # Errors
/// Returns an error that names the file if it contains something other than supported reports.
pub(super) fn parse(name: &str, bytes: &[u8]) -> Result<Vec<Document>, Failure> {
    let failure = |what: &dyn Display| Failure::usage(format!("{name}: {what}"));
    let mut documents = Vec::new();
    let mut requests = Vec::new();
    for value in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>() {
        let value = value.map_err(|error| failure(&format!("invalid JSON: {error}")))?;
        match content(&value).map_err(|error| failure(&error))? {
            Content::Review(more) => requests.extend(more),
            content @ (Content::Run(_) | Content::Verify(_) | Content::Lint(_)) => {
                documents.extend(reviewed(name, &mut requests)?);
                documents.push(Document { name: name.to_owned(), content, value });
            }
        }
    }
    documents.extend(reviewed(name, &mut requests)?);
    if documents.is_empty() { Err(failure(&"it does not contain a report")) } else { Ok(documents) }
}

/// Combines requests into one document, unless there are none.
fn reviewed(name: &str, requests: &mut Vec<Request>) -> Result<Option<Document>, Failure> {
    let mut requests = std::mem::take(requests);
    if requests.is_empty() {
        return Ok(None);
    }
    for (index, request) in requests.iter_mut().enumerate() {
        request.set_number(index + 1);
    }
    let value = serde_json::to_value(&requests).map_err(Failure::environment)?;
    Ok(Some(Document { name: name.to_owned(), content: Content::Review(requests), value }))
}

fn content(value: &Value) -> Result<Content, String> {
    let has = |fields: [&str; 2]| fields.iter().all(|field| value.get(field).is_some());
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind == KIND || kind == LIST_KIND {
        let version = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if version != API_VERSION {
            return Err(unsupported("review", version, API_VERSION));
        }
        let requests = match value.get("items") {
            Some(items) if kind == LIST_KIND => typed("review", items)?,
            Some(_) | None => vec![typed("review", value)?],
        };
        Ok(Content::Review(requests))
    } else if has(["features", "counts"]) {
        check_version("run", value, RUN_VERSION)?;
        Ok(Content::Run(typed("run", value)?))
    } else if has(["checks", "leftOut"]) {
        check_version("verify", value, VERIFY_VERSION)?;
        Ok(Content::Verify(Box::new(typed("verify", value)?)))
    } else if has(["configurations", "findings"]) {
        check_version("lint", value, LINT_VERSION)?;
        Ok(Content::Lint(typed("lint", value)?))
    } else {
        Err("not a report: expected the JSON of `admit run`, `review`, `verify`, or `lint`".to_owned())
    }
}

fn check_version(command: &str, value: &Value, expected: u32) -> Result<(), String> {
    match value.get("version") {
        Some(version) if *version == expected => Ok(()),
        Some(version) => Err(unsupported(command, &version.to_string(), &expected.to_string())),
        None => Err(unsupported(command, "", &expected.to_string())),
    }
}

fn unsupported(command: &str, found: &str, expected: &str) -> String {
    let found = if found.is_empty() { "without a version".to_owned() } else { format!("of version {found}") };
    format!("unsupported report of admit {command} {found}: expected version {expected}")
}

fn typed<T: DeserializeOwned>(command: &str, value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| format!("invalid report of admit {command}: {error}"))
}
