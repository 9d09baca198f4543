//! Requests to a router in process over a connection: what begins as HTTP may go on as something else.

use axum::Router;
use http::header::HOST;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use kube::client::Body;
use tower::service_fn;

/// How many bytes are on their way before whoever sends them waits.
const IN_FLIGHT: usize = 64 * 1024;

/// A client of the router, each of whose requests goes over a connection of its own, in memory.
pub(super) fn client(router: Router) -> kube::Client {
    let exchange = service_fn(move |request: Request<Body>| exchange(router.clone(), request));
    kube::Client::new(exchange, "default")
}

async fn exchange(router: Router, mut request: Request<Body>) -> Result<Response<Incoming>, hyper::Error> {
    let (ours, theirs) = tokio::io::duplex(IN_FLIGHT);
    let server = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(theirs), TowerToHyperService::new(router))
        .with_upgrades();
    // How either side ends is seen on the other one.
    tokio::spawn(async { drop(server.await) });
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(ours)).await?;
    tokio::spawn(async { drop(connection.with_upgrades().await) });
    request.headers_mut().entry(HOST).or_insert(HeaderValue::from_static("admit"));
    sender.send_request(request).await
}
