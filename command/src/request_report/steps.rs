//! Finds the steps in which defaults, plugins, webhooks, and the server change an object.

use harness::attributes::Operation;
use harness::chain::{Request, Sent, Verdict};
use harness::event::{CallResult, Called, Event, Phase, Round};
use harness::patch::Patch;
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
    /// The name of the webhook or of the plugins; omitted for the server itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    /// The configuration of the webhook; omitted for other actors.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) configuration: String,
    /// The round: 1, or 2 for the reinvocation.
    pub(super) round: usize,
    /// The changes of this step.
    pub(super) changes: Vec<Change>,
}

/// The actors that change objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum By {
    /// The server, which sets the defaults of the API version before admission.
    Defaults,
    /// An admission plugin of the server.
    Plugin,
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
    steps.add(By::Defaults, None, Round::First, body, &read);
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
    } else if sent.verdict == Verdict::Admitted && is_object(&sent.body) {
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
            let Event::Called(called) = event else { continue };
            let Some(before) = shown(called).filter(|_| called.phase == Phase::Mutating) else { continue };
            if let Some(now) = &mut now {
                follow_managed_fields(now, &before);
                // Objects of different versions cannot be compared: fields may have different paths.
                if before.get("apiVersion") == now.get("apiVersion") {
                    self.plugins(&mut plugins, called.round, now, &before);
                }
            }
            let after = patched(called, &before, server).unwrap_or_else(|| before.clone());
            self.add(By::Webhook, Some(called), called.round, &before, &after);
            now = Some(after);
        }
        if sent.verdict == Verdict::Admitted && is_object(&sent.body) {
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

    fn add(&mut self, by: By, called: Option<&Called>, round: Round, before: &Value, after: &Value) {
        let changes = changes(before, after);
        if !changes.is_empty() {
            let (name, configuration) = called
                .map(|called| (called.webhook.name.clone(), called.webhook.configuration.clone()))
                .unwrap_or_default();
            self.taken.push(Step { by, name, configuration, round: round.number() + 1, changes });
        }
    }

    /// Adds the steps after the last call, and separates changes by the server itself from changes by plugins.
    fn end(&mut self, plugins: &[&str], changes: Vec<Change>) {
        let is_servers = |change: &Change| {
            plugins.is_empty() || SERVERS_OWN.iter().any(|field| change.path.starts_with(field))
        };
        let (own, of_plugins): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_servers);
        for (by, name, changes) in
            [(By::Plugin, plugins.join(", "), of_plugins), (By::Server, String::new(), own)]
        {
            if !changes.is_empty() {
                self.taken.push(Step { by, name, configuration: String::new(), round: 1, changes });
            }
        }
    }

    /// Attributes the changes between two calls to the plugins that changed the object.
    fn plugins(&mut self, plugins: &mut Vec<&'static str>, round: Round, before: &Value, after: &Value) {
        let count = self.taken.len();
        let by = if plugins.is_empty() { By::Server } else { By::Plugin };
        self.add(by, None, round, before, after);
        if let Some(step) = self.taken.get_mut(count) {
            step.name = plugins.join(", ");
        }
        plugins.clear();
    }
}

/// Returns the object that the `AdmissionReview` of a call contains.
pub(crate) fn shown(called: &Called) -> Option<Value> {
    let mut review: Value = serde_json::from_slice(&called.review).ok()?;
    Some(review.pointer_mut("/request/object")?.take()).filter(|object| !object.is_null())
}

/// Returns the object after the call, or `None` if the call did not patch it.
pub(crate) fn patched(called: &Called, before: &Value, server: &ApiServer) -> Option<Value> {
    let CallResult::Allowed { patch: Some(operations), .. } = &called.result else { return None };
    let patch = Patch::decode(&serde_json::to_vec(&**operations).ok()?).ok()?;
    let mut after = patch.apply(before).ok()?;
    server.set_defaults(&mut after);
    Some(after)
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
