//! The audit annotations that a case is judged by.
//!
//! A mutating webhook's index counts the webhooks of all configurations, so also those of other cases on a shared server.
//! There an annotation says itself which webhook it is about; its index becomes that webhook's place in the case.
//! On a server that the case has for itself the index stays as it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// How long things took.
const OTHERS: [&str; 1] = ["apiserver.latency.k8s.io/"];

/// What `PodSecurity` says of every Pod in a namespace without its labels.
const PRIVILEGED: (&str, &str) = ("pod-security.kubernetes.io/enforce-policy", "privileged:latest");

/// What the authorizer says. Of the administrator, who may do everything, it says nothing but that.
const AUTHORIZER: &str = "authorization.k8s.io/";

/// The annotations of one request; `order` is the case's mutating webhooks as they are dispatched.
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
        // What is JSON is compared as JSON text: the order of its members is the server's.
        (key, Value::from(value.clone()))
    });
    judged.collect()
}

/// The place in the case of each `round_R_index_I`, by what the annotation `mutation…` with this index says.
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
