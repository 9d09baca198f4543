//! Tests webhooks whose servers close connections. Only a failure on a new connection counts.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use certs::{CertificateAuthority, Name};
use harness::verify::{Settings, checks};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::command::{Stage, ends_with};
use super::environment::{configuration, entry, entry_of_service, pods, run_checks};

/// The point at which the server stops reading a connection.
///
/// The server closes the connection when the next request arrives. To the caller, this looks as if the server had
/// closed the connection while the request was in transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closes {
    Never,
    AfterEachResponse,
    AfterAnError,
    BeforeAnyResponse,
}

/// Starts a webhook that allows every review and answers other bodies with status 500; returns its URL and CA.
fn start(closes: Closes) -> (String, String) {
    let authority = CertificateAuthority::new("admit-verify").expect("an authority");
    let leaf = authority.issue(&["127.0.0.1".parse::<Name>().expect("a name")]).expect("a certificate");
    let chain =
        CertificateDer::pem_slice_iter(leaf.certificate_pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain.expect("a chain"), key)
        .expect("a configuration");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(stream), config) = (stream, Arc::clone(&config)) else { return };
            std::thread::spawn(move || serve(stream, config, closes));
        }
    });
    (url, leaf.ca_bundle_pem)
}

/// Serves one connection until either side closes it.
fn serve(stream: TcpStream, config: Arc<ServerConfig>, closes: Closes) -> Option<()> {
    let mut reader = BufReader::new(StreamOwned::new(ServerConnection::new(config).ok()?, stream));
    let mut is_open = closes != Closes::BeforeAnyResponse;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        if !is_open {
            return None;
        }
        let review: Option<Value> = serde_json::from_slice(&body).ok();
        let uid = review.as_ref().and_then(|review| review.pointer("/request/uid"));
        let (status, answer) = match uid {
            Some(uid) => {
                let response = json!({"uid": uid, "allowed": true});
                let version = "admission.k8s.io/v1";
                (200, json!({"apiVersion": version, "kind": "AdmissionReview", "response": response}))
            }
            None => (500, json!({"error": "not a review"})),
        };
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let stream = reader.get_mut();
        stream.write_all((head + &answer).as_bytes()).ok()?;
        stream.flush().ok()?;
        is_open = match closes {
            Closes::AfterEachResponse => false,
            Closes::AfterAnError => status == 200,
            Closes::Never | Closes::BeforeAnyResponse => true,
        };
    }
}

/// Returns the results and findings of checks that call the webhook in different ways.
async fn verified(closes: Closes) -> Vec<Value> {
    let (url, ca_bundle) = start(closes);
    let webhook = entry("w", &url, &ca_bundle);
    let configurations = [configuration("ValidatingWebhookConfiguration", "a", &[webhook])];
    let ids = ["V11", "V14", "V22", "V23", "V25", "V37", "V38", "V41"];
    let checks: Vec<_> = ids.into_iter().filter_map(|id| checks::find(id)).collect();
    let report = run_checks(&checks, &configurations, pods(), Settings::default(), &[]).await;
    let summary = |check: &harness::verify::report::CheckReport| {
        let kinds: Vec<&str> = check.findings.iter().map(|finding| finding.kind.as_str()).collect();
        json!([check.id, check.results[0].verdict, check.results[0].not_checked, kinds])
    };
    report.checks.iter().map(summary).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_closes_its_connections_does_not_have_other_findings() {
    let expected = verified(Closes::Never).await;
    assert!(expected.iter().any(|check| check[1] == "passed"), "{expected:#?}");
    for closes in [Closes::AfterEachResponse, Closes::AfterAnError] {
        for run in 1..=5 {
            assert_eq!(verified(closes).await, expected, "{closes:?}, run {run}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_closes_new_connections_is_not_checked() {
    let found = verified(Closes::BeforeAnyResponse).await;
    let v11 = found.iter().find(|check| check[0] == "V11").expect("it is there");
    assert_eq!(v11[1], "notChecked", "{v11:#}");
    assert!(v11[2].to_string().contains("failed to call webhook"), "{v11:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_not_running_is_reported_with_its_address() {
    let stage = Stage::with("allow").await;
    let webhook = entry_of_service("w", stage.fake.ca_bundle());
    stage.write("service.yaml", &[configuration("MutatingWebhookConfiguration", "c", &[webhook])]);
    // Nothing listens on the port once the listener is dropped.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    let service = format!("injector/webhook={address}");
    let arguments = ["-c", "service.yaml", "--service", &service, "--check", "V01"];
    let text = ends_with(&stage.verify(&arguments).await, 6);
    let verdict =
        format!("c/w.example.com: could not be checked: connection refused at https://{address}/\n");
    assert!(text.starts_with(&verdict), "{text}");
    let incomplete = format!(
        "\nexit status 6: V01 could not be completed for c/w.example.com: connection refused at https://{address}/ (first for Pod "
    );
    assert!(text.contains(&incomplete), "{text}");
    assert!(text.contains("  = help: start the webhook before the run, or add --wait SECONDS"), "{text}");
    assert!(!text.contains("never changed an object") && !text.contains("that it mutates"), "{text}");
}
