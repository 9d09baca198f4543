//! Encodes the `ConversionReview` for a conversion webhook, and interprets the reply.

mod metadata;
mod response;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::response::{Failure, FailureKind, read};
use crate::attributes::GroupVersionKind;

/// A version of `ConversionReview` that the server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// `apiextensions.k8s.io/v1`: the `apiVersion`, `kind`, and `uid` of a reply are checked.
    V1,
    /// `apiextensions.k8s.io/v1beta1`: the `apiVersion`, `kind`, and `uid` of a reply are not checked.
    V1beta1,
}

pub(crate) const GROUP: &str = "apiextensions.k8s.io";
pub(crate) const KIND: &str = "ConversionReview";

impl Version {
    /// Returns the first version in a webhook's `conversionReviewVersions` that the server supports.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`,
    /// `createConversionReviewObjects`.
    /// Rule: CNV-02.
    pub(crate) fn negotiate(accepted: &[String]) -> Option<Self> {
        accepted.iter().find_map(|version| match version.as_str() {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1beta1),
            _ => None,
        })
    }

    /// Returns the version without its group.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1beta1 => "v1beta1",
        }
    }

    fn kind(self) -> GroupVersionKind {
        GroupVersionKind::new(GROUP, self.as_str(), KIND)
    }
}

/// Encodes the review in the form that kube-apiserver sends: JSON with an empty `response` and a trailing newline.
///
/// # Errors
/// Returns an error if an object cannot be encoded as JSON.
///
/// Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`, `createConversionReviewObjects`.
/// Rule: CNV-01.
pub(crate) fn encode(
    version: Version,
    uid: &str,
    objects: &[Value],
    desired_api_version: &str,
) -> serde_json::Result<Bytes> {
    let review = Review {
        kind: KIND,
        api_version: &format!("{GROUP}/{}", version.as_str()),
        request: Request { uid, desired_api_version, objects },
        response: EmptyResponse {
            uid: "",
            converted_objects: None,
            result: EmptyStatus { metadata: Empty {} },
        },
    };
    let mut body = serde_json::to_vec(&review)?;
    body.push(b'\n');
    Ok(Bytes::from(body))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: &'static str,
    api_version: &'a str,
    request: Request<'a>,
    response: EmptyResponse,
}

/// The `request` of a review, with fields in the order in which upstream's struct declares them.
#[derive(Serialize)]
struct Request<'a> {
    uid: &'a str,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: &'a str,
    objects: &'a [Value],
}

/// The empty response that upstream sends with each request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EmptyResponse {
    uid: &'static str,
    converted_objects: Option<()>,
    result: EmptyStatus,
}

#[derive(Serialize)]
struct EmptyStatus {
    metadata: Empty,
}

#[derive(Serialize)]
struct Empty {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_review_has_an_empty_response() {
        let body = encode(Version::V1beta1, "u", &[json!({"a": 1})], "example.com/v2").unwrap();
        let expected = concat!(
            r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1","#,
            r#""request":{"uid":"u","desiredAPIVersion":"example.com/v2","objects":[{"a":1}]},"#,
            r#""response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}"#,
            "\n"
        );
        assert_eq!(String::from_utf8_lossy(&body), expected);
    }

    #[test]
    fn the_first_version_that_both_sides_support_is_used() {
        let negotiate = |accepted: &[&str]| {
            Version::negotiate(&accepted.iter().map(|&version| version.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(negotiate(&["v2", "v1beta1", "v1"]), Some(Version::V1beta1));
        assert_eq!(negotiate(&["v2"]), None);
    }
}
