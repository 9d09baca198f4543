//! How the server asks the dispatcher.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError, RwLock};

use admission_webhook_client::HttpsCaller;
use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_admission::attributes::{Attributes, GroupVersionResource, Operation};
use kubernetes_admission::config::{self, ConfigError, Webhook};
use kubernetes_admission::converter::Converter;
use kubernetes_admission::dispatcher::{DispatchContext, Dispatcher, Refusal, Webhooks as Dispatched};
use kubernetes_admission::event::{Phase, Record};
use kubernetes_admission::manifests::{Manifests, StaticManifests};
use kubernetes_admission::matching::WebhookIndex;
use kubernetes_admission::metrics::Metrics;
use kubernetes_admission::ownership::TimePrecision;
use kubernetes_admission::plugin::Plugin;
use kubernetes_admission::trace_context::TraceContext;
use kubernetes_types::status::Status;
use serde_json::Value;
use tokio::time::Instant;

use super::departure::Departure;
use super::plugins::{AdmissionPlugins, PluginConfiguration, Plugins};
use super::state::State;
use super::storage::ObjectReader;
use super::time_limit;

pub(super) const GROUP: &str = "admissionregistration.k8s.io";
pub(super) const MUTATING: &str = "mutatingwebhookconfigurations";
pub(super) const VALIDATING: &str = "validatingwebhookconfigurations";

/// The dispatcher with what it admits requests by.
pub(super) struct Admission {
    dispatcher: Dispatcher<HttpsCaller>,
    plugins: Plugins,
    selection: AdmissionPlugins,
    state: Arc<State>,
    webhooks: RwLock<Arc<Webhooks>>,
    pub(super) metrics: Metrics,
}

/// The webhooks of all configurations.
#[derive(Debug, Default)]
struct Webhooks {
    mutating: Sources,
    validating: Sources,
}

/// The webhooks of one half, from files and from the API.
#[derive(Clone, Debug, Default)]
struct Sources {
    /// None if the plugin has no folder.
    manifests: Option<Manifests>,
    api: Compiled,
    /// In the order in which they are called: those from files come first.
    in_order: WebhookIndex,
}

/// Whether the record of a request says of each webhook that is not called why it is not.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reasons {
    Recorded,
    Omitted,
}

impl Sources {
    /// Source: apiserver `pkg/admission/plugin/webhook/generic/composite_webhook_source.go`, `Webhooks`.
    /// Rule: LOAD-10.
    fn new(manifests: Option<Manifests>, api: Compiled) -> Self {
        let from_files = manifests.iter().flat_map(|manifests| &manifests.webhooks);
        let in_order = WebhookIndex::new(from_files.chain(&api.in_order).cloned().collect());
        Self { manifests, api, in_order }
    }

    fn dispatched(&self, reasons: Reasons) -> Dispatched<'_> {
        match reasons {
            Reasons::Recorded => Dispatched::Listed(self.in_order.webhooks()),
            Reasons::Omitted => Dispatched::Indexed(&self.in_order),
        }
    }
}

/// The configurations of one kind, read. What did not change is not read again.
///
/// Source: apiserver `pkg/admission/configuration/mutating_webhook_manager.go`, `configurationsCache` and
/// `MutatingWebhookConfigurationSorter`.
/// Rule: LOAD-04, LOAD-06.
#[derive(Clone, Debug, Default)]
struct Compiled {
    configurations: Vec<(Arc<Value>, Vec<Arc<Webhook>>)>,
    /// In the order in which they are called: by the names of the configurations, compared byte by byte, and in the
    /// author's order inside each.
    in_order: Vec<Arc<Webhook>>,
}

impl Compiled {
    /// `stored` is sorted by name, as the storage lists it.
    fn new(stored: Vec<Arc<Value>>, before: &Self) -> Result<Self, ConfigError> {
        let mut configurations = Vec::with_capacity(stored.len());
        for configuration in stored {
            let known = before.configurations.iter().find(|(known, _)| Arc::ptr_eq(known, &configuration));
            let webhooks = match known {
                Some((_, webhooks)) => webhooks.clone(),
                None => config::stored_webhooks(&configuration)?.into_iter().map(Arc::new).collect(),
            };
            configurations.push((configuration, webhooks));
        }
        let in_order = configurations.iter().flat_map(|(_, webhooks)| webhooks).cloned().collect();
        Ok(Self { configurations, in_order })
    }
}

