//! L09: a webhook with the `reinvocationPolicy` `Never` runs after the others.

use kubernetes_admission::config::ReinvocationPolicy;

use super::common_requests::{Certainty, Common};
use super::listed;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::subject::Subject;
use crate::webhook_probe::ConfigurationSet;

pub(super) const CHECK: Check = Check {
    id: "L09",
    title: "webhook order: a mutating webhook with reinvocationPolicy Never is called after all others for \
            the same requests",
    severity: Severity::Note,
    why: "Mutating webhooks are called one after the other: configurations in the order of their names, and \
          the webhooks of a configuration in their order. A webhook with reinvocationPolicy Never does not \
          see what later webhooks change. Whether that matters depends on what they do: V01, V06, and V58 \
          of `admit verify` test it.",
    help: "Set reinvocationPolicy: IfNeeded if the webhook depends on what later webhooks change.",
    source: "Dynamic Admission Control, Reinvocation policy; Admission Webhook Good Practices, Don't rely \
             on mutating \
             webhook invocation order; apiserver pkg/admission/configuration/mutating_webhook_manager.go",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Configurations(run),
};

fn run(configuration_set: &ConfigurationSet<'_>) -> Observed {
    if configuration_set.subjects.len() < 2 {
        return Err(Skipped::not_applicable("there is only one mutating webhook"));
    }
    let mut violations = Vec::new();
    for (index, first) in configuration_set.subjects.iter().enumerate() {
        if first.webhook.reinvocation_policy == ReinvocationPolicy::IfNeeded {
            continue;
        }
        let own = Common::new(&first.webhook, configuration_set.cluster_fixture, Certainty::Certain);
        let Some(own) = own else { continue };
        let later = configuration_set.subjects.iter().skip(index + 1);
        let later: Vec<(&&Subject, Common<'_>)> =
            later.filter_map(|other| Some((other, own.and(&other.webhook)?))).collect();
        let Some((_, example)) = later.first() else { continue };
        let names: Vec<String> = later.iter().map(|(other, _)| other.name()).collect();
        let message = format!(
            "with reinvocationPolicy Never, the webhook does not see what {} change later, for example on \
             {example}",
            listed(names.iter().map(String::as_str))
        );
        let violation = Violation::new("called before others", message).at("reinvocationPolicy");
        violations.push(violation.about(&first.webhook.id));
    }
    Ok(violations)
}
