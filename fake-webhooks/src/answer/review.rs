//! Reads the `AdmissionReview` in a request, and builds the one in the response.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The fields of a request that the response repeats.
pub(super) struct ReviewedRequest<'a> {
    pub(super) api_version: &'a str,
    pub(super) uid: &'a str,
}

impl<'a> ReviewedRequest<'a> {
    pub(super) fn read(review: &'a Value) -> Result<Self, String> {
        let text = |value: Option<&'a Value>, field: &str| {
            let text = value.and_then(Value::as_str).filter(|text| !text.is_empty());
            text.ok_or_else(|| format!("`{field}` is missing"))
        };
        let api_version = text(review.get("apiVersion"), "apiVersion")?;
        if review["kind"] != "AdmissionReview" {
            return Err("`kind` is not `AdmissionReview`".to_owned());
        }
        Ok(Self { api_version, uid: text(review.pointer("/request/uid"), "request.uid")? })
    }

    /// Returns a review that contains `response`, in the version of the request.
    pub(super) fn answered(&self, response: &Value) -> Value {
        Self::around(&json!(self.api_version), response)
    }

    /// Returns a review that contains `response`, in the version `api_version`.
    pub(super) fn around(api_version: &Value, response: &Value) -> Value {
        json!({"apiVersion": api_version, "kind": "AdmissionReview", "response": response})
    }
}

/// Encodes JSON Patch operations in base64, as a review requires.
pub(super) fn encoded(operations: &[Value]) -> String {
    STANDARD.encode(Value::from(operations).to_string())
}
