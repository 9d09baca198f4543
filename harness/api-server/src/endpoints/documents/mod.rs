//! Responds to requests that are not for objects: discovery, version, health, metrics, and OpenAPI.

mod z_pages;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use kubernetes_types::status::Status;
use serde_json::{Value, json};

pub(crate) use self::z_pages::ZPage;
use super::accept::{MediaType, check_produced, negotiate_aggregated, negotiate_document};
use super::answer::{ResponseContent, add_cache_headers};
use super::context::Server;
use super::route::{Route, method_not_allowed};
use crate::apimachinery::off_thread;
use crate::apimachinery::query::Query;
use crate::endpoints::{health, index, openapi, openid};
use crate::kinds::discovery::Resources;

/// Returns the response to a request that is not for an object.
pub(crate) async fn answer(
    server: &Arc<Server>,
    resources: &Resources,
    route: Route,
    query: Query,
    parts: &Parts,
) -> Result<(ResponseContent, MediaType), Box<Status>> {
    if parts.method != Method::GET && is_only_read(&route, resources) {
        return Err(method_not_allowed());
    }
    let media_type = media_type(&route, resources, &query, &parts.headers)?;
    let answer = any(server, resources, route, query, parts).await?;
    Ok((answer, media_type))
}

/// Returns the encoding in which the server sends a document.
///
/// # Errors
/// Returns 406 for a media type in which kube-apiserver does not serve the document.
fn media_type(
    route: &Route,
    resources: &Resources,
    query: &Query,
    headers: &HeaderMap,
) -> Result<MediaType, Box<Status>> {
    let is_checked = match route {
        Route::CoreVersions | Route::Groups => {
            if let Some(media_type) = negotiate_aggregated(headers, query) {
                return Ok(media_type);
            }
            matches!(route, Route::CoreVersions)
        }
        Route::Group(_) => false,
        Route::Version(group, version) if resources.has_version(group, version) => {
            !resources.is_custom_group(group)
        }
        Route::ServerVersion => {
            check_produced(headers, &["application/json"])?;
            return Ok(MediaType::IndentedJson);
        }
        Route::Index
        | Route::Version(..)
        | Route::Health(_)
        | Route::Metrics
        | Route::Slis
        | Route::ZPage(_)
        | Route::OpenApi(_)
        | Route::OpenId(_)
        | Route::Object(_)
        | Route::Watch(_)
        | Route::NoSubresource(..)
        | Route::NotEstablished
        | Route::Remote
        | Route::NoResource
        | Route::NoPath => return Ok(MediaType::Json),
    };
    negotiate_document(headers, query, is_checked)
}

async fn any(
    server: &Arc<Server>,
    resources: &Resources,
    route: Route,
    query: Query,
    parts: &Parts,
) -> Result<ResponseContent, Box<Status>> {
    if let Route::OpenApi(path) = route {
        openapi_document(server, path, query, &parts.headers).await
    } else if let Route::OpenId(name) = route {
        let answer = openid::answer(&server.registry.tokens.issuer, name, &parts.method, &parts.headers);
        answer.map(|response| ResponseContent::Prepared(Box::new(response)))
    } else {
        document(server, resources, route, &query, &parts.headers)
    }
}

/// Returns whether the server rejects methods other than GET for this route.
///
/// The server ignores the method for lists of groups and for groups of custom resources.
///
/// Source: apiserver pkg/endpoints/discovery/{version,legacy}.go; kube-aggregator
/// `pkg/apiserver/handler_apis.go`.
/// Rule: REQ-25.
fn is_only_read(route: &Route, resources: &Resources) -> bool {
    let is_built_in = |group: &str, version: &str| {
        !resources.is_custom_group(group) && resources.has_version(group, version)
    };
    matches!(route, Route::ServerVersion | Route::CoreVersions)
        || matches!(route, Route::Version(group, version) if is_built_in(group, version))
}

/// Returns an OpenAPI document. Builds the document if it is not cached.
async fn openapi_document(
    server: &Arc<Server>,
    path: openapi::Path,
    query: Query,
    headers: &HeaderMap,
) -> Result<ResponseContent, Box<Status>> {
    let (server, headers) = (Arc::clone(server), headers.clone());
    let work = async move {
        let definitions = server.registry.state.served_definitions();
        openapi::answer(&server.openapi, &path, &definitions, &query, &headers)
    };
    off_thread::run(work).await.map(|response| ResponseContent::Prepared(Box::new(response)))
}

