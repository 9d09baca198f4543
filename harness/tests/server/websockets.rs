//! Tests watches over WebSocket that depend on timing, which a recording of one second cannot cover.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use futures::StreamExt as _;
use harness::server::{ApiServer, Authentication, Options};
use http::Request;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::client::{CONFIG_MAPS, administrator, delete, post, server};

/// The size of the connection's buffer, in bytes. It holds only a few events.
const SMALL: usize = 1024;

/// The client side of a watch, over a connection with a small buffer.
struct Watch {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    connection: JoinHandle<()>,
}

impl Watch {
    async fn open(server: &ApiServer, query: &str) -> Self {
        let (ours, theirs) = tokio::io::duplex(SMALL);
        let service = TowerToHyperService::new(server.router(Authentication::Always(administrator())));
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(theirs), service)
            .with_upgrades();
        let connection = tokio::spawn(async { serving.await.unwrap() });
        let (mut sender, client) = hyper::client::conn::http1::handshake(TokioIo::new(ours)).await.unwrap();
        tokio::spawn(client.with_upgrades());
        let request = Request::get(format!("{CONFIG_MAPS}?watch=true{query}"))
            .header("host", "localhost")
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("origin", "http://localhost")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let response = sender.send_request(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 101);
        let upgraded = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
        Self { socket: WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await, connection }
    }

    /// Returns the next event; `None` after the server has closed the connection.
    async fn next(&mut self) -> Option<Value> {
        match self.socket.next().await?.unwrap() {
            Message::Text(text) => Some(serde_json::from_str(&text).unwrap()),
            Message::Close(_) => None,
            other @ (Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {
                panic!("{other:?}")
            }
        }
    }
}

#[tokio::test]
async fn lagging_client_is_disconnected() {
    let server = server();
    let mut watch = Watch::open(&server, "").await;
    // More than the history keeps and one piece in flight.
    for _ in 0..2_300 {
        assert_eq!(post(&server, CONFIG_MAPS, &json!({"metadata": {"name": "a"}})).await.0, 201);
        assert_eq!(delete(&server, &format!("{CONFIG_MAPS}/a"), None).await.0, 200);
    }
    let mut events = Vec::new();
    while let Some(event) = watch.next().await {
        events.push(event);
    }
    assert!(events.iter().all(|event| event["type"] != "ERROR"), "{events:?}");
    // Data in flight arrives, and nothing else was buffered.
    assert!(events.len() <= 256, "{} events", events.len());
}

#[tokio::test]
async fn stopping_server_closes_websockets() {
    let server = server();
    let mut waiting = Watch::open(&server, "").await;
    server.end_watches();
    assert_eq!(waiting.next().await, None);
    waiting.connection.await.unwrap();
}

#[tokio::test]
async fn watch_end_is_audited_after_a_disconnect() {
    let (told, mut noted) = tokio::sync::mpsc::unbounded_channel();
    let told = Mutex::new(told);
    let audit = Arc::new(move |event: &Value| {
        let noted = json!([event["stage"], event["responseStatus"]["code"]]);
        told.lock().unwrap().send(noted).unwrap();
    });
    let server = ApiServer::new(Options { audit: Some(audit), ..Options::default() });
    let watch = Watch::open(&server, "").await;
    assert_eq!(noted.recv().await, Some(json!(["ResponseStarted", 101])));
    drop(watch);
    assert_eq!(noted.recv().await, Some(json!(["ResponseComplete", 101])));
}
