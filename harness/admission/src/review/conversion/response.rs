//! Interprets the reply of a conversion webhook.

use kubernetes_types::json::json_type;
use kubernetes_types::quoting::quote;
use kubernetes_types::schema;
use serde_json::{Map, Value};

use super::{KIND, Version, metadata};
use crate::attributes::GroupVersionKind;
use crate::caller::Reply;
use crate::review::decode::{self, DecodeError};
use crate::review::fields::Fields;
use crate::review::response::successful;

/// The kinds of the group `apiextensions.k8s.io` in the converter's scheme.
const KINDS: [&str; 3] = [KIND, "CustomResourceDefinition", "CustomResourceDefinitionList"];

/// The reason why a conversion reply is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// The message for the client.
    pub(crate) message: String,
}

/// The kind of a failure. It is a label in metrics.
///
/// Source: apiextensions-apiserver pkg/apiserver/conversion/metrics.go, `ConversionWebhookErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The webhook did not return a review.
    Call,
    /// The review does not match the request, or reports a failed conversion.
    MalformedResponse,
    /// The webhook did not return exactly one object.
    PartialResponse,
    /// A converted object does not match the object that was sent.
    InvalidConvertedObject,
}

impl FailureKind {
    /// Returns the value of the label in metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "conversion_webhook_call_failure",
            Self::MalformedResponse => "conversion_webhook_malformed_response_failure",
            Self::PartialResponse => "conversion_webhook_partial_response_failure",
            Self::InvalidConvertedObject => "conversion_webhook_invalid_converted_object_failure",
        }
    }
}

/// Returns the converted form of `original` from the reply to the review `uid` in `version`.
///
/// The result has the kind `target` and the original metadata, except for labels and annotations.
///
/// # Errors
/// Returns [`Failure`] with kube-apiserver's error message if the reply is invalid or reports a failed conversion.
///
/// Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`, `Convert` and
/// `getConvertedObjectsFromResponse`.
/// Rule: CNV-03, CNV-04, CNV-05, CNV-06, CNV-07.
pub(crate) fn read(
    reply: &Reply,
    version: Version,
    uid: &str,
    original: &Value,
    target: &GroupVersionKind,
) -> Result<Value, Failure> {
    let from = GroupVersionKind::from_object(original);
    let failed =
        |kind, what: &str| Failure { kind, message: format!("conversion webhook for {from} {what}") };
    let no_call = |text: &str| failed(FailureKind::Call, &format!("failed: {text}"));
    successful(reply).map_err(|(text, _)| no_call(&text))?;
    let document =
        decode::review(&reply.body, &version.kind(), &KINDS).map_err(|error| no_call(&error.into_text()))?;
    let answer = RawResponse::read(&document.fields).map_err(|error| no_call(&error.into_text()))?;
    let objects = converted_objects(answer, &document.claimed, version, uid)
        .map_err(|text| failed(FailureKind::MalformedResponse, &format!("failed: {text}")))?;
    let [object] = objects.as_slice() else {
        let what = format!("returned {} objects, expected 1", objects.len());
        return Err(failed(FailureKind::PartialResponse, &what));
    };
    let invalid = |what: &str| failed(FailureKind::InvalidConvertedObject, what);
    let mut object = object_in(object)
        .map_err(|message| Failure { kind: FailureKind::InvalidConvertedObject, message })?;
    let found = GroupVersionKind::from_object(&Value::Object(object.clone()));
    if (&found.group, &found.version) != (&target.group, &target.version) {
        let (expected, received) = (target.api_version(), found.api_version());
        return Err(invalid(&format!(
            "returned invalid object at index 0: invalid groupVersion (expected {expected}, received {received})"
        )));
    }
    if found.kind != from.kind {
        return Err(invalid(&format!(
            "returned invalid object at index 0: invalid kind (expected {}, received {})",
            from.kind, found.kind
        )));
    }
    let converted = Value::Object(object);
    metadata::check_identity(original, &converted)
        .map_err(|text| invalid(&format!("returned invalid object: {text}")))?;
    object = match converted {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    metadata::restore(original, &mut object)
        .map_err(|text| invalid(&format!("returned invalid metadata: {text}")))?;
    let mut converted = Value::Object(object);
    schema::normalize_numbers(&mut converted);
    Ok(converted)
}

/// The decoded `response`, before validation.
struct RawResponse {
    uid: String,
    status: String,
    message: String,
    objects: Vec<Value>,
}

impl RawResponse {
    /// Reads `response`; returns `None` if it is missing.
    fn read(review: &Map<String, Value>) -> Result<Option<Self>, DecodeError> {
        let review = Fields::root(review, KIND);
        let Some(fields) = review.object("response", "v1.ConversionResponse", "ConversionResponse")? else {
            return Ok(None);
        };
        let result = fields.object("result", "v1.Status", "Status")?;
        let status =
            result.map(|result| crate::review::fields::status(&result)).transpose()?.unwrap_or_default();
        Ok(Some(Self {
            uid: fields.string("uid", "types.UID")?.unwrap_or_default(),
            objects: fields.values("convertedObjects", "[]runtime.RawExtension")?,
            status: status.status,
            message: status.message,
        }))
    }
}

/// Returns the converted objects of a successful response, or the error message.
///
/// Rule: CNV-03, CNV-04.
fn converted_objects(
    answer: Option<RawResponse>,
    claimed: &GroupVersionKind,
    version: Version,
    uid: &str,
) -> Result<Vec<Value>, String> {
    let expected = version.kind();
    // In v1beta1, the reply may have any UID and may omit its kind.
    if version == Version::V1 && *claimed != expected {
        return Err(format!("expected webhook response of {expected}, got {claimed}"));
    }
    let answer = answer.ok_or("no response provided")?;
    if version == Version::V1 && answer.uid != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(&answer.uid)));
    }
    if answer.status == "Success" {
        return Ok(answer.objects);
    }
    if !answer.message.is_empty() {
        return Err(answer.message);
    }
    Err(format!("response.result.status was '{}', not 'Success'", answer.status))
}

