//! Watches over a WebSocket, and records the handshake and every frame.

use futures::{SinkExt as _, StreamExt as _};
use http::StatusCode;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message as Received, Role};

use crate::case::{Frame, WebSocket};
use crate::protobuf;
use crate::transport::{Answer, Message, SendError, answer_head, in_time};

/// The headers that a browser sends. The key is the example in RFC 6455.
const HANDSHAKE: [(&str, &str); 5] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Origin", "http://localhost"),
];

/// The headers to record from the handshake response.
const ANSWERED: [&str; 6] = [
    "connection",
    "upgrade",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
    "sec-websocket-version",
];

/// Opens a WebSocket, sends the frames of the case, and waits until the server closes the connection.
///
/// # Errors
/// Returns an error if the request cannot be sent, or the server hangs.
pub(crate) async fn converse(
    client: &kube::Client,
    mut message: Message,
    websocket: &WebSocket,
) -> Result<Answer, SendError> {
    for (name, value) in HANDSHAKE {
        let is_other = websocket.headers.keys().any(|other| other.eq_ignore_ascii_case(name));
        if !is_other {
            message.headers.push((name.to_owned(), value.to_owned()));
        }
    }
    let others = websocket.headers.iter().filter(|(_, value)| !value.is_empty());
    message.headers.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    let what = format!("{} {}", message.method, message.uri);
    in_time(what, exchange(client, message, &websocket.sends)).await
}

async fn exchange(client: &kube::Client, message: Message, sends: &[Frame]) -> Result<Answer, kube::Error> {
    let (response, mut answer) = match answer_head(client, message).await? {
        Ok(head) => head,
        Err(closed) => return Ok(closed),
    };
    let headers = response.headers();
    let headers: Map<String, Value> = ANSWERED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.into())))
        .collect();
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        answer.read(response.into_body()).await;
        // The end of the connection, and how it is announced, are not part of the handshake.
        let headers: Map<_, _> = headers.into_iter().filter(|(name, _)| name != "connection").collect();
        if !headers.is_empty() {
            answer.body = json!({"text": answer.body, "headers": headers});
        }
        return Ok(answer);
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(kube::Error::HyperError)?;
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await;
    for frame in sends {
        let sent = match frame {
            Frame::Text(text) => Received::text(text),
            Frame::Ping(text) => Received::Ping(text.clone().into()),
            Frame::Close(code) => {
                Received::Close(Some(CloseFrame { code: (*code).into(), reason: "".into() }))
            }
        };
        // The last frames of the server are read in any case.
        if socket.send(sent).await.is_err() {
            break;
        }
    }
    let mut frames = Vec::new();
    while let Some(Ok(frame)) = socket.next().await {
        frames.push(recorded(&frame));
    }
    answer.body = json!({"headers": headers, "frames": frames});
    Ok(answer)
}

/// Returns a frame in the format of recordings: its event, if any, and whether it ends with a newline.
fn recorded(frame: &Received) -> Value {
    match frame {
        Received::Text(text) => {
            let event: Option<Value> = serde_json::from_str(text).ok();
            json!({"text": event.unwrap_or_else(|| text.as_str().into()), "line": text.ends_with('\n')})
        }
        Received::Binary(bytes) => {
            let event = protobuf::event(bytes);
            json!({"binary": event.unwrap_or_else(|| String::from_utf8_lossy(bytes).into())})
        }
        Received::Ping(bytes) => json!({"ping": String::from_utf8_lossy(bytes)}),
        Received::Pong(bytes) => json!({"pong": String::from_utf8_lossy(bytes)}),
        Received::Close(Some(close)) => {
            json!({"close": u16::from(close.code), "reason": close.reason.as_str()})
        }
        Received::Close(None) => json!({"close": null}),
        Received::Frame(frame) => json!({"frame": frame.to_string()}),
    }
}
