//! Measures the load that fakes can serve; `just load` prints the results.
//!
//! The server runs in a separate process with one thread, and the client uses the remaining cores.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops when it cannot go on"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fake_webhooks::{Fake, FakeWebhook, Timeout};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

type Connection = SendRequest<Full<bytes::Bytes>>;

const CONNECTIONS: usize = 16;
const HANGING: usize = 200;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => serve(&std::env::args().nth(2).unwrap()),
        count => measure(count.map_or(1_000_000, |count| count.parse().unwrap())),
    }
}

/// Runs the server: prints its address and CA bundle, and stops when standard input closes.
fn serve(behavior: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let behavior = match behavior {
            "hang" => fake_webhooks::Behavior::Timeout(Timeout::default()),
            _ => fake_webhooks::Behavior::default(),
        };
        let fake = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.unwrap();
        println!("{}", json!({"address": fake.address(), "bundle": fake.ca_bundle()}));
        tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await.unwrap();
    });
}

struct Server {
    process: Child,
    address: String,
    tls: TlsConnector,
}

impl Server {
    fn start(behavior: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["serve", behavior])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        let bundle = told.get("bundle").and_then(serde_json::Value::as_str).unwrap();
        roots.add(CertificateDer::from_pem_slice(bundle.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let address = told.get("address").and_then(serde_json::Value::as_str).unwrap().to_owned();
        Self { process, address, tls: TlsConnector::from(Arc::new(config)) }
    }

    async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = self.tls.connect(name, stream).await.unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Returns a field of `/proc/PID/status` in KiB, such as `VmRSS`.
    fn kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Returns the user and system time that the server has used.
    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let ticks: u64 =
            stat.split_whitespace().skip(13).take(2).map(|time| time.parse::<u64>().unwrap()).sum();
        // Linux counts 100 ticks per second on all common platforms.
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn review() -> bytes::Bytes {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "demo"}, "spec": {
        "containers": [{"name": "web", "image": "example.com/web:1", "env": [{"name": "A", "value": "x".repeat(500)}]}],
    }});
    let resource = json!({"group": "", "version": "v1", "resource": "pods"});
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    let request = json!({
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "resource": resource, "requestKind": kind,
        "requestResource": resource, "name": "web", "namespace": "demo", "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:authenticated"]}, "object": object, "oldObject": null,
        "dryRun": false, "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    });
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    bytes::Bytes::from(review.to_string())
}

fn request(body: &bytes::Bytes) -> http::Request<Full<bytes::Bytes>> {
    http::Request::post("/?timeout=10s")
        .header("host", "localhost")
        .header("accept", "application/json, */*")
        .header("content-type", "application/json")
        .header("user-agent", "kube-apiserver-admission")
        .body(Full::new(body.clone()))
        .unwrap()
}

fn measure(count: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        answers(count).await;
        hangs().await;
    });
}

async fn answers(count: usize) {
    let server = Server::start("allow");
    let body = review();
    println!("reviews of {} bytes, {CONNECTIONS} connections with HTTP/1.1 and TLS 1.3", body.len());
    println!("{:>10} {:>12} {:>20} {:>10}", "calls", "a second", "a second of its CPU", "RSS");
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(server.connect().await);
    }
    let part = count / 10 / CONNECTIONS;
    for round in 1..=10 {
        let (started, cpu) = (Instant::now(), server.cpu());
        let calls = connections.into_iter().map(|mut connection| {
            let body = body.clone();
            tokio::spawn(async move {
                for _ in 0..part {
                    let response = connection.send_request(request(&body)).await.unwrap();
                    assert!(response.status().is_success());
                    response.into_body().collect().await.unwrap();
                    connection.ready().await.unwrap();
                }
                connection
            })
        });
        let calls: Vec<_> = calls.collect();
        connections = Vec::new();
        for call in calls {
            connections.push(call.await.unwrap());
        }
        let (took, busy) = (started.elapsed(), server.cpu().saturating_sub(cpu));
        let calls = u32::try_from(part * CONNECTIONS).unwrap();
        println!(
            "{:>10} {:>12.0} {:>20.0} {:>7} MB",
            calls * round,
            f64::from(calls) / took.as_secs_f64(),
            f64::from(calls) / busy.as_secs_f64(),
            server.kib("VmRSS") / 1000
        );
    }
}

async fn hangs() {
    let server = Server::start("hang");
    let body = review();
    let before = server.kib("VmRSS");
    let mut hanging = tokio::task::JoinSet::new();
    for _ in 0..HANGING {
        let mut connection = server.connect().await;
        let request = request(&body);
        hanging.spawn(async move { connection.send_request(request).await.is_ok() });
    }
    // A second is enough for the last call to arrive; a response would be a bug in the fake.
    let answered = tokio::time::timeout(Duration::from_secs(1), hanging.join_next()).await;
    assert!(answered.is_err(), "a call that should hang has ended");
    println!("{HANGING} connections that hang: {} KB", server.kib("VmRSS") - before);
}
