//! Tests the admin endpoint of running fakes.
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_webhooks::{AdminOptions, FakesFile, Fleet, FleetOptions, Log};
use http::{Method, StatusCode};
use reqwest::Client;
use serde_json::{Value, json};

const TOKEN: &str = "a-token-for-tests-only";
const ONE: &str = "version: 1\nwebhooks:\n- {name: one, type: validating, behavior: allow}\n";

/// A fleet with an admin endpoint, a client that sends the token, and the log lines of the fleet.
struct Steered {
    fleet: Fleet,
    client: Client,
    log: Arc<Mutex<Vec<String>>>,
}

fn client(ca_bundle: &str) -> Client {
    // An error means that another test has already installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = reqwest::Certificate::from_pem(ca_bundle.as_bytes()).unwrap();
    Client::builder().tls_certs_only([authority]).no_proxy().build().unwrap()
}

async fn steered(yaml: &str, options: FleetOptions) -> Steered {
    let file = FakesFile::parse(yaml, "fakes.yaml").unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&log);
    let write: Log = Arc::new(move |line| lines.lock().unwrap().push(line.to_owned()));
    let mut options = options;
    options.admin = Some(AdminOptions::new("127.0.0.1:0".parse().unwrap(), TOKEN.parse().unwrap()));
    let fleet = Fleet::start_with(&[file], options, &write).await.unwrap();
    let client = client(fleet.ca_bundle());
    Steered { fleet, client, log }
}

impl Steered {
    fn admin(&self, path: &str) -> String {
        format!("https://{}{path}", self.fleet.admin_address().unwrap())
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        let request = self.client.request(method, self.admin(path)).bearer_auth(TOKEN);
        let response = request.body(body.to_string()).send().await.unwrap();
        let status = response.status();
        let body = response.bytes().await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Method::GET, path, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body
    }

    async fn put(&self, name: &str, fake: Value) -> Value {
        let (status, body) = self.ask(Method::PUT, &format!("/fakes/{name}"), fake).await;
        assert!(status.is_success(), "{status} {body}");
        body
    }

    /// Returns the URL of the fake `name`.
    async fn url(&self, name: &str) -> String {
        let fakes = self.get("/fakes").await;
        let fake = fakes["fakes"].as_array().unwrap().iter().find(|fake| fake["name"] == name).unwrap();
        fake["url"].as_str().unwrap().to_owned()
    }

    async fn call(&self, url: &str, request: Value) -> reqwest::Result<Value> {
        call(&self.client, url, request).await
    }

    async fn refused(&self, method: Method, path: &str, body: Value, status: u16, part: &str) {
        let (answered, answer) = self.ask(method, path, body).await;
        assert_eq!(answered.as_u16(), status, "{path}: {answer}");
        let message = answer["error"].as_str().unwrap_or_default();
        assert!(message.contains(part), "`{part}` is not in: {answer}");
    }
}

async fn call(client: &Client, url: &str, mut request: Value) -> reqwest::Result<Value> {
    request["uid"] = json!("7");
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let body = client.post(url).body(review.to_string()).send().await?.bytes().await?;
    Ok(serde_json::from_slice(&body).unwrap_or_default())
}

