//! V26: warnings reach the user as intended.

use std::sync::Arc;

use kubernetes_admission::warnings;
use kubernetes_types::json::at;

use super::webhook_response::WebhookResponse;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V26",
    title: "warnings: they are short, few, without control characters, and do not start with `Warning:`",
    severity: Severity::Warning,
    why: "Warnings are sent in HTTP headers. A warning with a line break or another control character is \
          dropped. If all warnings together exceed 4096 characters, each one is cut to 256 and the last \
          ones are lost. kubectl adds `Warning:` itself. Users do not read more than a few warnings, or \
          warnings longer than a line.",
    help: "Send a few one-line warnings of at most 120 characters each.",
    source: "Dynamic Admission Control, Response: warning messages; apiserver \
             pkg/endpoints/filters/warning.go; \
             apimachinery pkg/util/net/http.go, NewWarningHeader",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// The recommended maximum length of a warning.
///
/// Source: Dynamic Admission Control, Response.
const ADVISED: usize = 120;
/// The length to which the API server truncates warnings.
const LIMIT: usize = 256;
/// The maximum number of warnings that users can be expected to read.
const FEW: usize = 5;

/// The kind, the message, and the severity of an error.
type Fault = (&'static str, String, Severity);

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let webhook_response = WebhookResponse::accepted(object_probe).await?;
    let given = at(&webhook_response.response, &["warnings"]).as_array().into_iter().flatten();
    let texts: Vec<String> = given.filter_map(|text| text.as_str().map(str::to_owned)).collect();
    if texts.is_empty() {
        return Err(Skipped::not_applicable("the response has no warnings"));
    }
    let violation = |(kind, message, severity): Fault| {
        Violation::new(kind, message)
            .with_severity(severity)
            .with_steps([Arc::clone(&webhook_response.outcome)])
    };
    Ok(faults(&texts).into_iter().map(violation).collect())
}

fn faults(texts: &[String]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    let first = |is_wrong: &dyn Fn(&str) -> bool| texts.iter().find(|text| is_wrong(text));
    let length = |text: &str| text.chars().count();
    if let Some(text) = first(&|text| text.chars().any(char::is_control)) {
        let message = format!("the warning {text:?} has control characters: the client does not receive it");
        faults.push(("control characters", message, Severity::Warning));
    }
    if let Some(text) = first(&|text| text.trim().is_empty()) {
        faults.push(("empty", format!("a warning is empty: {text:?}"), Severity::Note));
    }
    if let Some(text) = first(&|text| text.trim_start().to_lowercase().starts_with("warning:")) {
        let message = format!("the warning {text:?} starts with `Warning:`, which kubectl adds itself");
        faults.push(("starts with `Warning:`", message, Severity::Note));
    }
    if let Some(text) = first(&|text| length(text) > LIMIT) {
        let message = format!(
            "a warning has {} characters: only {LIMIT} remain if all warnings together are too long",
            length(text)
        );
        faults.push(("too long", message, Severity::Warning));
    } else if let Some(text) = first(&|text| length(text) > ADVISED) {
        let message = format!("a warning has {} characters: at most {ADVISED} are recommended", length(text));
        faults.push(("long", message, Severity::Note));
    }
    let total: usize = texts.iter().map(|text| length(text)).sum();
    if total > warnings::TOTAL {
        let message = format!(
            "the warnings have {total} characters in total: everything beyond {} is lost",
            warnings::TOTAL
        );
        faults.push(("lost", message, Severity::Warning));
    } else if texts.len() > FEW {
        faults.push((
            "many",
            format!("the webhook sends {} warnings for one object", texts.len()),
            Severity::Note,
        ));
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
    fn warning_must_be_one_short_line() {
        check(&["spec.foo is deprecated: use spec.bar".to_owned()], &[]);
        check(&["one\ntwo".to_owned()], &["control characters"]);
        check(&[String::new()], &["empty"]);
        check(&["Warning: careful".to_owned()], &["starts with `Warning:`"]);
        check(&["ä".repeat(120)], &[]);
        check(&["ä".repeat(121)], &["long"]);
        check(&["ä".repeat(257)], &["too long"]);
        check(&vec!["careful".to_owned(); 6], &["many"]);
        check(&vec!["a".repeat(100); 50], &["lost"]);
    }
}
