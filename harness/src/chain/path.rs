//! Builds the path and the query of a request.

use std::fmt::Write as _;

use http::Uri;
use kubernetes_admission::attributes::Operation;
use kubernetes_api_server::{ApiServer, ResourceName, ServedResource};
use url::form_urlencoded::Serializer;

use super::{Request, RequestError};

/// The query parameter that contains the remainder of the URL path in a proxy request.
///
/// Source: kubernetes pkg/registry/core/pod/rest/subresources.go, `ProxyREST.NewConnectOptions`.
const SUBPATH: &str = "path";

/// Returns the URI of `request`, such as `/apis/apps/v1/namespaces/default/deployments/web/scale?dryRun=All`.
///
/// # Errors
/// Returns [`RequestError`] if the resource does not exist, a name is missing, or the URI is too long.
pub(super) fn uri(request: &Request, server: &ApiServer) -> Result<Uri, RequestError> {
    let resource = server.resource(&request.resource).ok_or_else(|| match &request.resource {
        ResourceName::OfKind(kind) => RequestError::UnknownKind(kind.clone()),
        ResourceName::Named(name) => RequestError::UnknownResource(name.clone()),
    })?;
    let mut path = collection(&resource, &request.namespace);
    let is_new = request.operation == Operation::Create && request.subresource.is_empty();
    if !is_new {
        if request.name.is_empty() {
            return Err(RequestError::NoName);
        }
        path.push('/');
        push_encoded(&mut path, &request.name);
    }
    if !request.subresource.is_empty() {
        path.push('/');
        push_encoded(&mut path, &request.subresource);
    }
    if request.is_proxy() {
        let rest = request.query.iter().find(|(name, _)| name == SUBPATH).map_or("", |(_, path)| path);
        push_subpath(&mut path, rest);
    }
    let query = query(request);
    if !query.is_empty() {
        path.push('?');
        path.push_str(&query);
    }
    // Every part is encoded, so only the length can be invalid.
    path.parse().map_err(|error: http::uri::InvalidUri| RequestError::NoUri {
        bytes: path.len(),
        error: error.to_string(),
    })
}

fn collection(resource: &ServedResource, namespace: &str) -> String {
    let name = &resource.name;
    let mut path = "/api".to_owned();
    if !name.group.is_empty() {
        path.push_str("s/");
        push_encoded(&mut path, &name.group);
    }
    path.push('/');
    push_encoded(&mut path, &name.version);
    if resource.namespaced {
        path.push_str("/namespaces/");
        push_encoded(&mut path, if namespace.is_empty() { "default" } else { namespace });
    }
    path.push('/');
    push_encoded(&mut path, &name.resource);
    path
}

fn query(request: &Request) -> String {
    let mut query = Serializer::new(String::new());
    if request.dry_run {
        query.append_pair("dryRun", "All");
    }
    query.extend_pairs(request.query.iter().filter(|(name, _)| !request.is_proxy() || name != SUBPATH));
    query.finish()
}

/// Appends the `path` parameter of a proxy request, with a leading slash.
fn push_subpath(path: &mut String, rest: &str) {
    for segment in rest.strip_prefix('/').unwrap_or(rest).split('/').filter(|_| !rest.is_empty()) {
        path.push('/');
        push_encoded(path, segment);
    }
}

/// Appends a percent-encoded segment. The encoding prevents an invalid name from changing the path.
fn push_encoded(path: &mut String, segment: &str) {
    for byte in segment.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                path.push(char::from(byte));
            }
            _ => {
                let _ = write!(path, "%{byte:02X}");
            }
        }
    }
}
