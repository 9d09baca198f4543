//! Checks the API approval of definitions in the protected Kubernetes community groups.

use kubernetes_cel::schema::has_format;
use kubernetes_types::json::{at, text};
use kubernetes_types::quoting::quote;
use kubernetes_types::status::FieldError;
use serde_json::Value;

const ANNOTATION: &str = "api-approved.kubernetes.io";

const POLICY_URL: &str = "https://github.com/kubernetes/enhancements/pull/1111";

/// The meaning of the annotation `api-approved.kubernetes.io`.
///
/// Source: apiextensions-apiserver pkg/apihelpers/helpers.go, `APIApprovalState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approval {
    /// The value is neither a URL nor a reason.
    Invalid,
    /// The annotation is missing.
    Missing,
    /// The value is a URL that refers to the approval.
    Approved,
    /// The value is `unapproved` followed by a reason.
    Bypassed,
}

/// Returns the approval state of a definition with a message; `None` if the group does not require approval.
///
/// Source: apiextensions-apiserver pkg/apihelpers/helpers.go, `IsProtectedCommunityGroup` and `GetAPIApprovalState`.
pub(crate) fn find_approval(definition: &Value) -> Option<(Approval, String)> {
    let group = text(definition, &["spec", "group"]);
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    if !is_protected {
        return None;
    }
    let annotation = annotation(definition);
    Some(if annotation.is_empty() {
        (
            Approval::Missing,
            format!("protected groups must have approval annotation \"{ANNOTATION}\", see {POLICY_URL}"),
        )
    } else if annotation.starts_with("unapproved") {
        (Approval::Bypassed, format!("not approved: {}", quote(annotation)))
    } else if is_absolute_url(annotation) {
        (Approval::Approved, format!("approved in {annotation}"))
    } else {
        (
            Approval::Invalid,
            format!(
                "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or a reason starting \
                 with \"unapproved\", see {POLICY_URL}"
            ),
        )
    })
}

/// Returns an error if the approval of a definition is missing or invalid. An update may keep the old approval state.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, `validateAPIApproval`.
/// Rule: SCH-13.
pub(crate) fn error(definition: &Value, old: Option<&Value>) -> Option<FieldError> {
    let (approval, why) = find_approval(definition)?;
    if old.and_then(find_approval).is_some_and(|(before, _)| before == approval) {
        return None;
    }
    let field = format!("metadata.annotations[{ANNOTATION}]");
    match approval {
        Approval::Invalid => Some(FieldError::invalid(field, quote(annotation(definition)), why)),
        Approval::Missing => Some(FieldError::required(field, &why)),
        Approval::Approved | Approval::Bypassed => None,
    }
}

fn annotation(definition: &Value) -> &str {
    at(definition, &["metadata", "annotations"]).get(ANNOTATION).and_then(Value::as_str).unwrap_or_default()
}

/// Source: Go net/url/url.go, `parse`.
fn is_absolute_url(text: &str) -> bool {
    let has_host = || {
        let (scheme, rest) = text.split_once("://")?;
        let authority = rest.split(['/', '?']).next()?;
        let host = authority.rsplit('@').next()?;
        Some(!scheme.is_empty() && !host.is_empty())
    };
    has_format("uri", text) && has_host() == Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_community_groups_require_approval() {
        for (group, annotation, expected) in [
            ("example.com", "", None),
            ("notk8s.io", "", None),
            ("k8s.io", "", Some(Approval::Missing)),
            ("x.kubernetes.io", "unapproved, experimental", Some(Approval::Bypassed)),
            ("x.k8s.io", "https://github.com/kubernetes/enhancements/pull/1", Some(Approval::Approved)),
            ("x.k8s.io", "https://", Some(Approval::Invalid)),
            ("x.k8s.io", "https:/a", Some(Approval::Invalid)),
            ("x.k8s.io", "/path", Some(Approval::Invalid)),
            ("x.k8s.io", "approved", Some(Approval::Invalid)),
        ] {
            let definition =
                json!({"metadata": {"annotations": {ANNOTATION: annotation}}, "spec": {"group": group}});
            assert_eq!(
                find_approval(&definition).map(|(approval, _)| approval),
                expected,
                "{group} {annotation}"
            );
        }
    }
}
