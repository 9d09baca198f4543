//! Selects the audit annotations that a case compares.
//!
//! The index of a mutating webhook counts the webhooks of all configurations, including the configurations of other
//! cases on a shared server. On a shared server, the position of the webhook in the case therefore replaces the index;
//! the value of the annotation names the webhook. On a server that only one case uses, the index is kept.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The prefixes of annotations that are not compared, because they contain durations.
const OTHERS: [&str; 1] = ["apiserver.latency.k8s.io/"];

/// The annotation that `PodSecurity` adds for every Pod in a namespace without `PodSecurity` labels.
const PRIVILEGED: (&str, &str) = ("pod-security.kubernetes.io/enforce-policy", "privileged:latest");

/// The prefix of the authorizer's annotations. For the administrator, they only say that everything is allowed.
const AUTHORIZER: &str = "authorization.k8s.io/";

/// Returns the annotations of a request to compare. `order` lists the case's mutating webhooks in dispatch order.
pub(crate) fn judged(
    annotations: &BTreeMap<String, String>,
    order: &[(String, String)],
    is_shared: bool,
) -> Map<String, Value> {
    let authorized = |what: &str| annotations.get(&format!("{AUTHORIZER}{what}")).map(String::as_str);
    let is_administrator = authorized("decision") == Some("allow") && authorized("reason") == Some("");
    let own = annotations.iter().filter(|(key, value)| {
        let is_needless =
            is_administrator && key.starts_with(AUTHORIZER) || (key.as_str(), value.as_str()) == PRIVILEGED;
        !is_needless && !OTHERS.iter().any(|prefix| key.starts_with(prefix))
    });
    let places = places(annotations, order);
    let judged = own.map(|(key, value)| {
        let key = if is_shared { relative(key, &places) } else { key.clone() };
        // JSON values are compared as JSON text, because the order of members comes from the server.
        (key, Value::from(value.clone()))
    });
    judged.collect()
}

/// Maps each `round_R_index_I` to the position of its webhook in the case.
///
/// The value of the annotation `mutation…` with this index names the webhook.
fn places(annotations: &BTreeMap<String, String>, order: &[(String, String)]) -> BTreeMap<String, String> {
    let mut places = BTreeMap::new();
    for (key, value) in annotations {
        let Some(index) = key.strip_prefix("mutation.webhook.admission.k8s.io/") else { continue };
        let Ok(told) = serde_json::from_str::<Value>(value) else { continue };
        let (configuration, webhook) = (told["configuration"].as_str(), told["webhook"].as_str());
        let place = order
            .iter()
            .position(|it| Some(it.0.as_str()) == configuration && Some(it.1.as_str()) == webhook);
        if let (Some(place), Some((round, _))) = (place, index.rsplit_once('_')) {
            places.insert(index.to_owned(), format!("{round}_{place}"));
        }
    }
    places
}

fn relative(key: &str, places: &BTreeMap<String, String>) -> String {
    match key.split_once('/') {
        Some((
            prefix @ ("mutation.webhook.admission.k8s.io"
            | "patch.webhook.admission.k8s.io"
            | "failed-open.mutation.webhook.admission.k8s.io"),
            index,
        )) => match places.get(index) {
            Some(place) => format!("{prefix}/{place}"),
            None => key.to_owned(),
        },
        Some(_) | None => key.to_owned(),
    }
}
