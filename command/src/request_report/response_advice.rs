//! Explains fields of a denial that are missing or that the API server does not read.

use harness::event::{CallResult, Called};
use harness::json::at;
use serde_json::Value;

/// Explains a denial without a message or reason, or whose message, reason, or code the API server ignores.
///
/// Returns `None` for any other call.
pub(super) fn denial_advice(called: &Called) -> Option<String> {
    let CallResult::Denied(_) = &called.result else { return None };
    advice(&serde_json::from_slice(&called.reply.as_ref()?.body).ok()?)
}

fn advice(review: &Value) -> Option<String> {
    let response = review.get("response")?.as_object()?;
    let status = response.get("status").filter(|status| !status.is_null());
    if response.contains_key("result") && status.is_none() {
        // Go's `AdmissionResponse` calls the field `Result`, but its JSON name is `status`.
        return Some(
            "the response has the field `result`, which the API server ignores: return the message in `status`"
                .to_owned(),
        );
    }
    let is_set = |field: &str| status.is_some_and(|status| !at(status, &[field]).is_null());
    for field in ["message", "reason", "code"].into_iter().filter(|field| !is_set(field)) {
        let ignored = if response.contains_key(field) {
            format!("`response.{field}`")
        } else if review.get(field).is_some() {
            format!("`{field}` next to `response`")
        } else {
            continue;
        };
        return Some(format!("the API server ignores {ignored}: return it as `response.status.{field}`"));
    }
    if status.is_none() && review.get("status").is_some_and(Value::is_object) {
        return Some(
            "the API server ignores `status` next to `response`: return it as `response.status`".to_owned(),
        );
    }
    if !response.contains_key("allowed") {
        return Some("set `response.allowed` to true or false".to_owned());
    }
    if !is_set("message") && !is_set("reason") {
        return Some("return the reason of the denial as `response.status.message`".to_owned());
    }
    let code = at(status?, &["code"]).as_i64().filter(|code| *code != 0 && *code < 400)?;
    Some(format!(
        "response.status.code is {code}, which is not an error, so the API server responds with 400: return 403 or \
         another code of 400 or higher"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(review: &Value, expected: Option<&str>) {
        let found = advice(review);
        let is_expected = match expected {
            Some(part) => found.as_ref().is_some_and(|found| found.contains(part)),
            None => found.is_none(),
        };
        assert!(is_expected, "{review}: {found:?}");
    }

    #[test]
    fn a_field_in_the_wrong_place_is_named_with_its_place() {
        check(
            &json!({"response": {"allowed": false, "message": "no"}}),
            Some("the API server ignores `response.message`: return it as `response.status.message`"),
        );
        check(
            &json!({"response": {"allowed": false, "status": {"code": 403}, "message": "no"}}),
            Some("`response.status.message`"),
        );
        check(
            &json!({"response": {"allowed": false}, "message": "no"}),
            Some("`message` next to `response`"),
        );
        check(
            &json!({"response": {"allowed": false}, "status": {"message": "no"}}),
            Some("`status` next to"),
        );
        check(
            &json!({"response": {"allowed": false, "result": {"message": "no"}}}),
            Some("the field `result`"),
        );
        check(&json!({"response": {"allowed": false, "status": {"message": "no"}, "message": "no"}}), None);
        check(&json!({"response": {"allowed": false}}), Some("as `response.status.message`"));
        check(
            &json!({"response": {"status": {"message": "no"}}}),
            Some("set `response.allowed` to true or false"),
        );
    }

    #[test]
    fn a_code_that_is_not_an_error_is_explained() {
        let with_code =
            |code: i64| json!({"response": {"allowed": false, "status": {"code": code, "message": "no"}}});
        check(&with_code(200), Some("response.status.code is 200"));
        check(&with_code(403), None);
        check(&with_code(0), None);
    }
}
