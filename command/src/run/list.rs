//! `admit run --list`: what would run.

use std::fmt::Write as _;

use super::display::{FAINT, NOT_DONE};
use super::plan::{PlannedRule, PlannedScenario};

/// Every scenario with where it stands and its tags, under its feature and rule.
pub(crate) fn text(scenarios: &[(PlannedScenario, Option<String>)]) -> String {
    let mut text = String::new();
    let mut heading: Option<(&str, Option<&PlannedRule>)> = None;
    for (scenario, reason) in scenarios {
        let rule = scenario.rule.as_ref();
        let path = scenario.key.path.as_str();
        if heading.is_none_or(|(last, _)| last != path) {
            let gap = if heading.is_some() { "\n" } else { "" };
            let _ = writeln!(text, "{gap}Feature: {}  {FAINT}{path}{FAINT:#}", scenario.feature);
            heading = Some((path, None));
        }
        if let Some(name) = rule
            && heading != Some((path, rule))
        {
            let _ = writeln!(text, "  Rule: {}  {FAINT}{path}:{}{FAINT:#}", name.name, name.line);
        }
        heading = Some((path, rule));
        let _ = write!(text, "    {}  {FAINT}{path}:{}", scenario.name, scenario.key.line);
        for tag in &scenario.tags {
            let _ = write!(text, "  @{tag}");
        }
        let _ = write!(text, "{FAINT:#}");
        if let Some(reason) = reason {
            let _ = write!(text, "  {NOT_DONE}skipped: {reason}{NOT_DONE:#}");
        }
        text.push('\n');
    }
    text
}
