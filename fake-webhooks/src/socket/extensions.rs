//! Defines the request and response extensions that the socket and its router use to exchange data.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

/// The permit of a call in progress, which is released when dropped.
#[derive(Clone, Debug)]
pub(crate) struct CallPermit(
    #[expect(dead_code, reason = "it is held")] pub(crate) Arc<OwnedSemaphorePermit>,
);

/// The common name of the client certificate, as an extension of the request.
#[derive(Clone, Debug)]
pub(crate) struct ClientCertificate(pub(crate) Arc<str>);

/// Marks a response that must not be sent; the connection is closed instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CloseConnection;
