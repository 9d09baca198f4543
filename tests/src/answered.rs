//! Keeps the values in earlier answers that later requests of a case refer to.

use serde_json::Value;

/// The values of one answer that later requests can refer to.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) version: String,
    /// The `continue` token of the next page if the answer is a page of a list; otherwise empty.
    pub(crate) page: String,
    /// The token of a service account; empty if the answer contains none.
    token: String,
    uid: String,
    /// The message of a Status; empty for other answers.
    pub(crate) message: String,
}

impl Answered {
    /// Extracts the values from the body of an answer.
    pub(crate) fn from_body(body: &Value) -> Self {
        let text = |pointer| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            version: text("/metadata/resourceVersion"),
            page: text("/metadata/continue"),
            token: text("/status/token"),
            uid: text("/metadata/uid"),
            message: text("/message"),
        }
    }
}

/// Resolves a reference such as `<resourceVersion of request 1>`.
///
/// `<continue of request 1>` is the token of the next page, `<token of request 1>` the service account token in the
/// answer, and `<uid of request 1>` the UID of the object.
pub(crate) fn referred<'a>(text: &str, answered: &'a [Answered]) -> Option<&'a str> {
    let (what, number) = text.strip_prefix('<')?.strip_suffix('>')?.split_once(" of request ")?;
    let answered = answered.get(number.parse::<usize>().ok()?.checked_sub(1)?)?;
    match what {
        "resourceVersion" => Some(&answered.version),
        "continue" => Some(&answered.page),
        "token" => Some(&answered.token),
        "uid" => Some(&answered.uid),
        _ => None,
    }
}

/// Replaces the references in a request body with their values.
pub(crate) fn fill_in(body: &mut Value, answered: &[Answered]) {
    match body {
        Value::String(text) => {
            if let Some(found) = referred(text, answered) {
                *text = found.to_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, answered)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| fill_in(member, answered));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
