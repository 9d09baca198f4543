//! Runs the load on the server, and the well-behaved client.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Fake, FakeWebhook};
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::server::Attacked;
use super::{Soak, SoakError, frames};
use crate::transport::{Message, send};

/// The results of a load in an interval.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Tally {
    /// The number of watchers that are connected at the end.
    pub watching: usize,
    /// The number of watches that the server ended.
    pub cut_off: usize,
    /// The number of idle clients that are connected at the end.
    pub idle: usize,
    /// The number of idle clients that the server disconnected.
    pub closed: usize,
    /// The number of large objects that were written.
    pub written: usize,
    /// The number of large objects that the server rejected.
    pub refused: usize,
    /// The number of objects that the server stored for the clients that fill the storage.
    pub kept: usize,
    /// The number of objects with many small values that the server accepted or rejected.
    pub tangled: usize,
    /// The number of HTTP/2 frames that the server accepted; for a flood, the number of batches.
    pub frames: usize,
    /// The number of reviews that hostile webhooks received.
    pub reviews: usize,
    /// The response times of the well-behaved client.
    pub baseline: Vec<Duration>,
    /// The errors of the well-behaved client.
    pub failures: Vec<String>,
}

impl Tally {
    /// Returns the given percentile of the response times.
    pub fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.baseline.len() * percent).div_ceil(100);
        self.baseline.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Adds the results of a later interval.
    pub(super) fn add(&mut self, later: &Self) {
        self.watching = self.watching.max(later.watching);
        self.idle = self.idle.max(later.idle);
        self.cut_off += later.cut_off;
        self.closed += later.closed;
        self.written += later.written;
        self.refused += later.refused;
        self.kept += later.kept;
        self.tangled += later.tangled;
        self.frames += later.frames;
        self.reviews += later.reviews;
        self.baseline.extend(&later.baseline);
        self.baseline.sort_unstable();
        self.failures.extend(later.failures.iter().cloned());
    }

    /// Returns the problems: slow or failed requests of the well-behaved client, or a load that did not run.
    pub(super) fn complaints(&self, soak: &Soak, longest: Duration) -> Vec<String> {
        let mut complaints = Vec::new();
        let p99 = self.percentile(99);
        if p99 > longest {
            complaints.push(format!("99 of 100 answers took up to {} ms", p99.as_millis()));
        }
        let (answers, failures) = (self.baseline.len(), self.failures.len());
        if answers == 0 || failures * 100 > answers {
            complaints
                .push(format!("the well-behaved client has {answers} answers, and {failures} times none"));
        }
        for (what, asked, happened) in [
            ("watcher watched", soak.watchers, self.watching),
            ("peer connected", soak.idle, self.idle),
            ("large object was written", soak.writers, self.written),
            ("object stayed in the storage", 1, self.kept),
            ("object of many small values was answered", 1, self.tangled),
            ("HTTP/2 frame was accepted", 1, self.frames),
            ("hostile webhook was called", 1, self.reviews),
        ] {
            if asked > 0 && happened == 0 {
                complaints.push(format!("no {what}: there was no attack of that kind"));
            }
        }
        complaints
    }
}

/// The running load. It stops on drop.
pub(super) struct Load {
    counts: Arc<Counts>,
    tasks: JoinSet<()>,
    hostile: Vec<FakeWebhook>,
    _baseline: IdleBaseline,
}

/// The running well-behaved client.
///
/// It runs on its own thread, so that its response times do not include the work of the load.
struct IdleBaseline(CancellationToken);

impl IdleBaseline {
    fn begin(kubeconfig: PathBuf, counts: Arc<Counts>) -> Result<Self, SoakError> {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| SoakError::Command(format!("a runtime: {error}")))?;
        std::thread::spawn(move || {
            runtime.block_on(async {
                let behaving = async {
                    match client(&kubeconfig).await {
                        Ok(client) => behaves(client, &counts).await,
                        Err(error) => counts.tell(Duration::ZERO, Some(error.to_string())),
                    }
                };
                stopped.run_until_cancelled(behaving).await;
            });
        });
        Ok(Self(stop))
    }
}

