//! Builds the response to `/`: the list of paths.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use serde_json::json;

use super::health;
use crate::kinds::discovery::Resources;

/// The paths that do not depend on the served resources.
const FIXED_PATHS: [&str; 14] = [
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/flagz",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/statusz",
    "/version",
];

/// Returns whether `path` is the path of the index.
pub(crate) fn is_at(path: &str) -> bool {
    path == "/" || path == "/index.html"
}

/// Returns the index, `{"paths": […]}`, for any method.
///
/// Source: apiserver pkg/server/routes/index.go; apimachinery `pkg/apis/meta/v1/types.go`, `RootPaths`.
/// Rule: REQ-27.
pub(crate) fn answer(resources: &Resources) -> Response<Bytes> {
    let mut paths: BTreeSet<String> = FIXED_PATHS.map(str::to_owned).into();
    paths.extend(health::paths());
    for (group, versions) in resources.groups() {
        paths.insert(format!("/apis/{group}"));
        paths.extend(versions.into_iter().map(|version| format!("/apis/{group}/{version}")));
    }
    let text = format!("{:#}", json!({"paths": paths}));
    let mut response = Response::new(Bytes::from(text));
    for (name, value) in [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache, private")] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
