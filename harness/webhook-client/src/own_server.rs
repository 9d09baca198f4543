//! Calls to the API server itself, if it serves a webhook.

use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};

/// Handles the API server's requests to itself, with its own credentials: calls to the Service `default/kubernetes`.
///
/// Source: apiserver pkg/util/webhook/authentication.go, `NewDefaultAuthenticationInfoResolverWrapper`; kube-aggregator
/// pkg/apiserver/resolvers.go, `loopbackResolver`.
pub trait OwnServer: Send + Sync {
    /// Handles a request, whose URI consists of a path and a query, and returns the response.
    fn answer(&self, request: Request<Bytes>) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send + '_>>;
}
