//! Checks that a collector receives equal spans from admit and from kube-apiserver.
//!
//! `otlp.txt` contains the spans of kube-apiserver (`UPDATE_EXPECT=1` records them again).

#![expect(clippy::unwrap_used, reason = "what a test does not expect may panic")]

#[path = "helpers/machine.rs"]
mod machine;
#[path = "helpers/serve.rs"]
mod serve;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::iter::successors;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admit_testing::envtest::{Envtest, Settings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certs::CertificateAuthority;
use expect_test::expect_file;
use fake_webhooks::{Fake, FakeWebhook};
use http::Request;
use kube::client::Body;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;

use self::serve::Serve;

/// The maximum time to wait for spans. kube-apiserver sends them every five seconds.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The spans of kube-apiserver to compare, in addition to the spans of requests. admit has equal spans.
///
/// Spans of filters and storage are not compared.
const COMPARED: [&str; 7] =
    ["Create", "Update", "Patch", "Delete", "Call mutating webhook", "Call validating webhook", "HTTP POST"];

/// The ID of the trace to which the clients' requests belong.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        let resources = request.into_inner().resource_spans;
        let scopes = resources.into_iter().flat_map(|resource| resource.scope_spans);
        self.0.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
        Ok(tonic::Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// Starts the collector. Also returns its address, for `endpoint` in the tracing configuration.
    async fn start() -> (Self, String) {
        let collector = Self::default();
        let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
        let router = axum::Router::new().route_service(path, TraceServiceServer::new(collector.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async { axum::serve(listener, router).await });
        (collector, address)
    }

    /// Returns the spans of the request with this `Audit-ID`, once all spans of both webhook calls have arrived.
    ///
    /// The span of the request is the last one to end.
    async fn of_request(&self, audit_id: &str) -> Vec<Span> {
        let is_root = |span: &&Span| {
            span.kind == SpanKind::Server as i32
                && attributes(&span.attributes).get("audit-id").is_some_and(|id| id == audit_id)
        };
        let started = Instant::now();
        loop {
            let mut spans = self.0.lock().unwrap().clone();
            if let Some(root) = spans.iter().find(is_root).cloned() {
                spans.retain(|span| span.trace_id == root.trace_id);
                let is_below =
                    |span: &Span| ancestors(span, &spans).any(|above| above.span_id == root.span_id);
                let below: Vec<Span> = spans.iter().filter(|span| is_below(span)).cloned().collect();
                if below.iter().filter(|span| span.name == "HTTP POST").count() == 2 {
                    return below;
                }
            }
            assert!(started.elapsed() < TIMEOUT, "{audit_id}: there are only {} spans", spans.len());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn shown(value: &AnyValue) -> String {
    match value.value.as_ref() {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => panic!("an attribute is a text or a number: {other:?}"),
    }
}

fn attributes(of: &[KeyValue]) -> BTreeMap<String, String> {
    of.iter().map(|of| (of.key.clone(), shown(of.value.as_ref().unwrap()))).collect()
}

/// Returns a span and its ancestors, the innermost first.
fn ancestors<'a>(span: &'a Span, spans: &'a [Span]) -> impl Iterator<Item = &'a Span> {
    successors(Some(span), |span| spans.iter().find(|other| other.span_id == span.parent_span_id))
}

/// Formats a span without values that vary or that admit omits.
fn said(span: &Span) -> String {
    let written = |of: &[KeyValue]| {
        let mut text = String::new();
        for (name, value) in attributes(of) {
            let value = match name.as_str() {
                "http.request.body.size" | "http.response.body.size" => continue,
                "UID" => "UID",
                "network.peer.port" | "server.port" => "PORT",
                "url.full" => "URL",
                _ => &value,
            };
            let _ = write!(text, " {name}={value:?}");
        }
        text
    };
    let kind = SpanKind::try_from(span.kind).unwrap().as_str_name();
    let status = span.status.as_ref().map_or(0, |status| status.code);
    let mut text = format!("{:?} {kind} status={status}{}", span.name, written(&span.attributes));
    for link in &span.links {
        let _ = write!(text, " link={}", hex(&link.trace_id));
    }
    for event in &span.events {
        let _ = write!(text, "\n    - {}{}", event.name, written(&event.attributes));
    }
    text
}

/// Formats the spans of a request that are compared, each with its depth.
fn tree(spans: &[Span]) -> String {
    let is_compared =
        |span: &&Span| span.kind == SpanKind::Server as i32 || COMPARED.contains(&span.name.as_str());
    let mut compared: Vec<&Span> = spans.iter().filter(is_compared).collect();
    compared.sort_by_key(|span| span.start_time_unix_nano);
    let depth = |span: &Span| ancestors(span, spans).filter(is_compared).count();
    compared.iter().fold(String::new(), |text, span| format!("{text}{} {}\n", depth(span), said(span)))
}

/// Returns a `traceparent` in which the name of the span replaces its ID.
fn called_in(parent: &str, spans: &[Span]) -> String {
    let parts: Vec<&str> = parent.split('-').collect();
    let [version, trace, span, flags] = parts[..] else { panic!("{parent}") };
    let name = spans.iter().find(|exported| hex(&exported.span_id) == span);
    let name = name.map_or("not exported", |span| span.name.as_str());
    let trace = if trace == TRACE { trace } else { "another" };
    format!("{version}-{trace}-({name})-{flags}")
}

struct Requests<'a> {
    client: &'a kube::Client,
    webhooks: [FakeWebhook; 2],
    collector: &'a Collector,
}

impl Requests<'_> {
    /// Sends a request, and formats its spans and the trace headers of its webhook calls.
    async fn shown(&self, audit_id: &str, parent: &str, request: (&str, &str, Option<Value>)) -> String {
        let before = self.webhooks.each_ref().map(|webhook| webhook.journal().len());
        send(self.client, audit_id, parent, request).await;
        let mut text = format!("{audit_id}\n");
        let spans =
            if parent.ends_with("-00") { Vec::new() } else { self.collector.of_request(audit_id).await };
        text += &tree(&spans);
        for (webhook, before) in self.webhooks.iter().zip(before) {
            let calls = webhook.journal().split_off(before);
            let [call] = calls.as_slice() else { panic!("{audit_id}: {} calls", calls.len()) };
            let mut headers: Vec<_> =
                call.headers.iter().filter(|(name, _)| name.starts_with("trace")).collect();
            headers.sort();
            for (name, value) in headers {
                let value = if name == "traceparent" { called_in(value, &spans) } else { value.clone() };
                let _ = writeln!(text, "webhook gets {name}: {value}");
            }
        }
        text
    }
}

/// Returns the spans of requests by an administrator, and by a user with the same permissions.
async fn spans(admin: &kube::Client, jane: &kube::Client, collector: &Collector) -> String {
    let start = || FakeWebhook::start(Fake::default());
    let webhooks = [start().await.unwrap(), start().await.unwrap()];
    for (kind, webhook) in ["Mutating", "Validating"].iter().zip(&webhooks) {
        let path =
            format!("/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations", kind.to_lowercase());
        send(admin, "prepared", "", ("POST", &path, Some(configuration(kind, webhook)))).await;
    }
    let binding = json!({
        "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    send(admin, "prepared", "", ("POST", bindings, Some(binding))).await;
    let maps = "/api/v1/namespaces/kube-public/configmaps";
    let traced = "/api/v1/namespaces/kube-public/configmaps/traced";
    let object = json!({"metadata": {"name": "traced"}});
    let mut probes = 0;
    while webhooks.iter().any(|webhook| webhook.journal().is_empty()) {
        assert!(probes < 100, "the webhooks are not called");
        probes += 1;
        send(admin, "prepared", "", ("POST", &format!("{maps}?dryRun=All"), Some(object.clone()))).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let parent = |flags: &str| format!("00-{TRACE}-b7ad6b7169203331-{flags}");
    let sampled = parent("01");
    let requests = Requests { client: admin, webhooks, collector };
    let mut text = String::new();
    for (audit_id, parent, request) in [
        ("create", &sampled, ("POST", maps, Some(object.clone()))),
        (
            "update-without-parent",
            &String::new(),
            ("PUT", traced, Some(json!({"metadata": {"name": "traced"}, "data": {"a": "b"}}))),
        ),
        ("patch-not-sampled", &parent("00"), ("PATCH", traced, Some(json!({"data": {"a": "c"}})))),
        ("patch", &sampled, ("PATCH", traced, Some(json!({"data": {"a": "d"}})))),
    ] {
        text += &requests.shown(audit_id, parent, request).await;
    }
    let requests = Requests { client: jane, ..requests };
    text + &requests.shown("delete-by-jane", &sampled, ("DELETE", traced, None)).await
}

fn configuration(kind: &str, webhook: &FakeWebhook) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": "traced"},
        "webhooks": [{
            "name": "traced.example.com",
            "clientConfig": {
                "url": format!("https://127.0.0.1:{}/", webhook.address().port()),
                "caBundle": STANDARD.encode(webhook.ca_bundle()),
            },
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

async fn send(
    client: &kube::Client,
    audit_id: &str,
    parent: &str,
    (method, path, body): (&str, &str, Option<Value>),
) {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .header("audit-id", audit_id)
        .header("user-agent", "otlp");
    if !parent.is_empty() {
        request = request.header("traceparent", parent).header("tracestate", "a=1");
    }
    let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
    let answered = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    assert!(answered.status().is_success(), "{method} {path}: {}", answered.status());
}

/// The tracing configuration, and the credentials of another user.
struct Files {
    folder: tempfile::TempDir,
    authority: CertificateAuthority,
}

impl Files {
    fn new(endpoint: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = CertificateAuthority::new("clients").unwrap();
        let configuration = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: {endpoint}\n\
             samplingRatePerMillion: 1000000\n"
        );
        std::fs::write(folder.path().join("tracing.yaml"), configuration).unwrap();
        std::fs::write(folder.path().join("clients.pem"), authority.certificate_pem()).unwrap();
        Self { folder, authority }
    }

    fn flags(&self) -> [String; 2] {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        [
            format!("--tracing-config-file={}", path("tracing.yaml")),
            format!("--client-ca-file={}", path("clients.pem")),
        ]
    }

    /// Returns a client for the server in `config` that authenticates as `jane`.
    fn jane(&self, config: &kube::Config) -> kube::Client {
        let leaf = self.authority.issue_for_client("jane").unwrap();
        let mut config = config.clone();
        config.auth_info = kube::config::AuthInfo {
            client_certificate_data: Some(STANDARD.encode(&leaf.certificate_pem)),
            client_key_data: Some(STANDARD.encode(&leaf.key_pem).into()),
            ..kube::config::AuthInfo::default()
        };
        kube::Client::try_from(config).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn admit_exports_the_spans_of_requests() {
    let (collector, endpoint) = Collector::start().await;
    let files = Files::new(&endpoint);
    let flags = files.flags();
    let folder = files.folder.path();
    let (_server, client) = Serve::start(folder, &[&*flags[0], &*flags[1]]).await;
    let config = serve::config(folder).await;
    let spans = spans(&client, &files.jane(&config), &collector).await;
    assert_eq!(spans, include_str!("otlp.txt"));
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_exports_the_same() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let (collector, endpoint) = Collector::start().await;
    let files = Files::new(&endpoint);
    let mut settings = Settings::default();
    settings.flags = files.flags().to_vec();
    let envtest = Envtest::start(settings, |_: &str| ()).await.unwrap();
    let client = kube::Client::try_from(envtest.config().clone()).unwrap();
    let spans = spans(&client, &files.jane(envtest.config()), &collector).await;
    expect_file!["otlp.txt"].assert_eq(&spans);
}
