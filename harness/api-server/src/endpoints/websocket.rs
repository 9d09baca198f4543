//! Watches over WebSocket: a text or binary frame for each event.
//!
//! The informers of Java clients request watches over WebSocket.
//!
//! Source: apiserver pkg/endpoints/handlers/watch.go, `HandleWS`; the handshake is that of golang.org/x/net/websocket,
//! server.go and hybi.go.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures::{SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use kubernetes_types::status::{Status, Unsupported};
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Utf8Bytes};
use url::Url;

use super::accept::MediaType;
use super::answer::refusal;
use super::audit_log::FinalEvent;
use super::watch::Watch;

/// The time that a client may take to read a frame before the server closes the connection.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// The time that a client may take to read pending data after the end of the watch.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum size of a frame in bytes. Longer events are split, because each client needs a copy of each frame.
const MAX_FRAME_BYTES: usize = 64 << 10;

/// The maximum size of a client message in bytes. The server ignores client messages except for ping and close.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// Returns whether a request asks for an upgrade to WebSocket.
///
/// Source: streaming pkg/httpstream/wsstream/conn.go, `IsWebSocketRequest`.
pub(crate) fn is_requested(headers: &HeaderMap) -> bool {
    let upgrades =
        |value: &HeaderValue| value.to_str().is_ok_and(|text| text.to_ascii_lowercase().contains("upgrade"));
    first(headers, &UPGRADE).eq_ignore_ascii_case("websocket")
        && headers.get_all(CONNECTION).iter().any(upgrades)
}

/// A watch whose handshake was accepted. The server does not send events before [`Connection::start`].
#[derive(Debug)]
pub(crate) struct Connection {
    watch: Watch,
    upgrade: OnUpgrade,
}

/// Answers the handshake. Returns `None` instead of a connection if the handshake is rejected.
pub(crate) fn handshake(watch: Watch, parts: &Parts) -> (Response, Option<Connection>) {
    let Some(upgrade) = parts.extensions.get::<OnUpgrade>().cloned() else {
        let what = "a WebSocket without its own connection".to_owned();
        return (refusal(&Status::unsupported(&Unsupported { what }), Some(MediaType::Json)), None);
    };
    match accept(&parts.headers) {
        Ok(headers) => {
            let response = (StatusCode::SWITCHING_PROTOCOLS, headers).into_response();
            (response, Some(Connection { watch, upgrade }))
        }
        Err(wrong) => (wrong.into_response(), None),
    }
}

/// The reason why a handshake is rejected.
enum HandshakeError {
    Key,
    Version,
    Origin,
    /// The client offers several subprotocols or a subprotocol that is not a valid header value.
    Protocol,
}

