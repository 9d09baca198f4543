//! Represents a webhook under verification.

use std::collections::HashSet;
use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::config::{
    self, ConfigError, FailurePolicy, ReinvocationPolicy, Source, Webhook, WebhookId,
};
use kubernetes_admission::event::Phase;
use kubernetes_admission::matching;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::at;
use kubernetes_types::selector::Selector;
use serde_json::Value;

use super::environment::WebhookSet;
use super::stored::requests_about;

/// A webhook under verification and its configuration.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The webhook as configured.
    pub webhook: Arc<Webhook>,
    /// The webhook as it is called: with the failure policy `Fail`, so that failed calls are not ignored.
    pub called: Arc<Webhook>,
    /// The complete configuration as written.
    pub configuration: Arc<Value>,
    /// The index of the webhook in `webhooks` of the configuration.
    pub index: usize,
    /// Whether a webhook of the other phase has the same name.
    ///
    /// Some products use one name in both configurations.
    pub has_namesake: bool,
}

/// Returns the name of a webhook, followed by its phase in parentheses.
pub fn with_phase(name: &str, phase: Phase) -> String {
    let phase = match phase {
        Phase::Mutating => "mutating",
        Phase::Validating => "validating",
    };
    format!("{name} ({phase})")
}

impl Subject {
    /// Returns the webhooks of `configurations` in dispatch order, mutating webhooks first.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] that names the first field that cannot be read.
    pub fn from_configurations(configurations: &[Value]) -> Result<Vec<Self>, ConfigError> {
        Self::of_shared(configurations.iter().cloned().map(Arc::new))
    }

    /// Returns the webhooks as [`Self::from_configurations`] does, but without copying the configurations.
    pub(super) fn of_shared(
        configurations: impl IntoIterator<Item = Arc<Value>>,
    ) -> Result<Vec<Self>, ConfigError> {
        Self::from_sources(configurations.into_iter().map(|configuration| (configuration, Source::Api)))
    }

    /// Returns the webhooks of `manifests` and `configurations` in dispatch order.
    ///
    /// `manifests` are the configurations in the API server's manifest files.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] that names the first field that cannot be read.
    pub fn with_manifests(manifests: &[Value], configurations: &[Value]) -> Result<Vec<Self>, ConfigError> {
        let from = |objects: &[Value], source| {
            objects.iter().map(move |object| (Arc::new(object.clone()), source)).collect::<Vec<_>>()
        };
        let (from_files, from_api) = (from(manifests, Source::Manifest), from(configurations, Source::Api));
        Self::from_sources(from_files.into_iter().chain(from_api))
    }

    fn from_sources(
        configurations: impl IntoIterator<Item = (Arc<Value>, Source)>,
    ) -> Result<Vec<Self>, ConfigError> {
        let mut subjects = Vec::new();
        for (configuration, source) in configurations {
            let webhooks = match source {
                Source::Manifest => config::manifest_webhooks(&configuration)?,
                Source::Api => config::webhooks(&configuration)?,
            };
            for (index, webhook) in webhooks.into_iter().enumerate() {
                let called = Webhook { failure_policy: FailurePolicy::Fail, ..webhook.clone() };
                subjects.push(Self {
                    webhook: Arc::new(webhook),
                    called: Arc::new(called),
                    configuration: Arc::clone(&configuration),
                    index,
                    has_namesake: false,
                });
            }
        }
        let ids = |phase: Phase| -> HashSet<WebhookId> {
            let of_phase = subjects.iter().filter(|subject| subject.webhook.phase == phase);
            of_phase.map(|subject| (*subject.webhook.id).clone()).collect()
        };
        let [mutating, validating] = [Phase::Mutating, Phase::Validating].map(ids);
        for subject in &mut subjects {
            let id = &*subject.webhook.id;
            subject.has_namesake = mutating.contains(id) && validating.contains(id);
        }
        // Webhooks from files first, then configurations by name in byte order; within a configuration, in
        // its order.
        subjects.sort_by(|a, b| {
            let key = |subject: &Self| {
                let Webhook { phase, source, .. } = *subject.webhook;
                (phase == Phase::Validating, source == Source::Api, subject.configuration_name())
            };
            key(a).cmp(&key(b))
        });
        Ok(subjects)
    }

    /// Returns `CONFIGURATION/WEBHOOK`, with an ordinal or a phase if this name is not unique.
    pub fn name(&self) -> String {
        let id = &self.webhook.id;
        let name = match id.ordinal {
            0 => format!("{}/{}", id.configuration, id.name),
            ordinal => format!("{}/{}/{ordinal}", id.configuration, id.name),
        };
        if self.has_namesake { with_phase(&name, self.webhook.phase) } else { name }
    }

    /// Returns the server of the webhook: the host and port of its URL, or `SERVICE.NAMESPACE.svc:PORT`.
    pub fn server(&self) -> String {
        self.webhook.client_config.target.authority()
    }

    /// Returns the webhook's entry in the configuration's `webhooks`, as written.
    pub fn declaration(&self) -> &Value {
        self.entry_of(&self.configuration)
    }

