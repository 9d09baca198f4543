//! `admit run` and `admit steps`: feature files against a target.

mod display;
mod features;
mod live;
pub(crate) mod narration;
mod order;
mod plan;
mod record;
mod runner;
mod shipped;
mod stop;
mod summary;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gherkin::tagexpr::TagOperation;
use regex::Regex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::target::{Launched, TargetArguments, TargetKind};
use crate::{ExitCode, Failure};
use display::{Detail, Display};
use live::Live;
use narration::Narrators;
use plan::{Plan, Selection};
use record::Record;
use runner::{AfterFailure, Pace};
use stop::{End, Signals};
use writer::Writer;

/// Runs feature files against a target
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Feature files, and folders with all that they hold; without a path the features that the binary carries
    paths: Vec<PathBuf>,

    /// Only scenarios whose tags satisfy this: `@a and not (@b or @c)`
    #[arg(long, short, value_name = "EXPR", value_parser = tag_expression, help_heading = "Selection")]
    tags: Option<TagOperation>,

    /// Only scenarios whose name matches this regular expression
    #[arg(long, short, value_name = "REGEX", help_heading = "Selection")]
    name: Option<Regex>,

    /// Run so many scenarios at the same time [default: 64 in process, 8 on other targets]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Pace")]
    concurrency: Option<u16>,

    /// Start no other scenario after one has failed
    #[arg(long, help_heading = "Pace")]
    fail_fast: bool,

    /// Run a failed scenario up to N times again; if it passes then, it counts as passed and is called flaky
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Pace")]
    retries: u8,

    /// Show only what failed, and the summary
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,

    #[command(flatten)]
    target: TargetArguments,
}

/// Prints every step with a line of help and an example
#[derive(Debug, clap::Args)]
pub(crate) struct Steps {}

impl Run {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        let started = Instant::now();
        let selection =
            Selection { tags: self.tags.clone(), name: self.name.clone(), target: self.target.target };
        let plan = Plan::new(features::read(&self.paths)?, &selection);
        if plan.features.is_empty() {
            return Err(nothing_runs(&plan));
        }

        let mut signals = Signals::listen()?;
        let detail = if self.quiet { Detail::Failures } else { Detail::Everything };
        let display = std::cell::RefCell::new(Display::new(detail));
        let launched = tokio::select! {
            launched = Launched::start(&self.target, |what| display.borrow_mut().wait(what)) => launched,
            () = signals.next() => return Ok(ExitCode::Interrupted),
        };
        let mut display = display.into_inner();
        let launched = match launched {
            Ok(launched) => launched,
            Err(failure) => {
                display.end_progress();
                return Err(failure);
            }
        };

        let live = Live::new(Record::new(plan.scenarios, started), display);
        let narrators = Narrators::default();
        let stop = CancellationToken::new();
        let run = runner::run(
            plan.features,
            Arc::clone(&launched.target),
            narrators.clone(),
            Writer::new(live.clone(), narrators),
            self.pace(),
            stop.clone(),
        );
        let ticker = tokio::spawn(tick(live.clone()));
        let end = stop::until_done(run, &mut signals, &stop, &live).await;
        ticker.abort();

        let unchecked = launched.target.audit.unchecked();
        let failed = live.finish(|record, display| {
            display.print(&summary::summary(record, unchecked));
            record.counts().failed
        });
        drop(launched);
        Ok(match end {
            End::Stopped => ExitCode::Interrupted,
            End::Done if failed > 0 => ExitCode::Failed,
            End::Done => ExitCode::Ok,
        })
    }

    fn pace(&self) -> Pace {
        let concurrency = self.concurrency.unwrap_or(match self.target.target {
            TargetKind::InProcess => 64,
            TargetKind::Envtest | TargetKind::Cluster => 8,
        });
        Pace {
            concurrency: concurrency.into(),
            after_failure: if self.fail_fast { AfterFailure::Stop } else { AfterFailure::GoOn },
            retries: self.retries.into(),
        }
    }
}

impl Steps {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        Err(Failure::unsupported("not written yet"))
    }
}

fn nothing_runs(plan: &Plan) -> Failure {
    match plan.scenarios.iter().find_map(|(_, reason)| reason.as_ref()) {
        Some(reason) => Failure::nothing_run(format!(
            "no scenario runs: {} selected, none of them for this target ({reason})",
            plan.scenarios.len()
        )),
        None => Failure::nothing_run("no scenario is selected: look at what there is with --list"),
    }
}

fn tag_expression(text: &str) -> Result<TagOperation, String> {
    text.parse().map_err(|error| format!("a tag expression is like `@a and not (@b or @c)`: {error}"))
}

/// Draws the progress line for as long as nobody aborts it.
async fn tick(live: Live) {
    let mut interval = tokio::time::interval(Duration::from_millis(100));
    loop {
        interval.tick().await;
        live.tick();
    }
}
