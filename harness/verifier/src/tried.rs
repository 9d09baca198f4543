//! Counts how often a webhook was called and responded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::conditions::{self, Evaluation};
use kubernetes_admission::event::Mismatch;
use kubernetes_admission::matching::{self, Decision};
use kubernetes_api_server::ClusterFixture;
use serde::{Deserialize, Serialize};

use super::reasons;
use super::subject::{Subject, consequence};

/// The numbers of calls to a webhook by result, limited to requests that an API server sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// Whether the webhook is mutating.
    pub mutating: bool,
    /// The operations that the webhook's rules match; `*` for all. Empty in reports that do not contain them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub operations: BTreeSet<String>,
    /// The number of calls.
    pub called: u64,
    /// The number of calls with a valid response; `None` in reports that do not contain this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<u64>,
    /// The number of responses with a patch.
    pub patched: u64,
    /// The number of failed calls by reason, as in kube-apiserver's message.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
    /// The number of responses that the API server rejected regardless of the failure policy, such as a patch that does not
    /// apply, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<String, u64>,
    /// The first object for which a call failed without a response, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_objects: BTreeMap<String, String>,
    /// The number of corpus objects whose creation requests the webhook answered.
    #[serde(default)]
    pub objects: u64,
    /// The number of denials by reason; `NAME` replaces the object's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub denied: BTreeMap<String, u64>,
    /// The number of corpus objects for whose creation the webhook was not called, by reason.
    ///
    /// Empty if the webhook was called.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mismatches: BTreeMap<String, u64>,
    /// The reasons why all rules match nothing, such as a resource that the API server does not serve.
    ///
    /// Empty if a rule can match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule_errors: Vec<String>,
    /// The label keys in the webhook's `objectSelector`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selects: Vec<String>,
}

