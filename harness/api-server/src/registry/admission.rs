//! Runs admission for the requests of the server.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError, RwLock};

use admission_webhook_client::HttpsCaller;
use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_admission::attributes::{Attributes, GroupVersionResource, Operation};
use kubernetes_admission::config::{self, ConfigError, Webhook};
use kubernetes_admission::converter::Converter;
use kubernetes_admission::dispatcher::{DispatchContext, Dispatcher, Rejection, Webhooks as Dispatched};
use kubernetes_admission::event::{Phase, Record};
use kubernetes_admission::manifests::{Manifests, StaticManifests};
use kubernetes_admission::matching::WebhookIndex;
use kubernetes_admission::metrics::Metrics;
use kubernetes_admission::ownership::TimePrecision;
use kubernetes_admission::plugin::Plugin;
use kubernetes_admission::policy::{MutatingHook, ValidatingHook};
use kubernetes_admission::trace_context::TraceContext;
use kubernetes_types::status::Status;
use serde_json::Value;
use tokio::time::Instant;

use super::policies::{CompiledPolicies, recompiled};
use super::state::State;
use crate::apimachinery::client_disconnect::ClientDisconnect;
use crate::apimachinery::time_limit;
use crate::kinds::webhook_configurations::GROUP;
use crate::kinds::webhook_configurations::MUTATING;
use crate::kinds::webhook_configurations::VALIDATING;
use crate::plugins::{AdmissionPlugins, PluginConfiguration, Plugins, QuotaWriter};
use crate::storage::ObjectReader;

/// The dispatcher and the configuration that the server uses to admit requests.
pub(crate) struct Admission {
    dispatcher: Dispatcher<HttpsCaller>,
    plugins: Plugins,
    /// The server that writes the status of quotas.
    pub(crate) quota_writer: QuotaWriter,
    selection: AdmissionPlugins,
    state: Arc<State>,
    webhooks: RwLock<Arc<Webhooks>>,
    policies: RwLock<CompiledPolicies>,
    pub(crate) metrics: Metrics,
}

/// The mutating and the validating webhooks of all configurations and manifest files.
#[derive(Debug, Default)]
struct Webhooks {
    mutating: WebhookSources,
    validating: WebhookSources,
}

/// The mutating or the validating webhooks, from manifest files and from the API.
#[derive(Clone, Debug, Default)]
struct WebhookSources {
    /// The webhooks from files; `None` if the plugin does not have a manifest directory.
    manifests: Option<Manifests>,
    api: CompiledConfigurations,
    /// The webhooks in call order; webhooks from files come first.
    in_order: WebhookIndex,
}

/// Whether the record of a request contains the reason why each webhook or policy was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkipReasons {
    Recorded,
    Omitted,
}

impl WebhookSources {
    /// Source: apiserver `pkg/admission/plugin/webhook/generic/composite_webhook_source.go`, `Webhooks`.
    /// Rule: LOAD-10.
    fn new(manifests: Option<Manifests>, api: CompiledConfigurations) -> Self {
        let from_files = manifests.iter().flat_map(|manifests| &manifests.webhooks);
        let in_order = WebhookIndex::new(from_files.chain(&api.in_order).cloned().collect());
        Self { manifests, api, in_order }
    }

    fn dispatched(&self, reasons: SkipReasons) -> Dispatched<'_> {
        match reasons {
            SkipReasons::Recorded => Dispatched::Listed(self.in_order.webhooks()),
            SkipReasons::Omitted => Dispatched::Indexed(&self.in_order),
        }
    }
}

/// The parsed configurations of one kind. Unchanged configurations are not parsed again.
///
/// Source: apiserver `pkg/admission/configuration/mutating_webhook_manager.go`, `configurationsCache` and
/// `MutatingWebhookConfigurationSorter`.
/// Rule: LOAD-04, LOAD-06.
#[derive(Clone, Debug, Default)]
struct CompiledConfigurations {
    configurations: Vec<(Arc<Value>, Vec<Arc<Webhook>>)>,
    /// The webhooks in call order.
    ///
    /// They are sorted by configuration name (compared byte by byte), then by their position in the configuration.
    in_order: Vec<Arc<Webhook>>,
}

