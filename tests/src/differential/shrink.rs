//! Smaller situations that still differ.

use serde_json::{Value, json};

use super::difference;
use crate::difference::Difference;
use crate::server::{Server, ServerError};

/// Beyond that a situation stays as large as it is.
const MOST_ATTEMPTS: usize = 120;

/// Takes away what is not needed for the two servers to differ.
///
/// # Errors
/// The real server cannot be asked.
pub(super) async fn shrink(
    server: &Server,
    mut document: Value,
    mut found: Vec<Difference>,
) -> Result<(Value, Vec<Difference>), ServerError> {
    let mut attempts = 0;
    let mut next = 0;
    loop {
        let candidates = smaller(&document);
        let Some(candidate) = candidates.get(next) else { break };
        attempts += 1;
        if attempts > MOST_ATTEMPTS {
            break;
        }
        match difference(server, candidate).await? {
            Some(differences) => {
                document = candidate.clone();
                found = differences;
                // What stood before it was needed; what stands there now is something else.
            }
            None => next += 1,
        }
    }
    Ok((document, found))
}

/// Documents with one thing less, the largest things first.
fn smaller(document: &Value) -> Vec<Value> {
    let mut candidates = Vec::new();
    for list in ["webhooks", "requests", "cluster"] {
        let length = document[list].as_array().map_or(0, Vec::len);
        for index in (0..length).rev() {
            if list == "requests" && length == 1 {
                continue;
            }
            let mut candidate = document.clone();
            if let Some(items) = candidate[list].as_array_mut() {
                items.remove(index);
            }
            candidates.push(candidate);
        }
    }
    for (list, needed) in
        [("webhooks", &["name", "type"][..]), ("requests", &["verb", "resource", "name", "body", "patch"])]
    {
        for (index, item) in document[list].as_array().into_iter().flatten().enumerate() {
            for field in item.as_object().into_iter().flatten().map(|(field, _)| field) {
                if !needed.contains(&field.as_str()) && !is_kept(field, item) {
                    let mut candidate = document.clone();
                    if let Some(members) = candidate[list][index].as_object_mut() {
                        members.remove(field);
                    }
                    candidates.push(candidate);
                }
            }
            let operations = item.pointer("/behaviour/patch/operations").and_then(Value::as_array);
            for operation in
                0..operations.map_or(0, |operations| if operations.len() > 1 { operations.len() } else { 0 })
            {
                let mut candidate = document.clone();
                let operations = candidate[list][index].pointer_mut("/behaviour/patch/operations");
                if let Some(operations) = operations.and_then(Value::as_array_mut) {
                    operations.remove(operation);
                }
                candidates.push(candidate);
            }
        }
    }
    candidates
}

/// Rules that say another resource than `configmaps` are needed for a webhook to be called at all.
fn is_kept(field: &str, item: &Value) -> bool {
    field == "rules" && item["rules"] != json!([]) && !item["rules"].to_string().contains("configmaps")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_candidate_has_one_thing_less() {
        let document = json!({
            "webhooks": [{"name": "a", "type": "mutating", "failurePolicy": "Ignore"}],
            "requests": [{"verb": "create", "dryRun": true}, {"verb": "delete"}],
        });
        let candidates = smaller(&document);
        assert_eq!(candidates.len(), 5);
        assert!(candidates.iter().all(|candidate| candidate.to_string().len() < document.to_string().len()));
    }
}