/// Returns a document that is available without waiting, such as a discovery or health document.
fn document(
    server: &Server,
    resources: &Resources,
    route: Route,
    query: &Query,
    headers: &HeaderMap,
) -> Result<ResponseContent, Box<Status>> {
    let object = |value: Value| ResponseContent::ok(Arc::new(value));
    let is_aggregated = || negotiate_aggregated(headers, query).is_some();
    match route {
        Route::Index => Ok(ResponseContent::Prepared(Box::new(index::answer(resources)))),
        Route::CoreVersions if is_aggregated() => Ok(aggregated(resources.aggregated_core(), headers)),
        Route::Groups if is_aggregated() => Ok(aggregated(resources.aggregated_groups(), headers)),
        Route::CoreVersions => {
            Ok(object(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})))
        }
        Route::Groups => Ok(object(resources.group_list())),
        Route::Group(group) => resources.group(&group).map(object).ok_or_else(no_resource),
        Route::Version(group, version) => {
            resources.version(&group, &version).map(object).ok_or_else(no_resource)
        }
        Route::ServerVersion => Ok(object(json!({
            "major": "1",
            "minor": "37",
            "emulationMajor": "1",
            "emulationMinor": "37",
            "minCompatibilityMajor": "1",
            "minCompatibilityMinor": "36",
            "gitVersion": format!("v{}+admit", kubernetes_types::KUBERNETES_VERSION),
            "gitCommit": "",
            "gitTreeState": "",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "rustc",
            "platform": format!("{}/{}", std::env::consts::OS, go_architecture()),
        }))),
        Route::Health(health) if health.is_whole() => {
            Ok(ResponseContent::Text(StatusCode::OK, health.answer(query)))
        }
        // Source: apiserver pkg/server/healthz/healthz.go, `adaptCheckToHandler`: without the header `nosniff`.
        Route::Health(health) => Ok(text(health.answer(query), "text/plain; charset=utf-8")),
        Route::Metrics => Ok(text(server.registry.admission.metrics.render(), METRICS_MEDIA_TYPE)),
        Route::Slis => Ok(text(health::slis(), METRICS_MEDIA_TYPE)),
        Route::ZPage(page) => {
            page.answer(server, headers, query).map(|response| ResponseContent::Prepared(Box::new(response)))
        }
        Route::NoSubresource(gvr, name) => Err(Box::new(Status::not_found(&gvr.group, &gvr.resource, &name))),
        // Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go, `ServeHTTP`.
        Route::NotEstablished => Err(Box::new(Status::internal_error("error resolving resource"))),
        // Source: kube-aggregator pkg/apiserver/handler_proxy.go, `ServeHTTP`.
        Route::Remote => {
            Ok(ResponseContent::Text(StatusCode::SERVICE_UNAVAILABLE, "service unavailable\n".to_owned()))
        }
        Route::NoPath => Ok(ResponseContent::Text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned())),
        Route::NoResource | Route::OpenApi(_) | Route::OpenId(_) | Route::Object(_) | Route::Watch(_) => {
            Err(no_resource())
        }
    }
}

/// The media type of the Prometheus text format.
const METRICS_MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

fn text(text: String, media_type: &'static str) -> ResponseContent {
    let mut response = http::Response::new(Bytes::from(text));
    for (name, value) in [(CONTENT_TYPE, media_type), (CACHE_CONTROL, "no-cache, private")] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    ResponseContent::Prepared(Box::new(response))
}

/// Returns an aggregated discovery document, or 304 if the client already has it.
///
/// Source: apiserver pkg/endpoints/discovery/aggregated/etag.go, `ServeHTTPWithETag`.
fn aggregated(document: Value, headers: &HeaderMap) -> ResponseContent {
    let etag = format!("\"{}\"", openapi::etag(document.to_string().as_bytes()));
    if headers.get(IF_NONE_MATCH).is_none_or(|known| *known != etag) {
        return ResponseContent::Document(etag, document);
    }
    let mut response = http::Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    add_cache_headers(response.headers_mut(), &etag);
    ResponseContent::Prepared(Box::new(response))
}

/// Returns Go's name of the CPU architecture.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Source: apimachinery pkg/api/errors/errors.go, `NewGenericServerResponse`.
fn no_resource() -> Box<Status> {
    let mut status = Status::failure(404, "NotFound", "the server could not find the requested resource");
    status.details = Some(kubernetes_types::status::StatusDetails::default());
    Box::new(status)
}
