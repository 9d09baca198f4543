//! `admit run --list`: lists the scenarios that would run.

use std::fmt::Write as _;

use output::OneLine;

use super::plan::{PlannedRule, PlannedScenario};
use crate::style::{FAINT, NOT_DONE};

/// Formats each scenario with its location and tags, grouped by feature and rule.
pub(crate) fn text(scenarios: &[(PlannedScenario, Option<String>)]) -> String {
    let mut text = String::new();
    let mut heading: Option<(&str, Option<&PlannedRule>)> = None;
    for (scenario, reason) in scenarios {
        let rule = scenario.rule.as_ref();
        let path = scenario.key.path.as_str();
        if heading.is_none_or(|(last, _)| last != path) {
            let gap = if heading.is_some() { "\n" } else { "" };
            let _ = writeln!(
                text,
                "{gap}Feature: {}  {FAINT}{}{FAINT:#}",
                OneLine(&scenario.feature),
                OneLine(path)
            );
            heading = Some((path, None));
        }
        if let Some(name) = rule
            && heading != Some((path, rule))
        {
            let _ = writeln!(
                text,
                "  Rule: {}  {FAINT}{}:{}{FAINT:#}",
                OneLine(&name.name),
                OneLine(path),
                name.line
            );
        }
        heading = Some((path, rule));
        let (name, line) = (OneLine(&scenario.name), scenario.key.line);
        let _ = write!(text, "    {name}  {FAINT}{}:{line}", OneLine(path));
        for tag in &scenario.tags {
            let _ = write!(text, "  @{}", OneLine(tag));
        }
        let _ = write!(text, "{FAINT:#}");
        if let Some(reason) = reason {
            let _ = write!(text, "  {NOT_DONE}skipped: {}{NOT_DONE:#}", OneLine(reason));
        }
        text.push('\n');
    }
    text
}