impl Drop for IdleBaseline {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[derive(Default)]
struct Counts {
    watching: AtomicUsize,
    cut_off: AtomicUsize,
    idle: AtomicUsize,
    closed: AtomicUsize,
    written: AtomicUsize,
    refused: AtomicUsize,
    kept: AtomicUsize,
    tangled: AtomicUsize,
    frames: Arc<AtomicUsize>,
    reviewed: AtomicUsize,
    baseline: Mutex<(Vec<Duration>, Vec<String>)>,
}

impl Counts {
    /// Records the response time of one request of the well-behaved client, or its failure.
    fn tell(&self, took: Duration, failure: Option<String>) {
        let mut baseline = self.baseline.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            None => baseline.0.push(took),
            Some(failure) => baseline.1.push(failure),
        }
    }
}

/// The collection of objects that can have any size.
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
/// The collection of objects that are kept. Lists and watches of other objects do not include them.
const KEPT_REVISIONS: &str = "/apis/apps/v1/namespaces/kube-public/controllerrevisions";
/// The size of large objects, in bytes: slightly below the size limit of etcd.
const LARGE: usize = 1_400_000;
/// The pause between two requests of the well-behaved client.
const PAUSE: Duration = Duration::from_millis(100);
/// The time for which a client stops reading before it checks whether the server has disconnected it.
const STALL: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_secs(1);
/// The delay before a disconnected watcher reconnects.
const RETURN: Duration = Duration::from_secs(1);
/// The request timeout of the well-behaved client.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The size, in bytes, of each object that fills the storage.
const KEPT: usize = 100_000;
/// The number of clients that fill the storage.
const FILLERS: usize = 4;
/// The number of clients that request lists without reading the responses.
const LISTERS: usize = 20;
/// The number of clients that send objects with many small values.
const TANGLERS: usize = 4;
/// The faults of the hostile webhooks: no response, slow responses, too much data, much data, and invalid data.
const HOSTILE: [&str; 6] = ["H01", "H02", "H20-padding", "H20-patch", "E15-many", "M22"];

impl Load {
    pub(super) async fn begin(soak: &Soak, server: &Attacked) -> Result<Self, SoakError> {
        let kubeconfig = server.kubeconfig();
        let client = client(&kubeconfig).await?;
        let counts = Arc::<Counts>::default();
        let baseline = IdleBaseline::begin(kubeconfig.clone(), Arc::clone(&counts))?;
        let mut load = Self { counts, tasks: JoinSet::new(), hostile: Vec::new(), _baseline: baseline };
        let mut webhooks = Vec::new();
        for fault in HOSTILE {
            let behavior = serde_json::from_value(json!({"fault": fault})).unwrap_or_default();
            let fake = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await?;
            webhooks.push(webhook(&fault.to_lowercase(), &fake));
            load.hostile.push(fake);
        }
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "hostile"}, "webhooks": webhooks,
        });
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        let made = send(&client, Message::new(Method::POST, path, Some(configuration))).await;
        let made = made.map_err(crate::server_error::ServerError::from)?;
        if !made.is_success() {
            return Err(SoakError::Command(format!("the hostile webhooks: {}", made.body)));
        }
        let config = config(&kubeconfig).await?;
        let address = format!(
            "{}:{}",
            config.cluster_url.host().unwrap_or_default(),
            config.cluster_url.port_u16().unwrap_or(443)
        );
        for number in 0..soak.writers {
            load.tasks.spawn(writes(client.clone(), number, Arc::clone(&load.counts)));
        }
        for _ in 0..soak.watchers {
            load.tasks.spawn(watches(config.clone(), Arc::clone(&load.counts)));
        }
        for _ in 0..soak.idle {
            load.tasks.spawn(idles(address.clone(), Arc::clone(&load.counts)));
        }
        for fault in HOSTILE {
            load.tasks.spawn(provokes(client.clone(), fault, Arc::clone(&load.counts)));
        }
        let names = Arc::<AtomicUsize>::default();
        for _ in 0..FILLERS {
            load.tasks.spawn(fills(client.clone(), Arc::clone(&names), Arc::clone(&load.counts)));
        }
        for _ in 0..LISTERS {
            load.tasks.spawn(lists(config.clone()));
        }
        for attack in frames::ATTACKS {
            load.tasks.spawn(frames::attacks(
                config.clone(),
                attack,
                REVISIONS,
                Arc::clone(&load.counts.frames),
            ));
        }
        let tangled = tangled();
        for _ in 0..TANGLERS {
            load.tasks.spawn(tangles(client.clone(), tangled.clone(), Arc::clone(&load.counts)));
        }
        Ok(load)
    }

    /// Returns the results since the last call of this function.
    pub(super) fn take(&self) -> Tally {
        let counts = &self.counts;
        let since = |count: &AtomicUsize| count.swap(0, Ordering::Relaxed);
        let (mut baseline, failures) =
            std::mem::take(&mut *counts.baseline.lock().unwrap_or_else(PoisonError::into_inner));
        baseline.sort_unstable();
        Tally {
            watching: counts.watching.load(Ordering::Relaxed),
            cut_off: since(&counts.cut_off),
            idle: counts.idle.load(Ordering::Relaxed),
            closed: since(&counts.closed),
            written: since(&counts.written),
            refused: since(&counts.refused),
            kept: since(&counts.kept),
            tangled: since(&counts.tangled),
            frames: since(&counts.frames),
            reviews: since(&counts.reviewed),
            baseline,
            failures,
        }
    }

    pub(super) async fn end(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn config(kubeconfig: &PathBuf) -> Result<Config, SoakError> {
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &options).await?;
    // Hostile clients do not back off when the server answers that there are too many requests.
    config.default_retry = false;
    Ok(config)
}

