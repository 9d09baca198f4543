//! Defines the request and response extensions that the socket and its router use to exchange data.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

/// The permit for a call in progress. It is released when dropped.
#[derive(Clone, Debug)]
pub(crate) struct CallPermit(
    #[expect(dead_code, reason = "it is held")] pub(crate) Arc<OwnedSemaphorePermit>,
);

/// The request extension with the common name of the client certificate.
#[derive(Clone, Debug)]
pub(crate) struct ClientCertificate(pub(crate) Arc<str>);

/// The response extension for a response that must not be sent. The connection is closed instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CloseConnection;
