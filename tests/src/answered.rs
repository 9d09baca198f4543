//! What later requests of a case refer to of earlier answers.

use serde_json::Value;

/// What later requests may refer to of an answer.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) version: String,
    /// Of a page of a list.
    pub(crate) page: String,
    /// Of a service account.
    token: String,
    uid: String,
}

impl Answered {
    /// Of the body of an answer.
    pub(crate) fn of(body: &Value) -> Self {
        let text = |pointer| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            version: text("/metadata/resourceVersion"),
            page: text("/metadata/continue"),
            token: text("/status/token"),
            uid: text("/metadata/uid"),
        }
    }
}

/// `<resourceVersion of request 1>` stands for what the answer to the first request had, `<continue of request 1>` for the
/// token of its next page, `<token of request 1>` for the service account's token that it is, and `<uid of request 1>` for
/// the uid of its object.
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

/// Puts it in where a body refers to it.
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
