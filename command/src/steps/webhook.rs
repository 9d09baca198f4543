//! Defines steps about the webhooks of a scenario: when they are called and how they respond.

use std::collections::BTreeMap;

use cucumber::given;
use fake_webhooks::{
    AlwaysMutate, BadResponse, Behavior, Certificate, Condition, Connection, ContainerEnv, Deny, Entry,
    Patch, Sequence, Sidecar, StatusCode, Timeout, Transport, When,
};
use gherkin::Step;
use harness::verify::shape::escaped;
use harness::verify::similar_name::by_distance;
use serde_json::{Map, Value, json};

use super::document;
use super::endpoint::{FakeSpec, RunningFake};
use super::failure::{Outcome, StepFailure};
use super::loaded::Loaded;
use super::names::Names;
use super::order::Position;
use super::outcome::listed;
use super::parameter::{Admission, Operations, Ordinal};
use super::service::Service;
use super::world::World;

/// A webhook of the scenario, its fake, and the calls that it received.
#[derive(Debug)]
pub(crate) struct Webhook {
    /// The name of the webhook in the feature file.
    pub(super) short: String,
    /// The admission plugin that calls the webhook.
    pub(super) admission: Admission,
    /// The entry in the webhook configuration, without `clientConfig` and the scenario's `namespaceSelector`.
    pub(super) entry: Value,
    /// For a webhook of a loaded configuration, whether a fake replaces it; `None` for a webhook that a step defines.
    pub(super) loaded: Option<Loaded>,
    /// The position relative to a loaded configuration; `None` if the webhook is in the configuration of the scenario.
    pub(super) position: Option<Position>,
    /// A JSON merge patch for the `clientConfig` that points to the fake.
    pub(super) client_config: Map<String, Value>,
    /// The Service in the `clientConfig`; if `None`, the URL of the fake is used.
    pub(super) service: Option<Service>,
    /// How the fake treats connections.
    pub(super) transport: Transport,
    pub(super) on_call: BTreeMap<usize, Behavior>,
    pub(super) otherwise: Behavior,
    /// The running fake and its current specification; `None` before the configuration is installed.
    pub(super) running: Option<(RunningFake, FakeSpec)>,
    /// The number of the newest call that has been read.
    last_read: u64,
    /// The calls that the last request of a When step caused, oldest first.
    pub(super) calls: Vec<Entry>,
}

impl Webhook {
    pub(super) fn new(short: &str, admission: Admission) -> Self {
        let entry = json!({
            "name": Names::webhook(short), "rules": [], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        });
        Self {
            short: short.to_owned(),
            admission,
            entry,
            loaded: None,
            position: None,
            client_config: Map::new(),
            service: None,
            transport: Transport::default(),
            on_call: BTreeMap::new(),
            otherwise: Behavior::default(),
            running: None,
            last_read: 0,
            calls: Vec::new(),
        }
    }

    /// Returns the specification of the webhook's fake.
    pub(super) fn fake_spec(&self) -> Outcome<FakeSpec> {
        let (admission, transport) = (self.admission, self.transport);
        let names = self.service.iter().map(Service::host).collect();
        Ok(FakeSpec { admission, transport, behavior: self.behavior()?, names })
    }

    /// Returns the behavior of the webhook. It is a sequence if some calls have a specific behavior.
    fn behavior(&self) -> Outcome<Behavior> {
        let Some(last) = self.on_call.keys().max() else {
            return Ok(self.otherwise.clone());
        };
        let on = |call| self.on_call.get(&call).unwrap_or(&self.otherwise).clone();
        let calls: Vec<Behavior> = (1..=last + 1).map(on).collect();
        Ok(Behavior::Sequence(Sequence::try_from(calls).map_err(StepFailure::new)?))
    }

    /// Sets the running fake and discards the calls of the previous fake.
    pub(super) fn set_running(&mut self, running: RunningFake, spec: FakeSpec) {
        self.running = Some((running, spec));
        self.last_read = 0;
    }

