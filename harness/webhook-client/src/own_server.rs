//! The API server that calls webhooks, where it is a webhook itself.

use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};

/// Answers what the API server asks of itself, with its own credentials: calls of the Service `default/kubernetes`.
///
/// Source: apiserver pkg/util/webhook/authentication.go, `NewDefaultAuthenticationInfoResolverWrapper`; kube-aggregator
/// pkg/apiserver/resolvers.go, `loopbackResolver`.
pub trait OwnServer: Send + Sync {
    /// The answer to a request, whose URI is a path and a query.
    fn answer(&self, request: Request<Bytes>) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send + '_>>;
}
