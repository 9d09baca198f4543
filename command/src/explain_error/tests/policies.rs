//! Tests the explanations of messages about admission policies.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::super::{explanation, text};
use super::explain;

/// Returns all messages of policies in the recorded cases.
fn recorded_denials_by_policies() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/policies");
    let mut messages = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let Ok(text) = fs::read_to_string(entry.unwrap().path().join("apiserver.yaml")) else { continue };
        let recording: Value = serde_saphyr::from_str(&text).unwrap();
        let requests = recording["requests"].as_array().into_iter().flatten();
        let bodies = requests.filter_map(|request| request["answer"]["body"]["message"].as_str());
        messages.extend(bodies.filter(|it| it.contains(" denied request: ")).map(str::to_owned));
    }
    messages
}

#[test]
fn denial_by_a_policy_is_explained() {
    let messages = recorded_denials_by_policies();
    assert!(messages.len() > 30, "{messages:?}");
    let mut causes = BTreeSet::new();
    for message in &messages {
        let explanations = explain(message);
        let [explanation] = explanations.as_slice() else { panic!("{message}: {explanations:?}") };
        assert!(explanation.policy.is_some() && explanation.webhook.is_none(), "{message}");
        assert!(!explanation.consequence.contains("webhook"), "{}", explanation.consequence);
        causes.insert(explanation.cause);
    }
    let expected = [
        "mutating-binding-not-configured",
        "mutating-policy-failed",
        "mutating-policy-not-configured",
        "mutating-policy-type-name",
        "policy-denied",
        "policy-denied-with-message",
        "policy-expression-failed",
        "policy-not-configured",
    ];
    assert_eq!(causes, BTreeSet::from(expected));
    let message = "The pods \"a\" is invalid: : ValidatingAdmissionPolicy 'limits' with binding 'all' denied request: failed \
                   expression: object.spec.replicas <= 5";
    let text = text(explain(message).first().unwrap());
    for part in
        ["`object.spec.replicas <= 5` is false", "  policy limits, binding all\n", "bindings all -o yaml"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn error_of_a_mutating_policy_is_not_explained_as_a_match_condition_of_a_webhook() {
    let message = "configmaps \"a\" is forbidden: policy 'owner' with binding 'all' denied request: expression 'object.data.x' \
                   resulted in error: no such key: data";
    let explanations = explain(&format!("Error from server: {message}\n"));
    let [explanation] = explanations.as_slice() else { panic!("{explanations:?}") };
    let text = text(explanation);
    for part in [
        "mutating-policy-failed",
        "  policy owner, binding all\n",
        "failurePolicy of the policy is Fail",
        "kubectl get mutatingadmissionpolicies owner -o yaml",
        "kubectl get mutatingadmissionpolicybindings all -o yaml",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(explanation.faults.is_empty() && !text.contains("webhook"), "{text}");
}

#[test]
fn wrong_type_name_in_a_mutating_policy_has_its_own_cause() {
    let message = "pods \"a\" is forbidden: policy 'owner' with binding 'all' denied request: type mismatch: unexpected type name \
                   \"Object.meta\", expected \"Object.metadata\", which matches field name path from root Object type";
    let explanations = explain(&format!("Error from server: {message}\n"));
    let [explanation] = explanations.as_slice() else { panic!("{explanations:?}") };
    let text = text(explanation);
    let expected = "gives an object the type name Object.meta, but its path requires Object.metadata.";
    for part in [expected, "correct the type name", "mutating-policy-type-name", "policy owner, binding all"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("null on DELETE"), "{text}");
}

#[test]
fn warning_of_a_policy_is_explained() {
    let warning = |binding: &str, said: &str| {
        format!(
            "Warning: Validation failed for ValidatingAdmissionPolicy 'limits' with binding '{binding}': {said}\n"
        )
    };
    let failed = "expression 'object.x' resulted in error: no such key: x";
    let log = format!("{}{}pod/web created\n", warning("warn", "at most 3"), warning("other", failed));
    let found = explanation::explain(&log, None);
    assert!(found.unknown.is_empty(), "{:?}", found.unknown);
    let known: Vec<_> =
        found.known.iter().map(|it| (it.cause, it.binding.as_deref(), it.meaning.as_str())).collect();
    let meaning = "A validation of the ValidatingAdmissionPolicy limits is false or failed: ";
    let expected = [("warn", format!("{meaning}at most 3")), ("other", format!("{meaning}{failed}"))];
    let expected: Vec<_> = expected
        .iter()
        .map(|(binding, meaning)| ("policy-warning", Some(*binding), meaning.as_str()))
        .collect();
    assert_eq!(known, expected);
}

#[test]
fn denials_through_two_bindings_are_explained_separately() {
    let denial = |binding: &str| {
        format!("ValidatingAdmissionPolicy 'limits' with binding '{binding}' denied request: at most 3\n")
    };
    let explanations = explain(&[denial("one"), denial("two"), denial("one")].concat());
    let found: Vec<_> = explanations.iter().map(|it| (it.binding.as_deref(), it.count)).collect();
    assert_eq!(found, [(Some("one"), 2), (Some("two"), 1)]);
}
