//! `admit lint`: checks webhook configurations and admission policies without calling webhooks.

mod baseline;
mod list;
mod output;

use std::borrow::Cow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use harness::json::text;
use harness::verify::checks;
use harness::verify::{Audience, Check, lint, sentence};
use jiff::Timestamp;
use serde_json::Value;

use self::baseline::LINT;
use self::output::{Finding, NotChecked, Report, Skipped};
use crate::baseline::BaselineOptions;
use crate::field_lines::{self, Outline};
use crate::github;
use crate::html_report::HtmlFile;
use crate::machine_readable::LINT_VERSION;
use crate::report_file::{ReportFile, SummaryFile};
use crate::verify::chosen::Skip;
use crate::verify::output::{FailOn, Format};
use crate::{ExitCode, Failure, admission_kinds, check_help, documents, screen, yaml_types};

/// Check webhook configurations and admission policies without calling anything.
///
/// Reports settings that kube-apiserver rejects, with its error messages, and settings that are valid but risky. The
/// checks cover rules that match nothing, rules that match objects that the cluster or the webhook itself depends on,
/// timeouts, caBundles, Services, match conditions, and the bindings and expressions of policies. They also use other
/// objects in the files: namespaces, custom resource definitions, and the Service, workload, and Secrets of the webhook.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Lint {
    /// Read webhook configurations, policies, and related manifests from these files or directories, or - for standard
    /// input
    #[arg(
        short = 'c',
        long = "configuration",
        short_alias = 'f',
        aliases = ["filename", "configurations"],
        value_name = "PATH",
        required_unless_present_any = ["list", "explain"],
        num_args = 1..
    )]
    configuration: Vec<PathBuf>,

    /// List all checks, or only those that --check selects, without reading files. Prints one check per line (with
    /// details if -v is set), or uses the format that --output specifies
    #[arg(long)]
    list: bool,

    /// Print the documentation of this check, such as L04, without reading files
    #[arg(long, value_name = "ID", value_parser = check_help::known)]
    explain: Option<&'static Check>,

    /// Run only these checks, such as L04,V48; can be repeated
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = known_check)]
    check: Vec<&'static Check>,

    /// Skip this check, and show the reason in the report; can be repeated
    #[arg(long, value_name = "ID=REASON", value_parser = skip)]
    skip: Vec<Skip>,

    /// Report certificates that expire within this many days [default: 30, or a third of their lifetime if that is
    /// shorter]
    #[arg(long, value_name = "DAYS")]
    horizon: Option<u32>,

    /// Print the report in this format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "text")]
    output: Format,

    /// Write a JUnit report with a suite for each check
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Write a SARIF 2.1.0 report for code scanning
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,

    /// Write a summary in Markdown [default in a GitHub workflow: `$GITHUB_STEP_SUMMARY`]
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,

    /// Write an HTML page with the findings
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// List every check with its result, including those that passed or could not run, and show minor notes
    #[arg(short, long, visible_alias = "checks")]
    verbose: bool,

    #[command(flatten)]
    baseline: BaselineOptions,

    /// Exit with status 1 only for findings of at least this severity. The default differs from that of `admit verify`,
    /// because many warnings depend on objects of the cluster that the files may not contain
    #[arg(long, value_enum, value_name = "SEVERITY", default_value = "error")]
    fail_on: FailOn,
}

const AFTER_HELP: &str = "\
Examples:
  Check the configuration in a chart, with its Service and Deployment:
    helm template injector ./chart | admit lint -c -
  Write a report for code scanning:
    admit lint -c deploy/ --sarif lint.sarif
  Accept the current findings, and report only new ones:
    admit lint -c deploy/ --write-baseline lint-baseline.yaml --baseline-reason 'before 2.0'
    admit lint -c deploy/ --baseline lint-baseline.yaml

Exit status:
    0  no findings of at least the severity of --fail-on, apart from those
       that --baseline accepts
    1  there are such findings
    2  the command line or an input file is invalid
    4  the files do not contain a webhook configuration or an admission
       policy, no check applies to them, or all checks are skipped";

fn known_check(id: &str) -> Result<&'static Check, String> {
    LINT.check(id.trim())
}

fn skip(text: &str) -> Result<Skip, String> {
    Skip::parse(text, known_check)
}

/// An object and its position in a file.
struct Located {
    file: String,
    /// The text of the file.
    text: Rc<str>,
    /// The first line of the object.
    line: u64,
    outline: Option<Outline>,
    object: Value,
}