fn numbers(journal: &Value) -> Vec<u64> {
    journal["entries"].as_array().unwrap().iter().map(|entry| entry["number"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn only_healthz_works_without_the_token() {
    let steered = steered(ONE, FleetOptions::default()).await;
    let get = |path: &str| steered.client.get(steered.admin(path));
    assert_eq!(get("/healthz").send().await.unwrap().text().await.unwrap(), "ok");
    let (near, _) = TOKEN.split_at(TOKEN.len() - 1);
    for path in ["/fakes", "/journal", "/metrics", "/nowhere"] {
        let anonymous = get(path).send().await.unwrap();
        assert_eq!(
            (anonymous.status(), &anonymous.headers()["www-authenticate"]),
            (StatusCode::UNAUTHORIZED, &"Bearer".parse().unwrap())
        );
        assert_eq!(get(path).bearer_auth(near).send().await.unwrap().status(), 401);
        assert_eq!(get(path).header("x-admit-token", near).send().await.unwrap().status(), 401);
        assert_eq!(get(path).basic_auth("admin", Some(TOKEN)).send().await.unwrap().status(), 401);
    }
    for request in [get("/fakes").bearer_auth(TOKEN), get("/fakes").header("X-Admit-Token", TOKEN)] {
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    steered.refused(Method::GET, "/nowhere", Value::Null, 404, "unknown path").await;
    steered.refused(Method::POST, "/fakes", Value::Null, 405, "method").await;
}

#[tokio::test]
async fn fakes_can_be_added_changed_and_removed_at_run_time() {
    let steered = steered("version: 1\nwebhooks: []\n", FleetOptions::default()).await;
    assert_eq!(steered.get("/fakes").await, json!({"fakes": []}));
    let fake = steered.put("a", json!({"type": "mutating", "path": "/x", "behavior": "allow"})).await;
    assert_eq!(
        (&fake["name"], &fake["path"], &fake["certificate"]),
        (&json!("a.fakes.local"), &json!("/x"), &json!("valid"))
    );
    let url = fake["url"].as_str().unwrap();
    assert_eq!(steered.call(url, json!({})).await.unwrap()["response"]["allowed"], true);
    let is_logged = |text: &str| steered.log.lock().unwrap().iter().any(|line| line == text);
    assert!(is_logged("a.fakes.local was added"));

    let deny = json!({"deny": {"message": "no"}});
    let (status, changed) = steered.ask(Method::PUT, "/fakes/a/behavior", deny.clone()).await;
    assert_eq!((status, &changed["behavior"]["deny"]["message"]), (StatusCode::OK, &json!("no")));
    assert_eq!(steered.call(url, json!({})).await.unwrap()["response"]["allowed"], false);

    let other = steered.put("b", json!({"type": "validating", "behavior": "allow"})).await;
    assert_eq!(other["port"], fake["port"]);
    let taken = json!({"type": "mutating", "path": "/x", "behavior": "allow"});
    steered.refused(Method::PUT, "/fakes/b", taken, 409, "a.fakes.local").await;

    let elsewhere = json!({"type": "mutating", "path": "/x", "behavior": "allow", "http": "http1"});
    let (status, moved) = steered.ask(Method::PUT, "/fakes/a.fakes.local", elsewhere).await;
    assert_eq!(status, StatusCode::OK);
    assert!(is_logged("a.fakes.local was replaced"));
    assert_ne!(moved["port"], fake["port"]);
    let moved = moved["url"].as_str().unwrap();
    assert_eq!(steered.call(moved, json!({})).await.unwrap()["response"]["allowed"], true);
    assert_eq!(steered.client.post(url).send().await.unwrap().status(), 404);

    let (status, _) = steered.ask(Method::DELETE, "/fakes/a", Value::Null).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(steered.call(moved, json!({})).await.unwrap_err().is_connect());
    assert_eq!(steered.get("/fakes").await["fakes"].as_array().unwrap().len(), 1);
    steered.refused(Method::DELETE, "/fakes/a", Value::Null, 404, "a.fakes.local").await;
}

#[tokio::test]
async fn invalid_requests_are_rejected_with_a_reason() {
    let steered = steered(ONE, FleetOptions::default()).await;
    let put = |fake: Value| steered.refused(Method::PUT, "/fakes/a", fake, 400, "");
    put(json!([])).await;
    put(json!({"type": "mutating"})).await;
    let check =
        async |fake: Value, part: &str| steered.refused(Method::PUT, "/fakes/a", fake, 400, part).await;
    check(json!({"type": "mutating", "behavior": "alow"}), "alow").await;
    check(json!({"type": "mutating", "behavior": "allow", "certificate": "expird"}), "certificate").await;
    check(json!({"type": "mutating", "behavior": "allow", "pth": "/"}), "pth").await;
    check(json!({"type": "mutating", "behavior": "allow", "name": "b"}), "`name`").await;
    steered
        .refused(Method::PUT, "/fakes/A", json!({"type": "mutating", "behavior": "allow"}), 400, "`A`")
        .await;
    steered.refused(Method::PUT, "/fakes/one/behavior", json!("alow"), 400, "alow").await;
    let bytes = json!({"bytes": {"text": "x"}});
    steered.refused(Method::PUT, "/fakes/one/behavior", bytes, 400, "`http: http1`").await;
    steered.refused(Method::PUT, "/fakes/two/behavior", json!("allow"), 404, "two.fakes.local").await;
    steered.refused(Method::POST, "/fakes/two/reset", Value::Null, 404, "two.fakes.local").await;
    steered.refused(Method::POST, "/certificates/rotate", json!({"certificate": "old"}), 400, "`old`").await;
    steered.refused(Method::GET, "/journal?fakes=one", Value::Null, 400, "fakes").await;
    steered.refused(Method::GET, "/journal?timeout=-1", Value::Null, 400, "invalid timeout").await;
    steered.refused(Method::GET, "/journal?timeout=301", Value::Null, 400, "300").await;
}

/// Checks that a client that is still writing receives the response.
///
/// The client would see a reset if the endpoint closed the connection without reading the rest of the body.
#[tokio::test]
async fn clients_that_send_too_large_bodies_receive_413() {
    let steered = steered(ONE, FleetOptions::default()).await;
    let certificate = reqwest::Certificate::from_pem(steered.fleet.ca_bundle().as_bytes()).unwrap();
    for version in [http::Version::HTTP_11, http::Version::HTTP_2] {
        let client = Client::builder().tls_certs_only([certificate.clone()]).no_proxy();
        let client = if version == http::Version::HTTP_11 { client.http1_only() } else { client };
        let client = client.build().unwrap();
        for size in [1 << 20, 2 << 20, 4 << 20] {
            let request = client.put(steered.admin("/fakes/a")).bearer_auth(TOKEN);
            let response = request.body(format!("\"{}\"", "x".repeat(size))).send().await.unwrap();
            assert_eq!((response.version(), response.status().as_u16()), (version, 413), "{size}");
            let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
            assert_eq!(body, json!({"error": "the body is larger than 1048576 bytes"}));
        }
    }
}

#[tokio::test]
async fn the_journal_is_filtered_and_cleared() {
    let two = format!("{ONE}- {{name: two, type: validating, behavior: {{deny: {{message: no}}}}}}\n");
    let steered = steered(&two, FleetOptions::default()).await;
    let (one, two) = (steered.url("one.fakes.local").await, steered.url("two.fakes.local").await);
    for (url, operation, namespace) in [
        (&one, "CREATE", "demo"),
        (&two, "CREATE", "demo"),
        (&one, "DELETE", "demo"),
        (&one, "CREATE", "other"),
    ] {
        steered.call(url, json!({"operation": operation, "namespace": namespace})).await.unwrap();
    }
    for (query, expected) in [
        ("", vec![1, 2, 3, 4]),
        ("?fake=two", vec![2]),
        ("?fake=one.fakes.local&after=1", vec![3, 4]),
        ("?operation=CREATE&namespace=demo", vec![1, 2]),
        ("?operation=UPDATE", vec![]),
    ] {
        assert_eq!(numbers(&steered.get(&format!("/journal{query}")).await), expected, "{query}");
    }
    let journal = steered.get("/journal?after=1&fake=two").await;
    assert_eq!(
        (&journal["apiVersion"], &journal["dropped"]),
        (&json!("fakes.admit.dev/v1alpha1"), &json!(0))
    );
    let entry = &journal["entries"][0];
    assert_eq!(entry["review"]["request"]["namespace"], "demo");
    assert_eq!(
        (&entry["answered"]["status"], &entry["answered"]["summary"]),
        (&json!(200), &json!("denied: no"))
    );
    assert!(entry["answered"]["seconds"].as_f64().unwrap() < 60.0);

    let (status, _) = steered.ask(Method::POST, "/fakes/two/reset", Value::Null).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(numbers(&steered.get("/journal").await), [1, 3, 4]);
    let (status, _) = steered.ask(Method::DELETE, "/journal", Value::Null).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    steered.call(&one, json!({})).await.unwrap();
    assert_eq!(numbers(&steered.get("/journal").await), [5]);
}

#[tokio::test]
async fn waiting_for_calls_ends_on_arrival_or_timeout() {
    let steered = steered(ONE, FleetOptions::default()).await;
    let url = steered.url("one.fakes.local").await;
    let calls = async {
        for namespace in ["a", "b", "a"] {
            steered.call(&url, json!({"operation": "CREATE", "namespace": namespace})).await.unwrap();
        }
    };
    let (journal, ()) = tokio::join!(steered.get("/journal?namespace=a&wait=2&timeout=60"), calls);
    assert_eq!(numbers(&journal), [1, 3]);
    let journal = steered.get("/journal?namespace=a&wait=3&timeout=0.01").await;
    assert_eq!(numbers(&journal), [1, 3]);
}

#[tokio::test]
async fn reset_restarts_the_call_counter() {
    let yaml =
        "version: 1\nwebhooks:\n- {name: one, type: validating, behavior: {sequence: [{deny: {}}, allow]}}\n";
    let steered = steered(yaml, FleetOptions::default()).await;
    let url = steered.url("one.fakes.local").await;
    let allowed = async || steered.call(&url, json!({})).await.unwrap()["response"]["allowed"].clone();
    assert_eq!([allowed().await, allowed().await, allowed().await], [false, true, true]);
    steered.ask(Method::POST, "/fakes/one/reset", Value::Null).await;
    assert_eq!([allowed().await, allowed().await], [false, true]);
}

#[tokio::test]
async fn rotated_certificate_is_used_only_for_new_connections() {
    let steered = steered(ONE, FleetOptions::default()).await;
    let url = steered.url("one.fakes.local").await;
    let (kept, fresh) = (client(steered.fleet.ca_bundle()), || client(steered.fleet.ca_bundle()));
    call(&kept, &url, json!({})).await.unwrap();
    let (status, shown) =
        steered.ask(Method::POST, "/certificates/rotate", json!({"certificate": "expired"})).await;
    assert_eq!((status, shown), (StatusCode::OK, json!({"certificate": "expired"})));
    assert!(call(&fresh(), &url, json!({})).await.unwrap_err().is_connect());
    call(&kept, &url, json!({})).await.unwrap();
    assert_eq!(steered.get("/fakes").await["fakes"][0]["certificate"], "expired");
    steered.ask(Method::POST, "/certificates/rotate", json!({})).await;
    call(&fresh(), &url, json!({})).await.unwrap();
    let metrics = steered.client.get(steered.admin("/metrics")).bearer_auth(TOKEN).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    for line in [
        r#"fake_webhooks_calls_total{fake="one.fakes.local",outcome="200"} 3"#,
        r#"fake_webhooks_call_seconds_count{fake="one.fakes.local"} 3"#,
        "fake_webhooks_tls_handshake_failures_total 1",
        "fake_webhooks_journal_entries 3",
    ] {
        assert!(metrics.lines().any(|there| there == line), "`{line}` is not in:\n{metrics}");
    }
}

#[tokio::test]
async fn full_journal_reports_the_number_of_dropped_calls() {
    let mut options = FleetOptions::default();
    options.limits.journal_entries = 2;
    let steered = steered(ONE, options).await;
    let url = steered.url("one.fakes.local").await;
    for _ in 0..5 {
        steered.call(&url, json!({})).await.unwrap();
    }
    let journal = steered.get("/journal").await;
    assert_eq!((numbers(&journal), &journal["dropped"]), (vec![4, 5], &json!(3)));
    let full = steered.log.lock().unwrap().iter().filter(|line| line.contains("journal is full")).count();
    assert_eq!(full, 1);
}

#[tokio::test]
async fn remote_addresses_require_permission() {
    let file = FakesFile::parse(ONE, "fakes.yaml").unwrap();
    let log: Log = Arc::new(|_| {});
    let mut options = FleetOptions::default();
    options.admin = Some(AdminOptions::new("0.0.0.0:0".parse().unwrap(), TOKEN.parse().unwrap()));
    let refused = Fleet::start_with(&[file], options, &log).await.unwrap_err().to_string();
    assert!(refused.contains("admin endpoint") && refused.contains("--allow-remote"), "{refused}");
}

#[tokio::test]
async fn stopping_the_fleet_stops_the_admin_endpoint() {
    let steered = steered(ONE, FleetOptions::default()).await;
    let address = steered.fleet.admin_address().unwrap();
    tokio::time::timeout(Duration::from_secs(60), steered.fleet.stop()).await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn credentials_of_callers_are_masked_by_default() {
    let steered = steered(ONE, FleetOptions::default()).await;
    let url = steered.url("one.fakes.local").await;
    steered.client.post(url).bearer_auth("sesame").header("cookie", "sesame").send().await.unwrap();
    let told = async |path: &str| {
        let journal = steered.get(path).await;
        let headers = journal["entries"][0]["headers"].as_array().unwrap().clone();
        ["authorization", "cookie"].map(|name| {
            headers.iter().find(|header| header["name"] == name).unwrap()["value"]
                .as_str()
                .unwrap()
                .to_owned()
        })
    };
    assert_eq!(told("/journal").await, ["***", "***"]);
    assert_eq!(told("/journal?showSecrets=true").await, ["Bearer sesame", "sesame"]);
}

#[tokio::test]
async fn hanging_calls_do_not_block_other_fakes_and_the_admin_endpoint() {
    let text = "version: 1\nwebhooks:\n- {name: hangs, type: validating, behavior: timeout, http: http1}\n\
                - {name: slow, type: validating, behavior: {bytes: {text: \"HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\n\", then: hang}}, http: http1}\n\
                - {name: fine, type: validating, behavior: allow, http: http1}\n";
    let mut options = FleetOptions::default();
    options.limits.calls = 3;
    options.limits.connections = 3;
    let steered = Arc::new(steered(text, options).await);
    for name in ["hangs.fakes.local", "slow.fakes.local"] {
        let url = steered.url(name).await;
        let hanging: Vec<_> = (0..3)
            .map(|_| {
                let (client, url) = (client(steered.fleet.ca_bundle()), url.clone());
                tokio::spawn(async move { call(&client, &url, json!({})).await.is_ok() })
            })
            .collect();
        let path = format!("/journal?fake={name}&wait=3&timeout=60");
        assert_eq!(steered.get(&path).await["entries"].as_array().unwrap().len(), 3, "{name}");
        let refused = client(steered.fleet.ca_bundle()).post(&url).body("{}").send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "{name}");
        assert_eq!(refused.text().await.unwrap(), "too many calls of this fake are under way");
        let other = steered.url("fine.fakes.local").await;
        assert_eq!(steered.call(&other, json!({})).await.unwrap()["response"]["allowed"], true);
        for call in hanging {
            assert!(!call.is_finished(), "{name}");
            call.abort();
        }
    }
}

#[tokio::test]
async fn idle_connections_do_not_block_the_admin_endpoint() {
    let steered = steered(ONE, FleetOptions::default()).await;
    let mut idle = Vec::new();
    for _ in 0..70 {
        let client = client(steered.fleet.ca_bundle());
        let healthy = client.get(steered.admin("/healthz")).send().await.unwrap();
        assert_eq!(healthy.status(), StatusCode::OK);
        idle.push(client);
    }
    steered.get("/fakes").await;
}
