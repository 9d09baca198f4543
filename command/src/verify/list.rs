//! `admit verify --list`: the checks, for people, programs and the page of the documentation.

use std::fmt::Write as _;

use harness::verify::{Check, Probe, Severity};
use serde::Serialize;

use super::output::{self, Format};
use crate::Failure;

/// The version of [`List`]. It grows when a member changes its meaning or goes.
const VERSION: u32 = 1;

/// What `-o json` and `-o yaml` print.
#[derive(Debug, Serialize)]
struct List {
    version: u32,
    checks: Vec<Listed>,
}

/// One check, with the members that it has in a report.
#[derive(Debug, Serialize)]
struct Listed {
    id: &'static str,
    title: &'static str,
    severity: Severity,
    why: &'static str,
    source: &'static str,
    /// Which webhooks it is for, in words.
    #[serde(skip)]
    audience: &'static str,
    /// What it looks at, in words.
    #[serde(skip)]
    looks_at: &'static str,
}

/// The checks in this format.
pub(super) fn list(checks: &[&'static Check], format: Format) -> Result<String, Failure> {
    let checks: Vec<Listed> = checks.iter().copied().map(Listed::of).collect();
    match format {
        Format::Text => Ok(text(&checks)),
        Format::Json => Ok(output::json(&List { version: VERSION, checks })? + "\n"),
        Format::Yaml => output::yaml(&List { version: VERSION, checks }),
        Format::Markdown => Ok(page(&checks)),
    }
}

impl Listed {
    fn of(check: &'static Check) -> Self {
        let audience = output::audience(check.audience);
        let looks_at = match check.probe {
            Probe::Configuration(_) => "the configuration, without a call",
            Probe::ConfigurationAndObject(..) => {
                "the configuration, and with each object of the corpus, without a call"
            }
            Probe::Configurations(_) => "the configurations of all webhooks together, without a call",
            Probe::Effects(_) => "each webhook alone, before anything else",
            Probe::Webhook(_) => "each webhook alone",
            Probe::Object(_) => "each object of the corpus",
            Probe::Collection(_) => "all webhooks together, for each object",
            Probe::Intervention(..) => {
                "all webhooks at once while something is done to them, after everything else"
            }
            Probe::Conversion(_) => "each conversion webhook, with objects of its definition",
            Probe::Manifests(_) => "manifests, without a call",
        };
        let Check { id, title, severity, why, source, .. } = *check;
        Self { id, title, severity, why, source, audience, looks_at }
    }
}

/// For people on a terminal.
fn text(checks: &[Listed]) -> String {
    let mut text = String::new();
    for Listed { id, title, severity, why, source, .. } in checks {
        let severity = output::word(*severity);
        let _ = writeln!(text, "{id}  {title} ({severity})\n     {why}\n     source: {source}");
    }
    text
}

/// The page `docs/checks.md`.
fn page(checks: &[Listed]) -> String {
    let mut page = "\
# The checks of `admit verify`

W(x) is the object after the webhook's patch, decoded and with its defaults, as the API server would go on with it;
*equal* means equal to the API server. `--skip ID=REASON` leaves a check out, `--check IDS` runs only some.
"
    .to_owned();
    for Listed { id, title, severity, why, source, audience, looks_at } in checks {
        let (anchor, severity) = (id.to_lowercase(), output::word(*severity));
        let _ = write!(
            page,
            "\n<a id=\"{anchor}\"></a>\n\n## {id} {title}\n\n\
             {severity}; for {audience}; looks at {looks_at}\n\n{why}\n\nSource: {source}\n"
        );
    }
    page
}
