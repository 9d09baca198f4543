//! `NamespaceLifecycle`: rejects creations in missing or terminating namespaces.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::Plugin;
use kubernetes_types::json::text;
use kubernetes_types::status::{Status, StatusCause};

use super::forbidden;
use crate::storage::ObjectReader;

/// Rejects creations in missing or terminating namespaces, and deletions of protected namespaces.
///
/// Source: apiserver pkg/admission/plugin/namespace/lifecycle/admission.go.
pub(crate) struct NamespaceLifecycle {
    objects: Arc<dyn ObjectReader>,
}

/// The namespaces that cannot be deleted. As in upstream, `kube-node-lease` can be deleted.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

impl NamespaceLifecycle {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }

    fn check_creation(&self, attributes: &Attributes) -> Result<(), Box<Status>> {
        let name = &attributes.namespace;
        let Some(namespace) = self.objects.get("", "namespaces", "", name) else {
            return Err(Box::new(Status::not_found("", "namespaces", name)));
        };
        if text(&namespace, &["status", "phase"]) != "Terminating" {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        let mut status = forbidden(attributes, &why);
        if let Some(details) = &mut status.details {
            details.causes.push(StatusCause {
                reason: "NamespaceTerminating".to_owned(),
                message: format!("namespace {name} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        Err(status)
    }
}

impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        let is_namespace = attributes.kind.group.is_empty() && attributes.kind.kind == "Namespace";
        // Otherwise an access review would reveal which namespaces exist.
        let is_access_review = attributes.resource.group == "authorization.k8s.io"
            && attributes.resource.resource == "localsubjectaccessreviews";
        match attributes.operation {
            Operation::Delete if is_namespace && IMMORTAL_NAMESPACES.contains(&attributes.name.as_str()) => {
                let why = "this namespace may not be deleted";
                Err(Box::new(Status::forbidden(
                    &attributes.resource.group,
                    &attributes.resource.resource,
                    &attributes.name,
                    why,
                )))
            }
            Operation::Create if !is_namespace && !is_access_review && !attributes.namespace.is_empty() => {
                self.check_creation(attributes)
            }
            Operation::Create | Operation::Update | Operation::Delete | Operation::Connect => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{Stored, request};
    use super::*;

    fn admit(mut attributes: Attributes) -> Result<(), Box<Status>> {
        let namespace = |name: &str, phase: &str| {
            ("namespaces", json!({"metadata": {"name": name}, "status": {"phase": phase}}))
        };
        let stored = Stored(vec![namespace("ns", "Active"), namespace("term", "Terminating")]);
        NamespaceLifecycle::new(Arc::new(stored)).admit(&mut attributes)
    }

    fn config_map(namespace: &str) -> Attributes {
        let object = json!({"metadata": {"name": "x"}});
        Attributes {
            namespace: namespace.to_owned(),
            ..request(Operation::Create, "configmaps", "ConfigMap", object)
        }
    }

    #[test]
    fn creation_in_an_active_namespace_is_allowed() {
        assert_eq!(admit(config_map("ns")), Ok(()));
    }

    #[test]
    fn creation_in_a_missing_namespace_returns_404() {
        let status = admit(config_map("nope")).unwrap_err();
        assert_eq!(
            serde_json::to_value(status).unwrap(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "namespaces \"nope\" not found", "reason": "NotFound",
                "details": {"name": "nope", "kind": "namespaces"}, "code": 404,
            })
        );
    }

    #[test]
    fn creation_in_a_terminating_namespace_is_forbidden() {
        let status = admit(config_map("term")).unwrap_err();
        assert_eq!(
            serde_json::to_value(status).unwrap(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "configmaps \"x\" is forbidden: unable to create new content in namespace term because it \
                    is being terminated",
                "reason": "Forbidden",
                "details": {"name": "x", "kind": "configmaps", "causes": [{
                    "reason": "NamespaceTerminating", "message": "namespace term is being terminated",
                    "field": "metadata.namespace",
                }]},
                "code": 403,
            })
        );
    }

    #[test]
    fn updates_and_deletes_in_a_terminating_namespace_are_allowed() {
        for operation in [Operation::Update, Operation::Delete, Operation::Connect] {
            assert_eq!(admit(Attributes { operation, ..config_map("term") }), Ok(()));
        }
    }

    #[test]
    fn access_review_does_not_reveal_namespaces() {
        let mut attributes = config_map("nope");
        attributes.resource.group = "authorization.k8s.io".to_owned();
        attributes.resource.resource = "localsubjectaccessreviews".to_owned();
        assert_eq!(admit(attributes), Ok(()));
    }

    #[test]
    fn protected_namespaces_cannot_be_deleted() {
        for (name, message) in [
            ("default", Some("namespaces \"default\" is forbidden: this namespace may not be deleted")),
            (
                "kube-system",
                Some("namespaces \"kube-system\" is forbidden: this namespace may not be deleted"),
            ),
            (
                "kube-public",
                Some("namespaces \"kube-public\" is forbidden: this namespace may not be deleted"),
            ),
            ("kube-node-lease", None),
            ("ns", None),
        ] {
            let object = json!({"metadata": {"name": name}});
            let attributes = request(Operation::Delete, "namespaces", "Namespace", object);
            let refusal = admit(attributes).err().map(|status| status.message);
            assert_eq!(refusal.as_deref(), message, "{name}");
        }
    }
}
