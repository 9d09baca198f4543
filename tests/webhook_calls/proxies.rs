//! Tests proxy environment variables: admit and kube-apiserver send the same calls through proxies.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Fake, FakeWebhook};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{configuration, machine};

/// A webhook's name, its host with an optional port, its failure policy, and the result of the request.
type Situation = (&'static str, &'static str, &'static str, &'static str);

/// The host that the proxy rejects.
const REFUSED: &str = "refused.example.com";
const ADMITTED: &str = "Then the request is admitted";
/// The name of a webhook behind a Service. The Service refers to the webhook's host.
const SERVICE: &str = "service";
const SITUATIONS: [Situation; 6] = [
    ("proxied", "hook.example.com", "Fail", ADMITTED),
    (
        "refused",
        REFUSED,
        "Fail",
        "Then the request is rejected with 500\n    And the message contains \": Forbidden\"",
    ),
    ("excepted", "direct.example.com:8443", "Ignore", ADMITTED),
    ("in-an-excepted-network", "192.0.2.7", "Ignore", ADMITTED),
    ("loopback", "127.0.0.1:PORT", "Fail", ADMITTED),
    (SERVICE, "elsewhere.example.com", "Fail", ADMITTED),
];
const UNREACHABLE: Situation = (
    "unreachable",
    "hook.example.com",
    "Fail",
    "Then the request is rejected with 500\n    \
     And the message contains \"proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused\"",
);

/// A proxy that forwards to one address, and records the requests that it receives.
struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<BTreeSet<String>>>,
}

impl Proxy {
    async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<BTreeSet<String>>>::default();
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, to, Arc::clone(&log)));
            }
        });
        Self { address, asked }
    }
}

async fn serve(mut client: TcpStream, to: SocketAddr, log: Arc<Mutex<BTreeSet<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let is_authorization = |line: &&str| line.to_lowercase().starts_with("proxy-authorization: ");
    let authorization = head.lines().find(is_authorization).and_then(|line| line.split_once(": "));
    let request = head.lines().next().unwrap_or_default();
    let asked = format!("{request} {}", authorization.map_or("", |(_, credentials)| credentials));
    log.lock().unwrap().insert(asked);
    if request.contains(REFUSED) {
        // The client may have disconnected.
        let _ = client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
        return;
    }
    if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_ok() {
        let mut webhook = TcpStream::connect(to).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut client, &mut webhook).await;
    }
}

/// Writes a feature with a scenario for each situation, and their webhook configurations.
fn write(folder: &Path, situations: &[Situation], webhook: &FakeWebhook) {
    let mut feature = String::from("Feature: Proxies\n");
    for (name, host, failure_policy, outcome) in situations {
        let mut object = configuration("MutatingWebhookConfiguration", name, webhook);
        let host = host.replace("PORT", &webhook.address().port().to_string());
        let mut set =
            |field: &str, value| *object.pointer_mut(&format!("/webhooks/0/{field}")).unwrap() = value;
        let mut objects = Vec::new();
        if *name == SERVICE {
            objects.push(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
                "spec": {"type": "ExternalName", "externalName": host},
            }));
            let service = json!({"name": name, "namespace": "default", "path": format!("/{name}")});
            set(
                "clientConfig",
                json!({"caBundle": STANDARD.encode(webhook.ca_bundle()), "service": service}),
            );
        } else {
            set("clientConfig/url", json!(format!("https://{host}/{name}")));
        }
        set("rules/0/resources", json!(["pods"]));
        set("failurePolicy", json!(failure_policy));
        let entry = object.pointer_mut("/webhooks/0").unwrap().as_object_mut().unwrap();
        entry.insert("timeoutSeconds".to_owned(), json!(3));
        objects.push(object);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        std::fs::write(folder.join(format!("{name}.json")), list.to_string()).unwrap();
        let _ = write!(
            feature,
            "  Scenario: {name}\n    Given the objects in the file \"{name}.json\" exist\n    \
             When a pod is created\n    {outcome}\n"
        );
    }
    std::fs::write(folder.join("proxies.feature"), feature).unwrap();
}

async fn run(folder: &Path, target: &str, proxy: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["run", "proxies.feature", "--jobs", "1", "--target", target]);
    command.current_dir(folder).env("NO_COLOR", "1");
    for name in ["https_proxy", "http_proxy", "HTTP_PROXY", "no_proxy"] {
        command.env_remove(name);
    }
    command.env("HTTPS_PROXY", proxy).env("NO_PROXY", "192.0.2.0/24, direct.example.com:8443");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs all situations, and checks the requests that the proxy and the webhook receive.
async fn check(target: &str) {
    let names = ["hook.example.com", "127.0.0.1", "service.default.svc"].map(str::to_owned).to_vec();
    let webhook = FakeWebhook::start(Fake { names, ..Fake::default() }).await.unwrap();
    let proxy = Proxy::start(webhook.address()).await;
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &SITUATIONS, &webhook);
    run(folder.path(), target, &format!("http://jane:pass%20word@{}", proxy.address)).await;
    let asked = proxy.asked.lock().unwrap().clone();
    let expect = ["hook.example.com", REFUSED, "elsewhere.example.com"]
        .map(|host| format!("CONNECT {host}:443 HTTP/1.1 Basic amFuZTpwYXNzIHdvcmQ="));
    assert_eq!(asked, BTreeSet::from(expect), "{target}");
    let journal = webhook.journal();
    let paths: BTreeSet<_> = journal.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, BTreeSet::from(["/loopback", "/proxied", "/service"]), "{target}");

    write(folder.path(), &[UNREACHABLE], &webhook);
    run(folder.path(), target, "127.0.0.1:1").await;
    assert_eq!(webhook.journal().len(), journal.len(), "{target}");
}

#[tokio::test(flavor = "multi_thread")]
async fn admit_calls_webhooks_through_a_proxy() {
    check("in-process").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_calls_them_through_the_same() {
    if machine::has_kube_apiserver() {
        check("envtest").await;
    }
}
