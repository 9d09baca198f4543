//! What each behavior can be told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Behavior, Condition, Hang};

/// Parameters of `allow`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Allow {
    /// `response.warnings`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// `response.auditAnnotations`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
}

/// Parameters of `deny`. What is not given is not sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Deny {
    /// `response.status.code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// `response.status.reason`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `response.status.message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `response.warnings`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// `response.auditAnnotations`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
}

/// Parameters of `patch`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Patch {
    /// The JSON Patch operations. They are sent as they are, also when they make no sense.
    pub operations: Vec<Value>,
    /// How many blanks stand behind the operations.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub padding: usize,
    /// `response.warnings`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// `response.auditAnnotations`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
}

/// Parameters of `always-mutate`. What is not given is not set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AlwaysMutate {
    /// Labels to set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations to set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl AlwaysMutate {
    /// Sets the label `always-mutate=yes`: what `always-mutate` does without parameters.
    pub(crate) fn labeled() -> Self {
        let labels = BTreeMap::from([("always-mutate".to_owned(), "yes".to_owned())]);
        Self { labels, annotations: BTreeMap::new() }
    }
}

/// Parameters of `non-idempotent`: where and what to append.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Append {
    /// `annotation: KEY`: appends an `x` to the annotation's text.
    Annotation(String),
    /// `list: {path, value}`: appends a value to a list.
    #[serde(rename_all = "camelCase")]
    List {
        /// JSON pointer to the list, such as `/metadata/finalizers`. A list that is missing is made.
        path: String,
        /// What is appended.
        value: Value,
    },
}

impl Default for Append {
    fn default() -> Self {
        Self::Annotation("non-idempotent".to_owned())
    }
}

/// Parameters of `sidecar`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Sidecar {
    /// The container's name.
    pub name: String,
    /// The container's image.
    pub image: String,
    /// Whether the container is added again when it is already there.
    pub repeat: Repeat,
}

impl Default for Sidecar {
    fn default() -> Self {
        Self { name: "sidecar".to_owned(), image: "example.com/sidecar:1".to_owned(), repeat: Repeat::Never }
    }
}

/// Whether a mutation that is already there is made once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeat {
    /// `never`: what is there stays as it is.
    #[default]
    Never,
    /// `every-call`: one more on each call, with a number after its name.
    EveryCall,
}

/// Parameters of `container-env`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ContainerEnv {
    /// The variable's name.
    pub name: String,
    /// The variable's value.
    pub value: String,
}

impl Default for ContainerEnv {
    fn default() -> Self {
        Self { name: "INJECTED".to_owned(), value: "yes".to_owned() }
    }
}

/// Parameters of `when`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct When {
    /// What is asked of the call.
    #[serde(rename = "if")]
    pub condition: Condition,
    /// What is done if it holds.
    pub then: Behavior,
    /// What is done if it does not.
    #[serde(default)]
    pub otherwise: Behavior,
}

/// Parameters of `timeout`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Timeout {
    /// How long nothing is sent, not even the status line.
    pub hang: Hang,
    /// What is answered then.
    pub then: Box<Behavior>,
}

/// What is wrong with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BadResponse {
    /// `not-json`: the body is text.
    NotJson,
    /// `empty`: there is no body.
    Empty,
    /// `no-response`: a review without `response`.
    NoResponse,
    /// `no-uid`: `response.uid` is missing.
    NoUid,
    /// `uid-in-capitals`: `response.uid` is the request's in capital letters.
    UidInCapitals,
    /// `echoed-request`: a valid review that also repeats the request.
    EchoedRequest,
    /// `wrong-uid`: `response.uid` is not the request's.
    WrongUid,
    /// `wrong-kind`: `kind` is not `AdmissionReview`.
    WrongKind,
    /// `wrong-version`: a review of the other version than was sent.
    WrongVersion,
    /// `patch-without-patch-type`: `response.patchType` is missing.
    PatchWithoutPatchType,
    /// `undecodable-patch`: `response.patch` is no JSON Patch.
    UndecodablePatch,
    /// `patch-that-does-not-apply`: a patch that tests for what no object has.
    PatchThatDoesNotApply,
    /// `closed`: the connection is closed without an answer.
    Closed,
    /// `status: CODE`: this HTTP status with a text.
    Status(StatusCode),
}

/// Parameters of `raw`: an HTTP response as it is sent. `{uid}` in its texts stands for the uid of the review, `{host}`
/// in its headers for the host that the request was sent to. It has one of `json`, `response` and `text`, or no body.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Raw {
    /// The HTTP status; 200 if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusCode>,
    /// Headers beside `Content-Length`. Without a `content-type` it is `application/json`; an empty value leaves the
    /// header out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// `response` of a review of the version that was asked in, which is the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    /// The body as text, instead of `json`. `{review}` stands for a review that allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many blanks stand before the body.
    #[serde(skip_serializing_if = "is_nothing")]
    pub padding: usize,
    /// How the body is sent.
    #[serde(skip_serializing_if = "Encoding::is_identity")]
    pub encoding: Encoding,
}

/// How a body is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// `identity`: as it is.
    #[default]
    Identity,
    /// `gzip`: compressed, and the header `Content-Encoding` says so.
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
    /// The status for the HTTP library.
    pub(crate) const fn http(self) -> http::StatusCode {
        self.0
    }
}

impl TryFrom<u16> for StatusCode {
    type Error = String;

    fn try_from(code: u16) -> Result<Self, String> {
        match http::StatusCode::from_u16(code) {
            Ok(status) if code >= 200 => Ok(Self(status)),
            Ok(_) | Err(_) => Err(format!("`{code}` is not a final HTTP status: expected 200 to 999")),
        }
    }
}

impl From<StatusCode> for u16 {
    fn from(code: StatusCode) -> Self {
        code.0.as_u16()
    }
}
