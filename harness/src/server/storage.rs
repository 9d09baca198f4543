//! The objects of the server, in memory.

use std::sync::Arc;

use serde_json::Value;

/// Reads stored objects, which are in their storage version.
pub(crate) trait ObjectReader: Send + Sync {
    /// One object; `namespace` is empty for a cluster-scoped one.
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// All objects of a namespace, or of all namespaces if `namespace` is empty.
    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>>;
}