    /// Reads the new calls since the last read.
    ///
    /// A fake records a call before the server answers the request that caused it.
    pub(super) async fn read_calls(&mut self) -> Outcome {
        self.calls = match &self.running {
            Some((running, _)) => running.calls_after(self.last_read).await?,
            None => Vec::new(),
        };
        self.last_read = self.calls.last().map_or(self.last_read, |call| call.number);
        self.calls.retain(|call| !is_from_controller(call));
        Ok(())
    }

    fn add_rule(&mut self, resources: &str, group: &str, version: &str) {
        let rule = json!({
            "operations": ["*"], "apiGroups": [group], "apiVersions": [version], "resources": [resources],
        });
        if let Some(rules) = self.entry.get_mut("rules").and_then(Value::as_array_mut) {
            rules.push(rule);
        }
    }

    /// Adds a match condition, or replaces the expression of the existing condition `name`.
    fn add_condition(&mut self, name: &str, expression: &str) {
        let condition = json!({"name": name, "expression": expression});
        let mut conditions = match self.entry.get("matchConditions") {
            Some(Value::Array(conditions)) => conditions.clone(),
            Some(_) | None => Vec::new(),
        };
        match conditions.iter_mut().find(|it| it.get("name").and_then(Value::as_str) == Some(name)) {
            Some(same) => *same = condition,
            None => conditions.push(condition),
        }
        self.set("matchConditions", Value::Array(conditions));
    }

    pub(super) fn set(&mut self, field: &str, value: Value) {
        merge(&mut self.entry, &json!({ field: value }));
    }

    fn operations(&mut self, operations: &[String]) {
        let rules = self.entry.get_mut("rules").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten() {
            merge(rule, &json!({ "operations": operations }));
        }
    }
}

/// Returns whether a controller sent the request. A cluster's controllers also write to the scenario's namespace.
fn is_from_controller(call: &Entry) -> bool {
    let review = call.review().unwrap_or_default();
    let user = review.pointer("/request/userInfo/username").and_then(Value::as_str).unwrap_or_default();
    ["system:serviceaccount:kube-system:", "system:kube-", "system:node:"]
        .iter()
        .any(|it| user.starts_with(it))
}

/// Merges the maps in `from` into the maps in `into` recursively, and replaces all other values.
pub(super) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

impl World {
    /// Returns the webhook with the name `short` in the feature file.
    pub(super) fn webhook(&self, short: &str) -> Outcome<&Webhook> {
        let found = self.webhooks.iter().find(|webhook| webhook.short == short);
        found.ok_or_else(|| self.no_webhook(short))
    }

    /// Returns a mutable reference to a webhook, and marks the installed configurations as outdated.
    pub(super) fn change(&mut self, short: &str) -> Outcome<&mut Webhook> {
        self.adopt_loaded(short);
        let missing = self.no_webhook(short);
        self.installation.expire();
        self.webhooks.iter_mut().find(|webhook| webhook.short == short).ok_or(missing)
    }

    pub(super) fn behave(&mut self, short: &str, behavior: Behavior) -> Outcome {
        self.change_fake(short)?.otherwise = behavior;
        Ok(())
    }

    pub(super) fn behave_on_call(&mut self, short: &str, call: Ordinal, behavior: Behavior) -> Outcome {
        self.change_fake(short)?.on_call.insert(call.0, behavior);
        Ok(())
    }

    fn add_webhook(&mut self, short: &str, admission: Admission) -> Outcome<&mut Webhook> {
        if self.webhooks.iter().any(|webhook| webhook.short == short) {
            return Err(StepFailure::new(format!("the scenario already has a webhook \"{short}\"")));
        }
        self.webhooks.push(Webhook::new(short, admission));
        self.change(short)
    }