impl CompiledConfigurations {
    /// Parses the configurations. They must be sorted by name.
    ///
    /// Reuses the webhooks of each configuration in `before` that has not changed.
    fn new(stored: Vec<Arc<Value>>, before: &Self) -> Result<Self, ConfigError> {
        let parse = |configuration: &Value| -> Result<Vec<Arc<Webhook>>, ConfigError> {
            Ok(config::stored_webhooks(configuration)?.into_iter().map(Arc::new).collect())
        };
        let configurations = recompiled(stored, &before.configurations, parse)?;
        let in_order = configurations.iter().flat_map(|(_, webhooks)| webhooks).cloned().collect();
        Ok(Self { configurations, in_order })
    }
}

/// The admission state of a request. Each attempt at the request has its own admission run.
#[derive(Debug)]
pub(crate) struct RequestAdmission<'a> {
    pub(crate) admission: &'a Admission,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
    pub(crate) trace: TraceContext,
    pub(crate) reasons: SkipReasons,
    /// The record of all runs.
    pub(crate) record: Record,
    /// The operation of the first run; `None` until that run ends.
    pub(crate) operation: Option<Operation>,
    /// The disconnect state of the client; `None` if a disconnect does not cancel admission.
    pub(crate) client_disconnect: Option<Arc<ClientDisconnect>>,
}

impl Admission {
    /// Creates the server's admission chain.
    ///
    /// `converter` contains the HTTPS client that admission webhooks and conversion webhooks share.
    pub(crate) fn new(
        state: &Arc<State>,
        converter: Arc<Converter<HttpsCaller>>,
        manifests: StaticManifests,
        (selection, configuration): (AdmissionPlugins, &PluginConfiguration),
        metrics: Metrics,
    ) -> Self {
        let StaticManifests { mutating, validating } = manifests;
        let webhooks = Webhooks {
            mutating: WebhookSources::new(mutating, CompiledConfigurations::default()),
            validating: WebhookSources::new(validating, CompiledConfigurations::default()),
        };
        let objects: Arc<dyn ObjectReader> = Arc::clone(&state.storage) as Arc<dyn ObjectReader>;
        let quota_writer = QuotaWriter::default();
        Self {
            dispatcher: Dispatcher::with_converter(converter),
            plugins: Plugins::new(&selection, configuration, (&objects, &quota_writer), &metrics),
            quota_writer,
            selection,
            state: Arc::clone(state),
            webhooks: RwLock::new(Arc::new(webhooks)),
            policies: RwLock::new(CompiledPolicies::new(configuration.policy_order)),
            metrics,
        }
    }

    /// Returns whether the admission plugin with this name is enabled.
    pub(crate) fn runs(&self, plugin: &str) -> bool {
        self.selection.has(plugin)
    }

    /// Returns whether a webhook rule matches this operation on this cluster-scoped resource.
    pub(crate) fn has_rule_for(
        &self,
        operation: Operation,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> bool {
        let webhooks = self.webhooks();
        let has_rule =
            |sources: &WebhookSources| sources.in_order.has_rule_for(operation, resource, subresource);
        has_rule(&webhooks.mutating) || has_rule(&webhooks.validating)
    }

    /// Reloads the stored webhook configurations.
    ///
    /// # Errors
    /// Returns an error if a configuration cannot be parsed. In this case, the webhooks stay unchanged.
    pub(crate) fn reload_webhooks(&self) -> Result<(), Box<Status>> {
        let mut webhooks = self.webhooks.write().unwrap_or_else(PoisonError::into_inner);
        let of = |resource: &str, before: &WebhookSources| {
            CompiledConfigurations::new(self.state.storage.list(GROUP, resource, ""), &before.api)
                .map(|api| WebhookSources::new(before.manifests.clone(), api))
                .map_err(|error| Box::new(Status::internal_error(&error.to_string())))
        };
        let mutating = of(MUTATING, &webhooks.mutating)?;
        let validating = of(VALIDATING, &webhooks.validating)?;
        *webhooks = Arc::new(Webhooks { mutating, validating });
        Ok(())
    }

    /// Reloads the stored policies and bindings.
    ///
    /// # Errors
    /// Returns an error if an object cannot be parsed. In this case, the policies stay unchanged.
    pub(crate) fn reload_policies(&self) -> Result<(), Box<Status>> {
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        *policies = policies.reloaded(&self.state.storage)?;
        Ok(())
    }

    fn validating_policies(&self) -> Arc<[ValidatingHook]> {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).validating()
    }

