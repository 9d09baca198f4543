//! Encodes the `AdmissionReview` for a webhook.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::ReviewVersion;
use crate::admission_run::EncodedObjects;
pub use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation, UserInfo};
use crate::event::CallFailure;
use crate::matching::Invocation;

/// Encodes the review in the form that kube-apiserver sends: JSON with a trailing newline.
///
/// # Errors
/// Returns [`CallFailure`] if the objects cannot be encoded as JSON.
///
/// Source: apiserver pkg/admission/plugin/webhook/request/admissionreview.go; client-go rest/request.go.
/// Rule: REQ-03, REQ-04.
pub fn encode(
    version: ReviewVersion,
    uid: &str,
    attributes: &Attributes,
    invocation: &Invocation,
    objects: EncodedObjects<'_>,
) -> Result<Bytes, CallFailure> {
    let head = Head {
        uid,
        kind: invocation.kind(),
        resource: invocation.resource(),
        sub_resource: &attributes.subresource,
        request_kind: &attributes.kind,
        request_resource: &attributes.resource,
        request_sub_resource: &attributes.subresource,
        name: &attributes.name,
        namespace: &attributes.namespace,
        operation: attributes.operation,
        user_info: &attributes.user,
    };
    let tail = Tail { dry_run: attributes.dry_run, options: attributes.options.as_ref() };
    let EncodedObjects { object, old_object } = objects;
    let texts = [object, old_object].into_iter().flatten();
    let mut body = Vec::with_capacity(BESIDE_OBJECTS + texts.map(<[u8]>::len).sum::<usize>());
    body.extend_from_slice(br#"{"kind":"AdmissionReview","apiVersion":""#);
    body.extend_from_slice(version.api_version().as_bytes());
    body.extend_from_slice(br#"","request":"#);
    serde_json::to_writer(&mut body, &head).map_err(|error| not_encoded(&error))?;
    // Join the members before and after the objects: drop the closing brace here and the opening one below.
    body.pop();
    body.extend_from_slice(br#","object":"#);
    body.extend_from_slice(object.unwrap_or(b"null"));
    body.extend_from_slice(br#","oldObject":"#);
    body.extend_from_slice(old_object.unwrap_or(b"null"));
    let begin = body.len();
    serde_json::to_writer(&mut body, &tail).map_err(|error| not_encoded(&error))?;
    if let Some(brace) = body.get_mut(begin) {
        *brace = b',';
    }
    body.extend_from_slice(b"}\n");
    Ok(Bytes::from(body))
}

/// An upper bound, in bytes, for the size of most reviews without their objects.
const BESIDE_OBJECTS: usize = 1024;

/// Returns the failure for an object that cannot be encoded as JSON.
pub(crate) fn not_encoded(error: &serde_json::Error) -> CallFailure {
    CallFailure { reason: format!("could not create admission objects: {error}"), code: 400 }
}

/// The fields of `request` before the objects, in the order in which upstream's struct declares them.
///
/// Rule: REQ-06, REQ-08.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    uid: &'a str,
    kind: &'a GroupVersionKind,
    resource: &'a GroupVersionResource,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: &'a GroupVersionKind,
    request_resource: &'a GroupVersionResource,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: Operation,
    user_info: &'a UserInfo,
}

/// The fields of `request` after the objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tail<'a> {
    dry_run: bool,
    options: Option<&'a Value>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission_run::AdmissionRun;
    use crate::matching::{Decision, decide};
    use crate::ownership::TimePrecision;
    use crate::testing::{NoCluster, create_config_map, webhook};

    fn encoded(version: ReviewVersion, attributes: &Attributes) -> String {
        let mut run = AdmissionRun::new(attributes.clone(), TimePrecision::Seconds, &NoCluster);
        let Decision::Call(invocation) = decide(&webhook("w.x.y"), &mut run).decision else {
            panic!("the webhook matches everything");
        };
        let objects = run.encoded(invocation.kind()).unwrap();
        let body = encode(version, "u1", attributes, &invocation, objects).unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn absent_objects_are_null_and_empty_strings_are_omitted() {
        let attributes = Attributes { name: String::new(), options: None, ..create_config_map() };
        assert_eq!(
            encoded(ReviewVersion::V1, &attributes),
            concat!(
                r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u1","#,
                r#""kind":{"group":"","version":"v1","kind":"ConfigMap"},"#,
                r#""resource":{"group":"","version":"v1","resource":"configmaps"},"#,
                r#""requestKind":{"group":"","version":"v1","kind":"ConfigMap"},"#,
                r#""requestResource":{"group":"","version":"v1","resource":"configmaps"},"#,
                r#""namespace":"ns","operation":"CREATE","userInfo":{},"object":{"apiVersion":"v1","#,
                r#""data":{"k":"v"},"kind":"ConfigMap","metadata":{"name":"n","namespace":"ns"}},"#,
                r#""oldObject":null,"dryRun":false,"options":null}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn v1beta1_differs_only_in_its_version() {
        let attributes = Attributes { subresource: "status".to_owned(), ..create_config_map() };
        let v1 = encoded(ReviewVersion::V1, &attributes);
        assert!(v1.contains(r#""subResource":"status""#) && v1.contains(r#""requestSubResource":"status""#));
        assert_eq!(
            encoded(ReviewVersion::V1beta1, &attributes),
            v1.replacen("admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1)
        );
    }
}
