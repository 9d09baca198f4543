//! Runs checks of single responses on requests for subresources, whose objects are not part of the corpus.

use std::collections::BTreeSet;

use kubernetes_admission::attributes::{Attributes, Operation};

use super::check::{Observed, Probe};
use super::checks;
use super::finding_log::PlanPosition;
use super::object_probe::Memory;
use super::plan::Plan;
use super::violation::Violation;

/// The checks that examine the response to a single request, whether or not the server stores the object.
const CHECKS: &[&str] =
    &["V01", "V11", "V16", "V17", "V18", "V19", "V20", "V22", "V24", "V25", "V26", "V27", "V28"];

/// Runs the checks on updates of subresources and on connections, for each webhook that is called for them.
///
/// `samples` contains the requests about objects of the corpus for each webhook.
pub(super) async fn run(plan: &Plan, samples: &[Vec<Attributes>]) -> Vec<(PlanPosition, Observed)> {
    let mut all = Vec::new();
    for ((place, subject), samples) in plan.subjects.iter().enumerate().zip(samples) {
        let requests = checks::subresource_requests(&plan.webhook_probe(subject, samples));
        for request in &of_different_kinds(requests) {
            let memory = Memory::default();
            let request = plan.shown(subject, request, &memory).await;
            for (position, check) in plan.active() {
                let Probe::Object(probe) = check.probe else { continue };
                if CHECKS.contains(&check.id) && check.audience.includes(subject.webhook.phase) {
                    let observed = probe(&plan.object_probe(subject, &request, &memory)).await;
                    let observed = observed.map(|violations| located(violations, &request));
                    all.push(((position, Some(place)), observed));
                }
            }
        }
    }
    all
}

/// Returns one request for each kind of object and subresource.
///
/// Omits the creation of objects such as Evictions, because the corpus contains these objects.
fn of_different_kinds(mut requests: Vec<Attributes>) -> Vec<Attributes> {
    let mut known = BTreeSet::new();
    requests.retain(|Attributes { operation, kind, subresource, .. }| {
        let what = (kind.api_version(), kind.kind.clone(), subresource.clone());
        *operation != Operation::Create && known.insert(what)
    });
    requests
}

/// Adds the operation and the subresource to the kinds of the violations, which makes them separate findings.
fn located(violations: Vec<Violation>, request: &Attributes) -> Vec<Violation> {
    let Attributes { operation, subresource, .. } = request;
    let on = |violation: Violation| Violation {
        kind: format!("{} on {operation} of {subresource}", violation.kind),
        ..violation
    };
    violations.into_iter().map(on).collect()
}
