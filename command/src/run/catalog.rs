//! `admit steps`: lists every step that a feature can use.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::steps::parameter::VALUES;
use crate::steps::{STEPS, StepHelp};
use crate::style::FAINT;
use crate::{ExitCode, Failure, screen};

/// Print every step with a line of help and an example
#[derive(Debug, clap::Args)]
pub(crate) struct Steps {
    /// Print only the steps that contain all of these words, in the step, its help, or its example
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// Print the steps in this format
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// Human-readable text
    Text,
    /// JSON: an object with `version` 1; `steps`, each with `keyword`, `expression`, `help`, and `example`; and
    /// `parameters`, which describes the values of each parameter
    Json,
}

impl Steps {
    /// Prints every step in the selected format.
    ///
    /// # Errors
    /// Returns an error if no step contains the words, or if standard output cannot be written to.
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let found = containing(&STEPS, &self.words);
        if found.is_empty() {
            let words = self.words.join(" ");
            return Err(Failure::usage(format!(
                "no step contains `{words}`: `admit steps` prints every step"
            )));
        }
        match self.output {
            Format::Text => screen::print(&text(&found))?,
            Format::Json => screen::print_document(&format!("{:#}\n", document(&found)))?,
        }
        Ok(ExitCode::Ok)
    }
}

/// Returns the steps that contain all `words`, ignoring case.
fn containing(steps: &[StepHelp], words: &[String]) -> Vec<StepHelp> {
    let contains = |step: &&StepHelp| {
        let StepHelp { keyword, expression, help, example } = step;
        let text = format!("{keyword} {expression}\n{help}\n{example}").to_lowercase();
        words.iter().all(|word| text.contains(&word.to_lowercase()))
    };
    steps.iter().filter(contains).copied().collect()
}

/// Returns the parameters in the expressions of the steps, with descriptions of their values.
fn parameters(steps: &[StepHelp]) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_used = |name: &str| steps.iter().any(|step| step.expression.contains(&format!("{{{name}}}")));
    VALUES.into_iter().filter(move |(name, _)| is_used(name))
}

fn text(steps: &[StepHelp]) -> String {
    const HEADING: anstyle::Style = anstyle::Style::new().bold().underline();
    const SENTENCE: anstyle::Style = anstyle::Style::new().bold();
    let mut text = String::new();
    for keyword in KEYWORDS {
        let own: Vec<_> = steps.iter().filter(|step| step.keyword == keyword).collect();
        if own.is_empty() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{HEADING}{keyword}{HEADING:#}");
        for step in own {
            let _ = writeln!(text, "  {SENTENCE}{}{SENTENCE:#}\n      {}", step.expression, step.help);
            for line in step.example.lines() {
                let _ = writeln!(text, "      {FAINT}{line}{FAINT:#}");
            }
        }
    }
    let mut gap = format!("\n{HEADING}Parameters{HEADING:#}\n");
    for (name, values) in parameters(steps) {
        text.push_str(&std::mem::take(&mut gap));
        let _ = writeln!(text, "  {SENTENCE}{{{name}}}{SENTENCE:#}\n      {values}");
    }
    text
}

fn document(steps: &[StepHelp]) -> Value {
    let parameters: BTreeMap<&str, &str> = parameters(steps).collect();
    let steps: Vec<_> = steps
        .iter()
        .map(|step| {
            json!({
                "keyword": step.keyword,
                "expression": step.expression,
                "help": step.help,
                "example": step.example,
            })
        })
        .collect();
    json!({"version": 1, "steps": steps, "parameters": parameters})
}

const KEYWORDS: [&str; 3] = ["Given", "When", "Then"];

#[cfg(test)]
mod tests {
    use cucumber::World as _;
    use cucumber::codegen::{StepConstructor, WorldInventory, inventory};
    use gherkin::{Feature, GherkinEnv, Step};

    use super::*;
    use crate::run::sentences::keyword;
    use crate::steps::world::World;

    type Given = <World as WorldInventory>::Given;
    type When = <World as WorldInventory>::When;
    type Then = <World as WorldInventory>::Then;

    fn registered<T: inventory::Collect + StepConstructor<World>>() -> Vec<String> {
        inventory::iter::<T>().map(|step| step.inner().0.to_string()).collect()
    }

    fn example(help: &StepHelp) -> Step {
        let example = help.example.replace('\n', "\n    ");
        let text = format!("Feature: an example\n  Scenario: one step\n    {example}\n");
        let feature = Feature::parse(&text, GherkinEnv::default()).unwrap_or_else(|error| {
            panic!("the example of `{}` is no step: {error}\n{text}", help.expression)
        });
        let [step] = feature.scenarios[0].steps.as_slice() else {
            panic!("the example of `{}` is not one step", help.expression)
        };
        step.clone()
    }

    #[test]
    fn words_select_steps_and_their_parameters() {
        let words = ["Given", "FAILURE policy"].map(str::to_owned);
        let found = containing(&STEPS, &words);
        assert!(!found.is_empty() && found.len() < STEPS.len());
        let text = anstream::adapter::strip_str(&text(&found)).to_string();
        assert!(text.contains("{string} has the failure policy {word}"), "{text}");
        assert!(!text.contains("is idempotent"), "{text}");
        assert_eq!(containing(&STEPS, &["nowhere at all".to_owned()]).len(), 0);
    }

    #[test]
    fn every_step_has_one_line_of_help_whose_example_matches_it() {
        let collection = World::collection();
        let mut found: BTreeMap<String, &str> = BTreeMap::new();
        for help in STEPS.iter() {
            let step = example(help);
            assert_eq!(keyword(step.ty), help.keyword, "the keyword of `{}`", help.expression);
            assert!(!help.help.is_empty() && !help.help.contains('\n'), "the help of `{}`", help.expression);
            let matched = collection.find(&step).unwrap_or_else(|error| panic!("{step}: {error}"));
            let Some((_, _, Some(location), _)) = matched else { panic!("no step matches `{step}`") };
            let other = found.insert(location.to_string(), help.expression);
            assert_eq!(other, None, "`{}` describes the same step", help.expression);
        }
        let all = [registered::<Given>(), registered::<When>(), registered::<Then>()].concat();
        let without: Vec<_> = all.iter().filter(|step| !found.contains_key(*step)).collect();
        assert!(without.is_empty(), "steps without help: {without:#?}");
        assert_eq!(all.len(), STEPS.len());
    }
}
