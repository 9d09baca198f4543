//! Tests the routes for fakes.

use fake_webhooks::{FakesFile, Log};
use harness::chain;
use harness::server::Authentication;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};

use super::*;
use crate::fakes::local;

const TWO_FAKES: &str = "version: 1
webhooks:
- {name: labels, type: mutating, behavior: allow}
- {name: policy, type: validating, behavior: {deny: {message: not today}}}
";

async fn fleet(text: &str) -> Arc<Fleet> {
    let quiet: Log = Arc::new(|_| {});
    let file = FakesFile::parse(text, "fakes.yaml").unwrap();
    Arc::new(Fleet::start(&[file], &quiet).await.unwrap())
}

/// Creates a ConfigMap in the namespace `default`, and returns the status code.
async fn create(server: &ApiServer, name: &str) -> u16 {
    let user = chain::administrator();
    let router = server.router(Authentication::Always(user));
    let client = kube::Client::new(router, "default");
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    match api.create(&PostParams::default(), &object).await {
        Ok(_created) => 201,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn the_behavior_of_a_fake_changes_for_new_calls() {
    let fleet = fleet(TWO_FAKES).await;
    let page = Page::with_fakes(Some(Arc::clone(&fleet)));
    local::configure(&fleet, &page.server).unwrap();
    let calls = |fakes: &Value| {
        let fakes = fakes.as_array().unwrap().iter();
        fakes
            .map(|fake| (fake["name"].as_str().unwrap().to_owned(), fake["calls"].clone()))
            .collect::<Vec<_>>()
    };
    let expected = |labels: u64, policy: u64| {
        vec![
            ("labels.fakes.local".to_owned(), json!(labels)),
            ("policy.fakes.local".to_owned(), json!(policy)),
        ]
    };
    assert_eq!(create(&page.server, "one").await, 400);
    let shown = page.get("/fakes").await;
    assert_eq!(calls(&shown), expected(1, 1));
    assert_eq!((&shown[0]["type"], &shown[1]["type"]), (&json!("mutating"), &json!("validating")));
    assert!(shown[1]["url"].as_str().unwrap().starts_with("https://127.0.0.1:"), "{shown}");
    assert_eq!(shown[1]["behavior"]["deny"]["message"], "not today");

    let (status, text) =
        page.post("/fakes", &json!({"name": "policy.fakes.local", "behavior": "# yes\nallow"})).await;
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, calls(&shown)), (200, expected(1, 1)));
    assert!(shown[1]["behavior"].get("allow").is_some(), "{shown}");
    assert_eq!(create(&page.server, "two").await, 201);
    assert_eq!(calls(&page.get("/fakes").await), expected(2, 2));
}

#[tokio::test]
async fn an_invalid_behavior_has_the_error_of_a_fakes_file_and_changes_nothing() {
    let page = Page::with_fakes(Some(fleet(TWO_FAKES).await));
    let before = page.get("/fakes").await;
    let post = async |name: &str, behavior: &str| {
        page.post("/fakes", &json!({"name": name, "behavior": behavior})).await
    };
    let in_file = |behavior: &str| {
        let file = format!(
            "version: 1\nwebhooks:\n- name: policy\n  type: validating\n  behavior:\n    {behavior}\n"
        );
        FakesFile::parse(&file, "behavior").unwrap_err().to_string()
    };
    for behavior in ["deny: {mesage: no}", "deny: {code: many}"] {
        let (status, text) = post("policy.fakes.local", &format!("  \n    {behavior}\n")).await;
        // The line in the file is the sixth.
        let expected = in_file(behavior).replace("behavior:6:", "behavior:2:").replace("\n  6 |", "\n  2 |");
        assert_eq!((status, text), (400, expected));
    }
    for (name, behavior, status, part) in [
        ("policy.fakes.local", " ", 400, "it is empty"),
        ("policy.fakes.local", "alow", 400, "behavior: unknown value `alow`: did you mean `allow`?"),
        ("policy.fakes.local", "bytes: {text: x}", 400, "start the fake with `http: http1`"),
        (
            "policy.fakes.local",
            "demand: {credentials: {certificate: jane}}",
            400,
            "`connection: client-certificate`",
        ),
        ("other.fakes.local", "allow", 404, "unknown fake `other.fakes.local`"),
    ] {
        let (actual, text) = post(name, behavior).await;
        assert_eq!(actual, status, "{text}");
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(page.get("/fakes").await, before);
}

#[tokio::test]
async fn fakes_are_only_for_the_session_of_the_page() {
    let page = Page::with_fakes(Some(fleet(TWO_FAKES).await));
    let before = page.get("/fakes").await;
    let body = json!({"name": "policy.fakes.local", "behavior": "allow"}).to_string();
    let typed = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    for request in ["GET /fakes", "POST /fakes"] {
        assert_eq!(status(page.send(request, &[&page.host(), &typed]).await).await, 401, "{request}");
        for header in ["Origin: http://evil.example.com", "Origin: null", "Sec-Fetch-Site: cross-site"] {
            let stream = page.send_as_page(request, &format!("{header}\r\n{typed}")).await;
            assert_eq!(status(stream).await, 403, "{request} {header}");
        }
        let token = format!("Authorization: Bearer {}", page.token);
        let host = format!("Host: rebound.example.com:{}", page.port);
        assert_eq!(status(page.send(request, &[&host, &token, &typed]).await).await, 403, "{request}");
    }
    // A form of another website can send text without a preflight.
    let text = typed.replace("application/json", "text/plain");
    assert_eq!(status(page.send_as_page("POST /fakes", &text).await).await, 415);
    assert_eq!(page.get("/fakes").await, before);
}

#[tokio::test]
async fn a_server_without_fakes_shows_none() {
    let page = Page::start();
    assert_eq!(page.get("/fakes").await, json!([]));
    let (status, text) = page.post("/fakes", &json!({"name": "a", "behavior": "allow"})).await;
    assert_eq!((status, text.as_str()), (404, "the server was started without --fakes"));
}
