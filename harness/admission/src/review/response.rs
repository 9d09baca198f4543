//! Decodes and validates a webhook's reply.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kubernetes_types::quoting::quote;
use kubernetes_types::status::Status;
use serde_json::Value;

use super::decode::{self, DecodeError};
use super::fields::{self, Fields};
use super::plain::{self, PlainResponse};
use super::{ReviewVersion, http_status, media_type};
use crate::attributes::GroupVersionKind;
use crate::caller::Reply;
use crate::event::{CallFailure, Phase};

/// A validated reply: the `response` of an `AdmissionReview`.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// `allowed`; `false` if the field is missing.
    pub allowed: bool,
    /// `patch`, decoded from base64; empty if there is no patch.
    pub patch: Vec<u8>,
    /// `patchType`; empty if there is no patch type.
    pub patch_type: String,
    /// `status`: the details of a denial.
    pub status: Option<Status>,
    /// `warnings` for the client.
    pub warnings: Vec<String>,
    /// `auditAnnotations`, by the keys that the webhook returned.
    pub audit_annotations: BTreeMap<String, String>,
}

/// Decodes and validates the reply to the review `uid` in `version`.
///
/// The checks ignore `allowed`: a malformed denial is a failed call.
///
/// # Errors
/// Returns [`CallFailure`] with kube-apiserver's error message if the reply is invalid.
///
/// Source: apiserver pkg/admission/plugin/webhook/request/admissionreview.go, `VerifyAdmissionResponse`; client-go
/// rest/request.go.
/// Rule: RSP-10, RSP-11, RSP-12, RSP-16.
pub fn read(reply: &Reply, version: ReviewVersion, uid: &str, phase: Phase) -> Result<Response, CallFailure> {
    successful(reply).map_err(|(text, code)| failed_to_call(&text, code))?;
    match plain::response(&reply.body, version) {
        Some(response) => checked(RawResponse::from(response), version.kind(), version, uid, phase),
        None => read_document(reply, version, uid, phase),
    }
}

/// Decodes a reply as a JSON or YAML document if [`plain::response`] does not support it.
fn read_document(
    reply: &Reply,
    version: ReviewVersion,
    uid: &str,
    phase: Phase,
) -> Result<Response, CallFailure> {
    let expected = version.kind();
    let document = decode::review(&reply.body, expected, &[&expected.kind])
        .map_err(|error| failed_to_call(&error.into_text(), 503))?;
    let answer = answer(&document.fields).map_err(|error| failed_to_call(&error.into_text(), 503))?;
    let answer = answer.ok_or_else(|| invalid("webhook response was absent"))?;
    checked(answer, &document.claimed, version, uid, phase)
}

/// Validates a response. `claimed` are the `apiVersion` and `kind` of its review.
fn checked(
    answer: RawResponse<'_>,
    claimed: &GroupVersionKind,
    version: ReviewVersion,
    uid: &str,
    phase: Phase,
) -> Result<Response, CallFailure> {
    match version {
        ReviewVersion::V1 => {
            if answer.uid != uid {
                let text = format!("expected response.uid={}, got {}", quote(uid), quote(&answer.uid));
                return Err(invalid(&text));
            }
            let expected = version.kind();
            if claimed != expected {
                return Err(invalid(&format!("expected webhook response of {expected}, got {claimed}")));
            }
            answer.strict(phase)
        }
        ReviewVersion::V1beta1 => Ok(answer.lax(phase)),
    }
}

/// The decoded `response`, before validation.
struct RawResponse<'a> {
    uid: Cow<'a, str>,
    patch_type: Option<String>,
    response: Response,
}

impl<'a> From<PlainResponse<'a>> for RawResponse<'a> {
    fn from(PlainResponse { uid, allowed, patch, patch_type }: PlainResponse<'a>) -> Self {
        Self {
            uid: Cow::Borrowed(uid),
            patch_type: patch_type.map(str::to_owned),
            response: Response {
                allowed,
                patch,
                patch_type: String::new(),
                status: None,
                warnings: Vec::new(),
                audit_annotations: BTreeMap::new(),
            },
        }
    }
}

