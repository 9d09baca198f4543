//! Who makes a request: a bearer token, and whom its bearer pretends to be.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::attributes::UserInfo;
use crate::status::Status;

/// How the server finds out who makes a request.
#[derive(Clone)]
#[non_exhaustive]
pub enum Authentication {
    /// Everybody is this user: for a router that is reached without a socket.
    Always(UserInfo),
    /// The bearer of the token is this user, and nobody else gets in.
    BearerToken {
        /// The token.
        token: String,
        /// Its bearer.
        user: UserInfo,
    },
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(user) => f.debug_tuple("Always").field(user).finish(),
            Self::BearerToken { user, .. } => {
                f.debug_struct("BearerToken").field("user", user).finish_non_exhaustive()
            }
        }
    }
}

/// Who makes a request, in the extensions of that request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Who has authenticated.
    pub(crate) user: UserInfo,
    /// Whom the user pretends to be.
    pub(crate) impersonated: Option<UserInfo>,
}

impl Identity {
    /// The user that admission sees.
    pub(crate) fn effective(&self) -> &UserInfo {
        self.impersonated.as_ref().unwrap_or(&self.user)
    }
}

/// A request gets no further: nobody knows who it is, or whom it wants to be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    /// Who it is, where that much is known.
    pub(crate) user: Option<UserInfo>,
    /// What the client gets.
    pub(crate) status: Box<Status>,
}

impl Authentication {
    /// Who makes a request with these headers.
    ///
    /// # Errors
    /// [`Refused`] with what the client gets.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Result<Identity, Refused> {
        let user = match self {
            Self::Always(user) => user,
            Self::BearerToken { token, user } if bearer(headers).is_some_and(|text| same(text, token)) => {
                user
            }
            Self::BearerToken { .. } => {
                let status = Box::new(Status::failure(401, "Unauthorized", "Unauthorized"));
                return Err(Refused { user: None, status });
            }
        };
        let impersonated =
            impersonated(headers).map_err(|status| Refused { user: Some(user.clone()), status })?;
        Ok(Identity { user: user.clone(), impersonated })
    }
}

/// Puts the [`Identity`] into the extensions of each request, or [`Refused`]; both where it is known who asks, but not
/// for whom. For `axum::middleware::from_fn_with_state`.
pub(crate) async fn authenticate(
    State(authentication): State<Arc<Authentication>>,
    mut request: Request,
    next: Next,
) -> Response {
    match authentication.identify(request.headers()) {
        Ok(identity) => {
            request.extensions_mut().insert(identity);
        }
        Err(refused) => {
            if let Some(user) = &refused.user {
                let identity = Identity { user: user.clone(), impersonated: None };
                request.extensions_mut().insert(identity);
            }
            request.extensions_mut().insert(refused);
        }
    }
    next.run(request).await
}

/// Source: apiserver pkg/authentication/request/bearertoken/bearertoken.go.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Compares in a time that tells nothing of where two texts of the same length differ.
fn same(text: &str, token: &str) -> bool {
    let (text, token) = (text.as_bytes(), token.as_bytes());
    let differences =
        text.iter().zip(token).fold(0, |found, (one, other)| std::hint::black_box(found | (one ^ other)));
    text.len() == token.len() && differences == 0
}

const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const EXTRA: &str = "impersonate-extra-";

/// The user of the `Impersonate-*` headers; whether the bearer may pretend to be it is not asked.
///
/// Source: apiserver pkg/endpoints/filters/impersonation.
fn impersonated(headers: &HeaderMap) -> Result<Option<UserInfo>, Box<Status>> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(unescaped(key)).or_default().push(text(value));
        }
    }
    let mut user = UserInfo {
        username: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: headers.get_all("impersonate-group").iter().map(text).collect(),
        extra,
    };
    if user.username.is_empty() {
        if user == UserInfo::default() {
            return Ok(None);
        }
        let message = format!("requested {} without impersonating a user name", go_syntax(&user));
        return Err(Box::new(Status::bad_request(message)));
    }
    complete_groups(&mut user);
    Ok(Some(user))
}

/// The user that `--as` and `--as-group` of kubectl make: the groups that the server adds are among its groups.
///
/// Source: apiserver pkg/endpoints/filters/impersonation.
pub fn impersonated_user(username: impl Into<String>, groups: Vec<String>) -> UserInfo {
    let mut user = UserInfo { username: username.into(), groups, ..UserInfo::default() };
    complete_groups(&mut user);
    user
}