/// Reads an item of `convertedObjects`. The item must have a `kind`.
///
/// Source: apimachinery pkg/apis/meta/v1/unstructured/helpers.go, `unstructuredJSONScheme`.
fn object_in(item: &Value) -> Result<Map<String, Value>, String> {
    match item {
        Value::Null => Err("unexpected end of JSON input".to_owned()),
        Value::Object(object) => {
            if object.get("kind").and_then(Value::as_str).is_none_or(str::is_empty) {
                return Err(format!("Object 'Kind' is missing in '{item}'"));
            }
            Ok(object.clone())
        }
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(other)
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Converts a widget from v1 to v2 with a reply whose `convertedObjects` are `objects`.
    fn converted(objects: &Value) -> Result<Value, (FailureKind, String)> {
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "response": {"uid": "u", "result": {"status": "Success"}, "convertedObjects": objects},
        });
        let reply = Reply { status: 200, content_type: None, body: review.to_string().into() };
        let original =
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "size": 1});
        let target = GroupVersionKind::new("example.com", "v2", "Widget");
        read(&reply, Version::V1, "u", &original, &target).map_err(|failure| (failure.kind, failure.message))
    }

    #[test]
    fn exactly_the_sent_object_must_be_returned_in_the_requested_version() {
        let widget = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
        let good = widget("example.com/v2", "Widget");
        assert_eq!(converted(&json!([good])), Ok(good.clone()));
        let from = "conversion webhook for example.com/v1, Kind=Widget returned";
        assert_eq!(
            converted(&json!([good, good])),
            Err((FailureKind::PartialResponse, format!("{from} 2 objects, expected 1")))
        );
        for (object, why) in [
            (
                widget("example.com/v1", "Widget"),
                "invalid groupVersion (expected example.com/v2, received example.com/v1)",
            ),
            (widget("example.com/v2", "Gadget"), "invalid kind (expected Widget, received Gadget)"),
        ] {
            let message = format!("{from} invalid object at index 0: {why}");
            assert_eq!(converted(&json!([object])), Err((FailureKind::InvalidConvertedObject, message)));
        }
    }

    /// Reads a reply to a review with the UID `u` and returns the number of converted objects, or the error.
    fn objects(claimed: Version, spoken: Version, uid: &str, message: Option<&str>) -> Result<usize, String> {
        let answer = RawResponse {
            uid: uid.to_owned(),
            status: if message.is_some() { "Failure" } else { "Success" }.to_owned(),
            message: message.unwrap_or_default().to_owned(),
            objects: vec![Value::Null],
        };
        converted_objects(Some(answer), &claimed.kind(), spoken, "u").map(|objects| objects.len())
    }

    #[test]
    fn only_a_v1_review_must_match_its_version_and_uid() {
        let (old, new) = (Version::V1beta1, Version::V1);
        assert_eq!(objects(new, new, "u", None), Ok(1));
        assert_eq!(objects(new, old, "w", None), Ok(1));
        assert_eq!(
            objects(old, new, "u", None),
            Err("expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
                 apiextensions.k8s.io/v1beta1, Kind=ConversionReview"
                .to_owned())
        );
        assert_eq!(objects(new, new, "w", None), Err(r#"expected response.uid="u", got "w""#.to_owned()));
    }

    #[test]
    fn a_failure_has_the_webhook_message_or_a_default() {
        let of = |message| objects(Version::V1, Version::V1, "u", Some(message));
        assert_eq!(of("no"), Err("no".to_owned()));
        assert_eq!(of(""), Err("response.result.status was 'Failure', not 'Success'".to_owned()));
    }
}
