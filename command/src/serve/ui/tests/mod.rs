//! Tests the page over connections to its listener.

mod fakes;
mod limits;

use std::time::Duration;

use futures::future::join_all;
use harness::server::Options;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;

/// The page of a server, and a session of a browser.
struct Page {
    recent: Arc<Recent>,
    server: ApiServer,
    router: axum::Router,
    port: u16,
    token: String,
    link: String,
    _serving: Serving,
}

impl Page {
    fn start() -> Self {
        Self::with_fakes(None)
    }

    fn with_fakes(fakes: Option<Arc<Fleet>>) -> Self {
        let Ui { socket, access, recent, link } = Ui::bind().unwrap();
        let port = socket.port;
        let access = Arc::new(access);
        let headers = headers_of(&link);
        let server = ApiServer::new(Options::default());
        let shared = Shared::new(Arc::clone(&access), Arc::clone(&recent), server.clone(), fakes);
        let router = routes::router(shared);
        let serving = socket.serve(router.clone()).unwrap();
        let (token, link) = access.exchange(&headers).unwrap().unwrap();
        Self { recent, server, router, port, token, link, _serving: serving }
    }

    /// Sends a request with these header lines.
    async fn send(&self, request: &str, headers: &[&str]) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(text_of(request, headers).as_bytes()).await.unwrap();
        stream
    }

    /// Sends a request with the session of the page, to its host, and with one more header.
    async fn send_as_page(&self, request: &str, header: &str) -> TcpStream {
        self.send(request, &[&self.host(), &self.authorization(), header]).await
    }

    fn authorization(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// Posts JSON with the session of the page, and returns the status and the body of the response.
    async fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let body = body.to_string();
        let header =
            format!("Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close", body.len());
        let mut stream = self.send_as_page(&format!("POST {path}"), &header).await;
        stream.write_all(body.as_bytes()).await.unwrap();
        body_of(stream).await
    }

    /// Requests data with the session of the page.
    async fn get(&self, path: &str) -> Value {
        let (status, text) =
            body_of(self.send_as_page(&format!("GET {path}"), "Connection: close").await).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}", self.port)
    }
}

fn text_of(request: &str, headers: &[&str]) -> String {
    format!("{request} HTTP/1.1\r\n{}\r\n\r\n", headers.join("\r\n"))
}

fn headers_of(link: &str) -> http::HeaderMap {
    let (_, token) = link.split_once("#token=").unwrap();
    let value = format!("Bearer {token}").parse().unwrap();
    http::HeaderMap::from_iter([(http::header::AUTHORIZATION, value)])
}

/// Reads the status and the headers of a response.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().to_lowercase()
}

async fn status(mut stream: TcpStream) -> u16 {
    status_in(&head(&mut stream).await)
}

fn status_in(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Reads the status and the body of the last response of a connection.
async fn body_of(mut stream: TcpStream) -> (u16, String) {
    let status = status_in(&head(&mut stream).await);
    (status, body(stream).await)
}

/// Reads the body of the last response of a connection, which is not chunked.
async fn body(mut stream: impl AsyncRead + Unpin) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// Reads a chunk of a response.
async fn chunk(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut size = Vec::new();
    while !size.ends_with(b"\r\n") {
        size.push(stream.read_u8().await.unwrap());
    }
    let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk).await.unwrap();
    String::from_utf8(chunk).unwrap().trim().to_owned()
}

