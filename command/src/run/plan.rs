//! Which scenarios run.

use cucumber::tag::Ext as _;
use gherkin::tagexpr::TagOperation;
use gherkin::{Feature, Rule, Scenario, Step};
use regex::Regex;

use super::record::ScenarioKey;
use crate::target::TargetKind;

/// The tag of scenarios about an API server that was started with a file of this option.
const NEEDS_FILE: &str = "admission-control-config-file";

/// Which scenarios are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// An expression over tags: `@a and not @b`.
    pub(crate) tags: Option<TagOperation>,
    /// Matches somewhere in the scenario's name.
    pub(crate) name: Option<Regex>,
    /// Target tags of a scenario must allow this one.
    pub(crate) target: TargetKind,
    /// Whether the API server has the file of `--admission-control-config-file`.
    pub(crate) is_configured: bool,
}

/// The scenarios that were asked for.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The features with nothing but the scenarios that run.
    pub(crate) features: Vec<Feature>,
    /// All that were asked for, in the order of the files; with the reason, if one does not run.
    pub(crate) scenarios: Vec<(PlannedScenario, Option<String>)>,
}

/// What the file says about a scenario.
#[derive(Clone, Debug)]
pub(crate) struct PlannedScenario {
    /// Where it stands.
    pub(crate) key: ScenarioKey,
    /// The feature's name.
    pub(crate) feature: String,
    /// The rule that it stands under.
    pub(crate) rule: Option<PlannedRule>,
    /// Its name, with the values of its row.
    pub(crate) name: String,
    /// The tags of feature, rule and scenario, without `@`.
    pub(crate) tags: Vec<String>,
    /// The steps of the backgrounds and of the scenario itself.
    pub(crate) steps: Vec<PlannedStep>,
}

/// A rule's name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRule {
    /// Its name.
    pub(crate) name: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// What the file says about a step.
#[derive(Clone, Debug)]
pub(crate) struct PlannedStep {
    /// `Given`, `When`, `Then`, `And`, ...
    pub(crate) keyword: String,
    /// The sentence after the keyword.
    pub(crate) text: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// The lines of its doc string, or of its table.
    pub(crate) argument: Vec<String>,
}

impl Plan {
    /// Takes out of `features` what `selection` does not ask for, and what is not for its target.
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

    /// A scenario with target tags runs on those targets only, and one that needs a configuration file only with it.
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

/// The lines of a doc string, which arrives as the file has it: with its media type, if any, before the first line end,
/// and with the indentation of the file.
fn dedented(text: &str) -> Vec<String> {
    let text = text.split_once('\n').map_or(text, |(_, lines)| lines).trim_end();
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let common =
        text.lines().filter(|line| !line.trim().is_empty()).map(indentation).min().unwrap_or_default();
    text.lines().map(|line| line.get(common..).unwrap_or_default().to_owned()).collect()
}

impl ScenarioKey {
    /// The key of a scenario of a feature.
    pub(crate) fn new(feature: &Feature, scenario: &Scenario) -> Self {
        let path = feature.path.as_ref().map_or_else(String::new, |path| path.display().to_string());
        Self { path, line: scenario.position.line }
    }
}
