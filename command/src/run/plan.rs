//! Selects the scenarios to run.

use cucumber::tag::Ext as _;
use gherkin::tagexpr::TagOperation;
use gherkin::{Feature, Rule, Scenario, Step};
use regex::Regex;

use super::record::ScenarioKey;
use crate::target::TargetKind;

/// The tag of scenarios that require an API server with `--admission-control-config-file`.
const NEEDS_FILE: &str = "admission-control-config-file";

/// The criteria that select scenarios.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// A tag expression such as `@a and not @b`.
    pub(crate) tags: Option<TagOperation>,
    /// A regular expression that matches a part of the scenario's name.
    pub(crate) name: Option<Regex>,
    /// The target: scenarios with target tags run only if one of the tags names it.
    pub(crate) target: TargetKind,
    /// Whether `--admission-control-config-file` is set for the API server.
    pub(crate) is_configured: bool,
}

/// The selected scenarios.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The features, reduced to the scenarios that run.
    pub(crate) features: Vec<Feature>,
    /// All selected scenarios in file order, each with the reason if it does not run.
    pub(crate) scenarios: Vec<(PlannedScenario, Option<String>)>,
}

/// A scenario and its steps, as written in the feature file.
#[derive(Clone, Debug)]
pub(crate) struct PlannedScenario {
    /// The path of the file and the line of the scenario.
    pub(crate) key: ScenarioKey,
    /// The name of the feature.
    pub(crate) feature: String,
    /// The rule that contains the scenario, if any.
    pub(crate) rule: Option<PlannedRule>,
    /// The name of the scenario. In an outline, the values of the row replace the placeholders.
    pub(crate) name: String,
    /// The tags of the feature, the rule, and the scenario, without `@`.
    pub(crate) tags: Vec<String>,
    /// The steps of the backgrounds, followed by the steps of the scenario.
    pub(crate) steps: Vec<PlannedStep>,
}

/// The name and line of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRule {
    pub(crate) name: String,
    /// The line of the rule, counted from 1.
    pub(crate) line: usize,
}

/// A step as written in the feature file.
#[derive(Clone, Debug)]
pub(crate) struct PlannedStep {
    /// The keyword, such as `Given`, `When`, `Then`, or `And`.
    pub(crate) keyword: String,
    /// The text after the keyword.
    pub(crate) text: String,
    /// The line of the step, counted from 1.
    pub(crate) line: usize,
    /// The lines of the step's doc string or table.
    pub(crate) argument: Vec<String>,
}

impl Plan {
    /// Creates a plan without the scenarios that `selection` excludes or that do not apply to the target.
    pub(crate) fn new(features: Vec<Feature>, selection: &Selection) -> Self {
        let mut scenarios = Vec::new();
        let mut kept = Vec::new();
        for mut feature in features {
            let own = std::mem::take(&mut feature.scenarios);
            feature.scenarios = select(&feature, None, own, selection, &mut scenarios);
            let mut rules = std::mem::take(&mut feature.rules);
            for rule in &mut rules {
                let own = std::mem::take(&mut rule.scenarios);
                rule.scenarios = select(&feature, Some(rule), own, selection, &mut scenarios);
            }
            rules.retain(|rule| !rule.scenarios.is_empty());
            feature.rules = rules;
            if !feature.scenarios.is_empty() || !feature.rules.is_empty() {
                kept.push(feature);
            }
        }
        Self { features: kept, scenarios }
    }
}

fn select(
    feature: &Feature,
    rule: Option<&Rule>,
    scenarios: Vec<Scenario>,
    selection: &Selection,
    planned: &mut Vec<(PlannedScenario, Option<String>)>,
) -> Vec<Scenario> {
    let mut kept = Vec::new();
    for scenario in scenarios {
        let plan = PlannedScenario::new(feature, rule, &scenario);
        if !selection.asks_for(&plan) {
            continue;
        }
        let reason = selection.reason_to_skip(&plan);
        if reason.is_none() {
            kept.push(scenario);
        }
        planned.push((plan, reason));
    }
    kept
}

impl Selection {
    fn asks_for(&self, scenario: &PlannedScenario) -> bool {
        self.tags.as_ref().is_none_or(|tags| tags.eval(&scenario.tags))
            && self.name.as_ref().is_none_or(|name| name.is_match(&scenario.name))
    }

    /// Returns the reason to skip a scenario: its tags exclude the target, or it requires a configuration file.
    fn reason_to_skip(&self, scenario: &PlannedScenario) -> Option<String> {
        let allowed: Vec<_> = TargetKind::ALL
            .into_iter()
            .filter(|kind| scenario.tags.iter().any(|tag| tag == kind.name()))
            .collect();
        if allowed.is_empty() || allowed.contains(&self.target) {
            let needs_file = scenario.tags.iter().any(|tag| tag == NEEDS_FILE);
            let reason = || format!("tagged @{NEEDS_FILE}, and --{NEEDS_FILE} is not given");
            return (needs_file && !self.is_configured).then(reason);
        }
        let tags: Vec<_> = allowed.iter().map(|kind| format!("@{kind}")).collect();
        Some(format!("tagged {}, and this target is {}", tags.join(" "), self.target))
    }
}

impl PlannedScenario {
    fn new(feature: &Feature, rule: Option<&Rule>, scenario: &Scenario) -> Self {
        let tags = feature.tags.iter().chain(rule.iter().flat_map(|rule| &rule.tags)).chain(&scenario.tags);
        let backgrounds = feature.background.iter().chain(rule.iter().flat_map(|rule| &rule.background));
        Self {
            key: ScenarioKey::new(feature, scenario),
            feature: feature.name.clone(),
            rule: rule.map(|rule| PlannedRule { name: rule.name.clone(), line: rule.position.line }),
            name: scenario.name.clone(),
            tags: tags.cloned().collect(),
            steps: backgrounds
                .flat_map(|background| &background.steps)
                .chain(&scenario.steps)
                .map(PlannedStep::new)
                .collect(),
        }
    }
}

impl PlannedStep {
    fn new(step: &Step) -> Self {
        let argument = match (&step.docstring, &step.table) {
            (Some(text), _) => dedented(text),
            (None, Some(table)) => table.rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect(),
            (None, None) => Vec::new(),
        };
        Self {
            keyword: step.keyword.trim().to_owned(),
            text: step.value.clone(),
            line: step.position.line,
            argument,
        }
    }
}

/// Returns the lines of a doc string without their common indentation.
///
/// The parser keeps the indentation of the file and puts the media type, if any, on the first line.
fn dedented(text: &str) -> Vec<String> {
    let text = text.split_once('\n').map_or(text, |(_, lines)| lines).trim_end();
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let common =
        text.lines().filter(|line| !line.trim().is_empty()).map(indentation).min().unwrap_or_default();
    text.lines().map(|line| line.get(common..).unwrap_or_default().to_owned()).collect()
}

impl ScenarioKey {
    /// Creates the key that identifies `scenario` of `feature`.
    pub(crate) fn new(feature: &Feature, scenario: &Scenario) -> Self {
        let path = feature.path.as_ref().map_or_else(String::new, |path| path.display().to_string());
        Self { path, line: scenario.position.line }
    }
}
