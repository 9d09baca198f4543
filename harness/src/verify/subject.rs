//! A webhook that is verified.

use std::sync::Arc;

use serde_json::Value;

use super::laboratory::Lineup;
use crate::attributes::{Attributes, GroupVersionKind};
use crate::cluster_state::ClusterState;
use crate::config::{self, ConfigError, FailurePolicy, ReinvocationPolicy, Webhook};
use crate::event::Phase;
use crate::matching;
use crate::selector::Selector;

/// A webhook that is verified.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The webhook as its configuration says.
    pub webhook: Arc<Webhook>,
    /// The webhook as the laboratory calls it: a call that fails is never passed over.
    pub called: Arc<Webhook>,
    /// When it is called.
    pub phase: Phase,
    /// The whole configuration as it was written.
    pub configuration: Arc<Value>,
    /// The position in `webhooks` of the configuration.
    pub index: usize,
}

impl Subject {
    /// The webhooks of `configurations`, in dispatch order: those that mutate first.
    ///
    /// # Errors
    /// [`ConfigError`] names the first field that cannot be read. Match conditions are unsupported.
    pub fn of(configurations: &[Value]) -> Result<Vec<Self>, ConfigError> {
        Self::read(configurations, config::webhooks)
    }

    /// As [`Self::of`], but every request is sent as if the match conditions of all webhooks held.
    ///
    /// # Errors
    /// [`ConfigError`] names the first field that cannot be read.
    pub fn ignoring_match_conditions(configurations: &[Value]) -> Result<Vec<Self>, ConfigError> {
        Self::read(configurations, |configuration| config::webhooks(&without_conditions(configuration)))
    }

    fn read(
        configurations: &[Value],
        webhooks: impl Fn(&Value) -> Result<Vec<Webhook>, ConfigError>,
    ) -> Result<Vec<Self>, ConfigError> {
        let mut subjects = Vec::new();
        for configuration in configurations {
            let phase = match GroupVersionKind::of(configuration).kind.as_str() {
                "MutatingWebhookConfiguration" => Phase::Mutating,
                _ => Phase::Validating,
            };
            let configuration = Arc::new(configuration.clone());
            for (index, webhook) in webhooks(&configuration)?.into_iter().enumerate() {
                let called = Webhook { failure_policy: FailurePolicy::Fail, ..webhook.clone() };
                subjects.push(Self {
                    webhook: Arc::new(webhook),
                    called: Arc::new(called),
                    phase,
                    configuration: Arc::clone(&configuration),
                    index,
                });
            }
        }
        // Configurations by name, byte by byte; the webhooks of one in the author's order.
        subjects.sort_by(|a, b| {
            let key = |subject: &Self| (subject.phase == Phase::Validating, subject.configuration_name());
            key(a).cmp(&key(b))
        });
        Ok(subjects)
    }

    /// `CONFIGURATION/WEBHOOK`, with the ordinal where names are not unique.
    pub fn name(&self) -> String {
        let id = &self.webhook.id;
        match id.ordinal {
            0 => format!("{}/{}", id.configuration, id.name),
            ordinal => format!("{}/{}/{ordinal}", id.configuration, id.name),
        }
    }

    /// The entry of `webhooks` as it was written.
    pub fn declaration(&self) -> &Value {
        &self.configuration["webhooks"][self.index]
    }

    /// Whether the rules are for `request`, whatever the selectors say.
    pub fn asks_for(&self, request: &Attributes, state: &dyn ClusterState) -> bool {
        let webhook = Webhook {
            namespace_selector: Selector::default(),
            object_selector: Selector::default(),
            ..(*self.webhook).clone()
        };
        matching::is_called(&webhook, request.clone(), state)
    }

    /// The names of its match conditions, all of which are taken to hold: nobody evaluates them.
    pub fn ignored_conditions(&self) -> Vec<&str> {
        let conditions = self.declaration()["matchConditions"].as_array().into_iter().flatten();
        conditions.map(|condition| condition["name"].as_str().unwrap_or_default()).collect()
    }