async fn client(kubeconfig: &PathBuf) -> Result<Client, SoakError> {
    Ok(Client::try_from(config(kubeconfig).await?)?)
}

fn webhook(name: &str, fake: &FakeWebhook) -> Value {
    json!({
        "name": format!("{name}.example.com"),
        "clientConfig": {"url": fake.url(), "caBundle": STANDARD.encode(fake.ca_bundle())},
        "rules": [{
            "operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["controllerrevisions"],
        }],
        "objectSelector": {"matchLabels": {"hostile": name}},
        "failurePolicy": "Ignore", "timeoutSeconds": 2, "sideEffects": "None", "admissionReviewVersions": ["v1"],
    })
}

fn revision(name: &str, labels: &Value, bytes: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name, "labels": labels},
        "revision": 1, "data": {"text": "x".repeat(bytes)},
    })
}

/// Sends JSON by POST or PUT. Returns whether the server accepted it; `None` if the server did not answer.
async fn write(client: &Client, method: Method, path: &str, body: Vec<u8>) -> Option<bool> {
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    let answer = client.send(request.body(Body::from(body)).ok()?).await.ok()?;
    let status = answer.status();
    // Reads the body to its end, and discards it.
    let mut body = answer.into_body();
    while let Some(piece) = body.frame().await {
        piece.ok()?;
    }
    Some(status.is_success())
}

/// Writes a large object repeatedly.
async fn writes(client: Client, number: usize, counts: Arc<Counts>) {
    let name = format!("large-{number}");
    let (path, mut exists) = (format!("{REVISIONS}/{name}"), false);
    let mut object = revision(&name, &json!({"round": "00000000"}), LARGE).to_string();
    for round in 0_u32.. {
        let label = format!("{round:08}");
        if let Some(place) = object.find("\"round\":\"").map(|start| start + 9) {
            object.replace_range(place..place + label.len(), &label);
        }
        let (method, path) = if exists { (Method::PUT, path.as_str()) } else { (Method::POST, REVISIONS) };
        let is_written = write(&client, method, path, object.clone().into_bytes()).await == Some(true);
        exists |= is_written;
        let count = if is_written { &counts.written } else { &counts.refused };
        count.fetch_add(1, Ordering::Relaxed);
        if !is_written {
            sleep(PAUSE).await;
        }
    }
}

/// Creates objects repeatedly, even after the storage is full.
async fn fills(client: Client, names: Arc<AtomicUsize>, counts: Arc<Counts>) {
    loop {
        let name = format!("kept-{}", names.fetch_add(1, Ordering::Relaxed));
        let object = revision(&name, &json!({}), KEPT).to_string();
        if write(&client, Method::POST, KEPT_REVISIONS, object.into_bytes()).await == Some(true) {
            counts.kept.fetch_add(1, Ordering::Relaxed);
        } else {
            sleep(PAUSE).await;
        }
    }
}

