//! Provides an API server with one object for laws that patch it.

use std::sync::Arc;

use axum::body::Bytes;
use harness::attributes::{GroupVersionKind, GroupVersionResource};
use harness::chain::{Chain, administrator};
use harness::server::{AdmissionPlugins, Options, ResourceName};
use http::{Method, header};
use serde_json::Value;

use super::documents;

/// A server with one object.
pub(super) struct Stored {
    chain: Chain,
    path: String,
    resource: GroupVersionResource,
    namespace: String,
    name: String,
}

impl Stored {
    /// Creates a server with `object`; returns `None` if the server rejects the object.
    pub(super) fn new(object: Value) -> Option<Self> {
        // An item that a plugin adds to a list with two managers would conflict with the next apply.
        let plugins = AdmissionPlugins::select(&[], &["DefaultTolerationSeconds"]).ok()?;
        let chain = Chain::new(Options { plugins, ..Options::default() });
        if let Some(definition) = documents::object("CustomResourceDefinition") {
            chain.put(definition).ok()?;
        }
        let resource =
            chain.server().resource(&ResourceName::OfKind(GroupVersionKind::from_object(&object)))?;
        let stored = chain.put(object).ok()?;
        let text = |field: &str| stored.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let group_version = resource.kind.api_version();
        let root = if resource.name.group.is_empty() { "api" } else { "apis" };
        let within = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        let path = format!("/{root}/{group_version}{within}/{}/{name}", resource.name.resource);
        Some(Self { chain, path, resource: resource.name, namespace, name })
    }

    fn read(&self) -> Option<Arc<Value>> {
        self.chain.server().stored(&self.resource, &self.namespace, &self.name)
    }

    /// Patches the object and returns the result; `None` if the server rejected the patch and changed nothing.
    pub(super) async fn patch(&self, query: &str, format: &str, patch: &str) -> Option<Value> {
        let before = self.read();
        let mut request = http::Request::new(Bytes::from(patch.to_owned()));
        *request.method_mut() = Method::PATCH;
        *request.uri_mut() = format!("{}?{query}", self.path).parse().ok()?;
        request.headers_mut().insert(header::CONTENT_TYPE, format.parse().ok()?);
        let (response, _) = self.chain.server().exchange(request, administrator()).await;
        let code = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if code == 200 {
            return Some(answer);
        }
        assert!(code >= 400 && answer.get("code").is_some_and(|found| found == code), "{code}: {answer}");
        assert_eq!(self.read(), before, "{code} changed something: {patch}");
        None
    }
}