    /// Returns the webhook's entry in `webhooks` of `configuration`, or null if there is no such entry.
    pub(super) fn entry_of<'a>(&self, configuration: &'a Value) -> &'a Value {
        at(configuration, &["webhooks"]).get(self.index).unwrap_or(&Value::Null)
    }

    /// Returns whether the webhook's rules match `request`, regardless of selectors and match conditions.
    pub fn asks_for(&self, request: &Attributes, cluster_fixture: &ClusterFixture) -> bool {
        let webhook = Webhook {
            namespace_selector: Selector::default(),
            object_selector: Selector::default(),
            match_conditions: Vec::new(),
            ..(*self.webhook).clone()
        };
        matching::is_called(&webhook, &mut cluster_fixture.evaluation(request.clone()))
    }

    /// Returns the update or deletion that the rules match, if they do not match `creation`.
    pub(super) fn instead_of_creation(
        &self,
        creation: &Attributes,
        cluster_fixture: &ClusterFixture,
    ) -> Option<Attributes> {
        if self.asks_for(creation, cluster_fixture) {
            return None;
        }
        requests_about(creation, cluster_fixture).find(|request| self.asks_for(request, cluster_fixture))
    }

    /// Returns a caveat about all results of the webhook, if any.
    pub fn caveat(&self) -> Option<String> {
        let conditions = self.webhook.match_conditions.iter();
        let names: Vec<&str> = conditions
            .filter(|condition| condition.mentions("authorizer"))
            .map(|condition| &*condition.name)
            .collect();
        if names.is_empty() {
            return None;
        }
        let names = names.join(", ");
        Some(format!(
            "its matchConditions ({names}) check permissions: users had only the roles of the API server \
             and of the files"
        ))
    }

    /// Returns a set with only this webhook, in the phase in which it is called.
    pub fn alone(&self) -> WebhookSet {
        let webhook = vec![Arc::clone(&self.called)];
        match self.webhook.phase {
            Phase::Mutating => WebhookSet { mutating: webhook, validating: Vec::new() },
            Phase::Validating => WebhookSet { mutating: Vec::new(), validating: webhook },
        }
    }

    /// Returns the webhook with the given reinvocation policy.
    pub fn with_reinvocation(&self, reinvocation_policy: ReinvocationPolicy) -> Arc<Webhook> {
        Arc::new(Webhook { reinvocation_policy, ..(*self.called).clone() })
    }

    fn configuration_name(&self) -> String {
        self.webhook.id.configuration.clone()
    }
}

/// Returns what happens to a request if a webhook's match condition cannot be evaluated.
pub(super) fn consequence(policy: FailurePolicy) -> &'static str {
    match policy {
        FailurePolicy::Fail => "the request is rejected",
        FailurePolicy::Ignore => "the webhook is skipped",
    }
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
    fn webhooks_are_in_dispatch_order_with_mutating_ones_first() {
        let subjects = Subject::from_configurations(&[
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
    fn webhooks_from_files_come_first() {
        let kind = "MutatingWebhookConfiguration";
        let subjects = Subject::with_manifests(
            &[
                configuration("ValidatingWebhookConfiguration", "v.static.k8s.io", &["v"]),
                configuration(kind, "z.static.k8s.io", &["z"]),
            ],
            &[configuration(kind, "a", &["a"])],
        )
        .unwrap();
        let names: Vec<String> = subjects.iter().map(Subject::name).collect();
        assert_eq!(names, ["z.static.k8s.io/z", "a/a", "v.static.k8s.io/v"]);
    }

    #[test]
    fn webhooks_with_the_same_name_are_distinguished_by_phase() {
        let subjects = Subject::from_configurations(&[
            configuration("ValidatingWebhookConfiguration", "a", &["x", "y"]),
            configuration("MutatingWebhookConfiguration", "a", &["x", "x"]),
        ])
        .unwrap();
        let names: Vec<String> = subjects.iter().map(Subject::name).collect();
        assert_eq!(names, ["a/x (mutating)", "a/x/1", "a/x (validating)", "a/y"]);
    }

    #[test]
    fn conditions_that_use_the_authorizer_have_a_caveat() {
        let mut configuration = configuration("ValidatingWebhookConfiguration", "a", &["v", "w"]);
        configuration["webhooks"][0]["matchConditions"] = json!([
            {"name": "no-leases", "expression": "request.resource.resource != 'leases'"},
            {"name": "not-trusted", "expression": "!authorizer.path('/trusted').check('get').allowed()"},
        ]);
        configuration["webhooks"][1]["matchConditions"] =
            json!([{"name": "named", "expression": "request.name != 'authorizer'"}]);
        let subjects = Subject::from_configurations(&[configuration]).unwrap();
        assert!(subjects[0].caveat().unwrap().contains("(not-trusted)"));
        assert_eq!(subjects[1].caveat(), None);
    }

    #[test]
    fn failed_call_is_not_ignored() {
        let subjects =
            Subject::from_configurations(&[configuration("ValidatingWebhookConfiguration", "a", &["v"])])
                .unwrap();
        assert_eq!(subjects[0].webhook.failure_policy, FailurePolicy::Ignore);
        assert_eq!(subjects[0].called.failure_policy, FailurePolicy::Fail);
    }
}
