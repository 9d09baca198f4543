//! Defines the parameters of behaviors that respond.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters of `allow`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Allow {
    /// The warnings for the client, in `response.warnings`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The annotations for the audit log, in `response.auditAnnotations`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
}

/// The parameters of `deny`. Omitted fields are not sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Deny {
    /// The status code of the denial, in `response.status.code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The reason of the denial, in `response.status.reason`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message of the denial, in `response.status.message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The warnings for the client, in `response.warnings`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The annotations for the audit log, in `response.auditAnnotations`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
}

/// The parameters of `patch`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Patch {
    /// The JSON Patch operations. The fake sends them without validation.
    pub operations: Vec<Value>,
    /// The number of spaces to add after the operations, to enlarge the patch.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub padding: usize,
    /// The warnings for the client, in `response.warnings`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The annotations for the audit log, in `response.auditAnnotations`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
}

/// The parameters of `always-mutate`. Omitted labels and annotations are not set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AlwaysMutate {
    /// The labels to set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The annotations to set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl AlwaysMutate {
    /// Creates the default parameters of `always-mutate`, which set the label `always-mutate=yes`.
    pub(crate) fn labeled() -> Self {
        let labels = BTreeMap::from([("always-mutate".to_owned(), "yes".to_owned())]);
        Self { labels, annotations: BTreeMap::new() }
    }

    /// Returns the parameters, or the default parameters if these set nothing.
    pub(super) fn or_labeled(self) -> Self {
        if self == Self::default() { Self::labeled() } else { self }
    }
}

/// The parameters of `non-idempotent`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Append {
    /// `annotation: KEY`: appends an `x` to the annotation.
    Annotation(String),
    /// `list: {path, value}`: appends a value to a list.
    #[serde(rename_all = "camelCase")]
    List {
        /// A JSON pointer to the list, such as `/metadata/finalizers`; a missing list is created.
        path: String,
        /// The value to append.
        value: Value,
    },
}

impl Default for Append {
    fn default() -> Self {
        Self::Annotation("non-idempotent".to_owned())
    }
}

/// The parameters of `sidecar`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Sidecar {
    /// The name of the container.
    pub name: String,
    /// The image of the container.
    pub image: String,
    /// Whether the container is added again if the object already contains it.
    pub repeat: Repeat,
}

impl Default for Sidecar {
    fn default() -> Self {
        Self { name: "sidecar".to_owned(), image: "example.com/sidecar:1".to_owned(), repeat: Repeat::Never }
    }
}

/// Whether a mutation is repeated if it has already been made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeat {
    /// `never`: an existing value is kept.
    #[default]
    Never,
    /// `every-call`: each call adds another value.
    ///
    /// If the name of a `sidecar` is taken, the new container gets a number, as in `sidecar-2`.
    EveryCall,
}

/// The parameters of `container-env`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ContainerEnv {
    /// The name of the environment variable.
    pub name: String,
    /// The value of the environment variable.
    pub value: String,
}

impl Default for ContainerEnv {
    fn default() -> Self {
        Self { name: "INJECTED".to_owned(), value: "yes".to_owned() }
    }
}

/// The parameter of `bad-response`: the defect of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BadResponse {
    /// `not-json`: the body is text.
    NotJson,
    /// `empty`: the body is empty.
    Empty,
    /// `no-response`: the review does not contain `response`.
    NoResponse,
    /// `no-uid`: `response.uid` is missing.
    NoUid,
    /// `uid-in-capitals`: `response.uid` is the UID of the request in uppercase.
    UidInCapitals,
    /// `echoed-request`: the review is valid and also repeats the request.
    EchoedRequest,
    /// `wrong-uid`: `response.uid` differs from the UID of the request.
    WrongUid,
    /// `wrong-kind`: `kind` is not `AdmissionReview`.
    WrongKind,
    /// `wrong-version`: the `apiVersion` of the response differs from the `apiVersion` of the request.
    WrongVersion,
    /// `patch-without-patch-type`: `response.patchType` is missing.
    PatchWithoutPatchType,
    /// `undecodable-patch`: `response.patch` is not a JSON Patch.
    UndecodablePatch,
    /// `patch-that-does-not-apply`: the patch contains a test that fails for every object.
    PatchThatDoesNotApply,
    /// `closed`: the connection is closed without a response.
    Closed,
    /// `status: CODE`: the response has this HTTP status and a plain text body.
    Status(StatusCode),
}

/// The parameters of `raw`: a complete HTTP response.
///
/// In strings, `{uid}` is replaced with the UID of the review; in headers, `{host}` is replaced with the host of the
/// request. The body is one of `json`, `response`, and `text`, or empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Raw {
    /// The HTTP status; the default is 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusCode>,
    /// Headers in addition to `Content-Length`.
    ///
    /// The default `content-type` is `application/json`; an empty value omits the header.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body of the response as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// The `response` of a review that has the version of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// The body of the response as text; `{review}` is replaced with a review that allows the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The number of spaces to add before the body, to enlarge the response.
    #[serde(skip_serializing_if = "is_nothing")]
    pub padding: usize,
    /// The encoding of the body.
    #[serde(skip_serializing_if = "Encoding::is_identity")]
    pub encoding: Encoding,
}

/// The encoding of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// `identity`: the body is not compressed.
    #[default]
    Identity,
    /// `gzip`: the body is compressed, and the response has the header `Content-Encoding`.
    Gzip,
}

impl Encoding {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_identity(&self) -> bool {
        *self == Self::Identity
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_nothing(count: &usize) -> bool {
    *count == 0
}

/// A final HTTP status: 200 to 999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct StatusCode(http::StatusCode);

impl StatusCode {
    /// Returns the status as the HTTP library's type.
    pub(crate) const fn http(self) -> http::StatusCode {
        self.0
    }
}

impl TryFrom<u16> for StatusCode {
    type Error = String;

    fn try_from(code: u16) -> Result<Self, String> {
        match http::StatusCode::from_u16(code) {
            Ok(status) if code >= 200 => Ok(Self(status)),
            Ok(_) | Err(_) => Err(format!("invalid HTTP status {code}: must be 200 to 999")),
        }
    }
}

impl From<StatusCode> for u16 {
    fn from(code: StatusCode) -> Self {
        code.0.as_u16()
    }
}
