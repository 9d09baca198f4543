//! Sends one request to a server and returns the complete answer, without the abstractions of a client library.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::case::Show;
use crate::protobuf;

/// The maximum time to wait for a response. It exceeds the 34 s after which kube-apiserver times out.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(45);

/// The response headers that an answer keeps, for cases that record them.
const SHOWN_HEADERS: [&str; 3] = ["cache-control", "content-type", "x-content-type-options"];

/// A request to send.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The HTTP method.
    pub method: Method,
    /// The path and the query.
    pub uri: String,
    /// The content type of the body; an empty string means JSON.
    pub content_type: &'static str,
    /// The JSON body.
    pub body: Option<Value>,
    /// A body that is not JSON, instead of `body`.
    pub text: Option<String>,
    /// Additional headers.
    pub headers: Vec<(String, String)>,
}

/// The answer of the server.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status code; 0 if the server closed the connection without a response.
    pub status: u16,
    /// The response body: an object or a Status, or a string if it is neither JSON nor protobuf.
    pub body: Value,
    /// The response body as text.
    pub text: String,
    /// The headers about the encoding and the caching of the body.
    pub headers: BTreeMap<&'static str, String>,
    /// The values of the `Warning` headers, in order.
    pub warnings: Vec<String>,
    /// The value of the `Retry-After` header; empty if it is missing.
    pub retry_after: String,
    /// The `Audit-ID` that the client chose.
    pub audit_id: String,
}

/// The reason why a request was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The request cannot be sent.
    #[error(transparent)]
    Client(#[from] kube::Error),
    /// The server keeps the connection open and does not answer.
    #[error("no answer to {request} within {} s", ANSWER_TIMEOUT.as_secs())]
    NoAnswer {
        /// The method and the path of the request.
        request: String,
    },
}

impl Message {
    /// Creates a request with a JSON body.
    pub fn new(method: Method, uri: impl Into<String>, body: Option<Value>) -> Self {
        Self { method, uri: uri.into(), body, ..Self::default() }
    }
}

impl Answer {
    /// Returns whether the request succeeded.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Reads the body. A response with an incomplete body does not count as an answer.
    pub(crate) async fn read(&mut self, body: Body) {
        let Ok(body) = body.collect().await else {
            let audit_id = std::mem::take(&mut self.audit_id);
            *self = Self { audit_id, ..Self::none() };
            return;
        };
        let bytes = body.to_bytes();
        self.body = serde_json::from_slice(&bytes)
            .ok()
            .or_else(|| protobuf::readable(&bytes))
            .unwrap_or_else(|| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        self.text = String::from_utf8_lossy(&bytes).into_owned();
    }

    /// Returns the answer for a connection that the server closed.
    fn none() -> Self {
        Self {
            status: 0,
            body: Value::Null,
            text: String::new(),
            headers: BTreeMap::new(),
            warnings: Vec::new(),
            retry_after: String::new(),
            audit_id: String::new(),
        }
    }

    /// Returns the answer in the format of recordings.
    pub fn recorded(&self) -> Value {
        self.shown(None)
    }

    /// Returns the answer in the format of recordings, with the part of the response that `show` selects.
    pub fn shown(&self, show: Option<Show>) -> Value {
        let mut answer = match show {
            None => json!({"status": self.status, "body": self.body}),
            Some(Show::Text) => json!({"status": self.status, "text": self.text, "headers": self.headers}),
            Some(Show::Headers) => json!({"status": self.status, "headers": self.headers}),
        };
        if !self.warnings.is_empty() {
            answer["warnings"] = json!(self.warnings);
        }
        if !self.retry_after.is_empty() {
            answer["retryAfter"] = json!(self.retry_after);
        }
        answer
    }
}

/// Sends a request and waits for the complete answer.
///
/// # Errors
/// Returns an error if the request cannot be sent, or the server hangs. A closed connection is an answer.
pub async fn send(client: &kube::Client, message: Message) -> Result<Answer, SendError> {
    let request = format!("{} {}", message.method, message.uri);
    in_time(request, exchange(client, message)).await
}

/// Waits for an answer, with a timeout.
pub(crate) async fn in_time(
    request: String,
    answer: impl Future<Output = Result<Answer, kube::Error>>,
) -> Result<Answer, SendError> {
    match timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_elapsed) => Err(SendError::NoAnswer { request }),
    }
}

async fn exchange(client: &kube::Client, message: Message) -> Result<Answer, kube::Error> {
    match answer_head(client, message).await? {
        Ok((response, mut answer)) => {
            answer.read(response.into_body()).await;
            Ok(answer)
        }
        Err(closed) => Ok(closed),
    }
}

/// Sends a request and returns the response, with the answer except for its body.
///
/// The body of the response has not been read yet. If the server closes the connection, returns an answer with the
/// status 0.
pub(crate) async fn answer_head(
    client: &kube::Client,
    message: Message,
) -> Result<Result<(Response<Body>, Answer), Answer>, kube::Error> {
    let audit_id = Uuid::new_v4().to_string();
    let content_type =
        if message.content_type.is_empty() { "application/json" } else { message.content_type };
    let mut request =
        Request::builder().method(message.method).uri(message.uri).header("Audit-ID", &audit_id);
    for (name, usual) in [(header::CONTENT_TYPE, content_type), (header::ACCEPT, "application/json")] {
        if !message.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name.as_str())) {
            request = request.header(name, usual);
        }
    }
    for (name, value) in &message.headers {
        request = request.header(name, value);
    }
    let text = message.text.or_else(|| message.body.map(|body| body.to_string()));
    let bytes = text.map(String::into_bytes).unwrap_or_default();
    let request = request.body(Body::from(bytes)).map_err(kube::Error::HttpError)?;
    let closed = Answer { audit_id: audit_id.clone(), ..Answer::none() };
    let response = match client.send(request).await {
        Ok(response) => response,
        Err(kube::Error::HyperError(_) | kube::Error::Service(_)) => return Ok(Err(closed)),
        Err(error) => return Err(error),
    };
    let texts = |name| {
        let values = response.headers().get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect::<Vec<_>>()
    };
    let answer = Answer {
        status: response.status().as_u16(),
        body: Value::Null,
        text: String::new(),
        headers: SHOWN_HEADERS
            .iter()
            .map(|name| (*name, texts(header::HeaderName::from_static(name)).join(", ")))
            .filter(|(_, value)| !value.is_empty())
            .collect(),
        warnings: texts(header::WARNING),
        retry_after: texts(header::RETRY_AFTER).concat(),
        audit_id,
    };
    Ok(Ok((response, answer)))
}
