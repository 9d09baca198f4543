//! L19: the order of mutating policies does not matter.

use kubernetes_types::selector::Selector;
use serde_json::Value;

use super::policy_examples::{example_requests, own_requests};
use crate::check::{Audience, Check, Defect, Probe, Repeatability, Severity, Violation};
use crate::comparison::Difference;
use crate::manifests::{About, Manifests};
use crate::policy_order::{Consequence, OrderDependence, hooks, order_dependences};

pub(super) const CHECK: Check = Check {
    id: "L19",
    title: "policy order: mutating policies have the same result in every order",
    severity: Severity::Warning,
    why: "kube-apiserver applies mutating policies in random order. If their result depends on the order, repeated \
          requests with the same object can store different objects.",
    help: "Combine the two policies, let only one of them set the field, or use reinvocationPolicy IfNeeded for a \
           policy that must see what the other one adds.",
    source: "KEP-3962, Risks and Mitigations; apiserver pkg/admission/plugin/policy/generic/policy_source.go",
    audience: Audience::Policies,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::MutatingPolicies, run),
};

/// The maximum length of a value that a message quotes.
const MAX_VALUE_BYTES: usize = 60;

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let policies = manifests.policies();
    let hooks = hooks(policies);
    if hooks.len() < 2 {
        return Vec::new();
    }
    let cluster_fixture = &manifests.cluster_fixture;
    let every = Selector::default();
    let requests =
        own_requests(manifests.objects, cluster_fixture).chain(example_requests(&every, cluster_fixture));
    let found = order_dependences(&hooks, requests, cluster_fixture);
    let mutating = || policies.objects.iter().filter(|object| object.kind() == "MutatingAdmissionPolicy");
    let defects = found.iter().filter_map(|dependence| {
        let mut pair =
            mutating().filter(|object| dependence.policies.iter().any(|name| **name == *object.name()));
        let (first, second) = (pair.next()?, pair.next()?);
        let message = format!(
            "the result depends on the order of this policy and {}: {}",
            second.name(),
            described(dependence)
        );
        let violation = Violation::new(format!("depends on the order with {}", second.name()), message);
        let violation = violation.at("metadata.name").with_other(second.name());
        Some(Defect { position: first.position, violation })
    });
    defects.collect()
}

/// Describes what depends on the order, for the request in which it was found.
fn described(dependence: &OrderDependence) -> String {
    let [first, second] = &dependence.policies;
    let request = &dependence.request;
    let example = format!("for example on {} of {}", request.operation, request.resource.group_resource());
    match &dependence.consequence {
        Consequence::Object(differences) => {
            let values = differences.first().filter(|_| request.kind.kind != "Secret").and_then(values);
            let values = values.map(|[expected, found]| {
                format!(" ({expected} if {first} is applied first, {found} if {second} is applied first)")
            });
            format!("{} differs{}, {example}", super::fields(differences), values.unwrap_or_default())
        }
        Consequence::Rejection { by_first, message } => {
            let rejecting = if *by_first { first } else { second };
            format!("the request is rejected if {rejecting} is applied first, {example}: {message}")
        }
    }
}

/// Returns the values of a field in both orders unless one of them is long.
fn values(difference: &Difference) -> Option<[String; 2]> {
    let values = [&difference.expected, &difference.found];
    let values = values.map(|value| value.as_ref().map_or_else(|| "absent".to_owned(), Value::to_string));
    values.iter().all(|value| value.len() <= MAX_VALUE_BYTES).then_some(values)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    const SIDECAR: &str =
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'proxy', image: 'proxy:1'}]}}";
    const PULL: &str = "Object{spec: Object.spec{containers: object.spec.containers.map(c, \
                        Object.spec.containers{name: c.name, imagePullPolicy: 'Always'})}}";

    /// Returns the messages about policies with these names, expressions, and reinvocation policies, which match Pods.
    fn messages(policies: &[(&str, &str, &str)]) -> Vec<String> {
        let policy = |(name, expression, reinvocation): &(&str, &str, &str)| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
                "metadata": {"name": name},
                "spec": {
                    "matchConstraints": {"resourceRules": [{"operations": ["CREATE"], "apiGroups": [""],
                        "apiVersions": ["v1"], "resources": ["pods"]}]},
                    "reinvocationPolicy": reinvocation,
                    "mutations": [
                        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}},
                    ],
                },
            })
        };
        let objects: Vec<Value> = policies.iter().map(policy).collect();
        let manifests = Manifests::new(&objects, Timestamp::UNIX_EPOCH, None, &|_, _| 0);
        run(&manifests).into_iter().map(|defect| defect.violation.message).collect()
    }

    fn label(name: &str, value: &str) -> String {
        format!("Object{{metadata: Object.metadata{{labels: {{'{name}': {value}}}}}}}")
    }

    #[test]
    fn policy_that_misses_the_container_of_another_depends_on_the_order() {
        let messages = messages(&[("sidecar", SIDECAR, "Never"), ("pull", PULL, "Never")]);
        let expected = "the result depends on the order of this policy and pull: \
                        spec.containers[proxy].imagePullPolicy differs (\"IfNotPresent\" if pull is applied first, \
                        \"Always\" if sidecar is applied first), for example on CREATE of pods";
        assert_eq!(messages, [expected]);
    }

    #[test]
    fn second_round_can_make_the_results_equal() {
        let none: [&str; 0] = [];
        assert_eq!(messages(&[("sidecar", SIDECAR, "Never"), ("pull", PULL, "IfNeeded")]), none);
    }

    #[test]
    fn policies_that_set_different_labels_are_independent() {
        let (one, other) = (label("a", "'x'"), label("b", "'x'"));
        let none: [&str; 0] = [];
        assert_eq!(messages(&[("one", &one, "IfNeeded"), ("other", &other, "IfNeeded")]), none);
    }

    #[test]
    fn each_pair_that_sets_the_same_label_is_reported() {
        let labels = ["'x'", "'y'", "'z'"].map(|value| label("a", value));
        let policies =
            [("x", &*labels[0], "Never"), ("y", &*labels[1], "Never"), ("z", &*labels[2], "Never")];
        let messages = messages(&policies);
        let mut others: Vec<&str> = messages
            .iter()
            .filter_map(|message| message.split_once("this policy and ")?.1.split(':').next())
            .collect();
        others.sort_unstable();
        assert_eq!(others, ["y", "z", "z"], "{messages:?}");
    }
}