impl Located {
    fn place(&self) -> documents::DocumentLocation {
        documents::DocumentLocation { file: self.file.clone(), line: self.line }
    }
}

impl Lint {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        if let Some(check) = self.explain {
            screen::print(&check_help::explanation(check))?;
            return Ok(ExitCode::Ok);
        }
        if self.list {
            list::print(&self.chosen(), self.output, self.verbose)?;
            return Ok(ExitCode::Ok);
        }
        let junit = ReportFile::create_if_requested(self.junit.as_deref())?;
        let sarif = ReportFile::create_if_requested(self.sarif.as_deref())?;
        let summary = SummaryFile::create(self.summary.as_deref())?;
        let html = HtmlFile::create(self.html.as_deref())?;
        let known = self.baseline.open(&LINT)?;
        let located = read(&self.configuration)?;
        reject_templates(&located)?;
        admission_kinds::reject_unknown(located.iter().map(|it| (it.place(), &it.object)))?;
        let (objects, places): (Vec<Value>, Vec<Located>) =
            located.into_iter().map(|mut located| (std::mem::take(&mut located.object), located)).unzip();
        let is_skipped = |check: &&Check| self.skip.iter().any(|skip| skip.check.id == check.id);
        let checks: Vec<&'static Check> =
            self.chosen().into_iter().filter(|check| !is_skipped(check)).collect();
        let horizon = self.horizon.map(|days| Duration::from_secs(u64::from(days) * 24 * 3600));
        let linted = lint::lint(&objects, &checks, Timestamp::now(), horizon);
        if linted.configurations + linted.policies == 0 {
            return Err(Failure::nothing_run(
                "the files do not contain a webhook configuration or an admission policy",
            ));
        }
        if checks.is_empty() {
            return Err(Failure::nothing_run("all checks are skipped"));
        }
        let applies = |check: &&Check| match check.audience {
            Audience::Policies => linted.policies > 0,
            Audience::AllAndPolicies => true,
            Audience::All | Audience::Mutating | Audience::Validating | Audience::Conversion => {
                linted.configurations > 0
            }
        };
        let checks: Vec<&'static Check> = checks.into_iter().filter(applies).collect();
        if checks.is_empty() {
            return Err(Failure::nothing_run(
                "none of the selected checks applies to the objects in the files",
            ));
        }
        let mut report = self.report(linted, &places, checks);
        report.names = objects.iter().filter_map(configuration_name).collect();
        known.apply(&mut report)?;
        let is_complete = matches!(self.output, Format::Json | Format::Yaml);
        let complete =
            is_complete.then(|| output::document(&report, self.output, self.fail_on)).transpose()?;
        if !self.verbose {
            report.hide_verbose_notes();
        }
        for (file, format) in [(junit, Format::Junit), (sarif, Format::Sarif)] {
            if let Some(file) = file {
                file.write(&output::document(&report, format, self.fail_on)?)?;
            }
        }
        summary.write(|| output::markdown::summary(&report))?;
        if let Some(file) = html {
            file.write("admit lint", &output::document(&report, Format::Json, self.fail_on)?)?;
        }
        if github::annotates() {
            screen::prompt(&output::annotations(&report));
        }
        match complete {
            Some(complete) => screen::print_document(&complete)?,
            None => output::print(&report, self.output, self.fail_on, self.verbose)?,
        }
        let mut counted = report.new_findings().filter(|finding| !finding.is_verbose_note());
        let fails = counted.any(|finding| self.fail_on.includes(finding.severity));
        Ok(if fails { ExitCode::Failed } else { ExitCode::Ok })
    }

    /// Returns the checks that `--check` selects, or all checks if the option is not set.
    fn chosen(&self) -> Vec<&'static Check> {
        let all = checks::STATIC.iter().map(|(check, _)| *check);
        let is_chosen = |check: &&Check| self.check.iter().any(|chosen| chosen.id == check.id);
        all.filter(|check| self.check.is_empty() || is_chosen(check)).collect()
    }

    fn report(&self, linted: lint::Linted, places: &[Located], checks: Vec<&'static Check>) -> Report {
        let place = |position: usize, field: &str| {
            let Some(located) = places.get(position) else { return (String::new(), 1) };
            let line = located.outline.as_ref().and_then(|outline| outline.line_of(field));
            (located.file.clone(), line.unwrap_or(located.line))
        };
        let findings = linted.findings.into_iter().map(|found| {
            let (file, line) = place(found.position, &found.field);
            let text = places.get(found.position).map(|located| &*located.text);
            let index = usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
            let source = text.and_then(|text| text.lines().nth(index)).map(str::to_owned);
            let outline = places.get(found.position).and_then(|located| located.outline.as_ref());
            let written = outline.zip(text).and_then(|(outline, text)| outline.written(&found.field, text));
            let quoting = yaml_types::help(&found.message, written);
            Finding {
                check: found.check.id,
                severity: found.severity,
                file,
                line,
                webhook: found.webhook,
                field: found.field,
                kind: found.kind,
                message: found.message,
                other: found.other,
                why: found.why,
                help: quoting.map_or(found.help, |help| Cow::Owned(sentence(&help))),
                page: page(found.check),
                source,
                accepted: None,
                added: false,
            }
        });
        let not_checked = linted.unchecked.into_iter().map(|unchecked| NotChecked {
            check: unchecked.check,
            webhook: unchecked.webhook,
            file: unchecked.position.map(|position| place(position, &unchecked.field).0),
            line: unchecked.position.map(|position| place(position, &unchecked.field).1),
            reason: unchecked.reason,
            is_rejected: unchecked.is_rejected,
        });
        let skipped =
            self.skip.iter().map(|skip| Skipped { check: skip.check.id, reason: skip.reason.clone() });
        Report {
            version: LINT_VERSION,
            configurations: linted.configurations + linted.policies,
            findings: findings.collect(),
            not_checked: not_checked.collect(),
            skipped: skipped.collect(),
            stale: Vec::new(),
            names: Vec::new(),
            unit: if linted.policies > 0 { "object" } else { "configuration" },
            hidden_notes: 0,
            not_applicable: linted.not_applicable,
            checks,
            unreadable: linted.unreadable,
        }
    }
}

