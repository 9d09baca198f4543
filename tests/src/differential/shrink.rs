//! Shrinks a situation in which the servers differ. The smaller situation has the same difference.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::judgment::{Documents, Judgment};
use super::servers::Servers;
use crate::server_error::ServerError;

/// The maximum duration of shrinking one case.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(90);

/// An edit that makes a case simpler.
#[derive(Clone, Debug, PartialEq)]
enum Edit {
    /// Removes the member or item at the given path.
    Without(String),
    /// Replaces the value at the given path with a simpler value.
    With(String, Value),
}

/// Returns the smallest case found within the time limit, with the results of both servers.
pub(crate) async fn shrink(
    case: &Value,
    documents: Box<Documents>,
    servers: &Servers,
    jobs: usize,
) -> Result<(Value, Box<Documents>), ServerError> {
    let (mut smallest, mut documents) = (case.clone(), documents);
    // A case that also differs elsewhere may show another difference.
    let places = documents.signature.clone();
    let deadline = Instant::now() + SEARCH_TIMEOUT;
    // With unreachable webhooks, a single look may take minutes.
    let look = async |cases: &[Value]| timeout_at(deadline, persisting(cases, &places, servers)).await;
    let (mut next, mut has_shrunk) = (0, false);
    loop {
        let made = edits(&smallest).into_iter().filter_map(|edit| Some((edited(&smallest, &[&edit])?, edit)));
        let (cases, tried): (Vec<Value>, Vec<Edit>) = made.skip(next).take(jobs).unzip();
        if tried.is_empty() {
            // Edits that were not possible at first may be possible now.
            if !has_shrunk {
                break;
            }
            (next, has_shrunk) = (0, false);
            continue;
        }
        let Ok(persisting) = look(&cases).await else { break };
        let mut persisting = persisting?;
        let able: Vec<&Edit> = persisting.iter().map(|(index, _)| &tried[*index]).collect();
        let Some(last) = persisting.pop() else {
            next += tried.len();
            continue;
        };
        has_shrunk = true;
        let together: Vec<Value> = edited(&smallest, &able).into_iter().collect();
        let Ok(found) = look(&together).await else { break };
        let (case, found) = match found?.pop() {
            Some((_, found)) => (together.into_iter().next(), found),
            None => (cases.into_iter().nth(last.0), last.1),
        };
        if let Some(case) = case {
            (smallest, documents) = (case, found);
        }
        // Edits below a removed value disappear with it: the next edits take their positions.
        next += tried.len() - able.len();
    }
    Ok((smallest, documents))
}

/// Returns the indexes of the cases in which the servers still differ at `places` and nowhere else.
async fn persisting(
    cases: &[Value],
    places: &[String],
    servers: &Servers,
) -> Result<Vec<(usize, Box<Documents>)>, ServerError> {
    let cases: Vec<&Value> = cases.iter().collect();
    let looks = servers.looks(&cases, cases.len()).await?;
    let looks = looks.into_iter().map(|look| look.judgment).enumerate();
    let persisting = looks.filter_map(|(index, judgment)| match judgment {
        Judgment::Differs(documents) if is_the_same(&documents.signature, places) => Some((index, documents)),
        Judgment::Differs(_) | Judgment::Agrees | Judgment::NotRun(_) => None,
    });
    Ok(persisting.collect())
}

/// Returns whether the difference at `found` is the difference at `places`.
///
/// It must begin at the same path, and there must be no other differences.
fn is_the_same(found: &[String], places: &[String]) -> bool {
    found.first().is_some_and(|first| places.first() == Some(first))
        && found.iter().all(|place| places.contains(place))
}

/// Returns the possible edits of a case, largest first.
fn edits(case: &Value) -> Vec<Edit> {
    let mut places = Vec::new();
    for part in ["requests", "webhooks", "cluster"] {
        collect(&case[part], &format!("/{part}"), &mut places);
    }
    places.sort_by_key(|place| place.matches('/').count());
    let expressions: Vec<Edit> = places.iter().flat_map(|place| simpler(case, place)).collect();
    places.retain(|place| !is_needed(case, place));
    let mut edits: Vec<Edit> = places.into_iter().map(Edit::Without).chain(expressions).collect();
    for (place, webhook) in case["webhooks"].as_array().into_iter().flatten().enumerate() {
        let place = format!("/webhooks/{place}/behavior");
        if webhook.get("behavior").is_some_and(|behavior| *behavior != json!("allow")) {
            edits.insert(0, Edit::With(place.clone(), json!("allow")));
        }
        for part in webhook.pointer("/behavior/sequence").and_then(Value::as_array).into_iter().flatten() {
            edits.push(Edit::With(place.clone(), part.clone()));
        }
    }
    edits
}

/// Returns edits that simplify a match condition: to a trivial expression, or to a part of the condition.
fn simpler(case: &Value, place: &str) -> Vec<Edit> {
    let expression = case.pointer(place).and_then(Value::as_str).filter(|_| place.ends_with("/expression"));
    let Some(expression) = expression.filter(|expression| *expression != "true") else { return Vec::new() };
    let simpler = ["true"].into_iter().chain(in_parentheses(expression));
    simpler.map(|part| Edit::With(place.to_owned(), json!(part))).collect()
}

