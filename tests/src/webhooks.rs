//! Runs the webhooks of a case, and creates the configurations that refer to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Authority, Behavior, Entry, Fake, FakeWebhook, Hang, Timeout};
use serde_json::{Map, Value, json};

use crate::case::{Case, Kind, Reach, Webhook};
use crate::concurrent_requests::ConcurrentRequests;
use crate::names::{CASE_LABEL, MARKER, Names};
use crate::objects::member;
use crate::run_error::RunError;
use crate::server::{Server, configuration_kind};

/// The running webhooks of a case.
#[derive(Debug)]
pub(crate) struct Webhooks {
    running: Vec<Running>,
}

/// One webhook that the server can call.
#[derive(Debug)]
struct Running {
    webhook: Webhook,
    behavior: Behavior,
    fake: Arc<FakeWebhook>,
    /// Whether the webhook runs as long as the server. During the requests of a case, it behaves as the case specifies.
    is_standing: bool,
    /// The number of journal entries that have been read.
    seen: u64,
}

/// A webhook call, with the position of the webhook in the case.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) place: usize,
    pub(crate) kind: Kind,
    pub(crate) webhook: String,
    pub(crate) entry: Entry,
}

/// The response delay of the webhooks that must not respond first.
const HANDICAP: Duration = Duration::from_millis(400);

impl Webhooks {
    /// Starts the fakes. If `first` names a webhook, the other webhooks in the race respond later.
    pub(crate) async fn start(
        case: &Case,
        server: &Server,
        first: Option<&str>,
        concurrent_requests: Option<&ConcurrentRequests>,
    ) -> Result<Self, RunError> {
        let mut running = Vec::new();
        for webhook in &case.webhooks {
            let is_late =
                first.is_some_and(|first| first != webhook.name && case.race.contains(&webhook.name));
            let behavior = if is_late {
                Behavior::Timeout(Timeout {
                    hang: Hang::For(HANDICAP),
                    then: Box::new(webhook.behavior.clone()),
                })
            } else {
                webhook.behavior.clone()
            };
            let behavior = match concurrent_requests {
                Some(concurrent_requests) if !webhook.meanwhile.is_empty() => {
                    concurrent_requests.behavior(&webhook.name, &behavior)?
                }
                Some(_) | None => behavior,
            };
            if let Some(fake) = server.standing(&webhook.name) {
                let seen = fake.journal().last().map_or(0, |entry| entry.number);
                running.push(Running { webhook: webhook.clone(), behavior, fake, is_standing: true, seen });
                continue;
            }
            let fake = FakeWebhook::start(Fake {
                behavior: behavior.clone(),
                certificate: webhook.certificate,
                rotate: webhook.rotate,
                connection: webhook.connection,
                http: webhook.http,
                names: webhook.names.clone(),
                authority: Authority::Shared(Arc::clone(&server.authority)),
                ..Fake::default()
            })
            .await?;
            let fake = Arc::new(fake);
            running.push(Running { webhook: webhook.clone(), behavior, fake, is_standing: false, seen: 0 });
        }
        Ok(Self { running })
    }

    /// Returns the kinds of configurations in the case.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let made = self.running.iter().filter(|it| !it.webhook.in_file);
        let mut kinds: Vec<Kind> = made.map(|it| it.webhook.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Returns the configurations to write, sorted by kind and name.
    pub(crate) fn configurations(&self, names: &Names) -> Vec<(Kind, Value)> {
        let mut configurations: BTreeMap<(Kind, String), Vec<Value>> = BTreeMap::new();
        for running in self.running.iter().filter(|it| !it.webhook.in_file) {
            let webhook = &running.webhook;
            let key = (webhook.kind, names.configuration(&webhook.configuration));
            configurations.entry(key).or_default().push(running.entry(names));
        }
        let configurations = configurations.into_iter().map(|((kind, name), webhooks)| {
            let object = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": configuration_kind(kind).0,
                "metadata": {"name": name}, "webhooks": webhooks,
            });
            (kind, object)
        });
        configurations.collect()
    }

    /// Returns the mutating webhooks in dispatch order, as pairs of configuration and name.
    pub(crate) fn dispatch_order(&self, names: &Names) -> Vec<(String, String)> {
        let mut order: Vec<(String, String)> = self
            .running
            .iter()
            .filter(|it| it.webhook.kind == Kind::Mutating)
            .map(|it| (names.configuration(&it.webhook.configuration), names.webhook(&it.webhook.name)))
            .collect();
        order.sort_by(|one, other| one.0.cmp(&other.0));
        order
    }

    /// Returns the calls since the last call of this function, in order of arrival.
    ///
    /// Validating webhooks are called concurrently, so their calls are in the order in which the case lists the
    /// webhooks.
    pub(crate) fn new_calls(&mut self, unordered: bool) -> Vec<Call> {
        let mut calls = Vec::new();
        for (place, running) in self.running.iter_mut().enumerate() {
            for entry in running.fake.journal() {
                if entry.number > running.seen {
                    running.seen = entry.number;
                    // Requests of the suite itself on a shared server.
                    if running.is_standing && subject(&entry).contains(MARKER) {
                        continue;
                    }
                    if is_conversion(&entry) {
                        continue;
                    }
                    calls.push(Call {
                        place,
                        kind: running.webhook.kind,
                        webhook: running.webhook.name.clone(),
                        entry,
                    });
                }
            }
        }
        calls.sort_by_key(|call| call.entry.time);
        if unordered {
            calls.sort_by_cached_key(|call| (call.place, subject(&call.entry)));
            return calls;
        }
        for run in calls.chunk_by_mut(|one, other| one.kind == other.kind) {
            if run.first().is_some_and(|call| call.kind == Kind::Validating) {
                run.sort_by_key(|call| call.place);
            }
        }
        calls
    }

    /// Discards all calls so far, and resets the call counts.
    pub(crate) fn start_anew(&mut self) {
        let calls = self.new_calls(true);
        for running in self.running.iter().filter(|it| it.is_standing || !calls.is_empty()) {
            running.fake.set_behavior(running.behavior.clone());
        }
    }

    /// Returns the ports of all webhooks, each with the webhook's name.
    pub(crate) fn ports(&self) -> Vec<(u16, String)> {
        self.running.iter().map(|it| (it.fake.address().port(), it.webhook.name.clone())).collect()
    }
}

