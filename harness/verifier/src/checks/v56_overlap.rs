//! V56: the webhooks of one product divide the requests among themselves.

use super::common::{Certainty, Common, UNKNOWN_OBJECTS};
use super::matched;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::subject::Subject;
use crate::webhook_probe::ConfigurationSet;

pub(super) const CHECK: Check = Check {
    id: "V56",
    title: "no overlap: at most one of the mutating webhooks of a product is called for a request",
    severity: Severity::Warning,
    why: "Injectors have several webhooks for one and the same handler, one for each way to ask for it: by a label of the \
          namespace, by one of the Pod, by a revision. If the selectors of two pick the same Pod, it is injected twice, \
          or by two revisions. That shows only for label sets that nobody tried.",
    source: "Istio, pkg/config/analysis/analyzers/webhook: it tries all label sets that the selectors name",
    audience: Audience::Mutating,
    probe: Probe::Configurations(run),
};

/// How many labels at the end of a webhook's name are the product's: as in `rev.object.sidecar-injector.istio.io`.
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
                Common::of(&first.webhook, configuration_set.cluster_fixture, certainty)?.and(&second.webhook)
            };
            let (one, other) = (first.name(), second.name());
            if let Some(both) = both(Certainty::Certain) {
                let message = format!("{one} and {other} are both called for {both}");
                let violation = Violation::new(format!("{one} and {other} overlap"), message);
                violations.push(violation.about(&first.webhook.id));
            } else if let Some(both) = both(Certainty::Possible) {
                unclear = Err(matched::unclear(&both.to_string(), UNKNOWN_OBJECTS));
            }
        }
    }
    if !are_related {
        return Err(Obstacle::not_applicable("no two mutating webhooks belong to one product"));
    }
    if violations.is_empty() { unclear } else { Ok(violations) }
}

/// Whether both go to the same handler, or their names say so.
fn is_one_product(a: &Subject, b: &Subject) -> bool {
    let product = |subject: &Subject| {
        let labels: Vec<&str> = subject.webhook.id.name.rsplitn(PRODUCT + 1, '.').collect();
        let (product, rest) = labels.split_at_checked(PRODUCT)?;
        (!rest.is_empty()).then(|| product.join("."))
    };
    a.webhook.client_config.target == b.webhook.client_config.target
        || product(a).is_some_and(|name| product(b) == Some(name))
}
