//! Generates random requests for webhook configurations.
//!
//! Some requests change the match conditions of the situation's own webhooks. Others are for configurations whose
//! webhooks are never called, and which the server may reject.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::conditions;
use super::situation::{GROUP, Generator};

/// The latest version of each configuration that requests have written, by resource.
#[derive(Debug, Default)]
pub(crate) struct StoredConfigurations(BTreeMap<&'static str, Value>);

/// The position of a webhook in a situation: its configuration, and its index in the configuration.
#[derive(Clone, Debug)]
pub(crate) struct WebhookPosition {
    resource: &'static str,
    configuration: String,
    index: usize,
}

const MUTATING: &str = "mutatingwebhookconfigurations";
const VALIDATING: &str = "validatingwebhookconfigurations";

/// Returns the positions of a situation's webhooks.
pub(crate) fn places(webhooks: &[Value]) -> Vec<WebhookPosition> {
    let mut places: Vec<WebhookPosition> = Vec::new();
    for webhook in webhooks {
        let resource = if webhook["type"] == "mutating" { MUTATING } else { VALIDATING };
        let configuration = webhook["configuration"].as_str().unwrap_or_default().to_owned();
        let before =
            places.iter().filter(|it| it.resource == resource && it.configuration == configuration).count();
        places.push(WebhookPosition { resource, configuration, index: before });
    }
    places
}

impl StoredConfigurations {
    /// Returns the percentage of requests for configurations. It is higher if configurations exist.
    pub(crate) fn percent(&self) -> usize {
        if self.0.is_empty() { 4 } else { 45 }
    }
}

/// Returns a random request for a configuration.
pub(crate) fn request(generator: &mut Generator<'_>, written: &mut StoredConfigurations) -> Value {
    let is_there: Vec<&'static str> = written.0.keys().copied().collect();
    if generator.random.chance(if is_there.is_empty() { 50 } else { 15 }) {
        return of_the_situation(generator);
    }
    let resource = if is_there.is_empty() || generator.random.chance(10) {
        generator.random.one_of(&[MUTATING, VALIDATING])
    } else {
        generator.random.one_of(&is_there)
    };
    // Sorts after the situation's own configurations, which are numbered in dispatch order.
    let name = "zy-<id>";
    let mut request = json!({"resource": path(resource), "name": name});
    let before = written.0.get(resource).cloned();
    match (before, generator.random.below(10)) {
        (Some(_), 0) => {
            request["verb"] = json!("delete");
            written.0.remove(resource);
        }
        (Some(_), 1 | 2) => {
            request["verb"] = json!("patch");
            request["patch"] = json!("json");
            request["body"] = json!([{
                "op": "add", "path": "/webhooks/0/matchConditions", "value": conditions::doubtful(generator),
            }]);
        }
        (Some(before), _) => {
            let changed = changed(generator, before);
            // The server rejects a PUT that does not say which version it replaces.
            if generator.random.chance(15) {
                request["verb"] = json!("update");
                request["body"] = changed.clone();
            } else {
                request["verb"] = json!("patch");
                request["patch"] = json!("merge");
                request["body"] = json!({"metadata": changed["metadata"], "webhooks": changed["webhooks"]});
            }
            written.0.insert(resource, changed);
        }
        (None, _) => {
            request["verb"] = json!("create");
            request["body"] = configuration(generator, resource, name);
            written.0.insert(resource, request["body"].clone());
        }
    }
    request
}

/// Returns a request that changes the match conditions of one of the situation's webhooks.
fn of_the_situation(generator: &mut Generator<'_>) -> Value {
    let places = generator.places.clone();
    let WebhookPosition { resource, configuration, index } = generator.random.one_of(&places);
    let path = format!("/webhooks/{index}/matchConditions");
    let operation = match generator.random.below(10) {
        0..=6 => json!({"op": "add", "path": path, "value": conditions::conditions(generator)}),
        7 => json!({"op": "remove", "path": path}),
        _ => json!({"op": "add", "path": path, "value": conditions::doubtful(generator)}),
    };
    json!({
        "verb": "patch", "resource": self::path(resource), "name": format!("<id>-{configuration}"),
        "patch": "json", "body": [operation],
    })
}

fn path(resource: &str) -> String {
    format!("admissionregistration.k8s.io/v1/{resource}")
}

fn configuration(generator: &mut Generator<'_>, resource: &str, name: &str) -> Value {
    let kind =
        if resource == MUTATING { "MutatingWebhookConfiguration" } else { "ValidatingWebhookConfiguration" };
    let count = generator.random.between(1, 3);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": (0..count).map(|number| webhook(generator, number)).collect::<Vec<_>>(),
    })
}

/// Returns a webhook that is never called.
fn webhook(generator: &mut Generator<'_>, number: usize) -> Value {
    let mut webhook = json!({
        "name": format!("w{number}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://h/"},
        "rules": [{"operations": ["CREATE"], "apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["none"]}],
    });
    match generator.random.below(10) {
        0..=2 => webhook["matchConditions"] = conditions::doubtful(generator),
        3..=7 => webhook["matchConditions"] = conditions::conditions(generator),
        8 => webhook["matchConditions"] = json!([]),
        _ => {}
    }
    webhook
}

/// Returns the configuration, changed or unchanged. A server does not validate unchanged conditions again.
fn changed(generator: &mut Generator<'_>, mut configuration: Value) -> Value {
    let count = configuration["webhooks"].as_array().map_or(0, Vec::len);
    let place = generator.random.below(count);
    match generator.random.below(8) {
        0 | 1 => configuration["metadata"]["labels"] = json!(generator.labels(80)),
        2 => configuration["webhooks"][place]["failurePolicy"] = json!("Ignore"),
        3 => {
            let added = webhook(generator, count);
            if let Some(webhooks) = configuration["webhooks"].as_array_mut() {
                webhooks.push(added);
            }
        }
        4 => {
            // An expression that is already stored, at another place and under another name.
            let expression = configuration["webhooks"][0]["matchConditions"][0]["expression"].clone();
            if expression.is_string() {
                configuration["webhooks"][place]["matchConditions"] =
                    json!([{"name": "again", "expression": expression}]);
            }
        }
        5 => configuration["webhooks"][place]["matchConditions"] = conditions::conditions(generator),
        6 => configuration["webhooks"][place]["matchConditions"] = json!([]),
        _ => configuration["webhooks"][place]["matchConditions"] = conditions::doubtful(generator),
    }
    configuration
}
