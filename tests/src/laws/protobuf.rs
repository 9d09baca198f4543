//! Law: any protobuf body yields the same object as its JSON, or is rejected with a message.
//!
//! The input is a path of the server, a newline, and the body.

use std::sync::LazyLock;

use axum::body::Bytes;
use harness::chain::{Chain, administrator};
use harness::server::Options;
use http::{Method, Uri, header};
use serde_json::Value;

use super::runtime;

static CHAIN: LazyLock<Chain> = LazyLock::new(|| Chain::new(Options::default()));

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    let Some(end) = input.iter().position(|&byte| byte == b'\n') else { return };
    let (path, body) = input.split_at(end);
    let body = body.get(1..).unwrap_or_default();
    // With a query or a fragment in the path the request is not a dry run, so the second request finds the first
    // object.
    if path.iter().any(|byte| b"?#".contains(byte)) {
        return;
    }
    let Ok(uri) = [path, b"?dryRun=All"].concat().try_into().map(|uri: Uri| uri) else { return };
    runtime::block_on(async {
        let Some((code, answer, object)) = post(&uri, PROTOBUF, body.to_vec()).await else { return };
        assert!(code < 400 || answer.get("code").is_some_and(|found| found == code), "{code}: {answer}");
        let Some(object) = object else { return };
        let Some((again, other, read)) =
            post(&uri, "application/json", object.to_string().into_bytes()).await
        else {
            return;
        };
        assert_eq!(read.as_ref(), Some(&object), "{code} {answer}; {again} {other}");
        assert_eq!(again, code, "{answer}\n{other}\n{object}");
    });
}

/// Sends a POST and returns the status code, the answer, and the body as the server decoded it.
async fn post(uri: &Uri, content_type: &'static str, body: Vec<u8>) -> Option<(u16, Value, Option<Value>)> {
    let mut request = http::Request::new(Bytes::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    request.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    let (response, happened) = CHAIN.server().exchange(request, administrator()).await;
    let code = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.ok()?;
    Some((code, serde_json::from_slice(&body).ok()?, happened.body))
}