/// Repeatedly lists all objects without reading the response.
async fn lists(config: Config) {
    loop {
        if let (Ok(client), Ok(request)) =
            (Client::try_from(config.clone()), Request::get(REVISIONS).body(Body::empty()))
            && let Ok(answer) = client.send(request).await
            && answer.status().is_success()
        {
            sleep(STALL).await;
        }
        sleep(RETURN).await;
    }
}

/// Returns an object with many small values. In memory, it needs a hundred times its size, almost the memory limit.
fn tangled() -> Vec<u8> {
    let items = vec![r#"{"a":0}"#; 30_000].join(",");
    format!(r#"{{"metadata":{{"name":"tangled"}},"revision":1,"data":{{}},"tangle":[{items}]}}"#).into_bytes()
}

/// Repeatedly sends an object with many small values.
async fn tangles(client: Client, object: Vec<u8>, counts: Arc<Counts>) {
    let path = format!("{REVISIONS}?dryRun=All");
    loop {
        if write(&client, Method::POST, &path, object.clone()).await.is_some() {
            counts.tangled.fetch_add(1, Ordering::Relaxed);
        }
        sleep(PAUSE).await;
    }
}

/// Repeatedly watches all objects without reading the events.
async fn watches(config: Config, counts: Arc<Counts>) {
    loop {
        let request = Request::get(format!("{REVISIONS}?watch=true")).body(Body::empty());
        let answer = match (Client::try_from(config.clone()), request) {
            (Ok(client), Ok(request)) => client.send(request).await,
            _ => return,
        };
        if let Ok(answer) = answer
            && answer.status().is_success()
        {
            counts.watching.fetch_add(1, Ordering::Relaxed);
            // It receives only what fits in the buffers of the kernel and of the client.
            sleep(STALL).await;
            let mut body = answer.into_body();
            let rest = async { while let Some(Ok(_)) = body.frame().await {} };
            if timeout(LOOK, rest).await.is_ok() {
                counts.cut_off.fetch_add(1, Ordering::Relaxed);
            }
            counts.watching.fetch_sub(1, Ordering::Relaxed);
        }
        sleep(RETURN).await;
    }
}

/// Repeatedly connects without sending anything.
async fn idles(address: String, counts: Arc<Counts>) {
    loop {
        if let Ok(mut peer) = TcpStream::connect(&address).await {
            counts.idle.fetch_add(1, Ordering::Relaxed);
            // Waits until the server closes the connection.
            while matches!(peer.read(&mut [0; 64]).await, Ok(read) if read > 0) {}
            counts.idle.fetch_sub(1, Ordering::Relaxed);
            counts.closed.fetch_add(1, Ordering::Relaxed);
        }
        sleep(RETURN).await;
    }
}

/// Makes the server call a hostile webhook repeatedly.
async fn provokes(client: Client, fault: &str, counts: Arc<Counts>) {
    let labels = json!({"hostile": fault.to_lowercase()});
    let object = revision("provoking", &labels, 1000);
    let path = format!("{REVISIONS}?dryRun=All");
    loop {
        let answer = send(&client, Message::new(Method::POST, path.as_str(), Some(object.clone()))).await;
        if answer.is_ok_and(|answer| answer.is_success()) {
            counts.reviewed.fetch_add(1, Ordering::Relaxed);
        }
        sleep(PAUSE).await;
    }
}

/// Reads and creates small objects, as an ordinary client does.
async fn behaves(client: Client, counts: &Counts) {
    for round in 0.. {
        let began = Instant::now();
        let message = if round % 2 == 0 {
            Message::new(Method::GET, "/api/v1/namespaces/default", None)
        } else {
            let object = revision("baseline", &json!({}), 100);
            Message::new(Method::POST, format!("{REVISIONS}?dryRun=All"), Some(object))
        };
        let failure = match timeout(TIMEOUT, send(&client, message)).await {
            Ok(Ok(answer)) if answer.is_success() => None,
            Ok(Ok(answer)) => Some(answer.body.to_string()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("none after {} s", TIMEOUT.as_secs())),
        };
        counts.tell(began.elapsed(), failure);
        sleep(PAUSE).await;
    }
}
