//! Uses the page of `admit serve --ui` in Chromium, and its link without a browser.

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use super::helpers::serve::config;
use super::html_report::{chromium, has_packages, node, root};

/// A running `admit serve --ui`. It is killed on drop.
struct Server {
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
    url: String,
    folder: tempfile::TempDir,
}

impl Server {
    fn start(flags: &[&OsStr]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["serve", "--ui", "--kubeconfig-out", "kubeconfig"])
            .args(flags)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = output.next().unwrap().unwrap().strip_prefix("admit serve: ").unwrap().to_owned();
        assert!(output.next().unwrap().unwrap().starts_with("export KUBECONFIG="));
        Self { process, output, url, folder }
    }

    /// Returns the link in the next line that the server prints.
    fn link(&mut self) -> String {
        let line = self.output.next().unwrap().unwrap();
        line.strip_prefix("UI (this link works once): ").unwrap().to_owned()
    }

    async fn client(&self) -> kube::Client {
        // Another test may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        kube::Client::try_from(config(self.folder.path()).await).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a request with a token to the listener of the link, and returns the connection after the headers of the response.
fn send(link: &str, request: &str, token: &str) -> (String, BufReader<TcpStream>) {
    let host = link.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    (head, stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_gives_access_once_to_requests_with_masked_secrets() {
    let mut server = Server::start(&[]);
    let link = server.link();
    let token = link.split_once("/#token=").unwrap().1;
    let (head, mut body) = send(&link, "POST /session", token);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let length =
        head.to_lowercase().split_once("content-length: ").unwrap().1.split('\r').next().unwrap().parse();
    let mut text = vec![0; length.unwrap()];
    body.read_exact(&mut text).unwrap();
    let answer: Value = serde_json::from_slice(&text).unwrap();
    let session = answer.pointer("/token").unwrap().as_str().unwrap();
    assert!(send(&link, "POST /session", token).0.starts_with("HTTP/1.1 401"));
    assert_ne!(server.link(), link, "the next link is printed");

    let (_, body) = send(&link, "GET /requests", session);
    let secrets: Api<Secret> = Api::default_namespaced(server.client().await);
    let secret = json!({"metadata": {"name": "login"}, "stringData": {"password": "hunter2hunter2"}});
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    // A chunk begins with its size.
    let received = body.lines().map(Result::unwrap).find(|line| line.starts_with('{')).unwrap();
    let request: Value = serde_json::from_str(&received).unwrap();
    assert_eq!(request.pointer("/number"), Some(&json!(1)));
    assert_eq!(request.pointer("/report/request/name"), Some(&json!("login")));
    assert_eq!(request.pointer("/report/request/object/stringData/password"), Some(&json!("***")));
    assert!(!received.contains("hunter2hunter2") && !received.contains("aHVudGVyMmh1bnRlcjI"), "{received}");
}

#[test]
fn requests_and_fakes_are_shown_in_a_browser() {
    if !has_packages() {
        return;
    }
    let Some(chromium) = chromium() else { return };
    let fakes = root().join("report/example/fakes.yaml");
    let mut server = Server::start(&["--fakes".as_ref(), fakes.as_ref()]);
    let link = server.link();
    let kubeconfig = fs::read_to_string(server.folder.path().join("kubeconfig")).unwrap();
    let kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).unwrap();
    let text = |path: &str| kubeconfig.pointer(path).and_then(Value::as_str).unwrap();
    let authority = STANDARD.decode(text("/clusters/0/cluster/certificate-authority-data")).unwrap();
    let connection = json!({
        "link": link, "url": server.url, "token": text("/users/0/user/token"),
        "authority": String::from_utf8(authority).unwrap(),
    });
    let file = server.folder.path().join("server.json");
    fs::write(&file, connection.to_string()).unwrap();
    node(&[&root().join("report/test/live.mjs"), &file, &root().join("target/report")], Some(&chromium));
}