    fn no_webhook(&self, short: &str) -> StepFailure {
        let fakes = self.webhooks.iter().filter(|it| it.loaded.is_none()).map(|it| it.short.as_str());
        let own = self.installation.own_webhooks().map(|(_, name)| name);
        let known = listed(&by_distance(short, fakes.chain(own)));
        StepFailure::new(format!("unknown webhook \"{short}\": the scenario defines {known}"))
    }
}

#[given(expr = "a {admission} webhook {string} for {word}")]
fn a_webhook(world: &mut World, admission: Admission, short: String, resources: String) -> Outcome {
    world.add_webhook(&short, admission)?.add_rule(&resources, "*", "*");
    Ok(())
}

#[given(expr = "a {admission} webhook {string} for {word} in {word}")]
fn a_webhook_in_version(
    world: &mut World,
    admission: Admission,
    short: String,
    resources: String,
    api_version: String,
) -> Outcome {
    let (group, version) = group_and_version(&world.names.expand(&api_version));
    world.add_webhook(&short, admission)?.add_rule(&resources, &group, &version);
    Ok(())
}

#[given(expr = "{string} also matches {word} in {word}")]
fn also_matches(world: &mut World, short: String, resources: String, api_version: String) -> Outcome {
    let (group, version) = group_and_version(&world.names.expand(&api_version));
    world.change(&short)?.add_rule(&resources, &group, &version);
    Ok(())
}

#[given(expr = "{string} matches only the operation(s) {operations}")]
fn matches_only_the_operations(world: &mut World, short: String, operations: Operations) -> Outcome {
    world.change(&short)?.operations(&operations.0);
    Ok(())
}

#[given(expr = "{string} has the reinvocation policy {word}")]
fn reinvocation_policy(world: &mut World, short: String, policy: String) -> Outcome {
    world.change(&short)?.set("reinvocationPolicy", json!(policy));
    Ok(())
}

#[given(expr = "{string} has the failure policy {word}")]
fn failure_policy(world: &mut World, short: String, policy: String) -> Outcome {
    world.change(&short)?.set("failurePolicy", json!(policy));
    Ok(())
}

#[given(expr = "{string} has the match policy {word}")]
fn match_policy(world: &mut World, short: String, policy: String) -> Outcome {
    world.change(&short)?.set("matchPolicy", json!(policy));
    Ok(())
}

#[given(expr = "{string} has a timeout of {int} second(s)")]
fn timeout(world: &mut World, short: String, seconds: u32) -> Outcome {
    world.change(&short)?.set("timeoutSeconds", json!(seconds));
    Ok(())
}

#[given(expr = "{string} selects objects with the label {string}")]
fn selects_objects(world: &mut World, short: String, label: String) -> Outcome {
    let (key, value) = label_parts(&label)?;
    world.change(&short)?.set("objectSelector", json!({"matchLabels": {key: value}}));
    Ok(())
}

#[given(expr = "{string} has the match condition {string}:")]
fn has_the_match_condition(world: &mut World, step: &Step, short: String, name: String) -> Outcome {
    let expression = document::text(step)?;
    world.change(&short)?.add_condition(&name, expression.trim());
    Ok(())
}

#[given(expr = "{string} is configured with:")]
fn is_configured_with(world: &mut World, step: &Step, short: String) -> Outcome {
    let mut fields = world.yaml(step)?;
    let webhook = world.change(&short)?;
    if let Some(Value::Object(mut client_config)) =
        fields.as_object_mut().and_then(|it| it.remove("clientConfig"))
    {
        // `url` and `service` replace each other.
        for (given, other) in [("service", "url"), ("url", "service")] {
            if client_config.contains_key(given) && !client_config.contains_key(other) {
                client_config.insert(other.to_owned(), Value::Null);
            }
        }
        webhook.client_config.extend(client_config);
    }
    merge(&mut webhook.entry, &fields);
    Ok(())
}

#[given(expr = "{string} allows the request")]
fn allows_the_request(world: &mut World, short: String) -> Outcome {
    world.behave(&short, Behavior::default())
}

