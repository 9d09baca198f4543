//! `admit lint --list`: lists the static checks as text, JSON, YAML, or Markdown.

use std::fmt::Write as _;

use harness::verify::{Check, Severity};
use serde::Serialize;

use super::page;
use crate::check_help::{audience as webhooks, overview};
use crate::machine_readable::{LINT_VERSION, json, yaml};
use crate::verify::output::{Format, word};
use crate::{Failure, screen};

/// The document that `-o json` prints.
#[derive(Debug, Serialize)]
struct List {
    version: u32,
    checks: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct Listed {
    id: &'static str,
    title: &'static str,
    severity: Severity,
    why: &'static str,
    help: &'static str,
    source: &'static str,
    page: &'static str,
}

impl List {
    fn new(checks: &[&'static Check]) -> Self {
        let listed = |check: &&'static Check| {
            let Check { id, title, severity, why, help, source, .. } = **check;
            Listed { id, title, severity, why, help, source, page: page(check) }
        };
        Self { version: LINT_VERSION, checks: checks.iter().map(listed).collect() }
    }
}

/// Prints the checks in `format`. Text has one line for each check unless `has_details` is set.
pub(super) fn print(checks: &[&'static Check], format: Format, has_details: bool) -> Result<(), Failure> {
    if format == Format::Text && !has_details {
        return screen::print_document(&overview("lint", checks.iter().copied()));
    }
    screen::print_document(&list(checks, format)?)
}

/// Formats the checks with their details as text, JSON, YAML, or Markdown.
fn list(checks: &[&'static Check], format: Format) -> Result<String, Failure> {
    match format {
        Format::Text => Ok(text(checks)),
        Format::Markdown => Ok(markdown(checks)),
        Format::Json => json(&List::new(checks)),
        Format::Yaml => yaml(&List::new(checks)),
        Format::Junit | Format::Sarif => {
            Err(Failure::usage("--list: expected --output text, json, yaml, or markdown"))
        }
    }
}

fn text(checks: &[&'static Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let Check { id, title, severity, why, help, source, .. } = check;
        let (severity, page) = (word(*severity), page(check));
        let _ = writeln!(
            text,
            "{id}  {title} ({severity})\n     {why}\n     help: {help}\n     source: {source}\n     {page}"
        );
    }
    text
}

/// Returns the content of the page `docs/reference/lint-checks.md`.
fn markdown(checks: &[&'static Check]) -> String {
    let mut page = "\
# Checks of admit lint

These checks read manifests and call nothing. Checks whose ID begins with V are also \
[checks of `admit verify`](checks.md), with the same IDs. The severity is that of most findings of a check; some \
findings are less severe. `--check IDS` runs only some checks, `--skip ID=REASON` skips one, and `--baseline FILE` \
[accepts known findings](../guide/verify-reports.md#baselines).
"
    .to_owned();
    for check in checks {
        let Check { id, title, severity, why, help, source, audience, .. } = check;
        let audience = webhooks(*audience);
        let (anchor, severity, url) = (id.to_lowercase(), word(*severity), super::page(check));
        let _ = write!(
            page,
            "\n<a id=\"{anchor}\"></a>\n\n## {id} {title}\n\n{severity}; for {audience}; [documentation]({url})\n\n\
             {why}\n\nHelp: {help}\n\nSource: {source}\n"
        );
    }
    page
}
