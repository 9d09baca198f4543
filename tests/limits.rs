//! Tests limits on the memory and the connection slots that clients of `admit serve` can use.

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use reqwest::{Body, Client, Response, StatusCode};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::task::JoinSet;

/// The path of `ControllerRevision`s. Their data can have any size.
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const MEGABYTE: usize = 1 << 20;

/// Half of the time after which the server closes the connection of an idle client.
const SOON: Duration = Duration::from_secs(16);

/// A running `admit serve`. It is killed on drop.
struct Server {
    process: Child,
    url: String,
    token: String,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        Self::with(&[])
    }

    fn with(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let mut process = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["serve", "--kubeconfig-out"])
            .arg(&kubeconfig)
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("admit serve: ").unwrap().to_owned();
        let text = fs::read_to_string(kubeconfig).unwrap();
        let token = text.lines().find_map(|line| line.trim().strip_prefix("token: ")).unwrap().to_owned();
        Self { process, url, token, _folder: folder }
    }

    fn address(&self) -> SocketAddr {
        self.url.strip_prefix("https://").unwrap().parse().unwrap()
    }

    fn administrator(&self) -> Client {
        client(&self.token)
    }

    /// Creates a `ControllerRevision` with this many bytes of data.
    async fn create(&self, name: &str, bytes: usize) {
        let object =
            json!({"metadata": {"name": name}, "revision": 1, "data": {"k": "x".repeat(bytes)}}).to_string();
        let request = self.administrator().post(format!("{}{REVISIONS}", self.url)).body(object);
        assert_eq!(request.send().await.unwrap().status(), StatusCode::CREATED);
    }

    /// Returns the peak memory of the server, in MiB.
    fn peak(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() / 1024
    }

    /// Returns the increase of the peak memory over `before`, in MiB.
    ///
    /// The kernel counts pages per processor and adds them up only occasionally. An unchanged peak may therefore appear
    /// to be slightly lower.
    fn rise(&self, before: usize) -> usize {
        self.peak().saturating_sub(before)
    }
}

/// Returns a client with its own connection.
fn client(token: &str) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    Client::builder().danger_accept_invalid_certs(true).default_headers(headers).build().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a request body that stops after almost 3 MiB and never ends.
fn unfinished() -> Body {
    let pieces = stream::iter(0..47).map(|_| Ok::<_, std::io::Error>(vec![b' '; 64 << 10]));
    Body::wrap_stream(pieces.chain(stream::pending()))
}

#[tokio::test]
async fn the_bodies_of_strangers_are_not_kept() {
    let server = Server::start();
    let before = server.peak();
    let mut requests = JoinSet::new();
    for _ in 0..4 {
        let stranger = client("wrong");
        for _ in 0..100 {
            let request =
                stranger.post(format!("{}{REVISIONS}", server.url)).body(unfinished()).timeout(2 * SOON);
            requests.spawn(async move { request.send().await.unwrap().status() });
        }
    }
    while let Some(status) = requests.join_next().await {
        assert_eq!(status.unwrap(), StatusCode::UNAUTHORIZED);
    }
    let taken = server.rise(before);
    assert!(taken < 100, "{taken} MiB for 1,200 MB of bodies");
}

#[tokio::test]
async fn watchers_that_do_not_read_take_no_more_than_there_is_room_for() {
    let server = Server::start();
    for name in ["a", "b", "c", "d"] {
        server.create(name, 5 * MEGABYTE / 2).await;
    }
    let before = server.peak();
    let mut watches: Vec<Response> = Vec::new();
    let client = server.administrator();
    for _ in 0..100 {
        let watch = client.get(format!("{}{REVISIONS}?watch=true", server.url));
        watches.push(watch.send().await.unwrap());
    }
    // When some of them end, there is room for a client that reads.
    watches.truncate(80);
    let mut read =
        server.administrator().get(format!("{}{REVISIONS}?watch=true", server.url)).send().await.unwrap();
    let mut count = 0;
    while count < 10 * MEGABYTE {
        count += read.chunk().await.unwrap().unwrap().len();
    }
    let taken = server.rise(before);
    assert!(taken < 150, "{taken} MiB for 100 watchers of 10 MB");
}

#[tokio::test]
async fn there_are_as_many_watches_as_the_flag_allows() {
    let server = Server::with(&["--max-watches=2"]);
    let client = server.administrator();
    let mut watches = Vec::new();
    for expected in [StatusCode::OK, StatusCode::OK, StatusCode::TOO_MANY_REQUESTS] {
        let watch = client.get(format!("{}{REVISIONS}?watch=true", server.url)).send().await.unwrap();
        assert_eq!(watch.status(), expected);
        watches.push(watch);
    }
}

/// The test opens more connections than there are slots.
#[tokio::test]
async fn idle_connections_without_a_token_do_not_block_clients_with_one() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let server = Server::start();
    let _strangers: Vec<TcpStream> =
        (0..1_100).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let request = server.administrator().get(format!("{}/version", server.url)).timeout(SOON);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}