    fn mutating_policies(&self) -> Arc<[MutatingHook]> {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).mutating()
    }

    /// Replaces the manifests of a plugin with `manifests`. Returns whether they differ from the previous manifests.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/manifest/source/source.go, `checkAndReload`.
    /// Rule: LOAD-14.
    pub(crate) fn replace_manifests(&self, phase: Phase, manifests: Manifests) -> bool {
        let mut webhooks = self.webhooks.write().unwrap_or_else(PoisonError::into_inner);
        let (mut mutating, mut validating) = (webhooks.mutating.clone(), webhooks.validating.clone());
        let sources = match phase {
            Phase::Mutating => &mut mutating,
            Phase::Validating => &mut validating,
        };
        if sources.manifests.as_ref().is_some_and(|before| before.hash == manifests.hash) {
            return false;
        }
        *sources = WebhookSources::new(Some(manifests), std::mem::take(&mut sources.api));
        *webhooks = Arc::new(Webhooks { mutating, validating });
        true
    }

    /// Returns all webhooks with the phase in which each is called.
    pub(crate) fn webhooks_in_order(&self) -> Vec<(Phase, Arc<Webhook>)> {
        let webhooks = self.webhooks();
        let of = |phase: Phase, sources: &WebhookSources| {
            sources
                .in_order
                .webhooks()
                .iter()
                .map(move |webhook| (phase, Arc::clone(webhook)))
                .collect::<Vec<_>>()
        };
        let mut all = of(Phase::Mutating, &webhooks.mutating);
        all.extend(of(Phase::Validating, &webhooks.validating));
        all
    }

    fn webhooks(&self) -> Arc<Webhooks> {
        Arc::clone(&self.webhooks.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<'a> RequestAdmission<'a> {
    /// Begins the admission run of one attempt; `times` is the precision of the object's timestamps.
    pub(crate) fn begin(&self, attributes: Attributes, times: TimePrecision) -> AdmissionRun<'a> {
        let state = &self.admission.state;
        AdmissionRun::new(attributes, times, &**state)
            .with_authorizer(Arc::clone(&state.authorizer))
            .explaining_policies(self.reasons == SkipReasons::Recorded)
    }

    /// Runs the mutating phase and adds its events to the record of the request.
    ///
    /// Rule: AUD-10.
    ///
    /// # Errors
    /// Returns the Status that the client receives.
    pub(crate) async fn mutate(&mut self, run: &mut AdmissionRun<'a>) -> Result<(), Box<Status>> {
        let webhooks = self.admission.webhooks();
        let policies = self.admission.mutating_policies();
        let (first, last) = self.plugins();
        let chain = self.chain(&webhooks, (&policies, &[]), &first, &last);
        let done = self.until_disconnected(pin!(self.admission.dispatcher.mutate(run, &chain))).await;
        self.take_over(run);
        self.in_time(run.attributes().operation)?;
        done.map_err(refused)
    }

    /// Runs the validating phase and adds its events to the record of the request.
    ///
    /// Rule: AUD-10.
    ///
    /// # Errors
    /// Returns the Status that the client receives.
    pub(crate) async fn validate(&mut self, run: &mut AdmissionRun<'a>) -> Result<(), Box<Status>> {
        let webhooks = self.admission.webhooks();
        let policies = self.admission.validating_policies();
        let (first, last) = self.plugins();
        let chain = self.chain(&webhooks, (&[], &policies), &first, &last);
        let done = self.until_disconnected(pin!(self.admission.dispatcher.validate(run, &chain))).await;
        self.take_over(run);
        self.in_time(run.attributes().operation)?;
        done.map_err(refused)
    }

    /// Runs a phase until it completes or the client disconnects.
    ///
    /// The phase is pinned so that nested futures do not copy it.
    async fn until_disconnected(
        &self,
        phase: Pin<&mut impl Future<Output = Result<(), Rejection>>>,
    ) -> Result<(), Rejection> {
        match &self.client_disconnect {
            Some(client_disconnect) => client_disconnect.run_admission(phase).await,
            None => phase.await,
        }
    }

    /// Counts the events of a phase in the metrics and appends them to the record of the request.
    ///
    /// The runs of one request can have different operations: a patch of a missing object may create it.
    fn take_over(&mut self, run: &mut AdmissionRun<'a>) {
        let record = std::mem::take(&mut run.record);
        self.operation.get_or_insert(run.attributes().operation);
        self.admission.metrics.observe(run.attributes().operation, &record);
        self.record.append(record);
    }

    /// Returns whether the deadline of the request has passed.
    pub(crate) fn is_out_of_time(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Fails a request whose deadline has passed, regardless of the webhook responses.
    ///
    /// CONNECT does not have a deadline.
    ///
    /// Rule: ERR-16, HTTP-06, VAL-08.
    ///
    /// # Errors
    /// Returns 504 if the deadline has passed.
    fn in_time(&mut self, operation: Operation) -> Result<(), Box<Status>> {
        if operation == Operation::Connect || !self.is_out_of_time() {
            return Ok(());
        }
        self.record.cut_off = Some(self.deadline.saturating_duration_since(self.started));
        Err(time_limit::exceeded())
    }

    /// Returns the plugins that run before the webhooks and the plugins that run after the webhooks.
    fn plugins(&self) -> (Vec<&'a dyn Plugin>, Vec<&'a dyn Plugin>) {
        let Plugins { first, last } = &self.admission.plugins;
        (first.iter().map(|plugin| &**plugin).collect(), last.iter().map(|plugin| &**plugin).collect())
    }

    fn chain<'c>(
        &'c self,
        webhooks: &'c Webhooks,
        (mutating_policies, validating_policies): (&'c [MutatingHook], &'c [ValidatingHook]),
        plugins: &'c [&'c dyn Plugin],
        last: &'c [&'c dyn Plugin],
    ) -> DispatchContext<'c>
    where
        Self: 'c,
    {
        let selection = &self.admission.selection;
        let (mutating, validating) =
            (webhooks.mutating.dispatched(self.reasons), webhooks.validating.dispatched(self.reasons));
        DispatchContext {
            mutating: selection.has(Phase::Mutating.webhook_plugin()).then_some(mutating),
            validating: selection.has(Phase::Validating.webhook_plugin()).then_some(validating),
            mutating_policies: selection.has("MutatingAdmissionPolicy").then_some(mutating_policies),
            validating_policies: selection.has("ValidatingAdmissionPolicy").then_some(validating_policies),
            plugins,
            last,
            started: self.started,
            deadline: Some(self.deadline),
            trace: Some(&self.trace),
            metrics: Some(&self.admission.metrics),
        }
    }
}

