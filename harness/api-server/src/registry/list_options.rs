//! The list options in a query: the `resourceVersion` and the page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use super::resource_versions;
use super::selectors::{Selection, Selectors};
use crate::apimachinery::options;
use crate::apimachinery::query::Query;
use crate::kinds::discovery::Resource;

/// The list options of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListOptions {
    version: String,
    version_match: String,
    limit: Option<usize>,
    /// The continue token; empty for the first page.
    pub(crate) token: String,
}

/// The `resourceVersion` at which a collection is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListVersion {
    Latest,
    NotOlderThan(u64),
    Exact(u64),
}

/// The part of a collection that a list request selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestedPage {
    pub(crate) at: ListVersion,
    /// The key at which the page starts, relative to the namespace of the request; `None` for the first page.
    pub(crate) start: Option<String>,
    pub(crate) limit: Option<usize>,
}

impl ListOptions {
    /// Parses the options and selectors of a list or a collection deletion.
    ///
    /// # Errors
    /// Returns 400 for a limit that is not a number and for invalid selectors, or 422 for conflicting parameters.
    ///
    /// Source: apimachinery pkg/apis/meta/internalversion/validation/validation.go, `ValidateListOptions`.
    /// Rule: LST-05.
    pub(crate) fn parse(query: &Query, resource: &Resource) -> Result<(Self, Selection), Box<Status>> {
        let text = |field| query.first(field).unwrap_or_default();
        let (_, limit) = options::timeout_and_limit(query)?;
        let this = Self {
            version: text("resourceVersion").to_owned(),
            version_match: text("resourceVersionMatch").to_owned(),
            limit: usize::try_from(limit).ok().filter(|limit| *limit > 0),
            token: text("continue").to_owned(),
        };
        let selectors = Selectors::parse(query)?;
        let errors = this.errors(query.first("sendInitialEvents").is_some());
        if errors.is_empty() {
            return Ok((this, selectors.for_resource(resource)?));
        }
        Err(Box::new(Status::invalid("meta.k8s.io", "ListOptions", "", &errors)))
    }

    fn errors(&self, says_objects: bool) -> Vec<FieldError> {
        let field = "resourceVersionMatch";
        let mut errors = Vec::new();
        if !self.version_match.is_empty() {
            if self.version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden(field, why));
            }
            if !self.token.is_empty() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden(field, why));
            }
            if !["Exact", "NotOlderThan"].contains(&self.version_match.as_str()) {
                let supported = "\"Exact\", \"NotOlderThan\", \"\"";
                errors.push(FieldError::not_supported(field, Value::from(&*self.version_match), supported));
            }
            if self.version_match == "Exact" && self.version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(field, why));
            }
        }
        if says_objects {
            let why = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden("sendInitialEvents", why));
        }
        errors
    }

    /// Returns the requested page of a resource.
    ///
    /// If `is_single` is true, the request selects a single object and its limit does not require an exact
    /// `resourceVersion`.
    ///
    /// # Errors
    /// Returns 400 for an invalid version or token, or if the query contains both.
    ///
    /// Source: apiserver pkg/storage/interfaces.go, `ValidateListOptions`; pkg/storage/cacher/delegator/interface.go,
    /// `ShouldDelegateList`; pkg/storage/cacher/cacher.go, `computeListLimit`.
    /// Rule: LST-04, LST-05.
    pub(crate) fn requested_page(
        &self,
        resource: &Resource,
        is_single: bool,
    ) -> Result<RequestedPage, Box<Status>> {
        let is_any = self.version == "0";
        // A list from the cache ignores the limit.
        let limit = self.limit.filter(|_| !is_any || !resource_versions::is_cached(resource));
        if !self.token.is_empty() {
            let Continue { version, start } = Continue::decode(&self.token)
                .map_err(|why| Status::bad_request(format!("invalid continue token: {why}")))?;
            if !self.version.is_empty() && !is_any {
                let why = "specifying resource version is not allowed when using continue";
                return Err(Box::new(Status::bad_request(why)));
            }
            let at = u64::try_from(version).map_or(ListVersion::Latest, ListVersion::Exact);
            return Ok(RequestedPage { at, start: Some(start), limit });
        }
        let at = if self.version.is_empty() {
            ListVersion::Latest
        } else {
            let version = resource_versions::parse(&self.version)
                .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
            let is_exact = match self.version_match.as_str() {
                "Exact" => true,
                "" => self.limit.is_some() && version > 0 && !is_single,
                _ => false,
            };
            if is_exact { ListVersion::Exact(version) } else { ListVersion::NotOlderThan(version) }
        };
        Ok(RequestedPage { at, start: None, limit })
    }
}

/// The content of a continue token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Continue {
    /// The `resourceVersion` of the first page; negative for the latest.
    version: i64,
    /// The key at which the page starts.
    start: String,
}

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

impl Continue {
    /// Source: apiserver pkg/storage/continue.go, `EncodeContinue`.
    pub(crate) fn encode(start: &str, version: i64) -> String {
        let (start, token) = (Value::from(start), Value::from(TOKEN_VERSION));
        URL_SAFE_NO_PAD.encode(format!("{{\"v\":{token},\"rv\":{version},\"start\":{start}}}"))
    }

