//! Tests service account tokens: their creation, and authentication with them.

use std::sync::Arc;

use axum::body::Body;
use harness::server::{ApiServer, Authentication, Authenticators, Options, ServiceAccountTokens, Tokens};
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::client::{administrator, delete, post, respond, server};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

async fn token(server: &ApiServer, spec: Value) -> String {
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let (code, answer) = post(server, &format!("{ACCOUNTS}/robot/token"), &request).await;
    assert_eq!(code, 201, "{answer}");
    answer["status"]["token"].as_str().unwrap().to_owned()
}

async fn with_account(options: Options) -> ApiServer {
    let server = ApiServer::new(options);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    assert_eq!(post(&server, ACCOUNTS, &account).await.0, 201);
    server
}

/// Sends a `SelfSubjectReview` with a token, and returns the status code and the body.
async fn who(server: &ApiServer, token: &str) -> (u16, Value) {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let request = Request::builder()
        .method(Method::POST)
        .uri(WHO)
        .header(CONTENT_TYPE, "application/json")
        .header(AUTHORIZATION, format!("Bearer {token}"));
    let router = server.router(Authentication::Authenticators(Authenticators { anonymous: true }));
    let response = router.oneshot(request.body(Body::from(review.to_string())).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn token_is_valid_until_its_service_account_is_deleted() {
    let server = with_account(Options::default()).await;
    let token = token(&server, json!({})).await;
    let (code, answer) = who(&server, &token).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(answer["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    assert_eq!(
        answer["status"]["userInfo"]["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    assert_eq!(delete(&server, &format!("{ACCOUNTS}/robot"), None).await.0, 200);
    let (code, answer) = who(&server, &token).await;
    assert_eq!((code, &answer["message"]), (401, &json!("Unauthorized")));
}

#[tokio::test]
async fn token_of_another_issuer_or_audience_is_rejected() {
    let (server, other) = (with_account(Options::default()).await, with_account(Options::default()).await);
    let foreign = token(&other, json!({})).await;
    assert_eq!(who(&other, &foreign).await.0, 201);
    assert_eq!(who(&server, &foreign).await.0, 401);
    let for_others = token(&server, json!({"audiences": ["others"]})).await;
    assert_eq!(who(&server, &for_others).await.0, 401);
}

#[tokio::test]
async fn shortened_token_lifetime_causes_a_warning() {
    let service_account_tokens =
        ServiceAccountTokens { max_expiration: Some(7200), ..ServiceAccountTokens::default() };
    let server = with_account(Options { service_account_tokens, ..Options::default() }).await;
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400},
    });
    let path = format!("{ACCOUNTS}/robot/token");
    let response = respond(&server, &Method::POST, &path, "application/json", request.to_string()).await;
    assert_eq!(
        response.headers()["warning"],
        "299 - \"requested expiration of 86400 seconds shortened to 7200 seconds\""
    );
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["spec"]["expirationSeconds"], 7200);
}

#[tokio::test]
async fn token_review_accepts_static_tokens() {
    let mut tokens = Tokens::default();
    tokens.insert("secret", administrator());
    let server = ApiServer::new(Options { tokens, ..Options::default() });
    let review =
        |spec| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec});
    let (_, answer) = post(&server, REVIEWS, &review(json!({"token": "secret"}))).await;
    assert_eq!(
        answer["status"],
        json!({
            "authenticated": true, "audiences": ["https://kubernetes.default.svc"],
            "user": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        })
    );
    let (_, answer) = post(&server, REVIEWS, &review(json!({"token": "secret", "audiences": ["a"]}))).await;
    assert_eq!(answer["status"], json!({"user": {}, "error": "invalid bearer token"}));
}

#[tokio::test]
async fn public_keys_are_cacheable_for_an_hour() {
    let server = server();
    for (path, content_type) in [
        ("/openid/v1/jwks", "application/jwk-set+json"),
        ("/.well-known/openid-configuration", "application/json"),
    ] {
        let response = respond(&server, &Method::GET, path, "", String::new()).await;
        assert_eq!(response.headers()[CONTENT_TYPE], content_type);
        assert_eq!(response.headers()[CACHE_CONTROL], "public, max-age=3600");
    }
    let issuers = vec!["kubernetes".to_owned()];
    let service_account_tokens = ServiceAccountTokens { issuers, ..ServiceAccountTokens::default() };
    let server = ApiServer::new(Options { service_account_tokens, ..Options::default() });
    let response = respond(&server, &Method::GET, "/openid/v1/jwks", "", String::new()).await;
    assert_eq!(response.status(), 404);
}

#[tokio::test]
async fn token_ids_are_audited() {
    let events = Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let audit: harness::server::AuditSink =
        Arc::new(move |event: &Value| told.lock().unwrap().push(event.clone()));
    let server = with_account(Options { audit: Some(audit), ..Options::default() }).await;
    let token = token(&server, json!({})).await;
    assert_eq!(who(&server, &token).await.0, 201);
    let events = events.lock().unwrap();
    let [.., made, used] = events.as_slice() else { panic!("{events:?}") };
    let id = &made["annotations"]["authentication.kubernetes.io/issued-credential-id"];
    assert!(id.as_str().unwrap().starts_with("JTI="), "{made}");
    assert_eq!(&used["user"]["extra"]["authentication.kubernetes.io/credential-id"][0], id);
    assert!(!events.iter().any(|event| event.to_string().contains(&token)));
}