fn refused(refusal: Rejection) -> Box<Status> {
    match refusal {
        Rejection::Status(status) => status,
        Rejection::Unsupported(unsupported) => Box::new(Status::unsupported(&unsupported)),
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::storage::{Key, Storage};

    #[test]
    fn webhooks_are_ordered_by_configuration_name() {
        let storage = Storage::default();
        for (name, webhooks) in [("b", &["z.x.y", "a.x.y"][..]), ("a-b", &["q.x.y"]), ("a.b", &[])] {
            let webhooks: Vec<Value> = webhooks
                .iter()
                .map(|name| {
                    json!({
                        "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
                        "clientConfig": {"url": "https://webhook.example/"},
                    })
                })
                .collect();
            let key = Key {
                group: GROUP.to_owned(),
                resource: MUTATING.to_owned(),
                namespace: String::new(),
                name: name.to_owned(),
            };
            let configuration = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": name}, "webhooks": webhooks,
            });
            storage.insert(&key, configuration).unwrap();
        }
        let compiled = CompiledConfigurations::new(
            storage.list(GROUP, MUTATING, ""),
            &CompiledConfigurations::default(),
        )
        .unwrap();
        let ids: Vec<String> = compiled.in_order.iter().map(|webhook| webhook.id.to_string()).collect();
        assert_eq!(ids, ["a-b/q.x.y/0", "b/z.x.y/0", "b/a.x.y/0"]);
    }
}
