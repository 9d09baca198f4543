//! One request to a server and its answer, with nothing of either hidden by a client library.

use std::time::Duration;

use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

/// The longest that an answer may take: more than the 34 s after which kube-apiserver gives up.
const LONGEST_ANSWER: Duration = Duration::from_secs(45);

/// A request as it is sent.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub uri: String,
    /// The body's type; JSON if it is empty.
    pub content_type: &'static str,
    /// The body.
    pub body: Option<Value>,
    /// A body that is no JSON, in place of `body`.
    pub text: Option<String>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
}

/// What the server answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status; 0 if the server closed the connection without one.
    pub status: u16,
    /// The object or the Status; a string if it is no JSON.
    pub body: Value,
    /// The `Warning` headers, in order.
    pub warnings: Vec<String>,
    /// The `Retry-After` header, empty if there is none.
    pub retry_after: String,
    /// The Audit-ID that the request chose.
    pub audit_id: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The request cannot be sent at all.
    #[error(transparent)]
    Client(#[from] kube::Error),
    /// The server keeps the connection open and says nothing.
    #[error("no answer to {request} within {} s", LONGEST_ANSWER.as_secs())]
    NoAnswer {
        /// Method and path.
        request: String,
    },
}

impl Message {
    /// A request with a JSON body.
    pub fn new(method: Method, uri: impl Into<String>, body: Option<Value>) -> Self {
        Self { method, uri: uri.into(), body, ..Self::default() }
    }
}

impl Answer {
    /// Whether the server did what it was asked to do.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Takes over the body; an answer whose body breaks off is none.
    pub(crate) async fn read(&mut self, body: Body) {
        let Ok(body) = body.collect().await else {
            let audit_id = std::mem::take(&mut self.audit_id);
            *self = Self { audit_id, ..Self::none() };
            return;
        };
        let bytes = body.to_bytes();
        self.body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    }

    /// The server closed the connection.
    fn none() -> Self {
        Self {
            status: 0,
            body: Value::Null,
            warnings: Vec::new(),
            retry_after: String::new(),
            audit_id: String::new(),
        }
    }

    /// The answer as a recording has it.
    pub fn recorded(&self) -> Value {
        let mut answer = json!({"status": self.status, "body": self.body});
        if !self.warnings.is_empty() {
            answer["warnings"] = json!(self.warnings);
        }
        if !self.retry_after.is_empty() {
            answer["retryAfter"] = json!(self.retry_after);
        }
        answer
    }
}

/// Sends a request and waits for the whole answer.
///
/// # Errors
/// The request cannot be sent at all, or the server hangs. A connection that the server closes is an answer.
pub async fn send(client: &kube::Client, message: Message) -> Result<Answer, SendError> {
    let request = format!("{} {}", message.method, message.uri);
    in_time(request, exchange(client, message)).await
}

/// Waits for an answer, but not for ever.
pub(crate) async fn in_time(
    request: String,
    answer: impl Future<Output = Result<Answer, kube::Error>>,
) -> Result<Answer, SendError> {
    match timeout(LONGEST_ANSWER, answer).await {
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

/// The head of the answer, and the answer without the body that is yet to be read; the answer that is none if the server
/// closes the connection.
pub(crate) async fn answer_head(
    client: &kube::Client,
    message: Message,
) -> Result<Result<(Response<Body>, Answer), Answer>, kube::Error> {
    let audit_id = Uuid::new_v4().to_string();
    let content_type =
        if message.content_type.is_empty() { "application/json" } else { message.content_type };
    let mut request = Request::builder()
        .method(message.method)
        .uri(message.uri)
        .header(header::CONTENT_TYPE, content_type)
        .header("Audit-ID", &audit_id);
    if !message.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept")) {
        request = request.header(header::ACCEPT, "application/json");
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
        warnings: texts(header::WARNING),
        retry_after: texts(header::RETRY_AFTER).concat(),
        audit_id,
    };
    Ok(Ok((response, answer)))
}