/// Returns the advice for the reasons in [`Tried::mismatches`] that start with a given prefix.
///
/// `options` are the options that the user passed.
fn advice(options: &BTreeSet<String>) -> [(&'static str, String); 5] {
    let has_files = options.contains("-f");
    let or_use = |usable: &[&str]| {
        let unused: Vec<&str> =
            usable.iter().copied().filter(|option| !has_files && !options.contains(*option)).collect();
        if unused.is_empty() { String::new() } else { format!(", or use {}", unused.join(" or ")) }
    };
    let labels = send("objects with the labels that the objectSelector requires", has_files);
    let conditions = send("objects for which the matchConditions are true", has_files);
    let guard = "correct the condition, and guard optional fields with `has()`".to_owned();
    [
        (FAILED, guard),
        (
            "its namespaceSelector",
            "add the manifest of the namespace, with the labels that the namespaceSelector requires, to the \
             configurations (-c)"
                .to_owned(),
        ),
        ("its objectSelector", labels + &or_use(&["--label"])),
        ("its match condition", conditions + &or_use(&["--annotation", "--label"])),
        (UNMATCHED, send_matching(has_files)),
    ]
}

/// Returns the advice to send `objects`. `has_files` says whether the user passed objects with `-f`.
pub fn send(objects: &str, has_files: bool) -> String {
    if has_files {
        format!("add {objects} to the files of -f")
    } else {
        format!("with -f, which replaces the built-in corpus, pass {objects}")
    }
}

/// Returns the advice for a webhook whose rules match no object.
pub(super) fn send_matching(has_files: bool) -> String {
    let send = send("objects that a rule of the webhook matches", has_files);
    format!("check the rules with `admit lint`, or {send}")
}

/// Returns whether an error of a match condition is about its source, which the API server rejects.
pub(super) fn is_compile_error(error: &str) -> bool {
    error.starts_with("compilation error: ")
}

/// Returns the reason why `subject` is not called for an object, or `None` if it is called.
pub(super) fn mismatch(
    subject: &Subject,
    creation: &Attributes,
    cluster_fixture: &ClusterFixture,
) -> Option<String> {
    let other = subject.instead_of_creation(creation, cluster_fixture);
    let request = other.as_ref().unwrap_or(creation);
    // The dispatcher checks selectors before rules, but for an object of another kind, the rules are the better reason.
    if !subject.asks_for(request, cluster_fixture) {
        return Some(format!("{UNMATCHED} matches the objects"));
    }
    let decided = matching::decide(&subject.webhook, &mut cluster_fixture.evaluation(request.clone()));
    if let Some((name, error)) = decided.conditions.as_ref().and_then(failed_condition) {
        let resource = request.resource.group_resource();
        let follows = consequence(subject.webhook.failure_policy);
        let name = if name.is_empty() { String::new() } else { format!(" {name}") };
        return Some(if is_compile_error(&error) {
            format!("{FAILED}{name} does not compile, so the API server rejects the configuration")
        } else {
            format!("{FAILED}{name} fails for {resource} with `{error}`, so {follows}")
        });
    }
    let Decision::Skip(mismatch) = decided.decision else { return None };
    Some(match mismatch {
        Mismatch::NamespaceSelector => {
            format!("its namespaceSelector does not select the namespace {}", request.namespace)
        }
        Mismatch::ObjectSelector => "its objectSelector does not select the objects".to_owned(),
        Mismatch::Rules => format!("{UNMATCHED} matches the objects"),
        Mismatch::Conditions => match decided.conditions {
            Some(Evaluation { outcome: conditions::Outcome::False { index }, conditions, .. }) => {
                let name = conditions.get(index).map_or("", |condition| &*condition.name);
                format!("its match condition {name} is false")
            }
            Some(_) | None => "its match conditions cannot be evaluated for the objects".to_owned(),
        },
        Mismatch::Exempt | Mismatch::NotReinvoked => "webhooks are not called for the objects".to_owned(),
    })
}

/// The start of a reason in [`Tried::mismatches`] about the rules.
pub(super) const UNMATCHED: &str = "none of its rules";

/// The start of a reason in [`Tried::mismatches`] about a match condition that fails.
const FAILED: &str = "the match condition";

/// The part of a reason in [`Tried::mismatches`] about a match condition that reads a field that no object has.
const UNKNOWN_FIELD: &str = " does not have a field ";

/// Returns the name of the condition that decides that the evaluation fails, which may be empty, and the error.
fn failed_condition(evaluation: &Evaluation) -> Option<(&str, String)> {
    let error = evaluation.error()?;
    let failed = evaluation.conditions.iter().find_map(|it| Some((&*it.name, it.value.as_ref().err()?)));
    let Some((name, failed)) = failed else { return Some(("", error.to_owned())) };
    let error = failed.to_string();
    // The text before it repeats the expression.
    let error = error.rsplit_once("resulted in error: ").map_or(error.as_str(), |(_, error)| error);
    Some((name, error.to_owned()))
}

impl Tried {
    /// Returns the most frequent reason for failed calls if the webhook never returned a valid response.
    pub fn unanswered(&self) -> Option<&str> {
        if self.called == 0 || self.answered != Some(0) {
            return None;
        }
        let most = self.failures.iter().max_by_key(|(_, count)| **count);
        Some(most.map_or("no valid response", |(reason, _)| reason.as_str()))
    }

    /// Returns the number of calls with an invalid response, and the most frequent reason, if other calls succeeded.
    ///
    /// Calls without a response, such as those that timed out, do not count.
    pub fn invalid_responses(&self) -> Option<(u64, &str)> {
        self.failed(reasons::is_invalid_response)
    }

    /// Returns the number of calls without a response, and the most frequent reason, if other calls succeeded.
    pub fn failed_calls(&self) -> Option<(u64, &str)> {
        self.failed(reasons::is_missing_response)
    }

    fn failed(&self, counts: impl Fn(&str) -> bool) -> Option<(u64, &str)> {
        let failed = || self.failures.iter().filter(|(reason, _)| counts(reason));
        let most = failed().max_by_key(|(_, count)| **count)?;
        let count = failed().map(|(_, count)| count).sum();
        (self.answered != Some(0)).then_some((count, most.0.as_str()))
    }

    /// Returns whether the webhook is mutating but is called only for requests that it cannot change.
    ///
    /// Rule: MUT-07.
    pub fn cannot_change(&self) -> bool {
        self.mutating && self.operations.iter().eq(["DELETE"])
    }

    /// Returns whether the webhook can change objects but never did.
    pub fn never_changed(&self) -> bool {
        self.mutating && self.patched == 0 && !self.cannot_change()
    }

    /// Returns a note about a webhook that was not called or never changed an object, and a suggestion.
    ///
    /// `options` are the options that the user passed. The suggestion does not name them.
    pub(super) fn unseen(&self, name: &str, objects: u64, options: &BTreeSet<String>) -> Option<String> {
        let what = match self {
            Self { called: 0, mismatches, .. } if !mismatches.is_empty() => {
                return Some(uncalled(mismatches, &self.selects, objects, options));
            }
            Self { called: 0, .. } => {
                format!("the webhook was not called for any of {}: nothing was tested", several(objects))
            }
            Self { .. } if self.unanswered().is_some() => return None,
            // The webhook cannot make a change that a check could miss.
            Self { patched: 0, .. } if self.cannot_change() => return None,
            Self { mutating: true, patched: 0, called, operations, .. } => {
                let times = if *called == 1 { "once".to_owned() } else { format!("{called} times") };
                if operations.iter().all(|operation| ["CONNECT", "DELETE"].contains(&operation.as_str()))
                    && !operations.is_empty()
                {
                    return Some(format!(
                        "the webhook was called {times} and never changed the options of a CONNECT request: its \
                         mutation was not tested"
                    ));
                }
                if let Some((reason, _)) = self.rejected.iter().max_by_key(|(_, count)| **count) {
                    return Some(format!(
                        "the webhook was called {times} and never changed an object, because the API server rejected its \
                         responses, for example with: {reason}; `admit verify` without --check says what to correct"
                    ));
                }
                format!(
                    "the webhook was called {times} and never changed an object: its mutation was \
                     not tested"
                )
            }
            Self { .. } => return None,
        };
        let has = |option: &str| options.contains(option);
        let mut hint = send("objects that it mutates", has("-f"));
        if has("--annotation") || has("--label") {
            hint.push_str("; check whether it looks for other annotations or labels");
        } else if !has("-f") {
            hint.push_str("; add the annotations and labels that it looks for (--annotation, --label)");
        }
        if !self.selects.is_empty() {
            let _ = write!(hint, "; its objectSelector names {}", self.selects.join(", "));
        }
        // The keys of a product start with its domain.
        let labels: Vec<&str> = name.rsplit('/').next().unwrap_or_default().rsplitn(3, '.').collect();
        if let [last, domain, _] = labels.as_slice() {
            let _ = write!(hint, "; such keys often begin with its domain, as in {domain}.{last}/inject");
        }
        Some(format!("{what}; {hint}"))
    }
}

fn several(objects: u64) -> String {
    format!("{objects} object{}", if objects == 1 { "" } else { "s" })
}

/// Returns the reasons why a webhook was not called, the most frequent first, and the advice.
///
/// Objects that no rule matches are mentioned only if there are no others.
fn uncalled(
    mismatches: &BTreeMap<String, u64>,
    selects: &[String],
    objects: u64,
    options: &BTreeSet<String>,
) -> String {
    let mut reasons: Vec<(&str, u64)> =
        mismatches.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
    let has_failed = |reason: &str| reason.starts_with(FAILED);
    reasons.sort_by_key(|(reason, count)| {
        (!has_failed(reason), reason.starts_with(UNMATCHED), std::cmp::Reverse(*count))
    });
    if reasons.iter().any(|(reason, _)| !reason.starts_with(UNMATCHED)) {
        reasons.retain(|(reason, _)| !reason.starts_with(UNMATCHED));
    }
    let many = reasons.len() > 1;
    let told = reasons.iter().map(|(reason, count)| {
        if many { format!("{reason} ({})", several(*count)) } else { (*reason).to_owned() }
    });
    let told = told.collect::<Vec<_>>().join(", ");
    let mut text = format!("the webhook was not called for any of {}: {told}", several(objects));
    for (begin, advice) in advice(options) {
        if reasons.iter().any(|(reason, _)| reason.starts_with(begin) && !reason.contains(UNKNOWN_FIELD)) {
            let _ = write!(text, "; {advice}");
        }
        if begin == FAILED && reasons.iter().any(|(reason, _)| reason.contains(UNKNOWN_FIELD)) {
            text.push_str("; correct the name of the field");
        }
        // Other objects do not help as long as a condition fails.
        if begin == FAILED && reasons.iter().any(|(reason, _)| has_failed(reason)) {
            break;
        }
    }
    if !selects.is_empty() && reasons.iter().any(|(reason, _)| reason.starts_with("its objectSelector")) {
        let _ = write!(text, "; its objectSelector names {}", selects.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::UserInfo;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn single_call_is_counted_as_once() {
        for (called, expected) in [(1, "was called once and"), (2, "was called 2 times and")] {
            let tried = Tried { mutating: true, called, ..Tried::default() };
            let text = tried.unseen("c/inject.example.com", 1, &BTreeSet::new()).unwrap();
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_mutation_is_missed_only_if_the_api_server_would_apply_it() {
        let unseen = |operations: &[&str]| {
            let operations = operations.iter().map(|operation| (*operation).to_owned()).collect();
            let tried = Tried { mutating: true, called: 3, operations, ..Tried::default() };
            (
                tried.never_changed(),
                tried.unseen("c/inject.example.com", 1, &BTreeSet::new()).unwrap_or_default(),
            )
        };
        assert_eq!(unseen(&["DELETE"]), (false, String::new()));
        // The API server applies a patch to the options of a connection.
        let (never_changed, text) = unseen(&["CONNECT", "DELETE"]);
        assert!(
            never_changed && text.ends_with("options of a CONNECT request: its mutation was not tested"),
            "{text}"
        );
        let (never_changed, text) = unseen(&["CREATE", "DELETE"]);
        assert!(
            never_changed && text.contains("never changed an object: its mutation was not tested; "),
            "{text}"
        );
    }

    #[test]
    fn match_condition_that_fails_is_reported_with_its_error_and_without_advice_on_objects() {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "c"},
            "webhooks": [{
                "name": "w.example.com", "clientConfig": {"url": "https://localhost/"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "matchConditions": [{"name": "a", "expression": "has(object.metadata.labels.inject)"}],
                "rules": [{
                    "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                }],
            }],
        });
        let subject = Subject::from_configurations(&[configuration]).unwrap().remove(0);
        let cluster_fixture = ClusterFixture::new([]);
        let reason = |metadata: Value| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            let request = cluster_fixture.create(object, "default", UserInfo::default()).unwrap();
            mismatch(&subject, &request, &cluster_fixture).unwrap()
        };
        let failed = reason(json!({"name": "b"}));
        assert_eq!(
            failed,
            "the match condition a fails for configmaps with `no such key: labels`, so the request is rejected"
        );
        let is_false = reason(json!({"name": "b", "labels": {"a": "b"}}));
        assert_eq!(is_false, "its match condition a is false");
        let tried =
            Tried { mismatches: BTreeMap::from([(is_false, 9), (failed.clone(), 2)]), ..Tried::default() };
        assert_eq!(
            tried.unseen("c/w.example.com", 11, &BTreeSet::new()).unwrap(),
            format!(
                "the webhook was not called for any of 11 objects: {failed} (2 objects), its match condition a is \
                 false (9 objects); correct the condition, and guard optional fields with `has()`"
            )
        );
    }

    #[test]
    fn condition_that_does_not_compile_is_no_matter_of_the_objects() {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "c"},
            "webhooks": [{
                "name": "w.example.com", "clientConfig": {"url": "https://a.example.com"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "matchConditions": [{"name": "a", "expression": "object.data.x == 'open"}],
                "rules": [{
                    "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                }],
            }],
        });
        let subject = Subject::from_configurations(&[configuration]).unwrap().remove(0);
        let cluster_fixture = ClusterFixture::new([]);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}});
        let request = cluster_fixture.create(object, "default", UserInfo::default()).unwrap();
        assert_eq!(
            mismatch(&subject, &request, &cluster_fixture).unwrap(),
            "the match condition a does not compile, so the API server rejects the configuration"
        );
    }

    #[test]
    fn reasons_of_objects_that_a_rule_matches_come_first_with_their_advice() {
        let unseen_with = |options: &[&str], reasons: &[(&str, u64)]| {
            let mismatches = reasons.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect();
            let tried = Tried { mutating: true, mismatches, ..Tried::default() };
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            tried.unseen("c/inject.example.com", 18, &options).unwrap()
        };
        let unseen = |reasons: &[(&str, u64)]| unseen_with(&[], reasons);
        assert_eq!(
            unseen(&[
                ("none of its rules matches the objects", 16),
                ("its namespaceSelector does not select the namespace shop", 2),
            ]),
            "the webhook was not called for any of 18 objects: its namespaceSelector does not select the namespace \
             shop; add the manifest of the namespace, with the labels that the namespaceSelector requires, to the \
             configurations (-c)"
        );
        assert_eq!(
            unseen(&[
                ("its match condition asked is false", 2),
                ("its objectSelector does not select the objects", 3)
            ]),
            "the webhook was not called for any of 18 objects: its objectSelector does not select the objects (3 \
             objects), its match condition asked is false (2 objects); with -f, which replaces the built-in corpus, pass \
             objects with the labels that the objectSelector requires, or use --label; with -f, which replaces the \
             built-in corpus, pass objects for which the matchConditions are true, or use --annotation or --label"
        );
        let of_selector = [("its objectSelector does not select the objects", 3)];
        assert!(!unseen_with(&["--label"], &of_selector).contains("--label"));
        let none = [("none of its rules matches the objects", 18)];
        let expected = "; check the rules with `admit lint`, or with -f, which replaces the built-in corpus, pass objects that a rule \
             of the webhook matches";
        assert!(unseen(&none).ends_with(expected), "{}", unseen(&none));
        let expected = ", or add objects that a rule of the webhook matches to the files of -f";
        assert!(unseen_with(&["-f"], &none).ends_with(expected), "{}", unseen_with(&["-f"], &none));
    }
}
