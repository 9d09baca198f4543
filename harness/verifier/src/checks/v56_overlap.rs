//! V56: at most one webhook of the same product is called for a request.

use super::common_requests::{Certainty, Common, UNKNOWN_OBJECTS};
use super::match_outcome;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::subject::Subject;
use crate::webhook_probe::ConfigurationSet;

pub(super) const CHECK: Check = Check {
    id: "V56",
    title: "overlap: at most one mutating webhook of a product is called for a request",
    severity: Severity::Warning,
    why: "Injectors have several webhooks for the same handler, one for each way to request injection: by a \
          label of the namespace, by a label of the Pod, or by a revision. If the selectors of two webhooks \
          match the same Pod, it is injected twice, or by two revisions. This shows only for label sets \
          that are rarely tested.",
    help: "Make the selectors mutually exclusive, for example with the operator DoesNotExist.",
    source: "Istio, pkg/config/analysis/analyzers/webhook: it tries all label sets that the selectors name",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Configurations(run),
};

/// The number of trailing labels in a webhook's name that identify the product.
///
/// An example is `rev.object.sidecar-injector.istio.io`.
const PRODUCT: usize = 3;

fn run(configuration_set: &ConfigurationSet<'_>) -> Observed {
    let subjects = configuration_set.subjects;
    let mut violations = Vec::new();
    let mut unclear = Ok(Vec::new());
    let mut are_related = false;
    for (index, first) in subjects.iter().enumerate() {
        for second in subjects.iter().skip(index + 1) {
            if !is_one_product(first, second) {
                continue;
            }
            are_related = true;
            let both = |certainty| {
                Common::new(&first.webhook, configuration_set.cluster_fixture, certainty)?
                    .and(&second.webhook)
            };
            let (one, other) = (first.name(), second.name());
            if let Some(both) = both(Certainty::Certain) {
                let message = format!("{one} and {other} are both called for {both}");
                let violation = Violation::new(format!("{one} and {other} overlap"), message);
                violations.push(violation.about(&first.webhook.id));
            } else if let Some(both) = both(Certainty::Possible) {
                unclear = Err(match_outcome::unclear(&both.to_string(), UNKNOWN_OBJECTS));
            }
        }
    }
    if !are_related {
        return Err(Skipped::not_applicable("no two mutating webhooks belong to one product"));
    }
    if violations.is_empty() { unclear } else { Ok(violations) }
}

/// Returns whether both webhooks have the same handler or the same product name.
fn is_one_product(a: &Subject, b: &Subject) -> bool {
    let product = |subject: &Subject| {
        let labels: Vec<&str> = subject.webhook.id.name.rsplitn(PRODUCT + 1, '.').collect();
        let (product, rest) = labels.split_at_checked(PRODUCT)?;
        (!rest.is_empty()).then(|| product.join("."))
    };
    a.webhook.client_config.target == b.webhook.client_config.target
        || product(a).is_some_and(|name| product(b) == Some(name))
}
