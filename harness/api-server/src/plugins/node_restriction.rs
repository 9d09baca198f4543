//! `NodeRestriction`: limits the objects that a node can change.

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::Plugin;
use kubernetes_types::status::{Status, Unsupported};

/// Allows writes by users that are not nodes. Writes by nodes are not supported.
///
/// Source: kubernetes plugin/pkg/admission/noderestriction/admission.go.
pub(crate) struct NodeRestriction;

impl Plugin for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        let user = &attributes.user;
        // Source: kubernetes pkg/auth/nodeidentifier/default.go.
        let is_node = user.username.starts_with("system:node:")
            && user.groups.iter().any(|group| group == "system:nodes");
        if is_node && attributes.operation != Operation::Connect {
            let what = format!("NodeRestriction for the node {}", user.username);
            return Err(Box::new(Status::unsupported(&Unsupported { what })));
        }
        Ok(())
    }
}
