//! Sends requests to the in-process API server over a connection that can be upgraded.

use axum::Router;
use http::header::HOST;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use kube::client::Body;
use tower::service_fn;

/// The buffer size of an in-memory connection, in bytes.
const IN_FLIGHT: usize = 64 * 1024;

/// Creates a client that opens an in-memory connection to `router` for each request.
pub(super) fn client(router: Router) -> kube::Client {
    let exchange = service_fn(move |request: Request<Body>| exchange(router.clone(), request));
    kube::Client::new(exchange, "default")
}

async fn exchange(router: Router, mut request: Request<Body>) -> Result<Response<Incoming>, hyper::Error> {
    let (ours, theirs) = tokio::io::duplex(IN_FLIGHT);
    let server = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(theirs), TowerToHyperService::new(router))
        .with_upgrades();
    // The result is not needed, because each side notices when the other side closes the connection.
    tokio::spawn(async { drop(server.await) });
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(ours)).await?;
    tokio::spawn(async { drop(connection.with_upgrades().await) });
    request.headers_mut().entry(HOST).or_insert(HeaderValue::from_static("admit"));
    sender.send_request(request).await
}
