//! The way of the object: what was sent, what the server filled in, what each webhook made of it, what is stored.

use harness::attributes::Operation;
use harness::chain::{Request, Sent, Verdict};
use harness::event::{CallResult, Called, Event, Phase, Round};
use harness::patch::Patch;
use harness::server::ApiServer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::difference::{Change, changes};

/// Somebody changed the object.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    /// Who.
    pub(super) by: By,
    /// The name of the webhook or of the plugins; left out for the server itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    /// The configuration of the webhook; left out for others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) configuration: String,
    /// 1, or 2 for the reinvocation.
    pub(super) round: usize,
    /// What.
    pub(super) changes: Vec<Change>,
}

/// Who changes objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum By {
    /// The version's defaults, before admission.
    Defaults,
    /// The server's own admission plugins.
    Plugin,
    /// A webhook: its patch, and the defaults of what it added.
    Webhook,
    /// The server, after admission: `uid`, times, status.
    Server,
}

/// The way of the object.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) taken: Vec<Step>,
    /// The object at the end; none if there is none.
    pub(super) last: Option<Value>,
}

/// The steps of a request, made from its record: a review shows the object before the call, its patch what the call did.
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

/// The steps of a request without an object: a patch shows its object when a webhook is called; others have none.
fn of_patch(request: &Request, sent: &Sent, server: &ApiServer) -> Steps {
    let mut steps = Steps::default();
    if matches!(request.operation, Operation::Create | Operation::Update) {
        steps.go_on(None, sent, server);
    } else if sent.verdict == Verdict::Admitted && is_object(&sent.body) {
        steps.last = Some(without_managed_fields(sent.body.clone()));
    }
    steps
}

/// The record of who set which field is no step, as `kubectl` does not show it either; that a webhook changes it is one.
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
    /// From `now` on, which is not known before the first call of a patch, to the end.
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
                // In another version of the same object everything may stand elsewhere.
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

    /// After the last call, what the server itself writes is told apart from what plugins did before it.
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

    /// What lies between two calls is the plugins' doing.
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

/// The object as a review shows it.
pub(in crate::review) fn shown(called: &Called) -> Option<Value> {
    let mut review: Value = serde_json::from_slice(&called.review).ok()?;
    Some(review.pointer_mut("/request/object")?.take()).filter(|object| !object.is_null())
}

/// The object after the call; none if the call did not patch it.
pub(in crate::review) fn patched(called: &Called, before: &Value, server: &ApiServer) -> Option<Value> {
    let CallResult::Allowed { patch: Some(operations), .. } = &called.result else { return None };
    let patch = Patch::decode(&serde_json::to_vec(&**operations).ok()?).ok()?;
    let mut after = patch.apply(before).ok()?;
    server.set_defaults(&mut after);
    Some(after)
}

/// Whether a body is an object of the API rather than a Status.
fn is_object(body: &Value) -> bool {
    body.get("kind").is_some_and(|kind| kind != "Status")
}

/// What the server writes when it stores an object.
const SERVERS_OWN: [&str; 5] = [
    "metadata.uid",
    "metadata.creationTimestamp",
    "metadata.generation",
    "metadata.resourceVersion",
    "status",
];