impl RawResponse<'_> {
    /// Validates a v1 response: a patch and its type require each other, and only a mutating webhook may return them.
    ///
    /// Rule: RSP-13, RSP-14.
    fn strict(self, phase: Phase) -> Result<Response, CallFailure> {
        let Self { patch_type, mut response, .. } = self;
        let error = match (phase, response.patch.is_empty(), &patch_type) {
            (Phase::Mutating, false, None) => "webhook returned response.patch but not response.patchType",
            (Phase::Mutating, true, Some(_)) => "webhook returned response.patchType but not response.patch",
            (Phase::Mutating, false, Some(patch_type)) if patch_type.is_empty() => {
                "webhook returned invalid response.patchType of \"\""
            }
            (Phase::Validating, false, _) => "validating webhook may not return response.patch",
            (Phase::Validating, true, Some(_)) => "validating webhook may not return response.patchType",
            (Phase::Mutating | Phase::Validating, true, None) | (Phase::Mutating, false, Some(_)) => {
                response.patch_type = patch_type.unwrap_or_default();
                return Ok(response);
            }
        };
        Err(invalid(error))
    }

    /// Accepts a v1beta1 response: any patch counts as a `JSONPatch`, and a validating webhook's patch is ignored.
    ///
    /// Rule: RSP-15.
    fn lax(self, phase: Phase) -> Response {
        let mut response = self.response;
        match phase {
            Phase::Mutating if response.patch.is_empty() => {}
            Phase::Mutating => "JSONPatch".clone_into(&mut response.patch_type),
            Phase::Validating => response.patch.clear(),
        }
        response
    }
}

/// Checks the media type, HTTP status, and length of a reply, to determine whether it has a body to decode.
///
/// Returns the error message and its code if there is no body to decode.
///
/// Rule: HTTP-26, HTTP-30.
pub(super) fn successful(reply: &Reply) -> Result<(), (String, u16)> {
    if let Some(error) = reply.content_type.as_deref().and_then(media_type::parse_error) {
        return Err((format!("Internal error occurred: {error}"), 500));
    }
    if !(200..=206).contains(&reply.status) {
        return Err(http_status::failure(reply));
    }
    if reply.body.is_empty() {
        let content_type = reply.content_type.as_deref().filter(|content_type| !content_type.is_empty());
        let text = format!(
            "0-length response with status code: {} and content type: {}",
            reply.status,
            content_type.unwrap_or("application/json"),
        );
        return Err((text, 503));
    }
    Ok(())
}

/// Reads the `response` of a review, with Go's zero values for missing fields; returns `None` if it is missing.
///
/// Rule: RSP-17.
fn answer(review: &serde_json::Map<String, Value>) -> Result<Option<RawResponse<'static>>, DecodeError> {
    let review = Fields::root(review, "AdmissionReview");
    let Some(fields) = review.object("response", "v1.AdmissionResponse", "AdmissionResponse")? else {
        return Ok(None);
    };
    let status = fields.object("status", "v1.Status", "Status")?;
    Ok(Some(RawResponse {
        uid: fields.string("uid", "types.UID")?.unwrap_or_default().into(),
        patch_type: fields.string("patchType", "v1.PatchType")?,
        response: Response {
            allowed: fields.boolean("allowed")?,
            patch: fields.bytes("patch")?,
            patch_type: String::new(),
            status: status.map(|status| fields::status(&status)).transpose()?,
            warnings: fields.strings("warnings")?,
            audit_annotations: fields.string_map("auditAnnotations")?,
        },
    }))
}

/// Returns the failure of a call whose reply does not contain a review.
///
/// Rule: RSP-06.
fn failed_to_call(text: &str, code: u16) -> CallFailure {
    CallFailure { reason: format!("failed to call webhook: {text}"), code }
}

