//! Reads replies in the form that most webhooks send, without copying.

use kubernetes_types::go_base64;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ReviewVersion;

/// A `response` that does not have any fields other than these.
pub(super) struct PlainResponse<'a> {
    /// The `uid` of the response.
    pub(super) uid: &'a str,
    /// Whether the webhook allowed the request.
    pub(super) allowed: bool,
    /// `patch`, decoded from base64; empty if there is no patch.
    pub(super) patch: Vec<u8>,
    /// The `patchType` of the response.
    pub(super) patch_type: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Review<'a> {
    api_version: &'a str,
    kind: &'a str,
    #[serde(borrow)]
    response: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    patch: Option<&'a str>,
    patch_type: Option<&'a str>,
}

/// Reads the response from `body` if it is JSON without duplicate keys or escapes.
///
/// Returns `None` for any other body; the caller decodes such a body as a document.
pub(super) fn response(body: &[u8], version: ReviewVersion) -> Option<PlainResponse<'_>> {
    let Review { api_version, kind, response } = object(body)?;
    if api_version != version.api_version() || kind != "AdmissionReview" {
        return None;
    }
    let Response { uid, allowed, patch, patch_type } = object(response.get().as_bytes())?;
    let patch = patch.map_or(Some(Vec::new()), |patch| go_base64::decode(patch).ok())?;
    Some(PlainResponse { uid, allowed, patch, patch_type })
}

/// Decodes a struct from a JSON object. Rejects lists of field values, which serde would also accept.
fn object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Option<T> {
    text.trim_ascii_start().starts_with(b"{").then(|| serde_json::from_slice(text).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_review_needs_its_api_version_and_kind() {
        let is_plain = |version: &str, kind: &str| {
            let body = format!(
                r#"{{"apiVersion":"admission.k8s.io/{version}","kind":"{kind}","response":{{"uid":"u","allowed":true}}}}"#
            );
            response(body.as_bytes(), ReviewVersion::V1).is_some()
        };
        assert!(is_plain("v1", "AdmissionReview"));
        assert!(!is_plain("v1", "Status"));
        assert!(!is_plain("v1beta1", "AdmissionReview"));
    }
}
