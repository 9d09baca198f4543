//! Finds the steps in which defaults, plugins, webhooks, and the server change an object.

use harness::attributes::Operation;
use harness::chain::{Request, Sent, Verdict};
use harness::event::{CallResult, Called, Event, Phase, Round};
use harness::patch::Patch;
use harness::policy::{PoliciesChecked, PolicyChange};
use harness::server::ApiServer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::difference::{Change, changes};

/// A step that changed the object.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    /// The actor that changed the object.
    pub(super) by: By,
    /// The name of the webhook, of the policy, or of the plugins; omitted for the server itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    /// The configuration of the webhook; omitted for other actors.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) configuration: String,
    /// The `metadata.name` of the policy's binding; omitted for other actors.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) binding: String,
    /// The param of the policy, as `NAMESPACE/NAME` or `NAME`; omitted without a param.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) param: String,
    /// The round: 1, or 2 for the reinvocation.
    pub(super) round: usize,
    /// The changes of this step.
    pub(super) changes: Vec<Change>,
}

impl Step {
    /// Creates a step without a name and changes.
    fn new(by: By, round: Round) -> Self {
        Self {
            by,
            name: String::new(),
            configuration: String::new(),
            binding: String::new(),
            param: String::new(),
            round: round.number() + 1,
            changes: Vec::new(),
        }
    }
}

/// The actors that change objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum By {
    /// The server, which sets the defaults of the API version before admission.
    Defaults,
    /// An admission plugin of the server.
    Plugin,
    /// A mutating admission policy: the step contains its mutations and the defaults of the fields that it added.
    Policy,
    /// A webhook: the step contains its patch and the defaults of the fields that it added.
    Webhook,
    /// The server, which sets `uid`, timestamps, and status after admission.
    Server,
}

/// All steps that changed an object.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) taken: Vec<Step>,
    /// The final object, if any.
    pub(super) last: Option<Value>,
}

/// Reconstructs the steps of a request from its record.
///
/// The object before a call is in the `AdmissionReview`, and the changes are in the patch of the response.
pub(super) fn steps(request: &Request, sent: &Sent, server: &ApiServer, namespaced: bool) -> Steps {
    let mut steps = Steps::default();
    let Some(body) = &request.body else { return of_patch(request, sent, server) };
    let Some(read) = sent.read.clone().filter(|read| read.get("metadata").is_some()) else { return steps };
    steps.add(Step::new(By::Defaults, Round::First), changes(body, &read));
    let mut now = read;
    if namespaced
        && now.pointer("/metadata/namespace").is_none()
        && let Some(Value::Object(metadata)) = now.get_mut("metadata")
    {
        metadata.insert("namespace".to_owned(), request.namespace.clone().into());
    }
    for field in ["uid", "creationTimestamp"] {
        if let Some(metadata) = now.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove(field);
        }
    }
    steps.go_on(Some(now), sent, server);
    steps
}

/// Returns the steps of a request whose body does not contain an object.
///
/// The first webhook call of a patch request contains its object. Other requests do not have an object.
fn of_patch(request: &Request, sent: &Sent, server: &ApiServer) -> Steps {
    let mut steps = Steps::default();
    if matches!(request.operation, Operation::Create | Operation::Update) {
        steps.go_on(None, sent, server);
    } else if sent.provisional == Verdict::Admitted && is_object(&sent.body) {
        steps.last = Some(without_managed_fields(sent.body.clone()));
    }
    steps
}

/// Copies `managedFields` from `later`.
///
/// Changes to `managedFields` by webhooks are steps. Changes by the server are not, and kubectl does not show them.
fn follow_managed_fields(object: &mut Value, later: &Value) {
    let entries = later.pointer("/metadata/managedFields").cloned();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        metadata.extend(entries.map(|entries| ("managedFields".to_owned(), entries)));
    }
}

fn without_managed_fields(mut object: Value) -> Value {
    follow_managed_fields(&mut object, &Value::Null);
    object
}