impl HandshakeError {
    /// Returns the response to a rejected handshake. The connection is closed after the response.
    fn into_response(self) -> Response {
        let (code, why) = match self {
            Self::Key => (StatusCode::BAD_REQUEST, "mismatch challenge/response"),
            Self::Version => (StatusCode::BAD_REQUEST, "missing or bad WebSocket Version"),
            Self::Origin => (StatusCode::FORBIDDEN, ""),
            Self::Protocol => (StatusCode::BAD_REQUEST, ""),
        };
        let mut response = Response::new(Body::from(why));
        *response.status_mut() = code;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if matches!(self, Self::Version) {
            headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        response
    }
}

/// Returns the response headers of an accepted handshake.
///
/// Accepts any single subprotocol, because subprotocols do not change the frames. Rejects several subprotocols.
fn accept(headers: &HeaderMap) -> Result<HeaderMap, HandshakeError> {
    let key = first(headers, &SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return Err(HandshakeError::Key);
    }
    if first(headers, &SEC_WEBSOCKET_VERSION) != "13" {
        return Err(HandshakeError::Version);
    }
    let origin = first(headers, &ORIGIN);
    if !origin.starts_with('/') && Url::parse(origin).is_err() {
        return Err(HandshakeError::Origin);
    }
    let mut accepted = HeaderMap::new();
    accepted.insert(UPGRADE, HeaderValue::from_static("websocket"));
    accepted.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    let answer =
        HeaderValue::try_from(derive_accept_key(key.as_bytes())).map_err(|_invalid| HandshakeError::Key)?;
    accepted.insert(SEC_WEBSOCKET_ACCEPT, answer);
    let protocol = first(headers, &SEC_WEBSOCKET_PROTOCOL).trim();
    if protocol.contains(',') {
        return Err(HandshakeError::Protocol);
    }
    if !protocol.is_empty() {
        let protocol = HeaderValue::try_from(protocol).map_err(|_invalid| HandshakeError::Protocol)?;
        accepted.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(accepted)
}

fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

impl Connection {
    /// Sends events until the watch ends, the client closes the connection, or the server stops. Then drops `end`.
    pub(crate) fn start(self, end: Option<FinalEvent>) {
        tokio::spawn(async move {
            // An error means that the client disconnected.
            if let Ok(upgraded) = self.upgrade.await {
                serve(self.watch, upgraded).await;
            }
            drop(end);
        });
    }
}

/// Sends the events and buffers only one of them. A slow client lags behind; [`Watch`] limits the lag.
async fn serve(watch: Watch, upgraded: Upgraded) {
    let config = WebSocketConfig::default()
        .write_buffer_size(0)
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    let (mut sink, mut source) = socket.split();
    let stopped = watch.stopped();
    let media_type = watch.media_type();
    let mut watcher = watch.begin();
    let sending = async {
        while let Some(piece) = watcher.next().await {
            let (events, opcode) = match media_type {
                MediaType::Protobuf => (messages(piece), Data::Binary),
                MediaType::Json | MediaType::IndentedJson | MediaType::Yaml => (lines(&piece), Data::Text),
            };
            for frame in events.into_iter().flat_map(|event| frames(event, opcode)) {
                let sent = tokio::time::timeout(WRITE_TIMEOUT, sink.send(Message::Frame(frame))).await;
                if !matches!(sent, Ok(Ok(()))) {
                    return;
                }
            }
        }
    };
    // Client messages have no effect except for ping and close.
    let receiving = async { while let Some(Ok(_)) = source.next().await {} };
    tokio::select! {
        () = sending => {}
        () = receiving => {}
        () = stopped => {}
    }
    let goodbye = async {
        let close = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        // The client may already have closed the connection.
        let _ = sink.send(Message::Close(Some(close))).await;
        if let Ok(socket) = sink.reunite(source) {
            let _ = socket.into_inner().shutdown().await;
        }
    };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await;
}

/// Returns the lines of a piece, each with its line break.
fn lines(piece: &Bytes) -> Vec<Bytes> {
    piece.split_inclusive(|byte| *byte == b'\n').map(|line| piece.slice_ref(line)).collect()
}

/// Returns the protobuf messages of a piece without the lengths that precede them.
fn messages(mut piece: Bytes) -> Vec<Bytes> {
    let mut messages = Vec::new();
    while let Some(length) = piece.first_chunk::<4>().copied() {
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        let mut message = piece.split_off(4);
        piece = message.split_off(length.min(message.len()));
        messages.push(message);
    }
    messages
}

/// Splits a message into frames.
fn frames(mut text: Bytes, opcode: Data) -> impl Iterator<Item = Frame> {
    let mut opcode = Some(opcode);
    std::iter::from_fn(move || {
        let data = OpCode::Data(opcode?);
        let payload = text.split_to(text.len().min(MAX_FRAME_BYTES));
        opcode = (!text.is_empty()).then_some(Data::Continue);
        Some(Frame::message(payload, data, text.is_empty()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_message_is_split_into_frames() {
        let lengths = |bytes: usize| {
            let frames: Vec<Frame> = frames(vec![b'x'; bytes].into(), Data::Text).collect();
            let last = frames.iter().rposition(|frame| frame.header().is_final);
            assert_eq!(last, Some(frames.len() - 1));
            assert_eq!(frames.iter().filter(|frame| frame.header().is_final).count(), 1);
            frames.iter().map(|frame| frame.payload().len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(1), [1]);
        assert_eq!(lengths(MAX_FRAME_BYTES), [MAX_FRAME_BYTES]);
        assert_eq!(lengths(2 * MAX_FRAME_BYTES + 1), [MAX_FRAME_BYTES, MAX_FRAME_BYTES, 1]);
    }

    #[test]
    fn protobuf_messages_have_no_length_in_a_frame() {
        let piece = Bytes::from_static(b"\0\0\0\x02ab\0\0\0\0\0\0\0\x01c");
        assert_eq!(messages(piece), [&b"ab"[..], b"", b"c"]);
    }
}
