//! Responds to requests for OpenAPI documents.
//!
//! Source: kube-openapi `pkg/handler/handler.go`, `pkg/handler3/handler.go`; kube-aggregator
//! `pkg/controllers/openapiv3/aggregator/aggregator.go`.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH,
    LOCATION, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use jiff::{Timestamp, ToSpan as _, Zoned};
use kubernetes_types::status::{Status, Unsupported};
use serde_json::Value;

use super::{Document, OpenApi, url};
use crate::apimachinery::query::Query;

/// The path of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// `/openapi/v2`.
    V2,
    /// `/openapi/v3`.
    Index,
    /// A path below `/openapi/v3/`, without this prefix.
    V3(String),
}

impl Path {
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        match path.strip_prefix("/openapi/")? {
            "v2" => Some(Self::V2),
            "v3" => Some(Self::Index),
            rest => rest.strip_prefix("v3/").map(|name| Self::V3(name.to_owned())),
        }
    }
}

/// Returns the response to a request for a document, for any method.
///
/// `definitions` are the served custom resource definitions.
///
/// Rule: OAPI-02, OAPI-03, OAPI-04.
///
/// # Errors
/// Returns 501 if the client accepts v3 only as protobuf, or if the documents of custom resources are too large.
pub(crate) fn answer(
    openapi: &OpenApi,
    path: &Path,
    definitions: &[Arc<Value>],
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Bytes>, Box<Status>> {
    let vary: &[&'static str] = match path {
        Path::Index => {
            let index = openapi.index(definitions).map_err(refused)?.into();
            let mut response = Response::new(index);
            set(&mut response, CONTENT_TYPE, "text/plain; charset=utf-8");
            set(&mut response, CACHE_CONTROL, PRIVATE);
            return Ok(response);
        }
        Path::V2 => &["Accept-Encoding", "Accept"],
        Path::V3(_) => &["Accept"],
    };
    let document = match path {
        Path::Index => None,
        Path::V2 => openapi.v2(definitions).map_err(refused)?,
        Path::V3(name) => openapi.document(name, definitions).map_err(refused)?,
    };
    let mut response = Response::new(Bytes::new());
    set(&mut response, CACHE_CONTROL, PRIVATE);
    let Some(document) = document else {
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    for name in vary {
        response.headers_mut().append(VARY, HeaderValue::from_static(name));
    }
    let (document, content_type) = match (accepted(headers), path) {
        (Accepted::Json, _) => (document, "application/json"),
        (Accepted::Protobuf, Path::V2) => {
            let what = "this OpenAPI document as protobuf (use application/json)".to_owned();
            (document.as_protobuf().ok_or_else(|| refused(Unsupported { what }))?, PROTOBUF)
        }
        (Accepted::Protobuf, _) => {
            let what = "OpenAPI v3 documents as protobuf (use application/json)".to_owned();
            return Err(refused(Unsupported { what }));
        }
        (Accepted::Nothing, _) => {
            *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
            return Ok(response);
        }
    };
    set(&mut response, CONTENT_TYPE, content_type);
    set(&mut response, ETAG, &format!("\"{}\"", document.etag));
    if let (Path::V3(name), Some(hash)) = (path, query.first("hash").filter(|hash| !hash.is_empty())) {
        if *hash != *document.etag {
            *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
            set(&mut response, LOCATION, &url(name, &document.etag));
            return Ok(response);
        }
        set(&mut response, CACHE_CONTROL, "public, immutable");
        set(&mut response, EXPIRES, &in_a_year());
    }
    fill(&mut response, &document, *path == Path::V2, headers);
    Ok(response)
}

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PRIVATE: &str = "no-cache, private";

#[expect(clippy::needless_pass_by_value, reason = "it maps an error")]
fn refused(unsupported: Unsupported) -> Box<Status> {
    Box::new(Status::unsupported(&unsupported))
}

fn fill(response: &mut Response<Bytes>, document: &Document, may_compress: bool, headers: &HeaderMap) {
    if is_known(headers, &document.etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_TYPE);
    } else if may_compress && takes_gzip(headers) {
        set(response, CONTENT_ENCODING, "gzip");
        *response.body_mut() = document.compressed();
    } else {
        *response.body_mut() = document.text.clone();
    }
}

fn set(response: &mut Response<Bytes>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

fn in_a_year() -> String {
    let zoned = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let year: Result<Zoned, _> = zoned.checked_add(1.year());
    year.map(|time| time.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string()).unwrap_or_default()
}

fn texts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
}

/// Returns whether `If-None-Match` contains `*` or this `ETag`, strong or weak.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let tags = texts(headers, &IF_NONE_MATCH).flat_map(|tags| tags.split(',')).map(str::trim);
    let mut tags = tags.map(|tag| tag.strip_prefix("W/").unwrap_or(tag));
    tags.any(|tag| tag == "*" || tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')) == Some(etag))
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let mut codings = texts(headers, &ACCEPT_ENCODING).flat_map(|codings| codings.split(','));
    codings.any(|coding| {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim().eq_ignore_ascii_case("gzip") && quality(parameters) > 0.0
    })
}

fn quality(parameters: &str) -> f32 {
    let mut pairs = parameters.split(';').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| name.trim() == "q").map_or(1.0, |(_, value)| value.trim().parse().unwrap_or(0.0))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepted {
    Json,
    /// The client accepts only protobuf.
    Protobuf,
    Nothing,
}

fn accepted(headers: &HeaderMap) -> Accepted {
    let accept = texts(headers, &ACCEPT).next().unwrap_or_default();
    let mut accepted = if accept.is_empty() { Accepted::Json } else { Accepted::Nothing };
    for clause in accept.split(',') {
        match clause.split(';').next().unwrap_or_default().trim() {
            "*" | "*/*" | "application/*" | "application/json" | "*/json" => return Accepted::Json,
            other if other.starts_with("application/com.github.proto-openapi.spec.v") => {
                accepted = Accepted::Protobuf;
            }
            _ => {}
        }
    }
    accepted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_sent_to_clients_that_accept_it() {
        for (accept, expected) in [
            ("", Accepted::Json),
            ("*/*", Accepted::Json),
            ("text/html", Accepted::Nothing),
            ("application/json;q=0.5, text/html", Accepted::Json),
            ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", Accepted::Protobuf),
            ("application/com.github.proto-openapi.spec.v2.v1.0+protobuf, */*", Accepted::Json),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(accepted(&headers), expected, "{accept}");
        }
    }

    #[test]
    fn known_etags_match() {
        for (tags, expected) in [
            ("\"A\"", true),
            ("W/\"A\"", true),
            ("\"B\", \"A\"", true),
            ("*", true),
            ("\"B\"", false),
            ("A", false),
        ] {
            let headers = HeaderMap::from_iter([(IF_NONE_MATCH, tags.parse().unwrap())]);
            assert_eq!(is_known(&headers, "A"), expected, "{tags}");
        }
    }
}
