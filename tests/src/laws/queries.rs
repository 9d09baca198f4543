//! Law: any HTTP request gets an answer that clients understand.
//!
//! The input is a list of requests in HTTP/1.1 format (`METHOD URI`, headers, an empty line, the body), separated by
//! `---`.

use axum::body::Body;
use harness::attributes::UserInfo;
use harness::server::{ApiServer, Authentication, AuthorizationMode, Options};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Collected};
use serde_json::Value;
use tower::ServiceExt as _;

use super::{documents, runtime, with_text};

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    with_text(input, |text| {
        let requests: [String; 3] = documents::parts(text);
        runtime::block_on(async {
            let mode =
                if text.contains("RBAC") { AuthorizationMode::Rbac } else { AuthorizationMode::AlwaysAllow };
            let server = ApiServer::new(Options { authorization_mode: mode, ..Options::default() });
            // Watches end immediately.
            server.end_watches();
            for request in requests {
                if let Some(request) = parsed(&request) {
                    check_request(&server, request).await;
                }
            }
        });
    });
}

fn parsed(text: &str) -> Option<Request<Body>> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text.trim_end_matches('\n'), ""));
    let mut lines = head.lines();
    let (method, uri) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method.parse::<Method>().ok()?).uri(uri);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        request = request.header(name, value.trim());
    }
    request.body(Body::from(body.to_owned())).ok()
}

async fn check_request(server: &ApiServer, request: Request<Body>) {
    let told = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
    let path = request.uri().path().to_owned();
    let user = UserInfo { groups: vec!["law:users".to_owned()], ..UserInfo::default() };
    let token = "secret".to_owned();
    let authentication = if request.headers().contains_key(http::header::AUTHORIZATION) {
        Authentication::BearerToken { token, user }
    } else {
        Authentication::Always(user)
    };
    let Ok(response) = server.router(authentication).oneshot(request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let status: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_status = status.get("kind").is_some_and(|kind| kind == "Status")
        && status.get("code").is_some_and(|found| found == code);
    let text = String::from_utf8_lossy(&body);
    let is_plain = match code {
        // OAPI-02, OAPI-04: a missing document, or one in a format that the client does not accept, has no details.
        404 => text == "404 page not found\n" || (text.is_empty() && path.starts_with("/openapi/v3/")),
        406 => text.is_empty() && path.starts_with("/openapi/v"),
        _ => false,
    };
    let is_understood = code < 400 || is_plain || is_status;
    assert!(is_understood, "{told}: {code} {text}");
    assert!(code != 500 || is_status, "{told}: {status}");
}