/// What admits one request, in a run for each attempt.
#[derive(Debug)]
pub(super) struct Admitting<'a> {
    pub(super) admission: &'a Admission,
    pub(super) started: Instant,
    pub(super) deadline: Instant,
    pub(super) trace: TraceContext,
    pub(super) reasons: Reasons,
    /// What happened in all runs.
    pub(super) record: Record,
    /// What the first run was about; none before it ends.
    pub(super) operation: Option<Operation>,
    /// Whether the client has gone, if it is to be told.
    pub(super) departure: Option<Arc<Departure>>,
}

impl Admission {
    /// Webhooks are called with what `converter` calls conversion webhooks with.
    pub(super) fn new(
        state: &Arc<State>,
        converter: Arc<Converter<HttpsCaller>>,
        manifests: StaticManifests,
        (selection, configuration): (AdmissionPlugins, &PluginConfiguration),
        metrics: Metrics,
    ) -> Self {
        let StaticManifests { mutating, validating } = manifests;
        let webhooks = Webhooks {
            mutating: Sources::new(mutating, Compiled::default()),
            validating: Sources::new(validating, Compiled::default()),
        };
        let objects: Arc<dyn ObjectReader> = Arc::clone(&state.storage) as Arc<dyn ObjectReader>;
        Self {
            dispatcher: Dispatcher::with_converter(converter),
            plugins: Plugins::new(&selection, configuration, &objects),
            selection,
            state: Arc::clone(state),
            webhooks: RwLock::new(Arc::new(webhooks)),
            metrics,
        }
    }

    /// Whether an admission plugin, by its name, is on.
    pub(super) fn runs(&self, plugin: &str) -> bool {
        self.selection.has(plugin)
    }

