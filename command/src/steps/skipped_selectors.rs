//! Shows the values that a selector compares, for webhooks and policies that the server skipped.

use harness::event::Mismatch;
use harness::policy::{MatchField, PolicyMismatch};
use harness::selector::{Labels, Selector};
use http::Method;
use serde_json::{Map, Value, json};

use super::api;
use super::names::SCENARIO_LABEL;
use super::world::World;
use crate::policy_outcome::{PolicyOutcome, PolicyResult};
use crate::target::{RUN_LABEL, RecordedSkip};

impl World {
    /// Explains why a selector excluded each webhook or policy: the unmet requirement, and the compared labels.
    ///
    /// Uses the object's labels in the response or, if the response does not contain the object, in the request body.
    pub(super) async fn explain_skips(&mut self, sent: Option<&Value>) {
        if self.skips.is_empty() && self.policy_results.is_empty() {
            return;
        }
        let foreign = self.foreign_namespace(&Mismatch::NamespaceSelector);
        let needs_namespace = self.skips.iter().any(|skip| skip.mismatch == Mismatch::NamespaceSelector)
            || self.policy_results.iter().any(|result| {
                matches!(&result.outcome, PolicyOutcome::Excluded(mismatch) if mismatch.field == MatchField::NamespaceSelector)
            });
        let namespace = match self.last_namespace() {
            Some(name) if foreign.is_none() && needs_namespace => {
                let labels = self.labels_of_namespace(&name).await;
                labels.map(|labels| (format!("the namespace \"{name}\""), labels))
            }
            Some(_) | None => None,
        };
        let object = self.labels_of_object(sent).map(|labels| ("the object".to_owned(), labels));
        let identities = self.identities();
        let reason_of = |skip: &RecordedSkip| {
            let (field, compared) = match skip.mismatch {
                Mismatch::NamespaceSelector => ("namespaceSelector", namespace.as_ref()?),
                Mismatch::ObjectSelector => ("objectSelector", object.as_ref()?),
                Mismatch::Rules | Mismatch::Conditions | Mismatch::Exempt | Mismatch::NotReinvoked => {
                    return None;
                }
            };
            let webhook = identities.iter().find(|it| it.is_in(skip))?;
            reason(field, webhook.entry.get(field)?, compared)
        };
        let reasons: Vec<Option<String>> = self.skips.iter().map(reason_of).collect();
        for (skip, reason) in self.skips.iter_mut().zip(reasons) {
            if let Some(reason) = reason {
                skip.reason = reason;
            }
        }
        let outcome = |result: &PolicyResult| {
            let PolicyOutcome::Excluded(PolicyMismatch { field, .. }) = &result.outcome else { return None };
            let (name, compared) = match field {
                MatchField::NamespaceSelector if foreign.is_some() => {
                    return foreign.clone().map(PolicyOutcome::NotApplied);
                }
                MatchField::NamespaceSelector => ("namespaceSelector", namespace.as_ref()?),
                MatchField::ObjectSelector => ("objectSelector", object.as_ref()?),
                MatchField::ExcludeResourceRules | MatchField::ResourceRules | MatchField::Exempt => {
                    return None;
                }
            };
            let compared = vec![comparison(name, self.match_resources(result)?.get(name)?, compared)?];
            Some(PolicyOutcome::Excluded(PolicyMismatch { field: *field, compared }))
        };
        let outcomes: Vec<Option<PolicyOutcome>> = self.policy_results.iter().map(outcome).collect();
        for (result, outcome) in self.policy_results.iter_mut().zip(outcomes) {
            if let Some(outcome) = outcome {
                result.outcome = outcome;
            }
        }
    }

    /// Returns the namespace in the path of the last request.
    fn last_namespace(&self) -> Option<String> {
        let (_, rest) = self.last_path.split_once("/namespaces/")?;
        rest.split(['/', '?']).next().map(str::to_owned)
    }

    /// Requests a namespace from the server and returns its labels.
    async fn labels_of_namespace(&self, name: &str) -> Option<Map<String, Value>> {
        let path = format!("/api/v1/namespaces/{name}");
        let stored =
            api::send(self.client().ok()?, Method::GET, &path, None).await.ok()?.successful().ok()?;
        Some(labels(&stored.body))
    }

    /// Returns the labels of the object in the last response or, if it does not contain the object, in `sent`.
    fn labels_of_object(&self, sent: Option<&Value>) -> Option<Map<String, Value>> {
        let answer = self.last.as_ref().filter(|answer| answer.is_success());
        let is_object = |object: &&Value| object.get("kind").is_some_and(|kind| kind != "Status");
        let answered = answer.map(|answer| &answer.body).filter(is_object);
        answered.or_else(|| sent.filter(is_object)).map(labels)
    }
}

fn labels(object: &Value) -> Map<String, Value> {
    object.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Returns whether `admit run` added the label to the namespace of a scenario.
fn is_added_by_run(key: &str, labels: &Map<String, Value>) -> bool {
    [SCENARIO_LABEL, RUN_LABEL].contains(&key)
        || labels.contains_key(RUN_LABEL) && key.starts_with("pod-security.kubernetes.io/")
}

/// Describes the first requirement of the selector that the labels do not meet.
fn reason(field: &str, selector: &Value, compared: &(String, Map<String, Value>)) -> Option<String> {
    comparison(field, selector, compared).map(|comparison| format!("its {comparison}"))
}

/// Describes the first requirement of the selector that the labels do not meet, as `admit review --explain` does.
fn comparison(
    field: &str,
    selector: &Value,
    (what, labels): &(String, Map<String, Value>),
) -> Option<String> {
    let object = json!({"metadata": {"labels": labels}});
    let requirement = Selector::parse(selector).ok()?.refused_by(Labels::from_object(&object)?)?;
    let shown: Map<String, Value> = labels
        .iter()
        .filter(|(key, _)| requirement.contains(key.as_str()) || !is_added_by_run(key, labels))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let found =
        if shown.is_empty() { "no labels".to_owned() } else { format!("the labels {}", json!(shown)) };
    Some(format!("{field} requires {requirement}; {what} has {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_the_requirement_and_the_labels() {
        let selector = json!({"matchLabels": {"stamp": "on"}});
        let compared =
            |labels: Value| ("the namespace \"shop\"".to_owned(), labels.as_object().unwrap().clone());
        assert_eq!(
            reason("namespaceSelector", &selector, &compared(json!({"stamp": "yes"}))).as_deref(),
            Some(
                "its namespaceSelector requires stamp=on; the namespace \"shop\" has the labels {\"stamp\":\"yes\"}"
            )
        );
        assert_eq!(
            reason("namespaceSelector", &selector, &compared(json!({}))).as_deref(),
            Some("its namespaceSelector requires stamp=on; the namespace \"shop\" has no labels")
        );
        assert_eq!(reason("namespaceSelector", &selector, &compared(json!({"stamp": "on"}))), None);
        let by_name = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["shop"]},
        ]});
        let own = json!({"kubernetes.io/metadata.name": "shop", SCENARIO_LABEL: "s", "team": "a"});
        let shown = reason("namespaceSelector", &by_name, &compared(own)).unwrap();
        let found = "has the labels {\"kubernetes.io/metadata.name\":\"shop\",\"team\":\"a\"}";
        assert!(shown.ends_with(found), "{shown}");
    }
}
