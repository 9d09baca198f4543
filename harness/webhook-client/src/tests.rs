//! Tests the client against servers on loopback, including its error messages.

use std::net::SocketAddr;
use std::sync::Mutex;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kubernetes_admission::config::{ClientConfig, WebhookTarget};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use time::{Duration as Days, OffsetDateTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn authority(common_name: &str) -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, common_name);
    let pem = params.self_signed(&key).unwrap().pem();
    Authority { pem, issuer: Issuer::new(params, key) }
}

fn leaf(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).unwrap()
}

/// A server that sends the nth response on the nth connection, repeats the last response, and records requests.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(authority: &Authority, leaf: CertificateParams, answers: &[&str]) -> Self {
        Self::start_for(Arc::new(NoClientAuth), authority, leaf, answers).await
    }

    async fn start_for(
        clients: Arc<dyn ClientCertVerifier>,
        authority: &Authority,
        leaf: CertificateParams,
        answers: &[&str],
    ) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = leaf.signed_by(&key, &authority.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answers: Vec<String> =
            answers.iter().map(|answer| answer.replace("ADDRESS", &address.to_string())).collect();
        let seen = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            let mut number = 0;
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = vec![0; 65536];
                let mut length = 0;
                while !is_whole(&request[..length]) {
                    match stream.read(&mut request[length..]).await {
                        Ok(0) | Err(_) => break,
                        Ok(read) => length += read,
                    }
                }
                seen.lock().unwrap().push(String::from_utf8_lossy(&request[..length]).into_owned());
                let answer = &answers[number.min(answers.len() - 1)];
                number += 1;
                let (text, hangs) =
                    answer.strip_suffix("HANG").map_or((answer.as_str(), false), |text| (text, true));
                let _ = stream.write_all(text.as_bytes()).await;
                if hangs {
                    std::future::pending::<()>().await;
                }
                let _ = stream.shutdown().await;
            }
        });
        Self { address, requests, task }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

struct At(SocketAddr);

impl ServiceResolver for At {
    fn resolve(&self, service: &ServiceReference) -> Result<(String, u16), String> {
        match service.name.as_str() {
            "here" => Ok((self.0.ip().to_string(), self.0.port())),
            name => Err(format!("service \"{name}\" not found")),
        }
    }
}

async fn call(server: &Server, target: WebhookTarget, ca_bundle: &str) -> Result<Reply, String> {
    call_for(server, target, ca_bundle, Duration::from_secs(10)).await
}

async fn call_for(
    server: &Server,
    target: WebhookTarget,
    ca_bundle: &str,
    timeout: Duration,
) -> Result<Reply, String> {
    let client_config = ClientConfig::new(target, ca_bundle.as_bytes().to_vec());
    let call = Call {
        client_config: &client_config,
        phase: Some(Phase::Mutating),
        body: Bytes::from_static(b"{\"a\":1}\n"),
        timeout,
        trace: None,
    };
    HttpsCaller::new(Arc::new(At(server.address))).call(call).await.map_err(|error| error.to_string())
}

fn url(server: &Server, path: &str) -> WebhookTarget {
    WebhookTarget::Url(format!("https://{}{path}", server.address))
}

fn service(name: &str) -> WebhookTarget {
    WebhookTarget::Service(ServiceReference {
        namespace: "ns".to_owned(),
        name: name.to_owned(),
        path: "/mutate/".to_owned(),
        port: 8443,
    })
}

#[tokio::test]
async fn a_service_keeps_its_host_name_at_another_address() {
    let authority = authority("ca");
    let server = Server::start(&authority, leaf(&["here.ns.svc"]), &[OK]).await;
    let reply = call(&server, service("here"), &authority.pem).await.unwrap();
    assert_eq!((reply.status, reply.body.as_ref()), (200, b"{}".as_slice()));
    let request = server.requests()[0].to_lowercase();
    assert!(request.starts_with("post /mutate?timeout=10s http/1.1\r\n"), "{request}");
    for header in [
        "host: here.ns.svc:8443",
        "user-agent: kube-apiserver-admission",
        "accept: application/json, */*",
        "content-type: application/json",
        "accept-encoding: gzip",
        "content-length: 8",
    ] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{header} in {request}");
    }
}

#[tokio::test]
async fn an_unknown_service_is_named() {
    let authority = authority("ca");
    let server = Server::start(&authority, leaf(&["here.ns.svc"]), &[OK]).await;
    let error = call(&server, service("gone"), &authority.pem).await.unwrap_err();
    assert_eq!(error, r#"Post "https://gone.ns.svc:8443/mutate?timeout=10s": service "gone" not found"#);
}

#[tokio::test]
async fn a_refused_connection_is_described_as_in_go() {
    let authority = authority("ca");
    let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[OK]).await;
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let target = WebhookTarget::Url(format!("https://{address}/x"));
    let error = call(&server, target, &authority.pem).await.unwrap_err();
    let expect =
        format!("Post \"https://{address}/x?timeout=10s\": dial tcp {address}: connect: connection refused");
    assert_eq!(error, expect);
}