/// Returns the parenthesized parts of an expression, such as `a` and `b` in `(a) && (b)`, but not arguments of calls.
fn in_parentheses(expression: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start, mut is_call) = (0_usize, None, false);
    for (place, letter) in expression.char_indices() {
        match letter {
            '(' => {
                if depth == 0 && !is_call {
                    start = Some(place + 1);
                }
                depth += 1;
            }
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    parts.extend(start.take().and_then(|start| expression.get(start..place)));
                }
            }
            _ => {}
        }
        is_call = letter.is_alphanumeric();
    }
    parts
}

/// Returns the case with all edits applied; `None` if one edit removes the path of another.
fn edited(case: &Value, edits: &[&Edit]) -> Option<Value> {
    let mut edits = edits.to_vec();
    // The deepest paths first, and the last list items first, so that the other paths stay valid.
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.place().matches('/').count()));
    let mut case = case.clone();
    for edit in edits {
        match edit {
            Edit::With(place, value) => *case.pointer_mut(place)? = value.clone(),
            Edit::Without(place) => {
                let (parent, last) = place.rsplit_once('/')?;
                let key = last.replace("~1", "/").replace("~0", "~");
                match case.pointer_mut(parent)? {
                    Value::Object(members) => drop(members.remove(&key)?),
                    Value::Array(items) => drop(items.remove(key.parse().ok()?)),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
                }
            }
        }
    }
    (case["requests"] != json!([])).then_some(case)
}

impl Edit {
    fn place(&self) -> &str {
        match self {
            Self::Without(place) | Self::With(place, _) => place,
        }
    }
}

/// Collects the paths of all members and items in `value`. Last items are first, because they depend on earlier ones.
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

/// Returns whether a case requires the value at `place`.
fn is_needed(case: &Value, place: &str) -> bool {
    const NEEDED: [&str; 29] = [
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
        "expression",
        "roleRef",
        "clientConfig",
        "sideEffects",
        "admissionReviewVersions",
        // Fields that are required for valid objects.
        "containers",
        "image",
        "maxReplicas",
        "scaleTargetRef",
        "selector",
        "target",
        "template",
        "spec",
        "accessModes",
        "resources",
        "requests",
        "storage",
    ];
    // A smaller schema would replace this difference with another one, because admit does not prune.
    if place.contains("/schema") || place.contains("/selector/") {
        return true;
    }
    let (parent, last) = place.rsplit_once('/').unwrap_or_default();
    match case.pointer(parent) {
        Some(Value::Object(_)) => NEEDED.contains(&last),
        Some(Value::Array(items)) => parent == "/requests" && items.len() == 1,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(case: &Value) -> Vec<Value> {
        edits(case).iter().filter_map(|edit| edited(case, &[edit])).collect()
    }

    #[test]
    fn fewer_differences_are_the_same_but_other_ones_are_not() {
        let places = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        let before = places(&["body.code", "body.message", "audit"]);
        assert!(is_the_same(&places(&["body.code", "audit"]), &before));
        for other in [&["audit"][..], &["body.code", "body.metadata"], &[]] {
            assert!(!is_the_same(&places(other), &before), "{other:?}");
        }
    }

    #[test]
    fn large_things_are_left_out_first() {
        let case = json!({
            "requests": [{"verb": "create", "dryRun": true}, {"verb": "delete"}],
            "webhooks": [{"name": "a", "behavior": "allow"}],
        });
        let candidates = candidates(&case);
        assert_eq!(candidates[0]["requests"], json!([{"verb": "create", "dryRun": true}]));
        assert!(candidates.iter().any(|it| it["webhooks"] == json!([])));
        assert!(candidates.iter().any(|it| it["requests"][0] == json!({"verb": "create"})));
        assert!(candidates.iter().all(|it| it["requests"][0].get("verb").is_some()));
    }

    #[test]
    fn expressions_are_taken_apart() {
        let condition = json!({"name": "c0", "expression": "(size(a) == 1) && (!(b))"});
        let case = json!({"requests": [{"verb": "create"}], "webhooks": [{"name": "a", "matchConditions": [condition]}]});
        let candidates = candidates(&case);
        for simpler in ["true", "size(a) == 1", "!(b)"] {
            let has_it = |it: &Value| it["webhooks"][0]["matchConditions"][0]["expression"] == simpler;
            assert!(candidates.iter().any(has_it), "{simpler}");
        }
        assert!(candidates.iter().any(|it| it["webhooks"][0]["matchConditions"] == json!([])));
        assert!(candidates.iter().any(|it| it["webhooks"][0].get("matchConditions").is_none()));
        assert_eq!(in_parentheses("((a) ? (b) : (c)) || d(e)"), ["(a) ? (b) : (c)"]);
    }

    #[test]
    fn the_last_request_stays() {
        let candidates = candidates(&json!({"requests": [{"verb": "create"}]}));
        assert!(candidates.is_empty(), "{candidates:?}");
    }

    #[test]
    fn several_edits_are_those_of_the_case_that_they_were_made_for() {
        let case = json!({"requests": [{"a": 1}, {"a": 2, "b": 2}, {"a": 3}], "cluster": [1, 2, 3]});
        let without = |place: &str| Edit::Without(place.to_owned());
        let edits = [without("/requests/2"), without("/requests/0"), without("/requests/1/b")];
        let all: Vec<&Edit> = edits.iter().collect();
        assert_eq!(edited(&case, &all).unwrap()["requests"], json!([{"a": 2}]));
        let nothing_left = [without("/requests/2"), without("/requests/1"), without("/requests/0")];
        assert_eq!(edited(&case, &nothing_left.iter().collect::<Vec<_>>()), None);
    }
}