#[given(expr = "{string} behaves like this:")]
fn behaves_like_this(world: &mut World, step: &Step, short: String) -> Outcome {
    let behavior = document::parse_step(step, "invalid behavior", |text| world.names.expand(text))?;
    world.behave(&short, behavior)
}

#[given(expr = "{string} patches the object:")]
fn patches(world: &mut World, step: &Step, short: String) -> Outcome {
    let patch = operations(world, step)?;
    world.behave(&short, patch)
}

#[given(expr = "{string} patches the object on its {ordinal} call:")]
fn patches_on_call(world: &mut World, step: &Step, short: String, call: Ordinal) -> Outcome {
    let patch = operations(world, step)?;
    world.behave_on_call(&short, call, patch)
}

#[given(expr = "{string} adds the label {string}")]
fn adds_label(world: &mut World, short: String, label: String) -> Outcome {
    let label = label_parts(&label)?;
    world.behave(&short, adding("labels", label))
}

#[given(expr = "{string} adds the label {string} on its {ordinal} call")]
fn adds_label_on_call(world: &mut World, short: String, label: String, call: Ordinal) -> Outcome {
    let label = label_parts(&label)?;
    world.behave_on_call(&short, call, adding("labels", label))
}

#[given(expr = "{string} removes the label {string}")]
fn removes_label(world: &mut World, short: String, key: String) -> Outcome {
    world.behave(&short, removing("labels", &key))
}

#[given(expr = "{string} adds the container {string}")]
fn adds_container(world: &mut World, short: String, name: String) -> Outcome {
    world.behave(&short, Behavior::Sidecar(Sidecar { name, ..Sidecar::default() }))
}

#[given(expr = "{string} sets the environment variable {string} in every container")]
fn sets_environment_variable(world: &mut World, short: String, variable: String) -> Outcome {
    let (name, value) = label_parts(&variable)?;
    world.behave(&short, Behavior::ContainerEnv(ContainerEnv { name, value }))
}

#[given(expr = "{string} denies the request with the message {string}")]
fn denies(world: &mut World, short: String, message: String) -> Outcome {
    world.behave(&short, Behavior::Deny(Deny { message: Some(message), ..Deny::default() }))
}

#[given(expr = "{string} denies the request with {int} {word} and the message {string}")]
fn denies_with(world: &mut World, short: String, code: i32, reason: String, message: String) -> Outcome {
    let deny = Deny { code: Some(code), reason: Some(reason), message: Some(message), ..Deny::default() };
    world.behave(&short, Behavior::Deny(deny))
}

#[given(expr = "{string} never responds")]
fn never_responds(world: &mut World, short: String) -> Outcome {
    world.behave(&short, Behavior::Timeout(Timeout::default()))
}

#[given(expr = "{string} never responds to its {ordinal} call")]
fn never_responds_to_call(world: &mut World, short: String, call: Ordinal) -> Outcome {
    world.behave_on_call(&short, call, Behavior::Timeout(Timeout::default()))
}

#[given(expr = "{string} responds with the HTTP status {int}")]
fn responds_with_status(world: &mut World, short: String, code: u16) -> Outcome {
    let code = StatusCode::try_from(code).map_err(StepFailure::new)?;
    world.behave(&short, Behavior::BadResponse(BadResponse::Status(code)))
}

#[given(expr = "{string} returns the bad response {string}")]
fn bad_response(world: &mut World, short: String, name: String) -> Outcome {
    world.behave(&short, Behavior::BadResponse(named_response(&name)?))
}

#[given(expr = "{string} returns the bad response {string} on its {ordinal} call")]
fn bad_response_on_call(world: &mut World, short: String, name: String, call: Ordinal) -> Outcome {
    world.behave_on_call(&short, call, Behavior::BadResponse(named_response(&name)?))
}

#[given(expr = "{string} refuses connections")]
fn refuses_connections(world: &mut World, short: String) -> Outcome {
    world.change_fake(&short)?.transport.connection = Connection::Refused;
    Ok(())
}