#[tokio::test]
async fn requests_are_sent_as_they_come() {
    let page = Page::start();
    page.recent.add("1");
    let mut stream = page.send_as_page("GET /requests", "Accept: */*").await;
    assert!(head(&mut stream).await.contains("200 ok"));
    assert_eq!(chunk(&mut stream).await, r#"{"number":1,"report":1}"#);
    page.recent.add("2");
    assert_eq!(chunk(&mut stream).await, r#"{"number":2,"report":2}"#);
    let mut again = page.send_as_page("GET /requests?after=1", "Accept: */*").await;
    head(&mut again).await;
    assert_eq!(chunk(&mut again).await, r#"{"number":2,"report":2}"#);
}

#[tokio::test]
async fn data_is_only_for_sessions() {
    let page = Page::start();
    let host = page.host();
    let status_with = async |request: &str, token: &str| {
        let authorization = format!("Authorization: Bearer {token}");
        status(page.send(request, &[&host, &authorization]).await).await
    };
    let (_, link) = page.link.split_once("#token=").unwrap();
    assert_eq!(status(page.send("GET /", &[&host]).await).await, 200);
    assert_eq!(status(page.send("GET /requests", &[&host]).await).await, 401);
    assert_eq!(status_with("GET /requests", link).await, 401);
    assert_eq!(status_with("POST /session", "guess").await, 401);
    assert_eq!(status_with("POST /session", link).await, 200);
    assert_eq!(status_with("POST /session", link).await, 401);
    assert_eq!(status_with("GET /requests", &page.token).await, 200);
}

#[tokio::test]
async fn a_name_that_resolves_to_loopback_does_not_reach_the_page() {
    let page = Page::start();
    let token = format!("Authorization: Bearer {}", page.token);
    let host = format!("Host: rebound.example.com:{}", page.port);
    for request in ["GET /", "GET /requests", "POST /session", "GET /other"] {
        assert_eq!(status(page.send(request, &[&host, &token]).await).await, 403, "{request}");
    }
    assert_eq!(status(page.send_as_page("GET /requests", &host).await).await, 403);
}

#[tokio::test]
async fn another_website_can_neither_read_nor_frame_the_page() {
    let page = Page::start();
    for header in [
        "Origin: http://evil.example.com",
        "Origin: null",
        "Sec-Fetch-Site: same-site",
        "Sec-Fetch-Site: cross-site",
    ] {
        for request in ["GET /requests", "POST /session"] {
            assert_eq!(status(page.send_as_page(request, header).await).await, 403, "{request} {header}");
        }
    }
    let preflight = "Origin: http://evil.example.com\r\nAccess-Control-Request-Method: GET";
    let head_of =
        async |request: &str, header: &str| head(&mut page.send_as_page(request, header).await).await;
    assert!(!head_of("OPTIONS /requests", preflight).await.contains("access-control"));
    let own = format!("Origin: http://127.0.0.1:{}\r\nSec-Fetch-Site: same-origin", page.port);
    for request in ["GET /", "GET /requests"] {
        let head = head_of(request, &own).await;
        assert!(head.starts_with("http/1.1 200 ok"), "{head}");
        for header in
            ["x-frame-options: deny", "cross-origin-resource-policy: same-origin", "cache-control: no-store"]
        {
            assert!(head.contains(header), "{head}");
        }
        assert!(!head.contains("access-control"), "{head}");
    }
    let head = head_of("GET /", "Accept: */*").await;
    let policy = head.lines().find(|line| line.starts_with("content-security-policy: ")).unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(policy.contains("connect-src 'self'") && !policy.contains("unsafe"), "{policy}");
}

#[tokio::test]
async fn a_page_that_does_not_read_is_disconnected_and_can_continue() {
    let page = Page::start();
    let mut stream = page.send_as_page("GET /requests", "Accept: */*").await;
    head(&mut stream).await;
    // The buffers of the sockets hold less than the requests that are removed.
    let large = format!("\"{}\"", "x".repeat(MAX_REQUEST_BYTES - 2));
    (0..20).for_each(|_| page.recent.add(&large));
    let mut unread = Vec::new();
    // The end is a reset if the server had more to send.
    let ended = timeout(Duration::from_secs(60), stream.read_to_end(&mut unread)).await;
    assert!(ended.is_ok(), "the connection stays open");
    assert!(unread.len() < 10 * MAX_REQUEST_BYTES);
    let mut again = page.send_as_page("GET /requests?after=1", "Accept: */*").await;
    head(&mut again).await;
    let first = chunk(&mut again).await;
    assert!(first.starts_with(r#"{"number":18,"#), "{first:.40}");
}

#[tokio::test]
async fn only_eight_pages_follow_at_the_same_time() {
    let page = Page::start();
    let open = async || {
        let mut stream = page.send_as_page("GET /requests", "Accept: */*").await;
        let head = head(&mut stream).await;
        (stream, head.split(' ').nth(1).unwrap().to_owned())
    };
    let mut streams = join_all((0..8).map(|_| open())).await;
    assert!(streams.iter().all(|(_, status)| status == "200"));
    assert_eq!(open().await.1, "503");
    streams.pop();
    // The server notices the end of a connection later.
    while open().await.1 != "200" {}
}

#[tokio::test]
async fn the_question_is_answered_without_a_call() {
    let page = Page::start();
    // Nothing listens on this address.
    let webhook = |name: &str, rest: Value| {
        let mut webhook = json!({
            "name": format!("{name}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        });
        webhook.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        webhook
    };
    let condition = "request.userInfo.username == 'jane' && object.spec.restartPolicy == 'Always'";
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": [
            webhook("all", json!({})),
            webhook("labeled", json!({"objectSelector": {"matchLabels": {"team": "blue"}}})),
            webhook("jane", json!({"matchConditions": [{"name": "jane", "expression": condition}]})),
        ],
    });
    page.server.put(configuration).unwrap();
    let ask = async |operation: &str, object: &str, user: &str| {
        let question = json!({"operation": operation, "object": object, "user": user});
        page.post("/question", &question).await
    };
    let pod =
        "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: nginx}]}}";
    let called = async |operation: &str, user: &str| {
        let (status, text) = ask(operation, pod, user).await;
        assert_eq!(status, 200, "{text}");
        let answer: Value = serde_json::from_str(&text).unwrap();
        let webhooks = answer.pointer("/webhooks").unwrap().as_array().unwrap().clone();
        let result = |webhook: Value| {
            let skipped = webhook.pointer("/skipped/0/reason").and_then(Value::as_str).unwrap_or("called");
            assert_eq!(webhook.pointer("/called"), Some(&json!(skipped == "called")));
            skipped.to_owned()
        };
        webhooks.into_iter().map(result).collect::<Vec<_>>()
    };
    let jane = called("CREATE", "jane").await;
    assert_eq!([jane[0].as_str(), jane[2].as_str()], ["called", "called"]);
    assert!(jane[1].starts_with("its objectSelector"), "{jane:?}");
    assert_eq!(called("CREATE", "john").await[2], "its match condition \"jane\" is false");
    assert_eq!(called("UPDATE", "jane").await[0], "none of its rules matches the request");
    let (status, text) = ask("CREATE", "{apiVersion: example.com/v1, kind: Widget}", "").await;
    assert_eq!(
        (status, text.as_str()),
        (400, "no matches for kind \"Widget\" in version \"example.com/v1\"")
    );
    assert_eq!(ask("CREATE", "a: [", "").await.0, 400);
}

#[tokio::test]
async fn configurations_are_shown_as_stored() {
    let page = Page::start();
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "replicas"}, "spec": {
            "validations": [{"expression": "true"}],
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]},
            ]},
        },
    });
    page.server.put(policy).unwrap();
    let shown = question::configurations(&page.server);
    let [shown] = shown.as_slice() else { panic!("{shown:?}") };
    assert_eq!(shown.pointer("/metadata/name"), Some(&json!("replicas")));
    assert_eq!(shown.pointer("/spec/failurePolicy"), Some(&json!("Fail")));
    assert_eq!(shown.pointer("/metadata/managedFields"), None);
    for request in ["GET /configurations", "POST /question"] {
        assert_eq!(status(page.send(request, &[&page.host()]).await).await, 401, "{request}");
    }
}