#[track_caller]
fn check_certificate(found: &str, expect: &str) {
    let prefix = "tls: failed to verify certificate: x509: ";
    let (_, text) = found.split_once(prefix).unwrap_or_else(|| panic!("{found}"));
    assert_eq!(text, expect);
}

#[tokio::test]
async fn a_bad_certificate_is_described_as_in_go() {
    let trusted = authority("ca");
    let other = authority("other");
    let homonym = authority("ca");
    let mut expired = leaf(&["127.0.0.1"]);
    expired.not_before = OffsetDateTime::UNIX_EPOCH;
    expired.not_after = OffsetDateTime::UNIX_EPOCH + Days::days(1);
    let mut common_name = CertificateParams::default();
    common_name.distinguished_name = rcgen::DistinguishedName::new();
    common_name.distinguished_name.push(DnType::CommonName, "127.0.0.1");
    let mut client_only = leaf(&["127.0.0.1"]);
    client_only.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let unknown = "certificate signed by unknown authority";
    for (authority, leaf, expect) in [
        (&trusted, leaf(&["10.0.0.1", "::1"]), "certificate is valid for 10.0.0.1, ::1, not 127.0.0.1"),
        (
            &trusted,
            leaf(&["a.b"]),
            "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
        ),
        (&trusted, common_name, "certificate relies on legacy Common Name field, use SANs instead"),
        (&trusted, client_only, "certificate specifies an incompatible key usage"),
        (&other, leaf(&["127.0.0.1"]), unknown),
        (
            &homonym,
            leaf(&["127.0.0.1"]),
            &format!(
                "{unknown} (possibly because of \"x509: ECDSA verification failure\" while trying to verify candidate \
                 authority certificate \"ca\")"
            ),
        ),
    ] {
        let server = Server::start(authority, leaf, &[OK]).await;
        check_certificate(&call(&server, url(&server, "/"), &trusted.pem).await.unwrap_err(), expect);
    }
    let server = Server::start(&trusted, leaf(&["b.ns.svc", "*.c"]), &[OK]).await;
    let error = call(&server, service("here"), &trusted.pem).await.unwrap_err();
    check_certificate(&error, "certificate is valid for b.ns.svc, *.c, not here.ns.svc");
    let server = Server::start(&trusted, expired, &[OK]).await;
    let error = call(&server, url(&server, "/"), &trusted.pem).await.unwrap_err();
    assert!(error.contains("x509: certificate has expired or is not yet valid: current time 2"), "{error}");
    assert!(error.ends_with("Z is after 1970-01-02T00:00:00Z"), "{error}");
}

#[tokio::test]
async fn a_wildcard_is_accepted() {
    let authority = authority("ca");
    let server = Server::start(&authority, leaf(&["*.ns.svc"]), &[OK]).await;
    assert!(call(&server, service("here"), &authority.pem).await.is_ok());
}

#[tokio::test]
async fn a_bundle_without_a_certificate_is_an_error() {
    let authority = authority("ca");
    let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[OK]).await;
    let error = call(&server, url(&server, "/"), "nothing").await.unwrap_err();
    assert_eq!(error, "unable to load root certificates: unable to parse bytes as PEM block");
}

#[tokio::test]
async fn timeouts_and_closed_connections_are_described_as_in_go() {
    let authority = authority("ca");
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{";
    let reading = "unexpected error when reading response body. Please retry. Original error: ";
    let hanging_head = format!("{head}HANG");
    for (answer, seconds, expect) in [
        ("", 10, "Post \"URL?timeout=10s\": EOF".to_owned()),
        (head, 10, format!("{reading}unexpected EOF")),
        ("HANG", 1, "Post \"URL?timeout=1s\": context deadline exceeded".to_owned()),
        (&hanging_head, 1, format!("{reading}context deadline exceeded")),
    ] {
        let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[answer]).await;
        let timeout = Duration::from_secs(seconds);
        let error = call_for(&server, url(&server, "/x"), &authority.pem, timeout).await.unwrap_err();
        assert_eq!(error.replace(&format!("https://{}/x", server.address), "URL"), expect);
    }
}