#[given(expr = "{string} presents a certificate with the defect {string}")]
fn defective_certificate(world: &mut World, short: String, defect: String) -> Outcome {
    let defect = defect.parse()?;
    world.change_fake(&short)?.transport.certificate = Certificate::Defective(defect);
    Ok(())
}

/// Parses the name of a bad response.
fn named_response(name: &str) -> Outcome<BadResponse> {
    serde_json::from_value(json!(name))
        .map_err(|error| StepFailure::new(fake_webhooks::plain_yaml_message(&error.to_string())))
}

fn operations(world: &World, step: &Step) -> Outcome<Behavior> {
    let what = "invalid JSON Patch: must be a list of operations";
    document::parse_step(step, what, |text| world.names.expand(text)).map(patch)
}

fn patch(operations: Vec<Value>) -> Behavior {
    Behavior::Patch(Patch { operations, ..Patch::default() })
}

/// Returns a behavior that adds a label or annotation only if it is absent.
///
/// An ineffective patch can count as a change.
///
/// `field` is `labels` or `annotations`.
pub(super) fn adding(field: &str, (key, value): (String, String)) -> Behavior {
    let path = metadata_path(field, &key);
    let added = BTreeMap::from([(key, value)]);
    let (labels, annotations) =
        if field == "labels" { (added, BTreeMap::new()) } else { (BTreeMap::new(), added) };
    only_when(Condition::Absent(path), Behavior::AlwaysMutate(AlwaysMutate { labels, annotations }))
}

/// Returns a behavior that removes a label or annotation if it is present.
///
/// `field` is `labels` or `annotations`.
pub(super) fn removing(field: &str, key: &str) -> Behavior {
    let path = metadata_path(field, key);
    let operations = vec![json!({"op": "remove", "path": path})];
    only_when(Condition::Present(path), patch(operations))
}

fn only_when(condition: Condition, then: Behavior) -> Behavior {
    Behavior::When(Box::new(When { condition, then, otherwise: Behavior::default() }))
}

/// Returns the JSON pointer to a key in a map of `metadata`, such as `labels`.
fn metadata_path(field: &str, key: &str) -> String {
    format!("/metadata/{field}/{}", escaped(key))
}

/// Splits a label of the form `key=value` into the key and the value.
pub(super) fn label_parts(label: &str) -> Outcome<(String, String)> {
    key_and_value("label", label)
}

/// Splits a string of the form `key=value` into the key and the value. Errors contain the name `what`.
pub(super) fn key_and_value(what: &str, text: &str) -> Outcome<(String, String)> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err(StepFailure::new(format!("invalid {what} \"{text}\": must be key=value"))),
    }
}

/// Splits an API version into the group and the version; the group of the core API is empty.
fn group_and_version(api_version: &str) -> (String, String) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    (group.to_owned(), version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_behavior_for_one_call_does_not_affect_other_calls() {
        let mut webhook = Webhook::new("a", Admission::Mutating);
        webhook.on_call.insert(2, Behavior::Timeout(Timeout::default()));
        let Behavior::Sequence(sequence) = webhook.behavior().unwrap() else {
            unreachable!("a behavior on one call makes a sequence");
        };
        assert_eq!(*sequence.behavior(0), Behavior::default());
        assert_eq!(*sequence.behavior(1), Behavior::Timeout(Timeout::default()));
        assert_eq!(*sequence.behavior(2), Behavior::default());
    }

    #[test]
    fn maps_are_merged_and_lists_replaced() {
        let mut entry = json!({"a": {"x": 1}, "l": [1]});
        merge(&mut entry, &json!({"a": {"y": 2}, "l": [2]}));
        assert_eq!(entry, json!({"a": {"x": 1, "y": 2}, "l": [2]}));
    }

    #[test]
    fn label_keys_are_escaped_in_pointers() {
        assert_eq!(metadata_path("labels", "example.com/a~b"), "/metadata/labels/example.com~1a~0b");
    }
}