    /// Whether a webhook has a rule for these requests for a cluster-scoped resource.
    pub(super) fn has_rule_for(
        &self,
        operation: Operation,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> bool {
        let webhooks = self.webhooks();
        let has_rule = |sources: &Sources| sources.in_order.has_rule_for(operation, resource, subresource);
        has_rule(&webhooks.mutating) || has_rule(&webhooks.validating)
    }

    /// Takes over the stored configurations.
    ///
    /// # Errors
    /// The Status of the first configuration that cannot be read; the webhooks stay as they were.
    pub(super) fn reload_webhooks(&self) -> Result<(), Box<Status>> {
        let mut webhooks = self.webhooks.write().unwrap_or_else(PoisonError::into_inner);
        let of = |resource: &str, before: &Sources| {
            Compiled::new(self.state.storage.list(GROUP, resource, ""), &before.api)
                .map(|api| Sources::new(before.manifests.clone(), api))
                .map_err(|error| Box::new(Status::internal_error(&error.to_string())))
        };
        let mutating = of(MUTATING, &webhooks.mutating)?;
        let validating = of(VALIDATING, &webhooks.validating)?;
        *webhooks = Arc::new(Webhooks { mutating, validating });
        Ok(())
    }

    /// Takes over what the folder of a plugin holds now; whether that is something new.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/manifest/source/source.go, `checkAndReload`.
    /// Rule: LOAD-14.
    pub(super) fn replace_manifests(&self, phase: Phase, manifests: Manifests) -> bool {
        let mut webhooks = self.webhooks.write().unwrap_or_else(PoisonError::into_inner);
        let (mut mutating, mut validating) = (webhooks.mutating.clone(), webhooks.validating.clone());
        let sources = match phase {
            Phase::Mutating => &mut mutating,
            Phase::Validating => &mut validating,
        };
        if sources.manifests.as_ref().is_some_and(|before| before.hash == manifests.hash) {
            return false;
        }
        *sources = Sources::new(Some(manifests), std::mem::take(&mut sources.api));
        *webhooks = Arc::new(Webhooks { mutating, validating });
        true
    }

    /// All webhooks, with the phases in which they are called.
    pub(super) fn webhooks_in_order(&self) -> Vec<(Phase, Arc<Webhook>)> {
        let webhooks = self.webhooks();
        let of = |phase: Phase, sources: &Sources| {
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

impl<'a> Admitting<'a> {
    /// Begins a run for one attempt, with an object of these `times`.
    pub(super) fn begin(&self, attributes: Attributes, times: TimePrecision) -> AdmissionRun<'a> {
        let state = &self.admission.state;
        AdmissionRun::new(attributes, times, &**state).with_authorizer(Arc::clone(&state.authorizer))
    }

    /// The mutating phase. What happened in it goes over into the record of the request.
    ///
    /// Rule: AUD-10.
    ///
    /// # Errors
    /// What the client gets.
    pub(super) async fn mutate(&mut self, run: &mut AdmissionRun<'a>) -> Result<(), Box<Status>> {
        let webhooks = self.admission.webhooks();
        let (first, last) = self.plugins();
        let chain = self.chain(&webhooks, &first, &last);
        let done = self.unless_gone(pin!(self.admission.dispatcher.mutate(run, &chain))).await;
        self.take_over(run);
        self.in_time(run.attributes().operation)?;
        done.map_err(refused)
    }

    /// The validating phase, as [`Self::mutate`].
    ///
    /// Rule: AUD-10.
    ///
    /// # Errors
    /// What the client gets.
    pub(super) async fn validate(&mut self, run: &mut AdmissionRun<'a>) -> Result<(), Box<Status>> {
        let webhooks = self.admission.webhooks();
        let (first, last) = self.plugins();
        let chain = self.chain(&webhooks, &first, &last);
        let done = self.unless_gone(pin!(self.admission.dispatcher.validate(run, &chain))).await;
        self.take_over(run);
        self.in_time(run.attributes().operation)?;
        done.map_err(refused)
    }

    /// Behind a pointer the phase is there once, however deep it is awaited.
    async fn unless_gone(
        &self,
        phase: Pin<&mut impl Future<Output = Result<(), Refusal>>>,
    ) -> Result<(), Refusal> {
        match &self.departure {
            Some(departure) => departure.cuts_off(phase).await,
            None => phase.await,
        }
    }

    /// Counts what happened in a phase, and makes it part of what happened to the request. A request may have runs of
    /// several operations: a patch creates an object that is not there.
    fn take_over(&mut self, run: &mut AdmissionRun<'a>) {
        let record = std::mem::take(&mut run.record);
        self.operation.get_or_insert(run.attributes().operation);
        self.admission.metrics.observe(run.attributes().operation, &record);
        self.record.append(record);
    }

    /// Whether the request's own time is up.
    pub(super) fn is_out_of_time(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// The client of a request whose time is up is answered at once, whatever its webhooks make of it. Only who opens a
    /// connection is not.
    ///
    /// Rule: ERR-16, HTTP-06, VAL-08.
    ///
    /// # Errors
    /// 504: the time is up.
    fn in_time(&mut self, operation: Operation) -> Result<(), Box<Status>> {
        if operation == Operation::Connect || !self.is_out_of_time() {
            return Ok(());
        }
        self.record.cut_off = Some(self.deadline.saturating_duration_since(self.started));
        Err(time_limit::exceeded())
    }

    /// The plugins before the webhooks and those after them.
    fn plugins(&self) -> (Vec<&'a dyn Plugin>, Vec<&'a dyn Plugin>) {
        let Plugins { first, last } = &self.admission.plugins;
        (first.iter().map(|plugin| &**plugin).collect(), last.iter().map(|plugin| &**plugin).collect())
    }

    fn chain<'c>(
        &'c self,
        webhooks: &'c Webhooks,
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
            mutating: selection.has("MutatingAdmissionWebhook").then_some(mutating),
            validating: selection.has("ValidatingAdmissionWebhook").then_some(validating),
            plugins,
            last,
            started: self.started,
            deadline: Some(self.deadline),
            trace: Some(&self.trace),
            metrics: Some(&self.admission.metrics),
        }
    }
}

fn refused(refusal: Refusal) -> Box<Status> {
    match refusal {
        Refusal::Status(status) => status,
        Refusal::Unsupported(unsupported) => Box::new(Status::unsupported(&unsupported)),
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

    use super::super::storage::{Key, Storage};
    use super::*;

    #[test]
    fn configurations_are_called_by_name_and_their_webhooks_in_the_authors_order() {
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
        let compiled = Compiled::new(storage.list(GROUP, MUTATING, ""), &Compiled::default()).unwrap();
        let ids: Vec<String> = compiled.in_order.iter().map(|webhook| webhook.id.to_string()).collect();
        assert_eq!(ids, ["a-b/q.x.y/0", "b/z.x.y/0", "b/a.x.y/0"]);
    }
}