#[tokio::test]
async fn retry_after_is_followed_ten_times_with_the_same_body() {
    let authority = authority("ca");
    let busy = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[busy]).await;
    let reply = call(&server, url(&server, "/"), &authority.pem).await.unwrap();
    assert_eq!(reply.status, 429);
    let requests = server.requests();
    assert_eq!(requests.len(), 11);
    assert!(requests.iter().all(|request| request.ends_with("{\"a\":1}\n")));

    let dated = "HTTP/1.1 503 x\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[dated, OK]).await;
    assert_eq!(call(&server, url(&server, "/"), &authority.pem).await.unwrap().status, 503);

    let later = "HTTP/1.1 503 x\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[later, OK]).await;
    let second = Duration::from_secs(1);
    let error = call_for(&server, url(&server, "/"), &authority.pem, second).await.unwrap_err();
    assert!(error.ends_with("/?timeout=1s\": context deadline exceeded"), "{error}");
}

#[tokio::test]
async fn redirects_to_another_origin_are_followed_only_with_redirects_all() {
    let authority = authority("ca");
    let elsewhere = Server::start(&authority, leaf(&["127.0.0.1"]), &[OK]).await;
    let with =
        |location: &str| format!("HTTP/1.1 307 x\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
    let plain = with("http://ADDRESS/");
    for (first, redirects, expected) in [
        (with("/next"), Redirects::SameOrigin, Ok(200)),
        (with(&format!("https://{}/", elsewhere.address)), Redirects::All, Ok(200)),
        (with(&format!("https://{}/", elsewhere.address)), Redirects::SameOrigin, Err(())),
        (with(&format!("https://localhost:{}/", elsewhere.address.port())), Redirects::SameOrigin, Err(())),
        (plain, Redirects::SameOrigin, Err(())),
    ] {
        let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[&first, OK]).await;
        let caller = HttpsCaller::new(Arc::new(At(server.address))).with_redirects(redirects);
        let client_config = ClientConfig::new(url(&server, "/"), authority.pem.clone().into_bytes());
        let call = Call {
            client_config: &client_config,
            phase: Some(Phase::Mutating),
            body: "{}".into(),
            timeout: Duration::from_secs(10),
            trace: None,
        };
        let before = elsewhere.requests().len();
        let mut redirects_and_retries = Vec::new();
        let reply = caller.call_noting(call, &mut redirects_and_retries).await;
        assert_eq!(redirects_and_retries.len(), 1, "{first}");
        match (reply, expected) {
            (Ok(reply), Ok(status)) => assert_eq!(reply.status, status),
            (Err(CallError::Transport(text)), Err(())) => {
                assert!(text.ends_with("is not followed: it leaves the webhook's host and port"), "{text}");
                assert_eq!(elsewhere.requests().len(), before, "{first}");
            }
            (reply, expected) => panic!("{first}: {reply:?} instead of {expected:?}"),
        }
    }
}

#[tokio::test]
async fn redirects_are_followed_as_by_go() {
    let authority = authority("ca");
    let temporary = "HTTP/1.1 307 x\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[temporary, OK]).await;
    assert_eq!(call(&server, url(&server, "/"), &authority.pem).await.unwrap().status, 200);
    let second = &server.requests()[1];
    assert!(second.starts_with("POST /next HTTP/1.1") && second.ends_with("{\"a\":1}\n"), "{second}");

    let found = "HTTP/1.1 302 x\r\nLocation: https://ADDRESS/get?a=b\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[found, OK]).await;
    assert_eq!(call(&server, url(&server, "/"), &authority.pem).await.unwrap().status, 200);
    let second = &server.requests()[1];
    assert!(second.starts_with("GET /get?a=b HTTP/1.1") && second.ends_with("\r\n\r\n"), "{second}");

    let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[temporary]).await;
    let error = call(&server, url(&server, "/"), &authority.pem).await.unwrap_err();
    // Go quotes the location as the last response wrote it. Source: Go net/http/client.go, `Client.do`.
    assert_eq!(error, "Post \"/next\": stopped after 10 redirects");
    assert_eq!(server.requests().len(), 10);

    let server = Server::start(&authority, leaf(&["here.ns.svc"]), &[temporary, OK]).await;
    assert_eq!(call(&server, service("here"), &authority.pem).await.unwrap().status, 200);
    assert!(server.requests()[1].to_lowercase().contains("\r\nhost: here.ns.svc:8443\r\n"));
}

#[tokio::test]
async fn plain_http_on_the_tls_port_is_recognized() {
    let authority = authority("ca");
    let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[OK]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read(&mut [0; 4096]).await;
    });
    let target = WebhookTarget::Url(format!("https://{address}/"));
    let error = call(&server, target, &authority.pem).await.unwrap_err();
    assert!(error.ends_with("\": http: server gave HTTP response to HTTPS client"), "{error}");
    task.await.unwrap();
}