impl Steps {
    /// Adds the steps that start from the object `now`, up to the final object.
    ///
    /// For a patch, `now` is `None`, because the object is unknown before the first call.
    fn go_on(&mut self, mut now: Option<Value>, sent: &Sent, server: &ApiServer) {
        let mut plugins = Vec::new();
        for event in &sent.record.events {
            if let Event::PluginChanged { plugin, .. } = event {
                plugins.push(*plugin);
            }
            if let Event::Policies(checked) = event {
                for (policy, change) in policy_changes(checked) {
                    self.actor(policy, &mut plugins, &mut now, &change.before, change.after.clone());
                }
            }
            let Event::Called(called) = event else { continue };
            let Some(before) = shown(called).filter(|_| called.phase == Phase::Mutating) else { continue };
            let after = patched(called, &before, server).unwrap_or_else(|| before.clone());
            let webhook = Step {
                name: called.webhook.name.clone(),
                configuration: called.webhook.configuration.clone(),
                ..Step::new(By::Webhook, called.round)
            };
            self.actor(webhook, &mut plugins, &mut now, &before, after);
        }
        if sent.provisional == Verdict::Admitted && is_object(&sent.body) {
            if let Some(now) = &mut now {
                follow_managed_fields(now, &sent.body);
                if sent.body.get("apiVersion") == now.get("apiVersion") {
                    self.end(&plugins, changes(now, &sent.body));
                }
            }
            now = Some(sent.body.clone());
        }
        self.last = now.map(without_managed_fields);
    }

    /// Adds the step of a webhook or a policy, after the changes by plugins between `now` and the object `before`.
    fn actor(
        &mut self,
        step: Step,
        plugins: &mut Vec<&'static str>,
        now: &mut Option<Value>,
        before: &Value,
        after: Value,
    ) {
        if let Some(now) = now {
            follow_managed_fields(now, before);
            // Objects of different versions cannot be compared: fields may have different paths.
            if before.get("apiVersion") == now.get("apiVersion") {
                let by = if plugins.is_empty() { By::Server } else { By::Plugin };
                let between =
                    Step { name: plugins.join(", "), round: step.round, ..Step::new(by, Round::First) };
                self.add(between, changes(now, before));
                plugins.clear();
            }
        }
        self.add(step, changes(before, &after));
        *now = Some(after);
    }

    /// Adds a step, unless it does not have changes.
    fn add(&mut self, step: Step, changes: Vec<Change>) {
        if !changes.is_empty() {
            self.taken.push(Step { changes, ..step });
        }
    }

    /// Adds the steps after the last call, and separates changes by the server itself from changes by plugins.
    fn end(&mut self, plugins: &[&str], changes: Vec<Change>) {
        let is_servers = |change: &Change| {
            plugins.is_empty() || SERVERS_OWN.iter().any(|field| change.path.starts_with(field))
        };
        let (own, of_plugins): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_servers);
        let name = plugins.join(", ");
        self.add(Step { name, ..Step::new(By::Plugin, Round::First) }, of_plugins);
        self.add(Step::new(By::Server, Round::First), own);
    }
}

/// Returns the changes by the mutating policies of a round, each with its step without the changes.
pub(super) fn policy_changes(checked: &PoliciesChecked) -> impl Iterator<Item = (Step, &PolicyChange)> {
    let bindings = checked
        .policies
        .iter()
        .flat_map(|policy| policy.bindings.iter().map(move |binding| (policy, binding)));
    let runs =
        bindings.flat_map(|(policy, binding)| binding.runs.iter().map(move |run| (policy, binding, run)));
    runs.filter_map(|(policy, binding, run)| {
        let step = Step {
            name: policy.policy.to_string(),
            binding: binding.binding.to_string(),
            param: run.param.clone().unwrap_or_default(),
            ..Step::new(By::Policy, checked.round)
        };
        Some((step, run.change.as_deref()?))
    })
}

/// Returns the object that the `AdmissionReview` of a call contains.
pub(crate) fn shown(called: &Called) -> Option<Value> {
    let mut review: Value = serde_json::from_slice(&called.review).ok()?;
    Some(review.pointer_mut("/request/object")?.take()).filter(|object| !object.is_null())
}

/// Returns the object after the call, or `None` if the call did not patch it.
pub(crate) fn patched(called: &Called, before: &Value, server: &ApiServer) -> Option<Value> {
    let mut after = patch_alone(called, before)?;
    server.set_defaults(&mut after);
    Some(after)
}

/// Returns the object after the patch of a call, before the API server decodes it; `None` if the call did not patch it.
pub(super) fn patch_alone(called: &Called, before: &Value) -> Option<Value> {
    let CallResult::Allowed { patch: Some(operations), .. } = &called.result else { return None };
    Patch::decode(&serde_json::to_vec(&**operations).ok()?).ok()?.apply(before).ok()
}

/// Returns whether `body` is an API object rather than a `Status`.
fn is_object(body: &Value) -> bool {
    body.get("kind").is_some_and(|kind| kind != "Status")
}

/// The fields that the server sets when it stores an object.
const SERVERS_OWN: [&str; 5] = [
    "metadata.uid",
    "metadata.creationTimestamp",
    "metadata.generation",
    "metadata.resourceVersion",
    "status",
];
