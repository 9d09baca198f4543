//! `admit run` and `admit steps`: runs feature files against a target, and lists the steps.

mod annotations;
mod catalog;
pub(crate) mod display;
mod features;
mod files;
mod list;
mod live;
pub(crate) mod narration;
mod order;
mod pieces;
mod plan;
mod record;
#[cfg(test)]
mod rendering_tests;
pub(crate) mod report;
mod runner;
mod sentences;
pub(crate) mod stop;
mod summary;
mod writer;

pub(crate) use catalog::Steps;

use std::io::IsTerminal as _;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cucumber::World as _;
use cucumber::step::Collection;
use fake_webhooks::StopSignals;
use futures::FutureExt as _;
use gherkin::tagexpr::TagOperation;
use regex::Regex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::steps::world::World;
use crate::target::{Cleanup, Launched, TargetArguments, TargetKind};
use crate::{ExitCode, Failure, exit_code, github, screen};
use display::{Detail, Display};
use live::Live;
use narration::Narrators;
use order::Sequence;
use plan::{Plan, Selection};
use record::Record;
use report::{Circumstances, Reports};
use runner::{AfterFailure, Pace};
use stop::End;
use summary::Evidence;
use writer::Writer;

/// Run feature files against a target
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Run the features in these files or directories [default: the features built into admit]
    paths: Vec<PathBuf>,

    /// Run only the scenarios whose tags match, such as `@a and not (@b or @c)`
    #[arg(long, short, value_name = "EXPR", value_parser = tag_expression, help_heading = "Selection")]
    tags: Option<TagOperation>,

    /// Run only the scenarios whose name matches this regular expression
    #[arg(long, short, value_name = "REGEX", help_heading = "Selection")]
    name: Option<Regex>,

    /// Run at most this many scenarios in parallel [default: 16 in process, 8 on other targets]
    #[arg(long, short, alias = "concurrency", short_alias = 'c', value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Pace")]
    jobs: Option<u16>,

    /// Stop after the first failure
    #[arg(long, help_heading = "Pace")]
    fail_fast: bool,

    /// Retry a failed scenario up to N times; a scenario that then passes is reported as flaky and counts as passed
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Pace")]
    retries: u8,

    /// List the scenarios that would run, with file and line, without running them
    #[arg(long, help_heading = "Output")]
    list: bool,

    /// Write a JUnit report
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,

    /// Write a JSON report with the status, duration, and notes of every scenario, attempt, and step
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,

    /// Write a summary in Markdown [default in a GitHub workflow: `$GITHUB_STEP_SUMMARY`]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    summary: Option<PathBuf>,

    /// Write an HTML page with the scenarios, their steps, and the calls to webhooks
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,

    #[command(flatten)]
    verbosity: Verbosity,

    #[command(flatten)]
    target: TargetArguments,
}

/// The options that choose which scenarios and steps are shown.
#[derive(Debug, clap::Args)]
struct Verbosity {
    /// Show only the errors and the summary, without scenarios and progress
    #[arg(long, short, help_heading = "Output", conflicts_with = "verbose")]
    quiet: bool,

    /// Show the steps of every scenario, and the whole object that a failed step checked; by default, a run of more
    /// than 20 scenarios shows only the steps of failed scenarios
    #[arg(long, short, help_heading = "Output")]
    verbose: bool,
}

impl Verbosity {
    /// Returns how much a run of `plan` prints, which depends on the flags and the number of scenarios.
    fn detail(&self, plan: &Plan) -> Detail {
        let running = plan.scenarios.iter().filter(|(_, skipped)| skipped.is_none()).count();
        match () {
            () if self.quiet => Detail::Failures,
            () if self.verbose || running <= MAX_SCENARIOS_WITH_STEPS => Detail::Steps,
            () => Detail::Scenarios,
        }
    }
}

