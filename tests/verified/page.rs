//! Generates `docs/project/verified.md` from the findings and their reviews.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use harness::verify::report::{TOGETHER, Tally};
use harness::verify::{Difference, Severity};
use serde_json::Value;

use super::found::{Finding, VerificationFindings};
use super::manifest::Manifest;
use super::review::{self, Judgment, Opinion};

/// The maximum number of differences to show. The other differences are counted.
const DIFFERENCES: usize = 3;
/// The maximum length of values. Longer ones are truncated.
const MAX_LENGTH: usize = 160;

const HEAD: &str = "\
# Verified webhooks

Verification results for third-party webhooks. Each webhook was installed from the package that its project publishes, started with the
arguments shown here, and called over TLS with the configuration of the project. A framework is verified with a small webhook that uses it,
in a folder of [tests/verified](https://github.com/admit-dev/admit/tree/main/tests/verified). `just verified` repeats the run and fails if a
verdict changes. Each finding was checked against the source of the webhook and is one of:

* a **defect**: clearly unintended,
* a **design**: intended, and has the reported consequence anyway,
* a **configuration**: what the project ships, and could ship differently.

[Checks of admit verify](../reference/checks.md) explains each check. A finding applies to the tested version and is not a judgment of the
project: these webhooks run in many clusters, and most findings have an effect only together with other webhooks.

";

/// Returns the page as Markdown.
pub(crate) fn page(manifests: &[Manifest]) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("| Webhook | Language | Version | Objects | Errors | Warnings | Notes |\n|---|---|---|---|---|---|---|\n");
    let all: Vec<(&Manifest, VerificationFindings)> =
        manifests.iter().map(|manifest| (manifest, VerificationFindings::read(manifest))).collect();
    for (manifest, found) in &all {
        let count = |severity| found.findings.iter().filter(|finding| finding.severity == severity).count();
        let _ = writeln!(
            page,
            "| [{}](#{}) | {} | {} | {} | {} | {} | {} |",
            manifest.title,
            manifest.name,
            manifest.from.language(),
            manifest.from.version(),
            found.objects,
            count(Severity::Error),
            count(Severity::Warning),
            count(Severity::Note)
        );
    }
    page.push_str(&index(&all));
    for (manifest, found) in &all {
        page.push_str(&section(manifest, found));
    }
    format!("{}\n", page.trim_end())
}

/// Lists the webhooks with findings for each check, with links to the findings.
fn index(all: &[(&Manifest, VerificationFindings)]) -> String {
    let mut webhooks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (manifest, found) in all {
        let mut linked = BTreeSet::new();
        for opinion in review::read(manifest) {
            for finding in found.findings.iter().filter(|finding| opinion.is_about(finding)) {
                if linked.insert(finding.check.as_str()) {
                    let link = format!("[{}](#{})", manifest.name, anchor(manifest, &finding.check));
                    webhooks.entry(finding.check.clone()).or_default().push(link);
                }
            }
        }
    }
    let mut text = "\n## Findings by check\n\n| Check | Webhooks |\n|---|---|\n".to_owned();
    for (check, links) in webhooks {
        let title = harness::verify::checks::find(&check).map_or("", |check| check.title);
        let title = title.split(": ").next().unwrap_or_default();
        let _ = writeln!(text, "| {check} {title} | {} |", links.join(", "));
    }
    text
}

/// Returns the anchor of a webhook's first finding for a check.
fn anchor(manifest: &Manifest, check: &str) -> String {
    format!("{}-{}", manifest.name, check.to_lowercase())
}

fn section(manifest: &Manifest, found: &VerificationFindings) -> String {
    let mut text = format!("\n<a id=\"{}\"></a>\n\n## {}\n\n", manifest.name, manifest.title);
    let _ = writeln!(text, "{}\n", manifest.about.trim());
    let _ = writeln!(text, "{}, started with\n", manifest.from);
    let _ = writeln!(text, "```\n{}\n```\n", started(manifest).join("\n"));
    let _ = writeln!(
        text,
        "| Webhook | Found | Passed | Not checked | Not applicable or not exercised |\n|---|---|---|---|---|"
    );
    for (webhook, verdicts) in &found.verdicts {
        let of = |tallies: &[Tally]| ids(verdicts, tallies);
        let _ = writeln!(
            text,
            "| {webhook} | {} | {} | {} | {} |",
            of(&[Tally::Found]),
            of(&[Tally::Passed]),
            of(&[Tally::NotChecked]),
            of(&[Tally::NotApplicable, Tally::NotExercised])
        );
    }
    text.push_str(&not_checked(found));
    let opinions = review::read(manifest);
    let mut anchored = BTreeSet::new();
    for opinion in &opinions {
        let checks = found.findings.iter().filter(|finding| opinion.is_about(finding));
        let checks: BTreeSet<&str> = checks.map(|finding| finding.check.as_str()).collect();
        let anchors = checks.into_iter().filter(|check| anchored.insert(*check));
        let anchors = anchors.map(|check| format!("<a id=\"{}\"></a>", anchor(manifest, check)));
        let anchors = anchors.collect::<String>();
        if !anchors.is_empty() {
            let _ = write!(text, "\n{anchors}\n");
        }
        text.push_str(&paragraph(opinion, found));
    }
    text
}

