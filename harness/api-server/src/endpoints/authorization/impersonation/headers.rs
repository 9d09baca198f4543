//! Reads the `Impersonate-*` headers of a request.

use std::collections::BTreeMap;

use go_std::url::path_unescape;
use http::HeaderMap;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_types::status::Status;

const EXTRA: &str = "impersonate-extra-";

/// Returns the user in the `Impersonate-*` headers; `None` if the request does not have these headers.
///
/// Source: apiserver `pkg/endpoints/filters/impersonation/constrained_impersonation.go`, `processImpersonationHeaders`.
///
/// # Errors
/// Returns 400 for groups, a UID, or extra values without a user.
pub(crate) fn wanted(headers: &HeaderMap) -> Result<Option<UserInfo>, Box<Status>> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(unescaped(key)).or_default().push(text(value));
        }
    }
    let user = UserInfo {
        username: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: headers.get_all("impersonate-group").iter().map(text).collect(),
        extra,
    };
    if !user.username.is_empty() {
        return Ok(Some(user));
    }
    if user == UserInfo::default() {
        return Ok(None);
    }
    let message = format!("requested {} without impersonating a user name", go_syntax(&user));
    Err(Box::new(Status::bad_request(message)))
}

/// Returns the percent-decoded key, or the key unchanged if it cannot be decoded.
///
/// Source: apiserver pkg/endpoints/filters/impersonation/impersonation.go, `unescapeExtraKey`.
pub(crate) fn unescaped(key: &str) -> String {
    let decoded = path_unescape(key).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.unwrap_or_else(|| key.to_owned())
}

/// Formats the user as Go's `%#v` does.
fn go_syntax(user: &UserInfo) -> String {
    let list = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        quoted.join(", ")
    };
    let groups = if user.groups.is_empty() {
        "[]string(nil)".to_owned()
    } else {
        format!("[]string{{{}}}", list(&user.groups))
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let entries: Vec<String> =
            user.extra.iter().map(|(key, values)| format!("{key:?}:[]string{{{}}}", list(values))).collect();
        format!("map[string][]string{{{}}}", entries.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}",
        user.username, user.uid
    )
}