impl Run {
    pub(crate) async fn run(self, shipped: &[(&str, &str)]) -> Result<ExitCode, Failure> {
        let started = Instant::now();
        self.target.check()?;
        let selection = Selection {
            tags: self.tags.clone(),
            name: self.name.clone(),
            target: self.target.target,
            is_configured: self.target.admission_control.file.is_some(),
        };
        let plan = Plan::new(features::read(&self.paths, shipped)?, &selection);
        let display = Display::new(self.verbosity.detail(&plan));
        if self.list && !plan.scenarios.is_empty() {
            screen::print(&list::text(&plan.scenarios))?;
            return Ok(ExitCode::Ok);
        }
        if plan.features.is_empty() {
            return Err(nothing_runs(&plan));
        }
        // The collection is created once, because each step compiles an expression.
        let steps = World::collection();
        sentences::check(&plan.features, &steps)?;
        files::check(&plan.features)?;
        let (junit, json) = (self.junit.as_deref(), self.json.as_deref());
        let (summary, html) = (self.summary.as_deref(), self.html.as_deref());
        let reports = Reports::create(junit, json, summary, html)?;

        let mut signals = exit_code::install_signal_handlers(stop::heeded(self.target.target))?;
        let cleanup = Cleanup::new(self.target.leftovers());
        let ready = Ready { plan, steps, reports, display, started };
        // A panic must not leave webhooks behind in a cluster.
        let ended = AssertUnwindSafe(self.run_on_target(ready, &mut signals, &cleanup)).catch_unwind().await;
        let cleaned = clean(&cleanup, &mut signals).await;
        match ended {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(Ok(code)) => cleaned.map(|()| code),
            Ok(Err(failure)) => {
                if let Err(other) = cleaned {
                    screen::report(&other);
                }
                Err(failure)
            }
        }
    }

    async fn run_on_target(
        &self,
        ready: Ready,
        signals: &mut StopSignals,
        cleanup: &Cleanup,
    ) -> Result<ExitCode, Failure> {
        let Ready { plan, steps, reports, display, started } = ready;
        let launch = Launched::start_run(&self.target, cleanup, |what| display.wait(what));
        let launched = tokio::select! {
            launched = launch => launched,
            signal = signals.next() => return Ok(signal.into()),
        };
        let launched = match launched {
            Ok(launched) => launched,
            Err(failure) => {
                display.end_progress();
                return Err(failure);
            }
        };

        let unchecked = sentences::unchecked(&plan.features);
        let live = Live::new(Record::new(plan.scenarios, started), display, sequence());
        let narrators = Narrators::default();
        let stop = CancellationToken::new();
        let run = runner::run(
            plan.features,
            steps,
            Arc::clone(&launched.target),
            narrators.clone(),
            Writer::new(live.clone(), narrators),
            self.pace(),
            stop.clone(),
        );
        live.tick();
        let ticker = tokio::spawn(tick(live.clone()));
        let end = stop::until_done(run, signals, &stop, &live).await;
        ticker.abort();

        // A scenario that fails may not have loaded its configuration.
        let mut warnings = launched.target.unused_services(live.has_failures());
        warnings.extend(launched.target.unreached_services());
        warnings.extend(launched.target.failed_policies.messages());
        warnings.extend(launched.target.unknown_fields.sentences());
        warnings.extend(unchecked);
        let circumstances = Circumstances {
            target: self.target.target,
            unchecked_audits: launched.target.audit.unchecked(),
            warnings: &warnings,
        };
        drop(launched);
        let (counts, written, printed) = live.finish(|record, display| {
            let written = reports.write(record, circumstances);
            let evidence = match () {
                () if self.verbosity.verbose => Evidence::Documents,
                () if self.verbosity.quiet => Evidence::Calls,
                () => Evidence::Causes,
            };
            display.print(&summary::summary(record, circumstances.unchecked_audits, evidence));
            if github::annotates() {
                screen::prompt(&annotations::commands(record));
            }
            for warning in circumstances.warnings {
                screen::status!("warning: {warning}");
            }
            (record.counts(), written, display.outcome())
        });
        written?;
        printed?;
        Ok(match end {
            End::Stopped(signal) => signal.into(),
            End::Done if counts.failed > counts.unsupported => ExitCode::Failed,
            End::Done if counts.unsupported > 0 => ExitCode::Unsupported,
            End::Done => ExitCode::Ok,
        })
    }

