//! The spans of requests and operations. They have no effect without a `tracing` subscriber.

use std::borrow::Cow;
use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use bytes::Bytes;
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderName, StatusCode, Version};
use kubernetes_admission::trace_context::SpanContexts;
use kubernetes_types::status::Status;
use tracing::field::Empty;
use tracing::{Span, info, info_span};

use super::audit_log;
use super::authentication::Claim;
use super::request_info::{RequestInfo, RequestObject};
use crate::registry::request::Verb;

/// The maximum length of a recorded header in bytes. Upstream limits only `User-Agent`.
///
/// Source: apiserver pkg/endpoints/handlers/helpers.go, `maxUserAgentLength`.
const MAX_HEADER_LENGTH: usize = 1024;

/// The default port. Spans do not record it.
const HTTPS_PORT: u16 = 443;

/// The groups whose requests continue the trace of the client.
///
/// Source: apiserver pkg/endpoints/filters/traces.go, `notSystemPrivilegedGroup`.
const TRUSTED_GROUPS: [&str; 2] = ["system:masters", "system:monitoring"];

/// Returns the span of a request from an authenticated user.
///
/// `tracing-opentelemetry` sets the name and the kind of the span from the fields `otel.name` and `otel.kind`.
///
/// Source: apiserver pkg/endpoints/filters/traces.go, `WithTracing`.
pub(crate) fn request(
    parts: &Parts,
    info: &RequestInfo,
    audit_id: &str,
    contexts: Option<&dyn SpanContexts>,
) -> Span {
    let Some(Claim { user, .. }) = parts.extensions.get::<Claim>() else { return Span::none() };
    let span = info_span!(
        "KubernetesAPI",
        otel.name = name(parts, info),
        otel.kind = "server",
        "audit-id" = &*truncated(audit_id),
        "client.address" = client(parts),
        "http.request.method" = parts.method.as_str(),
        "http.response.status_code" = Empty,
        "http.target" = parts.uri.path_and_query().map_or("", |target| target.as_str()),
        "network.peer.address" = Empty,
        "network.peer.port" = Empty,
        "network.protocol.version" = protocol(parts.version).trim_start_matches("HTTP/"),
        "server.address" = Empty,
        "server.port" = Empty,
        "url.path" = parts.uri.path(),
        "url.scheme" = "https",
        "user_agent.original" = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    if let Some(host) = host(parts) {
        span.record("server.address", host.host());
        span.record("server.port", host.port_u16().filter(|port| *port != HTTPS_PORT));
    }
    let user_agent = header(parts, http::header::USER_AGENT);
    if !user_agent.is_empty() {
        span.record("user_agent.original", &*truncated(user_agent));
    }
    if let Some(ConnectInfo(peer)) = parts.extensions.get::<ConnectInfo<SocketAddr>>() {
        span.record("network.peer.address", tracing::field::display(peer.ip()));
        span.record("network.peer.port", peer.port());
    }
    if let Some(contexts) = contexts {
        let is_trusted = user.groups.iter().any(|group| TRUSTED_GROUPS.contains(&group.as_str()));
        contexts.begin(&span, &parts.headers, is_trusted);
    }
    span
}

/// Records the response status.
pub(crate) fn answered(request: &Span, status: StatusCode) {
    request.record("http.response.status_code", status.as_u16());
}

/// Returns the name of the span of a request.
///
/// Source: apiserver pkg/endpoints/filters/traces.go, `getSpanNameFromRequestInfo`.
fn name(parts: &Parts, info: &RequestInfo) -> String {
    let mut name = parts.method.to_string();
    let Some(object) = &info.object else { return name };
    name.push_str(if object.group.is_empty() { " /api" } else { " /apis/" });
    name.push_str(&object.group);
    let namespace = if object.namespace.is_empty() { "" } else { "/namespaces/{:namespace}" };
    let object_name = if object.name.is_empty() { "" } else { "/{:name}" };
    let subresource = if object.subresource.is_empty() { "" } else { "/" };
    for part in [
        "/",
        &object.version,
        namespace,
        "/",
        &object.resource,
        object_name,
        subresource,
        &object.subresource,
    ] {
        name.push_str(part);
    }
    name
}

/// Returns the span of an operation that may call webhooks. As in upstream, the span is disabled for connections.
///
/// Source: apiserver `pkg/endpoints/handlers/{create,update,patch,delete}.go` and `trace_util.go`, `traceFields`.
pub(crate) fn operation(verb: Verb, parts: &Parts, info: &RequestInfo, audit_id: &str) -> Span {
    macro_rules! operation {
        ($name:literal) => {{
            let of = |part: fn(&RequestObject) -> &String| {
                info.object.as_ref().map(part).map_or("", String::as_str)
            };
            info_span!(
                $name,
                accept = &*truncated(header(parts, http::header::ACCEPT)),
                "audit-id" = &*truncated(audit_id),
                client = client(parts),
                "api-group" = of(|object| &object.group),
                "api-version" = of(|object| &object.version),
                name = of(|object| &object.name),
                subresource = of(|object| &object.subresource),
                namespace = of(|object| &object.namespace),
                protocol = protocol(parts.version),
                resource = of(|object| &object.resource),
                scope = scope(info),
                url = info.path,
                "user-agent" = &*user_agent(parts),
                verb = parts.method.as_str(),
            )
        }};
    }
    match verb {
        Verb::Create => operation!("Create"),
        Verb::Update => operation!("Update"),
        Verb::Patch => operation!("Patch"),
        Verb::Delete | Verb::DeleteCollection => operation!("Delete"),
        Verb::Get | Verb::List | Verb::Connect => Span::none(),
    }
}

/// Records an event for reading the body of a request and returns `body` unchanged.
///
/// Source: apiserver `pkg/endpoints/handlers/{create,update,patch,delete}.go`.
pub(crate) fn read(body: Result<Bytes, Box<Status>>) -> Result<Bytes, Box<Status>> {
    match &body {
        Ok(body) => info!(len = body.len(), "limitedReadBody succeeded"),
        Err(status) => info!(len = 0, err = status.message, "limitedReadBody failed"),
    }
    body
}

/// Returns the host that the client requested.
fn host(parts: &Parts) -> Option<Authority> {
    parts.uri.authority().cloned().or_else(|| header(parts, http::header::HOST).parse().ok())
}

fn header(parts: &Parts, name: HeaderName) -> &str {
    parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn client(parts: &Parts) -> String {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    audit_log::source_ips(&parts.headers, peer)
        .first()
        .map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    }
}

/// Returns the scope of a request; empty for a non-resource path.
///
/// Source: apiserver pkg/endpoints/metrics/metrics.go, `CleanScope`.
fn scope(info: &RequestInfo) -> &'static str {
    match &info.object {
        Some(object) if !object.name.is_empty() || info.verb == "create" => "resource",
        Some(object) if !object.namespace.is_empty() => "namespace",
        Some(_) => "cluster",
        None => "",
    }
}

/// Returns the `User-Agent` header, truncated to the maximum length; `unknown` if absent.
///
/// Source: apiserver pkg/endpoints/handlers/helpers.go, `lazyTruncatedUserAgent`.
fn user_agent(parts: &Parts) -> Cow<'_, str> {
    match header(parts, http::header::USER_AGENT) {
        "" => "unknown".into(),
        name => truncated(name),
    }
}

/// Returns a header value truncated to the maximum length. Header values must be ASCII.
fn truncated(text: &str) -> Cow<'_, str> {
    match text.get(..MAX_HEADER_LENGTH) {
        Some(kept) if kept.len() < text.len() => format!("{kept}...TRUNCATED").into(),
        _ => text.into(),
    }
}
