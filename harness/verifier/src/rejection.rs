//! Reports results of webhooks that the API server rejects.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::comparison::{self, Order};
use super::environment::{Environment, Outcome};
use super::object_probe::ObjectProbe;
use super::subject::Subject;
use super::validity::{faults, is_remark, place};
use super::violation::{Severity, Violation};

/// The begin of the kind of each finding about a result that the API server rejects, except for those of V19.
pub(super) const REJECTS: &str = "the API server rejects";

/// The advice about an update that the API server rejects.
pub(super) const ALLOWED: &str = "On UPDATE, change only mutable fields.";

/// Returns the message about a result that the API server rejects: first its error, and then what the error means.
pub(super) fn message(what: &str, error: &str, meaning: &str) -> String {
    format!("{REJECTS} {what}: {error}; {meaning}")
}

/// Returns the API server's error in a message of [`message`], or `reason` if it is another message.
pub(super) fn error_in<'a>(message: &str, reason: &'a str) -> &'a str {
    let error = reason.rsplit_once("; ").filter(|_| message.starts_with(REJECTS));
    error.map_or(reason, |(error, _)| error)
}

/// Reports the API server's first error in the result of an admitted request, if the webhooks cause it.
///
/// Errors in the client's object and in the results of the `known` outcomes are not reported. `what` names the request,
/// such as `a second apply`.
pub(super) fn rejection(
    environment: &Environment,
    what: &str,
    outcome: &Arc<Outcome>,
    known: &[Arc<Outcome>],
) -> Option<Violation> {
    let (written, result) = (outcome.request.object.as_ref()?, outcome.admitted()?);
    if written == result {
        return None;
    }
    let found = faults(environment, &outcome.request, result);
    if found.is_empty() {
        return None;
    }
    let mut expected: BTreeSet<String> =
        faults(environment, &outcome.request, written).iter().map(place).collect();
    for known in known {
        let results = known.admitted().into_iter();
        let faults = results.flat_map(|result| faults(environment, &known.request, result));
        expected.extend(faults.map(|cause| place(&cause)));
    }
    let cause = found.iter().find(|cause| !is_remark(cause) && !expected.contains(&place(cause)))?;
    let error = format!("{}: {}", cause.field, cause.message);
    let message = message(what, &error, "without the webhooks' changes, it does not report this error");
    let differences = comparison::differences(written, result, &outcome.request.kind, Order::Counts);
    let violation = Violation::new(format!("{REJECTS} {what}"), message).with_severity(Severity::Error);
    // The other changes do not cause the error.
    let violation = violation.with_differences(differences).with_fields([cause.field.as_str()]);
    Some(violation.with_steps([Arc::clone(outcome)]))
}

/// Reports a [`rejection`] that no webhook causes alone: the request is sent to each of `subjects` on its own.
pub(super) async fn joint(
    object_probe: &ObjectProbe<'_>,
    what: &str,
    outcome: &Arc<Outcome>,
    subjects: &[&Subject],
) -> Option<Violation> {
    let mut known = Vec::new();
    for subject in subjects {
        known.push(object_probe.outcome(&subject.alone(), &outcome.request).await);
    }
    rejection(object_probe.environment, what, outcome, &known)
}
