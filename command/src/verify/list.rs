//! `admit verify --list`: lists the checks as text, JSON, YAML, or Markdown.

use std::fmt::Write as _;

use harness::verify::{Check, Probe, Severity};
use serde::Serialize;

use super::output::{self, Format};
use crate::machine_readable::{json, yaml};
use crate::{Failure, check_help, screen};

/// The version of [`List`]. It increases when a field is removed or changes its meaning.
const VERSION: u32 = 1;

/// The document that `-o json` and `-o yaml` print.
#[derive(Debug, Serialize)]
struct List {
    version: u32,
    checks: Vec<Listed>,
}

/// A check, with the same fields as in a report.
#[derive(Debug, Serialize)]
struct Listed {
    id: &'static str,
    title: &'static str,
    severity: Severity,
    why: &'static str,
    help: &'static str,
    source: &'static str,
    /// The URL of the documentation.
    page: String,
    /// A description of the webhooks that the check applies to.
    #[serde(skip)]
    audience: &'static str,
    /// A description of what the check inspects or calls.
    #[serde(skip)]
    looks_at: &'static str,
    /// How the result of the check varies between runs; empty if it does not.
    #[serde(skip)]
    varies: &'static str,
}

/// Prints the checks in `format`. Text has one line for each check unless `has_details` is set.
pub(super) fn print(checks: &[&'static Check], format: Format, has_details: bool) -> Result<(), Failure> {
    if format == Format::Text && !has_details {
        return screen::print_document(&check_help::overview("verify", checks.iter().copied()));
    }
    screen::print_document(&list(checks, format)?)
}

/// Formats the checks with their details in `format`.
fn list(checks: &[&'static Check], format: Format) -> Result<String, Failure> {
    let checks: Vec<Listed> = checks.iter().copied().map(Listed::from_check).collect();
    match format {
        Format::Text => Ok(text(&checks)),
        Format::Json => json(&List { version: VERSION, checks }),
        Format::Yaml => yaml(&List { version: VERSION, checks }),
        Format::Markdown => Ok(page(&checks)),
        Format::Junit | Format::Sarif => {
            Err(Failure::usage("--list: expected --output text, json, yaml, or markdown"))
        }
    }
}

impl Listed {
    fn from_check(check: &'static Check) -> Self {
        let audience = check_help::audience(check.audience);
        let looks_at = match check.probe {
            Probe::Configuration(_) => "checks the configuration, makes no calls",
            Probe::ConfigurationAndObject(..) => {
                "checks the configuration with each object of the corpus, makes no calls"
            }
            Probe::Configurations(_) => "checks the configurations of all webhooks together, makes no calls",
            Probe::Effects(_) => "calls each webhook alone, before all other checks",
            Probe::Webhook(_) => "calls each webhook alone",
            Probe::Object(_) => "calls the webhook with each object of the corpus",
            Probe::Collection(_) => "calls all webhooks together with each object",
            Probe::Intervention(..) => {
                "calls all webhooks while they are stopped or their certificates are renewed, after all other checks"
            }
            Probe::Conversion(_) => "calls each conversion webhook with objects of its definition",
            Probe::Manifests(..) => "checks manifests, makes no calls",
        };
        let Check { id, title, severity, why, help, source, .. } = *check;
        let varies = check_help::variation(check.repeatability);
        let page = check_help::url(id);
        Self { id, title, severity, why, help, source, page, audience, looks_at, varies }
    }
}

/// Formats the checks for a terminal.
fn text(checks: &[Listed]) -> String {
    let mut text = String::new();
    for Listed { id, title, severity, why, help, source, .. } in checks {
        let severity = output::word(*severity);
        let _ = writeln!(
            text,
            "{id}  {title} ({severity})\n     {why}\n     help: {help}\n     source: {source}"
        );
    }
    text
}

/// Returns the content of the page `docs/reference/checks.md`.
fn page(checks: &[Listed]) -> String {
    let mut page = "\
# Checks of admit verify

Each entry lists the severity, the webhooks that the check applies to, and how it runs. `--check IDS` runs only some
checks, and `--skip ID=REASON` skips one.

The result of some checks can differ between runs of an unchanged webhook, because it depends on timing or chance. Their
entries in a [baseline](../guide/verify-reports.md#baselines) do not become stale.
"
    .to_owned();
    for Listed { id, title, severity, why, help, source, audience, looks_at, varies, .. } in checks {
        let (anchor, severity) = (id.to_lowercase(), output::word(*severity));
        let _ = write!(
            page,
            "\n<a id=\"{anchor}\"></a>\n\n## {id} {title}\n\n\
             {severity}; for {audience}; {looks_at}{varies}\n\n{why}\n\nHelp: {help}\n\nSource: {source}\n"
        );
    }
    page
}