/// Returns the failure of a call whose review is invalid.
///
/// Rule: RSP-06.
fn invalid(text: &str) -> CallFailure {
    CallFailure { reason: format!("received invalid webhook response: {text}"), code: 503 }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn reply(body: &str) -> Reply {
        Reply {
            status: 200,
            content_type: Some("application/json".to_owned()),
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    fn review(response: &str) -> String {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{response}}}"#)
    }

    #[track_caller]
    fn check(phase: Phase, body: &str, expect: &str) {
        let reason = read(&reply(body), ReviewVersion::V1, "u1", phase).map_err(|failure| failure.reason);
        assert_eq!(reason.err().unwrap_or_default(), expect, "{body}");
    }

    #[test]
    fn a_reply_that_is_not_a_review_is_a_failed_call() {
        let check = |body: &str, expect: &str| {
            check(Phase::Mutating, body, &format!("failed to call webhook: {expect}"));
        };
        check("", "0-length response with status code: 200 and content type: application/json");
        check(
            "{} t",
            "couldn't get version/kind; json parse error: invalid character 't' after top-level value",
        );
        let wanted = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                      Kind string \"json:\\\"kind,omitempty\\\"\" }";
        for (body, found) in [("this is not json", "string"), ("[]", "array"), ("<html></html>", "string")] {
            check(
                body,
                &format!(
                    "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type {wanted}"
                ),
            );
        }
        check(
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#,
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        );
        check(
            r#"{"apiVersion":"v1","kind":"Status"}"#,
            "converting (v1.Status) to (v1.AdmissionReview): unknown conversion",
        );
        check(
            r#"{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview"}"#,
            "no kind \"AdmissionReview\" is registered for version \"admission.k8s.io/v2\" in scheme \
             \"pkg/runtime/scheme.go:111\"",
        );
        check(
            &review(r#"{"uid":"u1","allowed":"true"}"#),
            "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
        );
        check(&review(r#"{"uid":"u1","patch":"!!"}"#), "illegal base64 data at input byte 0");
    }

    #[test]
    fn a_review_is_validated_before_its_verdict() {
        let invalid = |text: &str| format!("received invalid webhook response: {text}");
        for absent in ["null", "{}", r#"{"response":null}"#, r#"{"Response":{"uid":"u1"}}"#] {
            check(Phase::Mutating, absent, &invalid("webhook response was absent"));
        }
        check(
            Phase::Mutating,
            &review(r#"{"uid":"u2","allowed":false}"#),
            &invalid(r#"expected response.uid="u1", got "u2""#),
        );
        check(
            Phase::Mutating,
            r#"{"response":{"uid":"u1","allowed":true}}"#,
            &invalid("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="),
        );
    }

    #[test]
    fn a_plain_reply_gives_the_same_result_as_a_document() {
        for (response, is_plain) in [
            (r#"{"uid":"u1","allowed":true}"#, true),
            (r#" { "allowed" : false , "uid" : "u1" } "#, true),
            (r#"{"uid":"u2","allowed":true}"#, true),
            (r#"{"uid":"u1","allowed":true,"patch":"W10=","patchType":"JSONPatch"}"#, true),
            (r#"{"uid":"u1","allowed":true,"patch":"W1\n0=","patchType":"JSONPatch"}"#, false),
            (r#"{"uid":"u1","allowed":true,"patch":null,"patchType":null}"#, true),
            (r#"{"uid":"u1","allowed":true,"patch":"W10="}"#, true),
            (r#"{"uid":"u1","allowed":true,"patchType":""}"#, true),
            (r#"{"uid":"u1","allowed":true,"patch":"!!","patchType":"JSONPatch"}"#, false),
            (r#"{"uid":"\u0075\u0031","allowed":true}"#, false),
            (r#"{"uid":"u1","allowed":false,"allowed":true}"#, false),
            (r#"{"uid":"u1","Allowed":true}"#, false),
            (r#"{"uid":"u1","allowed":null}"#, false),
            (r#"{"uid":null,"allowed":true}"#, false),
            (r#"{"uid":"u1","allowed":false,"status":{"code":400}}"#, false),
            (r#"{"uid":"u1","allowed":true,"warnings":["w"]}"#, false),
            (r#"["u1",true,null,null]"#, false),
            ("null", false),
        ] {
            let v1 = review(response);
            for (version, body) in [
                (ReviewVersion::V1, v1.clone()),
                (ReviewVersion::V1beta1, v1.replacen("/v1", "/v1beta1", 1)),
                (ReviewVersion::V1, format!("{v1} ")),
            ] {
                let reply = reply(&body);
                assert_eq!(plain::response(&reply.body, version).is_some(), is_plain, "{body}");
                for phase in [Phase::Mutating, Phase::Validating] {
                    let read = read(&reply, version, "u1", phase);
                    assert_eq!(read, read_document(&reply, version, "u1", phase), "{body}");
                }
            }
        }
        for other in [review("{}").replacen("/v1", "/v2", 1), format!("{}t", review("{}")), "{}".to_owned()] {
            assert!(plain::response(other.as_bytes(), ReviewVersion::V1).is_none(), "{other}");
        }
    }

    #[test]
    fn patch_and_patch_type_require_each_other_and_a_mutating_webhook() {
        let invalid = |text: &str| format!("received invalid webhook response: {text}");
        let patch = r#"{"uid":"u1","patch":"W10="}"#;
        let patch_type = r#"{"uid":"u1","patchType":"JSONPatch"}"#;
        let both = r#"{"uid":"u1","patch":"W10=","patchType":"JSONPatch"}"#;
        let empty = r#"{"uid":"u1","patch":"W10=","patchType":""}"#;
        check(
            Phase::Mutating,
            &review(patch),
            &invalid("webhook returned response.patch but not response.patchType"),
        );
        check(
            Phase::Mutating,
            &review(patch_type),
            &invalid("webhook returned response.patchType but not response.patch"),
        );
        check(
            Phase::Mutating,
            &review(empty),
            &invalid(r#"webhook returned invalid response.patchType of """#),
        );
        check(Phase::Mutating, &review(both), "");
        check(Phase::Validating, &review(both), &invalid("validating webhook may not return response.patch"));
        check(
            Phase::Validating,
            &review(patch_type),
            &invalid("validating webhook may not return response.patchType"),
        );
    }

    #[test]
    fn keys_are_case_sensitive_unknown_ones_are_ignored_and_the_last_duplicate_wins() {
        let body = review(r#"{"uid":"u1","allowed":true,"allowed":false,"Allowed":true,"x":1}"#);
        let response = read(&reply(&body), ReviewVersion::V1, "u1", Phase::Mutating).unwrap();
        assert!(!response.allowed);
    }

    #[test]
    fn yaml_and_a_patch_of_numbers_are_accepted() {
        let body = "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse:\n  uid: u1\n  allowed: true\n  \
                    patchType: JSONPatch\n  patch: [91, 93]\n";
        let response = read(&reply(body), ReviewVersion::V1, "u1", Phase::Mutating).unwrap();
        assert_eq!((response.allowed, response.patch.as_slice()), (true, b"[]".as_slice()));
    }

    #[test]
    fn v1beta1_checks_nothing() {
        let body = reply(r#"{"response":{"uid":"other","allowed":true,"patch":"W10="}}"#);
        let response = read(&body, ReviewVersion::V1beta1, "u1", Phase::Mutating).unwrap();
        assert_eq!(response.patch_type, "JSONPatch");
        let response = read(&body, ReviewVersion::V1beta1, "u1", Phase::Validating).unwrap();
        assert!(response.patch.is_empty());
        let body = reply(r#"{"response":{"uid":"other","allowed":true}}"#);
        let response = read(&body, ReviewVersion::V1beta1, "u1", Phase::Mutating).unwrap();
        assert_eq!(response.patch_type, "");
    }

    #[test]
    fn a_reply_needs_a_status_from_200_to_206_and_a_body() {
        let check = |status: u16, content_type: Option<&str>, body: &str, expect: Option<(&str, u16)>| {
            let content_type = content_type.map(str::to_owned);
            let reply = Reply { status, content_type, ..reply(body) };
            let failure = read(&reply, ReviewVersion::V1, "u1", Phase::Mutating).err();
            let found = failure.as_ref().map(|failure| (failure.reason.as_str(), failure.code));
            assert_eq!(found, expect, "{reply:?}");
        };
        let allowed = review(r#"{"uid":"u1","allowed":true}"#);
        for (status, accepted) in [(199, false), (200, true), (206, true), (207, false)] {
            let reply = Reply { status, ..reply(&allowed) };
            assert_eq!(successful(&reply).is_ok(), accepted, "{status}");
        }
        check(206, None, &allowed, None);
        for (content_type, shown) in [
            (Some("application/yaml"), "application/yaml"),
            (Some(""), "application/json"),
            (None, "application/json"),
        ] {
            let text = format!(
                "failed to call webhook: 0-length response with status code: 204 and content type: {shown}"
            );
            check(204, content_type, "", Some((&text, 503)));
        }
    }

    #[test]
    fn a_broken_content_type_is_an_internal_error() {
        for (header, text) in [(" ", "mime: no media type"), ("a/b; c", "mime: invalid media parameter")] {
            let reply = Reply { content_type: Some(header.to_owned()), ..reply(&review("{}")) };
            let failure = read(&reply, ReviewVersion::V1, "u1", Phase::Mutating).unwrap_err();
            assert_eq!(failure.reason, format!("failed to call webhook: Internal error occurred: {text}"));
            assert_eq!(failure.code, 500);
        }
    }
}
