//! From a situation in which the servers differ to a smaller one in which they differ in the same place.

use std::sync::Arc;

use serde_json::{Value, json};

use super::judgement::{Documents, Judgement, judged, run_both};
use crate::server::{Server, ServerError};
use crate::yaml;

/// The most rounds of tries.
const ROUNDS: usize = 40;

/// The smallest case that a bounded number of tries finds, with what the servers do in it.
pub(crate) async fn shrink(
    case: &Value,
    difference: Box<Documents>,
    server: &Arc<Server>,
    jobs: usize,
) -> Result<(Value, Box<Documents>), ServerError> {
    let (mut smallest, mut difference) = (case.clone(), difference);
    let place = difference.signature.first().cloned().unwrap_or_default();
    let (mut next, mut has_shrunk) = (0, false);
    for _ in 0..ROUNDS {
        let candidates = candidates(&smallest);
        let tried: Vec<Value> = candidates.iter().skip(next).take(jobs).cloned().collect();
        if tried.is_empty() {
            // What could not be left out at first may be without need now.
            if !has_shrunk {
                break;
            }
            (next, has_shrunk) = (0, false);
            continue;
        }
        let runs = tried.iter().map(|candidate| run_both(yaml::write(candidate), Arc::clone(server)));
        let pairs = futures::future::join_all(runs).await;
        let exposition = server.metrics().await?;
        let persisting = pairs.iter().enumerate().find_map(|(index, pair)| match judged(pair, &exposition) {
            Judgement::Differs(documents) if documents.signature.contains(&place) => Some((index, documents)),
            Judgement::Differs(_) | Judgement::Agrees | Judgement::NotRun(_) => None,
        });
        match persisting {
            Some((index, documents)) => {
                smallest = tried.into_iter().nth(index).unwrap_or(smallest);
                difference = documents;
                next += index;
                has_shrunk = true;
            }
            None => next += tried.len(),
        }
    }
    Ok((smallest, difference))
}

/// The case with one thing less, the largest things first.
fn candidates(case: &Value) -> Vec<Value> {
    let mut places = Vec::new();
    for part in ["requests", "webhooks", "cluster"] {
        collect(&case[part], &format!("/{part}"), &mut places);
    }
    places.sort_by_key(|place| place.matches('/').count());
    let mut candidates: Vec<Value> = places.iter().filter_map(|place| without(case, place)).collect();
    for (place, webhook) in case["webhooks"].as_array().into_iter().flatten().enumerate() {
        if webhook.get("behaviour").is_some_and(|behaviour| *behaviour != json!("allow")) {
            let mut candidate = case.clone();
            candidate["webhooks"][place]["behaviour"] = json!("allow");
            candidates.insert(0, candidate);
        }
        if let Some(parts) = webhook.pointer("/behaviour/sequence").and_then(Value::as_array) {
            for part in parts {
                let mut candidate = case.clone();
                candidate["webhooks"][place]["behaviour"] = part.clone();
                candidates.push(candidate);
            }
        }
    }
    candidates
}

/// Every member and item below `value`, the last items first: what comes later depends on what was before.
fn collect(value: &Value, path: &str, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                places.push(path.clone());
                collect(member, &path, places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().rev() {
                let path = format!("{path}/{index}");
                places.push(path.clone());
                collect(item, &path, places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The document without what is at `place`; none if a case cannot be without it.
fn without(case: &Value, place: &str) -> Option<Value> {
    const NEEDED: [&str; 12] = [
        "name",
        "type",
        "verb",
        "resource",
        "kind",
        "apiVersion",
        "metadata",
        "op",
        "path",
        "operations",
        "key",
        "operator",
    ];
    let (parent, last) = place.rsplit_once('/')?;
    let mut smaller = case.clone();
    let key = last.replace("~1", "/").replace("~0", "~");
    match smaller.pointer_mut(parent)? {
        Value::Object(members) if !NEEDED.contains(&key.as_str()) => {
            members.remove(&key)?;
        }
        Value::Array(items) => {
            let index: usize = key.parse().ok()?;
            if parent == "/requests" && items.len() == 1 {
                return None;
            }
            items.remove(index);
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(smaller)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_things_are_left_out_first() {
        let case = json!({
            "requests": [{"verb": "create", "dryRun": true}, {"verb": "delete"}],
            "webhooks": [{"name": "a", "behaviour": "allow"}],
        });
        let candidates = candidates(&case);
        assert_eq!(candidates[0]["requests"], json!([{"verb": "create", "dryRun": true}]));
        assert!(candidates.iter().any(|it| it["webhooks"] == json!([])));
        assert!(candidates.iter().any(|it| it["requests"][0] == json!({"verb": "create"})));
        assert!(candidates.iter().all(|it| it["requests"][0].get("verb").is_some()));
    }

    #[test]
    fn the_last_request_stays() {
        let candidates = candidates(&json!({"requests": [{"verb": "create"}]}));
        assert!(candidates.is_empty(), "{candidates:?}");
    }
}