/// Returns the name of a webhook configuration, an admission policy, or a binding, or `None` for any other object.
fn configuration_name(object: &Value) -> Option<String> {
    let kind = text(object, &["kind"]);
    let ends = ["WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding"];
    let is_configuration = text(object, &["apiVersion"]).starts_with("admissionregistration.k8s.io/")
        && ends.iter().any(|end| kind.ends_with(end));
    is_configuration.then(|| text(object, &["metadata", "name"]).to_owned())
}

/// Rejects configurations with template expressions. They come from a Helm chart that was not rendered.
fn reject_templates(located: &[Located]) -> Result<(), Failure> {
    let is_template = |object: &Value| {
        let fields = [object.get("webhooks"), object.pointer("/metadata/name")];
        fields
            .into_iter()
            .flatten()
            .map(Value::to_string)
            .any(|text| text.contains("{{") && text.contains("}}"))
    };
    let template =
        located.iter().find(|it| configuration_name(&it.object).is_some() && is_template(&it.object));
    template.map_or(Ok(()), |Located { file, line, .. }| {
        Err(Failure::usage(format!(
            "{file}:{line}: the configuration contains template expressions; render it first: helm template RELEASE \
             CHART | admit lint -c -"
        )))
    })
}

/// Returns the page of the Kubernetes documentation that is relevant to a check.
fn page(check: &Check) -> &'static str {
    checks::STATIC.iter().find(|(it, _)| it.id == check.id).map_or("", |(_, page)| page)
}

/// Returns the objects in the files, with the lines of their fields if known.
fn read(paths: &[PathBuf]) -> Result<Vec<Located>, Failure> {
    let mut all = Vec::new();
    for file in documents::read_texts(paths)? {
        let mut outlines = field_lines::outlines(&file.text, file.documents.len()).into_iter();
        let text: Rc<str> = file.text.into();
        for document in file.documents {
            let documents::Document { place, object } = document;
            let (text, outline) = (Rc::clone(&text), outlines.next());
            all.push(Located { file: place.file, text, line: place.line, outline, object });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_kinds_of_the_api_group_are_configurations() {
        let name = |api_version: &str, kind: &str| {
            configuration_name(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}))
        };
        for kind in ["MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"] {
            assert_eq!(name("admissionregistration.k8s.io/v1", kind).as_deref(), Some("a"), "{kind}");
            assert_eq!(name("example.com/v1", kind), None, "{kind}");
        }
        assert_eq!(name("admissionregistration.k8s.io/v1", "Other"), None);
    }
}