    /// Decodes a continue token.
    ///
    /// # Errors
    /// Returns the reason why the token is invalid.
    ///
    /// Source: apiserver pkg/storage/continue.go, `DecodeContinue`.
    /// Rule: LST-04.
    fn decode(token: &str) -> Result<Self, String> {
        let not_valid = |why: String| format!("continue key is not valid: {why}");
        let text = base64_decoded(token).map_err(not_valid)?;
        kubernetes_types::json_text::scan(&text, kubernetes_types::json_text::MAX_DEPTH, |_| {})
            .map_err(not_valid)?;
        let token: Value = serde_json::from_slice(&text).unwrap_or_default();
        let member = |name: &str, kind: &str| {
            let found = token.get(name).filter(|value| !value.is_null());
            let is_right = |value: &Value| if kind == "string" { value.is_string() } else { value.is_i64() };
            match found {
                Some(value) if !is_right(value) => Err(not_valid(format!(
                    "json: cannot unmarshal {} into Go struct field continueToken.{name} of type {kind}",
                    go_kind(value, kind)
                ))),
                found => Ok(found.cloned().unwrap_or_default()),
            }
        };
        if !token.is_object() && !token.is_null() {
            let kind = go_kind(&token, "");
            return Err(not_valid(format!(
                "json: cannot unmarshal {kind} into Go value of type storage.continueToken"
            )));
        }
        let (encoded, version, start) =
            (member("v", "string")?, member("rv", "int64")?, member("start", "string")?);
        let encoded = encoded.as_str().unwrap_or_default();
        if encoded != TOKEN_VERSION {
            return Err(not_valid(format!("server does not recognize this encoded version {encoded}")));
        }
        let version = version.as_i64().unwrap_or_default();
        if version == 0 {
            return Err(not_valid(format!(
                "incorrect encoded start resourceVersion (version {TOKEN_VERSION})"
            )));
        }
        let start = start.as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(not_valid(format!("encoded start key empty (version {TOKEN_VERSION})")));
        }
        let below = start.strip_prefix('/').unwrap_or(start);
        if !below.is_empty() && below.split('/').any(|part| ["", ".", ".."].contains(&part)) {
            return Err(not_valid(start.to_owned()));
        }
        Ok(Self { version, start: below.to_owned() })
    }
}

/// Returns Go's description of a JSON value that does not have the Go type `kind`.
fn go_kind(value: &Value, kind: &str) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if kind == "int64" => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

/// Decodes URL-safe base64 without padding.
///
/// # Errors
/// Returns a message with the position of the first invalid byte.
///
/// Source: Go encoding/base64/base64.go, `decodeQuantum`.
fn base64_decoded(text: &str) -> Result<Vec<u8>, String> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || [b'-', b'_'].contains(&byte);
    let incomplete = (text.len() % 4 == 1).then(|| text.len() - 1);
    if let Some(at) = text.bytes().position(|byte| !is_known(byte)).or(incomplete) {
        return Err(format!("illegal base64 data at input byte {at}"));
    }
    // Go ignores the unused bits at the end.
    let engine = base64::engine::GeneralPurpose::new(
        &base64::alphabet::URL_SAFE,
        base64::engine::general_purpose::NO_PAD.with_decode_allow_trailing_bits(true),
    );
    engine.decode(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn continue_token_round_trips() {
        for (start, version, expected) in
            [("/a\0", 7, "a\0"), ("a\0", -1, "a\0"), ("/ns/a\0", 1, "ns/a\0"), ("/", 1, "")]
        {
            let token = Continue::encode(start, version);
            assert_eq!(Continue::decode(&token), Ok(Continue { version, start: expected.to_owned() }));
        }
        let token = URL_SAFE_NO_PAD.decode(Continue::encode("/b\0", 12)).unwrap();
        let text = r#"{"v":"meta.k8s.io/v1","rv":12,"start":"/b\u0000"}"#;
        assert_eq!(String::from_utf8(token).unwrap(), text);
    }

    #[test]
    fn continue_token_cannot_leave_its_collection() {
        for start in ["..", "/..", "../a", "a/../b", "a//b", "a/", "./a", "//"] {
            let token = Continue::encode(start, 1);
            assert_eq!(Continue::decode(&token), Err(format!("continue key is not valid: {start}")));
        }
    }

    #[test]
    fn invalid_continue_token_is_rejected() {
        let of = |token: Value| URL_SAFE_NO_PAD.encode(token.to_string());
        for (token, expected) in [
            ("abcde".to_owned(), "illegal base64 data at input byte 4"),
            ("ab=".to_owned(), "illegal base64 data at input byte 2"),
            (of(json!([])), "json: cannot unmarshal array into Go value of type storage.continueToken"),
            (
                of(json!({"v": 1})),
                "json: cannot unmarshal number into Go struct field continueToken.v of type string",
            ),
        ] {
            assert_eq!(Continue::decode(&token), Err(format!("continue key is not valid: {expected}")));
        }
    }
}
