//! Runs the selected features with cucumber, and stops on request.

use std::path::Path;
use std::sync::Arc;

use cucumber::event::ScenarioFinished;
use cucumber::step::Collection;
use cucumber::{Cucumber, ScenarioType, cli, parser, runner};
use futures::stream;
use gherkin::Feature;
use tokio_util::sync::CancellationToken;

use super::files;
use super::narration::Narrators;
use super::record::ScenarioKey;
use super::writer::Writer;
use crate::steps::world::World;
use crate::target::Target;

/// The limits on parallel scenarios and on retries, and whether the run continues after a failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The maximum number of scenarios to run in parallel.
    pub(crate) concurrency: usize,
    /// Whether the remaining scenarios start after a scenario has failed.
    pub(crate) after_failure: AfterFailure,
    /// The maximum number of retries of a failed scenario.
    pub(crate) retries: usize,
}

/// What a run does after a scenario has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// Start the remaining scenarios.
    GoOn,
    /// Do not start any more scenarios.
    Stop,
}

/// The panic payload that ends a scenario if it starts after the run was stopped.
pub(crate) struct Stopped;

/// Runs all `features`. After `stop` is canceled, no more scenarios start.
pub(crate) async fn run(
    features: Vec<Feature>,
    steps: Collection<World>,
    target: Arc<Target>,
    narrators: Narrators,
    writer: Writer,
    pace: Pace,
    stop: CancellationToken,
) {
    let options = cli::Opts {
        re_filter: None,
        tags_filter: None,
        parser: cli::Empty,
        runner: runner::basic::Cli {
            concurrency: Some(pace.concurrency),
            fail_fast: pace.after_failure == AfterFailure::Stop,
            retry: (pace.retries > 0).then_some(pace.retries),
            ..runner::basic::Cli::default()
        },
        writer: cli::Empty,
        custom: cli::Empty,
    };
    let _: Writer = Cucumber::<World, _, Vec<Feature>, _, _, cli::Empty>::custom(
        Parsed,
        runner::Basic::default(),
        writer,
    )
    .steps(steps)
    .which_scenario(|feature, rule, scenario| {
        if files::is_serial(feature, rule, scenario) {
            ScenarioType::Serial
        } else {
            ScenarioType::Concurrent
        }
    })
    .before(move |feature, rule, scenario, world| {
        let (target, narrators, stopped) = (Arc::clone(&target), narrators.clone(), stop.is_cancelled());
        Box::pin(async move {
            let narrator = narrators.begin(ScenarioKey::new(feature, scenario));
            if let Some(folder) = feature.path.as_deref().and_then(Path::parent) {
                world.read_files_from(folder);
            }
            world.enable_metrics_for(scenario);
            world.read_steps(feature, rule, scenario);
            if stopped {
                // Unwinding is the only way to end a scenario in cucumber before its first step.
                std::panic::resume_unwind(Box::new(Stopped));
            }
            world.start(target, narrator);
        })
    })
    .after(|_, _, _, finished, world| {
        let has_passed = matches!(finished, ScenarioFinished::StepPassed);
        Box::pin(async move {
            if let Some(world) = world {
                if has_passed {
                    world.count_failed_policies();
                }
                world.finish().await;
            }
        })
    })
    .with_cli(options)
    .run(features)
    .await;
}

/// A cucumber parser that returns features that were parsed before the run.
///
/// If a file is invalid, the run does not start.
struct Parsed;

impl cucumber::Parser<Vec<Feature>> for Parsed {
    type Cli = cli::Empty;
    type Output = stream::Iter<std::vec::IntoIter<parser::Result<Feature>>>;

    fn parse(self, features: Vec<Feature>, _: cli::Empty) -> Self::Output {
        stream::iter(features.into_iter().map(Ok).collect::<Vec<_>>())
    }
}
