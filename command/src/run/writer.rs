//! Records cucumber's events and shows finished scenarios in order.

use std::any::Any;
use std::panic;

use cucumber::event::{self, HookType, RetryableScenario, StepError};
use cucumber::{Event, cli, parser, writer};
use gherkin::{Feature, Scenario};

use super::live::Live;
use super::narration::Narrators;
use super::record::{ScenarioKey, StepOutcome};
use super::runner::Stopped;
use crate::steps::world::World;

/// A cucumber writer that records events in a [`Live`] record.
#[derive(Debug)]
pub(crate) struct Writer {
    live: Live,
    narrators: Narrators,
}

impl Writer {
    /// Creates a writer that records into `live`, with the notes of `narrators`.
    pub(crate) fn new(live: Live, narrators: Narrators) -> Self {
        Self { live, narrators }
    }

    fn scenario(&self, feature: &Feature, scenario: &Scenario, event: RetryableScenario<World>) {
        let key = ScenarioKey::new(feature, scenario);
        let retries = event.retries;
        match event.event {
            event::Scenario::Started => self.live.begin(&key),
            event::Scenario::Hook(which, event::Hook::Failed(_, payload)) => {
                if payload.is::<Stopped>() {
                    self.live.withdraw(&key);
                } else {
                    self.live.trouble(&key, around(which, &message(&*payload)));
                }
            }
            event::Scenario::Hook(_, event::Hook::Started | event::Hook::Passed)
            | event::Scenario::Log(_) => {}
            event::Scenario::Background(step, event) | event::Scenario::Step(step, event) => {
                self.step(&key, retries.map_or(0, |retries| retries.current), step.position.line, event);
            }
            event::Scenario::Finished => self.live.end(&key, retries.map_or(0, |retries| retries.left)),
        }
    }

    fn step(&self, key: &ScenarioKey, attempt: usize, line: usize, event: event::Step<World>) {
        let outcome = match event {
            event::Step::Started => return self.live.begin_step(key, line),
            event::Step::Passed(..) => StepOutcome::Passed,
            event::Step::Failed(_, _, _, StepError::Panic(payload)) => {
                StepOutcome::Failed(message(&*payload))
            }
            event::Step::Failed(_, _, _, error @ (StepError::NotFound | StepError::AmbiguousMatch(_))) => {
                StepOutcome::Failed(error.to_string())
            }
            event::Step::Skipped => StepOutcome::Failed("no step matches this sentence".to_owned()),
        };
        let told = self.narrators.find(key, attempt).map_or_else(Vec::new, |narrator| narrator.told(line));
        self.live.end_step(key, line, outcome, told);
    }
}

/// Marks the writer as normalized, because [`Live`] shows the interleaved events of scenarios in a readable order.
impl writer::Normalized for Writer {}

impl cucumber::Writer<World> for Writer {
    type Cli = cli::Empty;

    async fn handle_event(&mut self, event: parser::Result<Event<event::Cucumber<World>>>, _: &cli::Empty) {
        let event = match event {
            Ok(event) => event.into_inner(),
            Err(error) => unreachable!("the features were parsed before: {error}"),
        };
        match event {
            event::Cucumber::Started => show_panics_of_other_threads(),
            event::Cucumber::Feature(
                feature,
                event::Feature::Scenario(scenario, event)
                | event::Feature::Rule(_, event::Rule::Scenario(scenario, event)),
            ) => self.scenario(&feature, &scenario, event),
            event::Cucumber::Feature(..)
            | event::Cucumber::ParsingFinished { .. }
            | event::Cucumber::Finished => {}
        }
    }
}

/// Sets a panic hook that shows panics other than failed steps.
///
/// cucumber hides every panic while it runs, because a step fails by a panic. Steps run on the thread that runs
/// cucumber. A panic on any other thread is a defect of admit and must be visible.
fn show_panics_of_other_threads() {
    let steps = std::thread::current().id();
    panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() != steps {
            crate::screen::status!("error: panic in the background: {panic}");
        }
    }));
}

fn around(which: HookType, message: &str) -> String {
    match which {
        HookType::Before => format!("before the first step: {message}"),
        HookType::After => format!("after the last step: {message}"),
    }
}

fn message(payload: &(dyn Any + Send + 'static)) -> String {
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