fn complete_groups(user: &mut UserInfo) {
    let account = user.username.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    if let Some((namespace, name)) = account
        && user.groups.is_empty()
        && !namespace.is_empty()
        && !name.is_empty()
        && !name.contains(':')
    {
        user.groups =
            vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let is_in = |group: &str| user.groups.iter().any(|present| present == group);
    let missing = if user.username == ANONYMOUS {
        (!is_in(UNAUTHENTICATED)).then_some(UNAUTHENTICATED)
    } else {
        (!is_in(AUTHENTICATED) && !is_in(UNAUTHENTICATED)).then_some(AUTHENTICATED)
    };
    user.groups.extend(missing.map(str::to_owned));
}

/// Percent-decoded; as it is where that is not possible.
///
/// Source: apiserver pkg/endpoints/filters/impersonation/impersonation.go, `unescapeExtraKey`.
fn unescaped(key: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = key.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let Some(decoded) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            return key.to_owned();
        };
        bytes.push(decoded);
        rest = &after[2..];
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

/// The user as Go's `%#v` prints it.
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

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let parsed = pairs.iter().map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        });
        let mut headers = HeaderMap::new();
        for (name, value) in parsed {
            headers.append(name, value);
        }
        headers
    }

    fn admin() -> UserInfo {
        UserInfo { username: "admin".to_owned(), ..UserInfo::default() }
    }

    fn with_token() -> Authentication {
        Authentication::BearerToken { token: "secret".to_owned(), user: admin() }
    }

    #[test]
    fn only_the_right_token_gets_in() {
        for (value, known) in [
            (Some("Bearer secret"), true),
            (Some("bearer secret"), true),
            (Some("Bearer secreT"), false),
            (Some("Bearer secrets"), false),
            (Some("Bearer secre"), false),
            (Some("Bearer "), false),
            (Some("Basic secret"), false),
            (Some("secret"), false),
            (Some(""), false),
            (None, false),
        ] {
            let pairs: Vec<(&str, &str)> = value.map(|value| ("authorization", value)).into_iter().collect();
            assert_eq!(with_token().identify(&headers(&pairs)).is_ok(), known, "{value:?}");
        }
    }

    #[test]
    fn a_stranger_gets_the_servers_status() {
        let Err(Refused { status, .. }) = with_token().identify(&HeaderMap::new()) else {
            panic!("let in");
        };
        let body = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
        assert_eq!(serde_json::to_string(&status).unwrap(), body);
    }

    #[test]
    fn a_token_is_never_printed() {
        assert!(!format!("{:?}", with_token()).contains("secret"));
    }

    fn user(name: &str, groups: &[&str]) -> UserInfo {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        UserInfo { username: name.to_owned(), groups, ..UserInfo::default() }
    }

    #[track_caller]
    fn check(pairs: &[(&str, &str)], expected: Option<UserInfo>) {
        let identity = Authentication::Always(admin()).identify(&headers(pairs)).unwrap();
        assert_eq!(identity, Identity { user: admin(), impersonated: expected });
    }

    #[test]
    fn an_impersonated_user_is_authenticated_unless_its_groups_say_otherwise() {
        check(&[], None);
        check(&[("impersonate-user", "")], None);
        check(&[("impersonate-user", "bob")], Some(user("bob", &["system:authenticated"])));
        check(
            &[("impersonate-user", "bob"), ("impersonate-group", "a"), ("impersonate-group", "b")],
            Some(user("bob", &["a", "b", "system:authenticated"])),
        );
        for group in ["system:authenticated", "system:unauthenticated"] {
            check(&[("impersonate-user", "bob"), ("impersonate-group", group)], Some(user("bob", &[group])));
        }
        check(
            &[("impersonate-user", "system:anonymous")],
            Some(user("system:anonymous", &["system:unauthenticated"])),
        );
        check(
            &[("impersonate-user", "system:anonymous"), ("impersonate-group", "system:authenticated")],
            Some(user("system:anonymous", &["system:authenticated", "system:unauthenticated"])),
        );
    }

    #[test]
    fn an_impersonated_service_account_is_in_the_groups_of_its_namespace() {
        let name = "system:serviceaccount:ns:default";
        check(
            &[("impersonate-user", name)],
            Some(user(
                name,
                &["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
            )),
        );
        check(
            &[("impersonate-user", name), ("impersonate-group", "g")],
            Some(user(name, &["g", "system:authenticated"])),
        );
    }

    #[test]
    fn the_keys_of_extra_are_decoded() {
        let expected = |key: &str| UserInfo {
            uid: "7".to_owned(),
            extra: BTreeMap::from([(key.to_owned(), vec!["x".to_owned()])]),
            ..user("bob", &["system:authenticated"])
        };
        for (header, key) in [
            ("impersonate-extra-Foo%2fBar", "foo/bar"),
            ("impersonate-extra-a", "a"),
            ("impersonate-extra-a%", "a%"),
            ("impersonate-extra-a%zz", "a%zz"),
        ] {
            check(
                &[("impersonate-user", "bob"), ("impersonate-uid", "7"), (header, "x")],
                Some(expected(key)),
            );
        }
    }

    #[test]
    fn groups_without_a_user_are_a_bad_request_in_the_servers_words() {
        for (pairs, requested) in [
            (
                &[("impersonate-group", "g")][..],
                r#"&user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)}"#,
            ),
            (
                &[("impersonate-uid", "g")],
                r#"&user.DefaultInfo{Name:"", UID:"g", Groups:[]string(nil), Extra:map[string][]string(nil)}"#,
            ),
            (
                &[("impersonate-extra-Foo", "g")],
                r#"&user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"foo":[]string{"g"}}}"#,
            ),
        ] {
            let Err(Refused { status, .. }) = Authentication::Always(admin()).identify(&headers(pairs))
            else {
                panic!("let in: {requested}");
            };
            assert_eq!(status.message, format!("requested {requested} without impersonating a user name"));
            assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
        }
    }
}
