//! Defines the interface for calls to webhooks that the API server itself serves.

use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};

/// Handles requests of the API server to itself: calls to the Service `default/kubernetes`.
///
/// Source: apiserver pkg/util/webhook/authentication.go, `NewDefaultAuthenticationInfoResolverWrapper`; kube-aggregator
/// pkg/apiserver/resolvers.go, `loopbackResolver`.
pub trait OwnServer: Send + Sync {
    /// Handles a request and returns the response. The URI of the request consists of a path and a query.
    fn answer(&self, request: Request<Bytes>) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send + '_>>;
}