/// Returns whether a conversion webhook should have received a call.
///
/// The port of a converter is free after its case, while the server still deletes the custom resources of that case.
fn is_conversion(entry: &Entry) -> bool {
    entry.review().is_some_and(|review| review["kind"] == "ConversionReview")
}

/// Returns the sort key of a review for requests whose calls have no order.
fn subject(entry: &Entry) -> String {
    let review = entry.review().unwrap_or_default();
    let name = |pointer: &str| review.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    format!("{}{}", name("/request/object/metadata/name"), name("/request/oldObject/metadata/name"))
}

impl Running {
    /// Returns the webhook's entry in its configuration, with the fields that a case may omit.
    fn entry(&self, names: &Names) -> Value {
        let webhook = &self.webhook;
        let mut entry = Map::new();
        entry.insert("name".to_owned(), json!(names.webhook(&webhook.name)));
        entry.insert("sideEffects".to_owned(), json!("None"));
        entry.insert("admissionReviewVersions".to_owned(), json!(["v1"]));
        entry.insert(
            "rules".to_owned(),
            json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]),
        );
        let url = format!("https://127.0.0.1:{}{}", self.fake.address().port(), webhook.path);
        let bundle = STANDARD.encode(self.fake.ca_bundle());
        entry.insert("clientConfig".to_owned(), json!({"url": url, "caBundle": bundle}));
        for (name, value) in &webhook.fields {
            if name == "clientConfig" {
                // Fields of the case are added to those that the fake needs, or replace them.
                let mut merged = json!({"url": url, "caBundle": bundle});
                merge(&mut merged, value);
                entry.insert(name.clone(), with_port(merged, self.fake.address().port()));
            } else {
                entry.insert(name.clone(), value.clone());
            }
        }
        let mut entry = Value::Object(entry);
        match webhook.reach {
            Reach::AsWritten => {}
            Reach::Case => {
                member(member(&mut entry, "namespaceSelector"), "matchLabels")[CASE_LABEL] =
                    json!(names.id());
            }
        }
        entry
    }
}

/// Applies a merge patch (RFC 7396).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in members {
        if value.is_null() {
            if let Some(object) = target.as_object_mut() {
                object.remove(key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// Replaces `<port>` in a URL, and port 0 of a service, with the port of the fake.
fn with_port(mut config: Value, port: u16) -> Value {
    if let Some(url) = config.get("url").and_then(Value::as_str) {
        config["url"] = json!(url.replace("<port>", &port.to_string()));
    }
    if config.pointer("/service/port") == Some(&json!(0)) {
        config["service"]["port"] = json!(port);
    }
    config
}

/// Returns the request that a webhook received, in the format of recordings.
pub(crate) fn sent(entry: &Entry) -> Value {
    let query = if entry.query.is_empty() { String::new() } else { format!("?{}", entry.query) };
    let headers: Map<String, Value> = entry
        .headers
        .iter()
        .filter(|(name, _)| name != "content-length")
        .map(|(name, value)| (name.clone(), Value::from(value.clone())))
        .collect();
    json!({
        "request": format!("{} {}{query} {:?}", entry.method, entry.path, entry.version),
        "headers": headers,
        "review": entry.review().unwrap_or_else(|| Value::from(String::from_utf8_lossy(&entry.body).into_owned())),
    })
}