/// Returns the environment variables, the arguments, and the files of a webhook, as lines.
fn started(manifest: &Manifest) -> Vec<String> {
    let variables = manifest.environment.iter().map(|(name, value)| format!("{name}={value}"));
    let mut lines: Vec<String> = variables.chain(manifest.arguments.iter().cloned()).collect();
    for (name, content) in &manifest.files {
        lines.push(format!("# {name}:"));
        lines.extend(content.trim().lines().map(|line| format!("#   {line}")));
    }
    lines
}

/// Lists the checks that did not run, grouped by reason.
fn not_checked(found: &VerificationFindings) -> String {
    let mut checks: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for reasons in found.not_checked.values() {
        for (check, reasons) in reasons {
            checks.entry(reasons.join("; ")).or_default().insert(check);
        }
    }
    if checks.is_empty() {
        return String::new();
    }
    let mut text = "\nNot checked:\n\n".to_owned();
    for (reason, checks) in checks {
        let _ = writeln!(text, "* {}: {reason}", checks.into_iter().collect::<Vec<_>>().join(", "));
    }
    text
}

fn ids(verdicts: &BTreeMap<String, Tally>, tallies: &[Tally]) -> String {
    let ids = verdicts.iter().filter(|(_, tally)| tallies.contains(tally)).map(|(check, _)| check.as_str());
    ids.collect::<Vec<_>>().join(" ")
}

/// Formats the findings to which an opinion applies, with the proof of the first one.
fn paragraph(opinion: &Opinion, found: &VerificationFindings) -> String {
    let findings: Vec<&Finding> = found.findings.iter().filter(|finding| opinion.is_about(finding)).collect();
    let Some(first) = findings.first() else { return String::new() };
    let judgment = match opinion.is {
        Judgment::Defect => "defect",
        Judgment::Design => "design",
        Judgment::Configuration => "configuration",
    };
    let mut text = format!("\n### {}: {judgment}\n\n", headline(&findings));
    for finding in &findings {
        let is_clear = finding.webhooks.iter().any(|webhook| webhook == TOGETHER) || found.verdicts.len() < 3;
        let webhooks = if is_clear { String::new() } else { format!(" ({})", finding.webhooks.join(", ")) };
        let _ = writeln!(
            text,
            "* {} {}{webhooks}: {}",
            finding.check,
            severity(finding.severity),
            finding.message
        );
    }
    let _ = writeln!(text, "\nSource: {}. {}", opinion.place, opinion.why.trim());
    text.push_str(&proof(first));
    text
}

/// Returns the IDs of the checks, and the kind of the first finding.
fn headline(findings: &[&Finding]) -> String {
    let mut checks: Vec<&str> = findings.iter().map(|finding| finding.check.as_str()).collect();
    checks.dedup();
    format!("{} {}", checks.join(", "), findings[0].kind)
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// Formats the smallest object of a finding and the differences.
fn proof(finding: &Finding) -> String {
    let mut text = String::new();
    let Some(object) = &finding.object else { return text };
    let yaml = serde_saphyr::to_string(object).expect("an object is YAML");
    let _ = write!(text, "\n```yaml\n{}\n```\n", yaml.trim_end());
    if finding.differences.is_empty() {
        return text;
    }
    text.push_str("\n```diff\n");
    for Difference { path, expected, found, .. } in finding.differences.iter().take(DIFFERENCES) {
        let _ = writeln!(text, "  {path}");
        for (sign, value) in [('-', expected), ('+', found)] {
            if let Some(value) = value {
                let _ = writeln!(text, "{sign} {}", cut(value));
            }
        }
    }
    if let Some(more) = finding.differences.len().checked_sub(DIFFERENCES).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more");
    }
    text.push_str("```\n");
    text
}

fn cut(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_LENGTH {
        return text;
    }
    format!("{}…", text.chars().take(MAX_LENGTH).collect::<String>())
}
