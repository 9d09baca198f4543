//! Sends single requests through the whole chain: an in-process API server that calls webhooks.
//!
//! ```no_run
//! # async fn example(configuration: serde_json::Value, pod: serde_json::Value) {
//! use harness::chain::{Chain, Request, Verdict};
//!
//! let chain = Chain::new(Default::default());
//! chain.put(configuration).expect("the configuration is valid");
//! let sent = chain.send(&Request::create(pod)).await.expect("the server knows pods");
//! assert_eq!(sent.verdict, Verdict::Admitted, "{}", sent.body);
//! for call in sent.calls() {
//!     println!("{}: {:?}", call.webhook, call.result);
//! }
//! # }
//! ```

mod path;
mod sent;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use kubernetes_admission::attributes::{GroupVersionKind, GroupVersionResource, Operation, UserInfo};
use kubernetes_admission::audit;
use kubernetes_admission::warnings;
use kubernetes_api_server::{ApiServer, Options, ResourceName};
use kubernetes_types::status::Status;
use serde_json::{Value, json};

pub use self::sent::{Sent, Verdict, could_change};

/// An API server that calls webhooks. Clones share the same server and the connections to webhooks.
#[derive(Clone, Debug)]
pub struct Chain {
    server: ApiServer,
}

/// A request to the server.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers build requests field by field")]
pub struct Request {
    /// The operation to perform.
    pub operation: Operation,
    /// The resource. For a subresource request, the resource that contains the subresource.
    pub resource: ResourceName,
    /// The namespace; empty means `default`. It is ignored for a cluster-scoped resource.
    pub namespace: String,
    /// The object's name; may be empty for a CREATE with a generated name.
    pub name: String,
    /// The subresource, such as `status` or `exec`; empty for the object itself.
    pub subresource: String,
    /// The body: the new object for a CREATE or an UPDATE, or the `DeleteOptions` for a DELETE.
    pub body: Option<Value>,
    /// Query parameters, such as `command=sh` for a CONNECT or `fieldManager=me`.
    ///
    /// For a CONNECT to `proxy`, the parameter `path` is appended to the URL path.
    pub query: Vec<(String, String)>,
    /// Whether the request is a dry run (`dryRun=All`).
    pub dry_run: bool,
    /// The user who sends the request.
    pub user: UserInfo,
}

/// The reason why a request could not be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server does not serve this kind. The message is the same as kubectl's.
    #[error("no matches for kind \"{}\" in version \"{}\"", .0.kind, .0.api_version())]
    UnknownKind(GroupVersionKind),
    /// The server does not serve this resource.
    #[error("the server has no resource {} in version \"{}\"", .0.group_resource(), .0.version)]
    UnknownResource(GroupVersionResource),
    /// The request requires an object name.
    #[error("metadata.name is required")]
    NoName,
    /// The path and the query are too long for a URI.
    #[error("invalid request URI of {bytes} bytes: {error}")]
    NoUri {
        /// The length of the path and the query, in bytes.
        bytes: usize,
        /// The error of the URI parser.
        error: String,
    },
}

impl Request {
    /// Creates a request in which an administrator creates `object`.
    pub fn create(object: Value) -> Self {
        Self::write(Operation::Create, object)
    }

    /// Creates a request in which an administrator replaces the stored object that has the name of `object`.
    pub fn update(object: Value) -> Self {
        Self::write(Operation::Update, object)
    }

    /// Creates a request in which an administrator deletes the object with the same kind, namespace, and name.
    pub fn delete(object: &Value) -> Self {
        Self { body: None, ..Self::write(Operation::Delete, object.clone()) }
    }

    fn is_proxy(&self) -> bool {
        self.operation == Operation::Connect && self.subresource == "proxy"
    }

    fn write(operation: Operation, object: Value) -> Self {
        let text = |field: &str| {
            let field = object.pointer(&format!("/metadata/{field}"));
            field.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Self {
            operation,
            resource: ResourceName::OfKind(GroupVersionKind::from_object(&object)),
            namespace: text("namespace"),
            name: text("name"),
            subresource: String::new(),
            query: Vec::new(),
            dry_run: false,
            user: administrator(),
            body: Some(object),
        }
    }
}

/// Returns the user that `kubectl` has in a new cluster.
pub fn administrator() -> UserInfo {
    UserInfo {
        username: "kubernetes-admin".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    }
}

impl Chain {
    /// Creates a server with the namespaces of a new cluster and without webhooks.
    pub fn new(options: Options) -> Self {
        Self { server: ApiServer::new(options) }
    }

    /// Returns the API server of this chain.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Stores an object without admission. Replaces an existing object with the same name.
    ///
    /// Use this for objects that requests depend on, such as webhook configurations, custom resource definitions, and
    /// namespaces. A webhook configuration takes effect immediately.
    ///
    /// # Errors
    /// Returns the server's `Status` if the object is invalid.
    pub fn put(&self, object: Value) -> Result<Arc<Value>, Box<Status>> {
        self.server.put(object)
    }

    /// Creates a namespace if it does not exist, and returns whether it was created.
    ///
    /// # Errors
    /// Returns the server's `Status` if the namespace name is invalid.
    pub fn ensure_namespace(&self, name: &str) -> Result<bool, Box<Status>> {
        let namespaces = GroupVersionResource::new("", "v1", "namespaces");
        if self.server.stored(&namespaces, "", name).is_some() {
            return Ok(false);
        }
        self.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))?;
        Ok(true)
    }

    /// Sends one request through the chain and returns the result.
    ///
    /// # Errors
    /// Returns [`RequestError`] if the request cannot be sent. [`Sent`] also describes rejected requests.
    pub async fn send(&self, request: &Request) -> Result<Sent, RequestError> {
        let uri = path::uri(request, &self.server)?;
        let method = match request.operation {
            Operation::Create | Operation::Connect => Method::POST,
            Operation::Update => Method::PUT,
            Operation::Delete => Method::DELETE,
        };
        let body = request.body.as_ref().map_or_else(Bytes::new, |body| body.to_string().into());
        let mut message = http::Request::new(body);
        *message.method_mut() = method;
        *message.uri_mut() = uri;
        let json = http::HeaderValue::from_static("application/json");
        message.headers_mut().insert(header::CONTENT_TYPE, json);
        let (response, happened) = self.server.exchange(message, request.user.clone()).await;
        let (parts, body) = response.into_parts();
        // The body is in memory.
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| {
            json!(Status::failure(parts.status.as_u16(), "", String::from_utf8_lossy(&body)))
        });
        let provisional = Verdict::new(request.operation, parts.status, &body, &happened.record);
        Ok(Sent {
            verdict: provisional.given(request.operation, &happened.record),
            provisional,
            code: parts.status.as_u16(),
            body,
            warnings: warning_texts(&parts.headers),
            audit_annotations: audit::annotations(&happened.record),
            read: happened.body,
            record: happened.record,
        })
    }
}

fn warning_texts(headers: &HeaderMap) -> Vec<String> {
    let headers = headers.get_all(header::WARNING).iter();
    headers
        .filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
        .filter_map(warnings::decode)
        .collect()
}

#[cfg(test)]
mod tests;