    fn pace(&self) -> Pace {
        let concurrency = self.jobs.unwrap_or(match self.target.target {
            TargetKind::InProcess => 16,
            TargetKind::Envtest | TargetKind::Cluster => 8,
        });
        Pace {
            concurrency: concurrency.into(),
            after_failure: if self.fail_fast { AfterFailure::Stop } else { AfterFailure::GoOn },
            retries: self.retries.into(),
        }
    }
}

/// The maximum number of scenarios in a run for which the steps of passed scenarios are shown by default.
const MAX_SCENARIOS_WITH_STEPS: usize = 20;

/// Returns the order in which scenarios are shown on standard output.
fn sequence() -> Sequence {
    if std::io::stdout().is_terminal() { Sequence::Finished } else { Sequence::Files }
}

/// The inputs of a run other than its target.
struct Ready {
    plan: Plan,
    steps: Collection<World>,
    reports: Reports,
    display: Display,
    started: Instant,
}

/// Removes what the run created in a cluster; another signal skips this cleanup.
async fn clean(cleanup: &Cleanup, signals: &mut StopSignals) -> Result<(), Failure> {
    tokio::select! {
        cleaned = cleanup.clean() => {
            cleaned.map_err(|failure| Failure::environment(format!("{failure}\n{}", cleanup.advice())))
        }
        _ = signals.next(), if cleanup.is_due() => {
            screen::status!("some objects remain in the cluster; {}", cleanup.advice());
            Ok(())
        }
    }
}

fn nothing_runs(plan: &Plan) -> Failure {
    match plan.scenarios.iter().find_map(|(_, reason)| reason.as_ref()) {
        Some(reason) => Failure::nothing_run(format!(
            "no scenario runs: {} selected, none of them for this target ({reason})",
            plan.scenarios.len()
        )),
        None => Failure::nothing_run("no scenarios selected; see --list"),
    }
}

/// The maximum number of operators and parentheses in a tag expression, because the parser is recursive.
const MAX_OPERATORS: usize = 100;

fn tag_expression(text: &str) -> Result<TagOperation, String> {
    // Spaces around operators are optional, so substrings of tags also count.
    let operators: usize =
        ["(", "not", "and", "or"].iter().map(|operator| text.matches(operator).count()).sum();
    if operators > MAX_OPERATORS {
        return Err(format!("a tag expression has at most {MAX_OPERATORS} operators and parentheses"));
    }
    text.parse().map_err(|error| format!("a tag expression is like `@a and not (@b or @c)`: {error}"))
}

/// Returns the number of scenarios in a file that `admit run` would run in process with the tag expression `tags`.
///
/// # Errors
/// Returns the errors that prevent a run from starting its first scenario.
pub(crate) fn selected(file: &Path, tags: Option<&str>, steps: &Collection<World>) -> Result<usize, Failure> {
    let tags = tags.map(tag_expression).transpose().map_err(Failure::usage)?;
    let target = TargetKind::InProcess;
    let selection = Selection { tags, name: None, target, is_configured: false };
    let plan = Plan::new(features::read(&[file.to_owned()], &[])?, &selection);
    sentences::check(&plan.features, steps)?;
    Ok(plan.scenarios.len())
}

/// Displays the progress periodically until the task is aborted.
async fn tick(live: Live) {
    let mut interval = tokio::time::interval(Duration::from_millis(100));
    loop {
        interval.tick().await;
        live.tick();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_expression_is_bounded_however_it_nests() {
        assert!(tag_expression("@a and not (@b or @c)").is_ok());
        assert!(tag_expression(&format!("{}@a{}", "(".repeat(100), ")".repeat(100))).is_ok());
        let chain = format!("@a{}", " or @a".repeat(20_000));
        for text in [format!("{}@a{}", "(".repeat(20_000), ")".repeat(20_000)), "not".repeat(20_000), chain] {
            assert_eq!(
                tag_expression(&text).unwrap_err(),
                "a tag expression has at most 100 operators and parentheses"
            );
        }
    }
}