#[tokio::test]
async fn a_reply_with_too_many_values_is_rejected() {
    let authority = authority("ca");
    let answer = |values: usize| {
        let body = format!("[{}]", vec!["0"; values - 1].join(","));
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let answers = [answer(MAX_VALUES), answer(MAX_VALUES + 1)];
    let server =
        Server::start(&authority, leaf(&["127.0.0.1"]), &answers.each_ref().map(String::as_str)).await;
    let reply = call(&server, url(&server, "/"), &authority.pem).await.unwrap();
    assert_eq!(reply.body.len(), 2 * MAX_VALUES - 1);
    assert_eq!(
        call(&server, url(&server, "/"), &authority.pem).await.unwrap_err(),
        "unsupported: responses of webhooks with more than 250000 JSON values"
    );
}

#[tokio::test]
async fn a_client_certificate_is_sent_to_a_server_that_requests_one() {
    let (servers, clients) = (authority("servers"), authority("clients"));
    let mut trusted = rustls::RootCertStore::empty();
    trusted.add(CertificateDer::from_pem_slice(clients.pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(trusted), provider).build().unwrap();
    let server = Server::start_for(verifier, &servers, leaf(&["127.0.0.1"]), &[OK]).await;

    let key = KeyPair::generate().unwrap();
    let mut params = leaf(&["kube-apiserver"]);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &clients.issuer).unwrap();
    let client_config = ClientConfig::new(url(&server, "/"), servers.pem.clone().into_bytes());
    let called = async |certificate: &str, key: &str| {
        let data = |pem: &str| BASE64_STANDARD.encode(pem);
        let kubeconfig = format!(
            "users: [{{name: '*', user: {{client-certificate-data: {}, client-key-data: {}}}}}]",
            data(certificate),
            data(key)
        );
        let mutating = Credentials::parse(&kubeconfig, std::path::Path::new("/")).unwrap();
        let credentials = WebhookCredentials { mutating, ..WebhookCredentials::default() };
        let caller = HttpsCaller::new(Arc::new(At(server.address))).with_credentials(credentials);
        let body = Bytes::from_static(b"{}");
        let call = |phase| Call {
            client_config: &client_config,
            phase: Some(phase),
            body: body.clone(),
            timeout: Duration::from_secs(10),
            trace: None,
        };
        let reply = caller.call(call(Phase::Mutating)).await.map(|reply| reply.status);
        let of_the_other_plugin = caller.call(call(Phase::Validating)).await.map(|reply| reply.status);
        assert!(matches!(of_the_other_plugin, Err(CallError::Transport(_))), "{of_the_other_plugin:?}");
        reply.map_err(|error| error.to_string())
    };
    assert_eq!(called(&certificate.pem(), &key.serialize_pem()).await, Ok(200));
    let other = KeyPair::generate().unwrap().serialize_pem();
    for (certificate, key, expect) in [
        (certificate.pem(), other, "tls: private key does not match public key"),
        ("none".to_owned(), key.serialize_pem(), "tls: failed to find any PEM data in certificate input"),
        (certificate.pem(), "none".to_owned(), "tls: failed to find any PEM data in key input"),
    ] {
        assert_eq!(called(&certificate, &key).await, Err(expect.to_owned()));
    }
}

#[tokio::test]
async fn reviews_and_replies_reserve_memory_while_in_use() {
    let authority = authority("ca");
    let body = format!("[{}]", vec!["\"x\""; 50_000].join(","));
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let server = Server::start(&authority, leaf(&["127.0.0.1"]), &[&answer, &answer, &answer]).await;
    let call_with = async |memory: &Budget| {
        let (target, ca_bundle) = (url(&server, "/"), authority.pem.as_bytes().to_vec());
        let client_config = ClientConfig::new(target, ca_bundle);
        let caller = HttpsCaller::new(Arc::new(At(server.address))).with_memory(memory.clone());
        let (body, timeout) = (Bytes::from_static(b"{}"), Duration::from_secs(10));
        caller
            .call(Call {
                client_config: &client_config,
                phase: Some(Phase::Mutating),
                body,
                timeout,
                trace: None,
            })
            .await
    };
    let memory = Budget::new(32 << 20);
    let reply = call_with(&memory).await.unwrap();
    let taken = (32 << 20) - memory.available();
    assert!(taken > 50_000 * COPIES * 32, "{taken}");
    let others = memory.try_reserve(memory.available()).unwrap();
    assert_eq!(call_with(&memory).await, Err(CallError::TooManyRequests));
    drop((others, reply));
    assert_eq!(memory.available(), 32 << 20);
    let error = call_with(&Budget::new(1 << 20)).await.unwrap_err();
    assert!(matches!(error, CallError::Unsupported(_)), "{error}");
}
