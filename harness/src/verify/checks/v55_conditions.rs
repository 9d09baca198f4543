//! V55: match conditions compile, give a bool, never fail, and are cheap.

use crate::config;
use crate::server::Surroundings;
use crate::status::FieldError;
use crate::verify::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::verify::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V55",
    title: "its matchConditions compile, give a bool, never fail on what is not there, and stay within the budget",
    severity: Severity::Error,
    why: "A match condition that fails, for example since it reads object.metadata.labels of a DELETE, where object is \
          null, refuses the request if failurePolicy is Fail, and skips the webhook if it is Ignore: both without a \
          call, so that nothing in the webhook's own logs tells of it.",
    source: "KEP-3716; apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go",
    audience: Audience::All,
    probe: Probe::Configuration(run),
};

fn run(subject: &Subject, _: &Surroundings) -> Observed {
    if subject.ignored_conditions().is_empty() {
        return Err(Obstacle::not_applicable("it has no matchConditions"));
    }
    let violations = refused(subject);
    if violations.is_empty() {
        let reason =
            "admit verify does not evaluate match conditions yet: every request was sent as if they held";
        return Err(Obstacle::Unequipped(reason.to_owned()));
    }
    Ok(violations)
}

/// What the API server refuses before it looks at an expression: too many, no or invalid names, empty expressions.
fn refused(subject: &Subject) -> Vec<Violation> {
    let own = format!("webhooks[{}].matchConditions", subject.index);
    let errors = config::validate(&subject.configuration).into_iter();
    let of_conditions = errors.filter(|error| error.field.starts_with(&own));
    let violation = |error: FieldError| {
        let field = error.field.split('.').next_back().unwrap_or_default().to_owned();
        let message = format!("the API server refuses it: {}: {}", error.field, error.detail);
        Violation::new(format!("refused {field}"), message)
    };
    of_conditions.map(violation).collect()
}