    /// What is to be said beside everything that is said of the webhook.
    pub fn caveat(&self) -> Option<String> {
        let conditions = self.ignored_conditions();
        if conditions.is_empty() {
            return None;
        }
        let names = conditions.join(", ");
        Some(format!(
            "its matchConditions ({names}) were ignored: what is found may be about requests that they leave out"
        ))
    }

    /// The webhook alone, called as its phase asks for.
    pub fn alone(&self) -> Lineup {
        let webhook = vec![Arc::clone(&self.called)];
        match self.phase {
            Phase::Mutating => Lineup { mutating: webhook, validating: Vec::new() },
            Phase::Validating => Lineup { mutating: Vec::new(), validating: webhook },
        }
    }

    /// The webhook with another reinvocation policy.
    pub fn with_reinvocation(&self, reinvocation_policy: ReinvocationPolicy) -> Arc<Webhook> {
        Arc::new(Webhook { reinvocation_policy, ..(*self.called).clone() })
    }

    fn configuration_name(&self) -> String {
        self.webhook.id.configuration.clone()
    }
}

/// `configuration` with webhooks that have no match conditions.
fn without_conditions(configuration: &Value) -> Value {
    let mut without = configuration.clone();
    let webhooks = without.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten();
    for webhook in webhooks.filter_map(Value::as_object_mut) {
        // What is no list is an error all the same.
        if webhook.get("matchConditions").is_some_and(Value::is_array) {
            webhook.remove("matchConditions");
        }
    }
    without
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn configuration(kind: &str, name: &str, webhooks: &[&str]) -> Value {
        let webhooks: Vec<Value> = webhooks
            .iter()
            .map(|name| {
                json!({"name": name, "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
                    "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore"})
            })
            .collect();
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "webhooks": webhooks})
    }

    #[test]
    fn webhooks_come_in_dispatch_order_and_those_that_mutate_first() {
        let subjects = Subject::of(&[
            configuration("ValidatingWebhookConfiguration", "a", &["v"]),
            configuration("MutatingWebhookConfiguration", "z", &["y", "x", "y"]),
            configuration("MutatingWebhookConfiguration", "b", &["m"]),
        ])
        .unwrap();
        let names: Vec<String> = subjects.iter().map(Subject::name).collect();
        assert_eq!(names, ["b/m", "z/y", "z/x", "z/y/1", "a/v"]);
        assert_eq!(subjects[3].declaration()["name"], "y");
    }

    #[test]
    fn match_conditions_are_ignored_only_where_that_is_asked_for() {
        let mut configuration = configuration("ValidatingWebhookConfiguration", "a", &["v", "w"]);
        configuration["webhooks"][0]["matchConditions"] =
            json!([{"name": "no-leases", "expression": "false"}]);
        let subjects = Subject::of(&[configuration.clone()]).unwrap();
        assert_eq!(subjects[0].webhook.match_conditions.len(), 1);

        let subjects = Subject::ignoring_match_conditions(&[configuration.clone()]).unwrap();
        assert_eq!(subjects[0].ignored_conditions(), ["no-leases"]);
        assert!(subjects[0].caveat().unwrap().contains("(no-leases) were ignored"));
        assert_eq!((subjects[1].ignored_conditions().len(), subjects[1].caveat()), (0, None));

        configuration["webhooks"][0]["matchConditions"] = json!("false");
        assert!(Subject::ignoring_match_conditions(&[configuration]).is_err());
    }

    #[test]
    fn a_call_that_fails_is_never_passed_over() {
        let subjects = Subject::of(&[configuration("ValidatingWebhookConfiguration", "a", &["v"])]).unwrap();
        assert_eq!(subjects[0].webhook.failure_policy, FailurePolicy::Ignore);
        assert_eq!(subjects[0].called.failure_policy, FailurePolicy::Fail);
    }
}
