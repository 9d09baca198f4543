//! Encodes the `AdmissionReview` for a webhook, and interprets the reply.

pub(crate) mod conversion;
pub mod request;
pub mod response;

pub mod decode;
pub mod fields;
mod http_status;
mod media_type;
mod plain;

use std::sync::LazyLock;

use crate::attributes::GroupVersionKind;
use crate::event::CallFailure;

/// A version of `admission.k8s.io` that the server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API server speaks these two")]
pub enum ReviewVersion {
    /// `admission.k8s.io/v1`: replies are validated strictly.
    V1,
    /// `admission.k8s.io/v1beta1`: replies are validated loosely.
    V1beta1,
}

impl ReviewVersion {
    /// Returns the first version in a webhook's `admissionReviewVersions` that the server supports.
    ///
    /// # Errors
    /// Returns [`CallFailure`] if the server does not support any of them.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/request/admissionreview.go, `CreateAdmissionObjects`.
    /// Rule: REQ-01.
    pub fn negotiate(accepted: &[String]) -> Result<Self, CallFailure> {
        accepted
            .iter()
            .find_map(|version| match version.as_str() {
                "v1" => Some(Self::V1),
                "v1beta1" => Some(Self::V1beta1),
                _ => None,
            })
            .ok_or_else(|| CallFailure {
                reason: "could not create admission objects: webhook does not accept known AdmissionReview \
                         versions (v1, v1beta1)"
                    .to_owned(),
                code: 400,
            })
    }

    fn kind(self) -> &'static GroupVersionKind {
        static KINDS: LazyLock<[GroupVersionKind; 2]> = LazyLock::new(|| {
            ["v1", "v1beta1"]
                .map(|version| GroupVersionKind::new("admission.k8s.io", version, "AdmissionReview"))
        });
        let [v1, v1beta1] = &*KINDS;
        match self {
            Self::V1 => v1,
            Self::V1beta1 => v1beta1,
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_version_that_both_sides_support_is_used() {
        let negotiate = |accepted: &[&str]| {
            ReviewVersion::negotiate(&accepted.iter().map(|&version| version.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(negotiate(&["v2", "v1beta1", "v1"]), Ok(ReviewVersion::V1beta1));
        assert_eq!(negotiate(&["v1", "v1beta1"]), Ok(ReviewVersion::V1));
        assert_eq!(negotiate(&["v2"]).map_err(|failure| failure.code), Err(400));
    }
}
