//! V26: warnings reach the user as they were meant.

use std::sync::Arc;

use kubernetes_admission::warnings;
use kubernetes_types::json::at;

use super::said::Said;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V26",
    title: "warnings: short, few, without control characters and without `Warning:` in front",
    severity: Severity::Warning,
    why: "Warnings travel in HTTP headers. One with a line break or another control character is dropped; beyond 4096 \
          characters in all, each is cut to 256 and the last are lost; kubectl writes `Warning:` in front of each \
          itself. More than a few, or more than a line, and nobody reads them, neither these nor those of others.",
    source: "Dynamic Admission Control, Response: warning messages; apiserver pkg/endpoints/filters/warning.go; \
             apimachinery pkg/util/net/http.go, NewWarningHeader",
    audience: Audience::All,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// How long a warning should be. Source: Dynamic Admission Control, Response.
const ADVISED: usize = 120;
/// What may be left of it.
const LIMIT: usize = 256;
/// How many somebody reads.
const FEW: usize = 5;

/// What is wrong: a kind, a sentence, and how bad it is.
type Fault = (&'static str, String, Severity);

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let said = Said::accepted(object_probe).await?;
    let given = at(&said.response, &["warnings"]).as_array().into_iter().flatten();
    let texts: Vec<String> = given.filter_map(|text| text.as_str().map(str::to_owned)).collect();
    if texts.is_empty() {
        return Err(Obstacle::not_applicable("it answers the creation without warnings"));
    }
    let violation = |(kind, message, severity): Fault| {
        Violation::new(kind, message).with_severity(severity).with_steps([Arc::clone(&said.outcome)])
    };
    Ok(faults(&texts).into_iter().map(violation).collect())
}

fn faults(texts: &[String]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    let first = |is_wrong: &dyn Fn(&str) -> bool| texts.iter().find(|text| is_wrong(text));
    let length = |text: &str| text.chars().count();
    if let Some(text) = first(&|text| text.chars().any(char::is_control)) {
        let message = format!("the warning {text:?} has control characters: the client does not get it");
        faults.push(("control characters", message, Severity::Warning));
    }
    if let Some(text) = first(&|text| text.trim().is_empty()) {
        faults.push(("empty", format!("a warning is empty: {text:?}"), Severity::Note));
    }
    if let Some(text) = first(&|text| text.trim_start().to_lowercase().starts_with("warning:")) {
        let message =
            format!("the warning {text:?} says so itself: kubectl writes `Warning:` in front of it");
        faults.push(("says `Warning`", message, Severity::Note));
    }
    if let Some(text) = first(&|text| length(text) > LIMIT) {
        let message = format!(
            "a warning has {} characters, and {LIMIT} is what is left of it if others come",
            length(text)
        );
        faults.push(("too long", message, Severity::Warning));
    } else if let Some(text) = first(&|text| length(text) > ADVISED) {
        let message = format!("a warning has {} characters, and {ADVISED} is what is advised", length(text));
        faults.push(("long", message, Severity::Note));
    }
    let total: usize = texts.iter().map(|text| length(text)).sum();
    if total > warnings::TOTAL {
        let message =
            format!("its warnings have {total} characters, and what is beyond {} is lost", warnings::TOTAL);
        faults.push(("lost", message, Severity::Warning));
    } else if texts.len() > FEW {
        faults.push(("many", format!("it sends {} warnings for one object", texts.len()), Severity::Note));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[String], expected: &[&str]) {
        let faults = faults(texts);
        assert_eq!(faults.iter().map(|(kind, _, _)| *kind).collect::<Vec<_>>(), expected, "{texts:?}");
    }

    #[test]
    fn a_warning_is_one_short_line() {
        check(&["spec.foo is deprecated: use spec.bar".to_owned()], &[]);
        check(&["one\ntwo".to_owned()], &["control characters"]);
        check(&[String::new()], &["empty"]);
        check(&["Warning: careful".to_owned()], &["says `Warning`"]);
        check(&["ä".repeat(120)], &[]);
        check(&["ä".repeat(121)], &["long"]);
        check(&["ä".repeat(257)], &["too long"]);
        check(&vec!["careful".to_owned(); 6], &["many"]);
        check(&vec!["a".repeat(100); 50], &["lost"]);
    }
}
