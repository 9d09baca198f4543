//! Maps the path and the method of a request to a route and a verb.

use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};
use kubernetes_admission::attributes::GroupVersionResource;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::{Status, StatusDetails};

use super::answer::ResponseContent;
use super::authorization::impersonation::unescaped;
use super::documents::ZPage;
use super::health::Health;
use super::index;
use super::openapi;
use super::openid::OpenId;
use crate::kinds::common::formats::path_segment_errors;
use crate::kinds::discovery::{Resource, Resources};
use crate::registry::patches;
use crate::registry::request::Target;
use crate::registry::request::Verb;

/// The route of a request.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// `/`, the list of paths.
    Index,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    Version(String, String),
    /// `/version`.
    ServerVersion,
    /// `/healthz`, `/livez`, `/readyz`, or one of their checks.
    Health(Health),
    /// `/metrics`.
    Metrics,
    /// `/metrics/slis`.
    Slis,
    /// `/flagz` or `/statusz`.
    ZPage(ZPage),
    /// `/openapi/v2`, `/openapi/v3`, or a path below it.
    OpenApi(openapi::Path),
    /// A document that clients use to verify service account tokens.
    OpenId(OpenId),
    /// A resource, one of its objects, or a subresource.
    Object(Target),
    /// A watch of a collection or an object through a deprecated path below `/watch/`.
    Watch(Target),
    /// A subresource that a custom resource does not have, and the name of the object.
    NoSubresource(GroupVersionResource, String),
    /// A custom resource whose definition is not established.
    NotEstablished,
    /// A group and version that an `APIService` delegates to a Service.
    Remote,
    /// An unknown resource in a known group.
    NoResource,
    /// An unknown path.
    NoPath,
}

/// Returns the route of a path.
///
/// The path is decoded first and then split, as for authorization: a path must not mean one thing to the authorizer and
/// another to the server. Slashes at the end are ignored.
///
/// Source: apiserver pkg/endpoints/request/requestinfo.go, `splitPath`; go-restful jsr311.go, `tokenizePath`.
pub(crate) fn route(path: &str, resources: &Resources) -> Route {
    let decoded = unescaped(path);
    if decoded.starts_with("//") {
        return Route::NoPath;
    }
    let trimmed = decoded.trim_matches('/');
    let segments: Vec<&str> = if trimmed.is_empty() { Vec::new() } else { trimmed.split('/').collect() };
    match segments.as_slice() {
        [] | ["index.html"] if index::is_at(path) => Route::Index,
        ["api", ..] if resources.is_remote("", "v1") => Route::Remote,
        ["apis", group, version, ..] if resources.is_remote(group, version) => Route::Remote,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["version"] => Route::ServerVersion,
        ["healthz" | "livez" | "readyz", ..] => Health::from_path(path).map_or(Route::NoPath, Route::Health),
        ["metrics"] if path == "/metrics" => Route::Metrics,
        ["metrics", "slis"] if path == "/metrics/slis" => Route::Slis,
        ["flagz" | "statusz", ..] => ZPage::from_path(path).map_or(Route::NoPath, Route::ZPage),
        [".well-known", "openid-configuration"] => Route::OpenId(OpenId::Configuration),
        ["openid", "v1", "jwks"] => Route::OpenId(OpenId::Keys),
        ["openapi", ..] => openapi::Path::from_path(path).map_or(Route::NoPath, Route::OpenApi),
        ["api", "v1", "watch", rest @ ..] if !rest.is_empty() => {
            watched(in_version("", "v1", rest, resources))
        }
        ["apis", group, version, "watch", rest @ ..]
            if !rest.is_empty() && resources.has_group(group) && !group.is_empty() =>
        {
            let found = watched(in_version(group, version, rest, resources));
            let is_unknown = matches!(found, Route::NoResource) && resources.is_custom_group(group);
            if is_unknown { Route::NoPath } else { found }
        }
        ["api", version, rest @ ..] if *version == "v1" => {
            let mut found = in_version("", version, rest, resources);
            if let Route::Object(target) = &mut found
                && target.subresource == "proxy"
            {
                target.subpath = subpath(path, if target.namespace.is_empty() { 5 } else { 7 });
            }
            found
        }
        ["apis", group]
            if resources.lists_group(group) || (resources.has_group(group) && !group.is_empty()) =>
        {
            Route::Group((*group).to_owned())
        }
        ["apis", group, version, rest @ ..] if resources.has_group(group) && !group.is_empty() => {
            let found = in_version(group, version, rest, resources);
            // In groups with only custom resources, an unknown path gets a plain 404.
            let unknown = matches!(found, Route::NoResource | Route::Version(..))
                && resources.is_custom_group(group)
                && (matches!(found, Route::NoResource) || resources.version(group, version).is_none());
            if unknown { Route::NoPath } else { found }
        }
        ["api", _, ..] => Route::NoResource,
        _ => Route::NoPath,
    }
}

/// Converts the route of the path after `/watch/` to a watch if the resource supports watches.
///
/// Source: apiserver pkg/endpoints/installer.go, `registerResourceHandlers`.
/// Rule: LST-10.
fn watched(found: Route) -> Route {
    if matches!(found, Route::NotEstablished) {
        return found;
    }
    if let Route::Object(target) = found
        && target.subresource.is_empty()
        && target.resource.verbs.iter().any(|verb| verb == "watch")
    {
        return Route::Watch(target);
    }
    Route::NoResource
}

fn in_version(group: &str, version: &str, rest: &[&str], resources: &Resources) -> Route {
    // Custom resources have a handler of their own, which ignores what follows an empty subresource.
    let mut before_subpath = rest.iter().take_while(|segment| **segment != "proxy");
    if before_subpath.any(|segment| segment.is_empty()) && !resources.is_custom_group(group) {
        return Route::NoResource;
    }
    let found = |resource: &str| resources.get(&GroupVersionResource::new(group, version, resource));
    let target = |resource: &Arc<Resource>, namespace: &str, name: &str, subresource: &str| {
        if !resource.is_established() {
            return Route::NotEstablished;
        }
        // Resources that can only be created, such as reviews, have no paths for single objects.
        if !name.is_empty() && subresource.is_empty() && resource.verbs == ["create"] {
            return Route::NoResource;
        }
        if !subresource.is_empty() && resource.subresource(subresource).is_none() {
            return match resource.custom {
                // Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go, `ServeHTTP`.
                Some(_) => Route::NoSubresource(resource.gvr.clone(), name.to_owned()),
                None => Route::NoResource,
            };
        }
        Route::Object(Target {
            resource: Arc::clone(resource),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
            subpath: String::new(),
        })
    };
    let (namespace, rest) = match rest {
        [] => return Route::Version(group.to_owned(), version.to_owned()),
        ["namespaces", name, subresource]
            if found("namespaces").is_some_and(|r| r.subresource(subresource).is_some()) =>
        {
            return found("namespaces")
                .map_or(Route::NoResource, |resource| target(resource, "", name, subresource));
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        _ => ("", rest),
    };
    let Some(resource) = rest.first().and_then(|resource| found(resource)) else { return Route::NoResource };
    // A path without a namespace is for a cluster-scoped resource or a list across namespaces.
    if resource.namespaced == namespace.is_empty() && !(resource.namespaced && rest.len() == 1) {
        return Route::NoResource;
    }
    match rest {
        [_] => target(resource, namespace, "", ""),
        [_, name] => target(resource, namespace, name, ""),
        [_, name, subresource] => target(resource, namespace, name, subresource),
        // Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go, `ServeHTTP`.
        [_, name, subresource, ..] if resource.custom.is_some() => {
            target(resource, namespace, name, subresource)
        }
        [_, name, "proxy", ..] => target(resource, namespace, name, "proxy"),
        _ => Route::NoResource,
    }
}

/// Returns the decoded path after the first `segments` segments, including a trailing slash if present.
///
/// Source: apiserver pkg/endpoints/handlers/get.go, `getRequestOptions`; pkg/endpoints/request/requestinfo.go, `splitPath`.
/// Rule: REQ-22.
fn subpath(path: &str, segments: usize) -> String {
    let path = admission_webhook_client::percent_decoded(path);
    let path = String::from_utf8_lossy(&path);
    let mut rest = path.trim_matches('/');
    for _ in 0..segments {
        rest = rest.trim_start_matches('/').split_once('/').map_or("", |(_segment, rest)| rest);
    }
    let start = if rest.is_empty() || rest.starts_with('/') { "" } else { "/" };
    let end = if path.ends_with('/') && !rest.ends_with('/') { "/" } else { "" };
    format!("{start}{rest}{end}")
}

/// Returns the verb for `method` on `target`.
///
/// # Errors
/// Returns 405 if the resource does not support the verb.
pub(crate) fn verb(method: &Method, target: &Target) -> Result<Verb, Box<Status>> {
    let subresource = target.resource.subresource(&target.subresource);
    if let Some(subresource) = subresource.filter(|subresource| is_connection(&subresource.name)) {
        // A proxy forwards every method.
        let is_open = subresource.name == "proxy" || [Method::GET, Method::POST].contains(method);
        return if is_open { Ok(Verb::Connect) } else { Err(method_not_allowed()) };
    }
    let collection = target.name.is_empty();
    let (verb, name) = match *method {
        Method::GET if collection => (Verb::List, "list"),
        Method::GET => (Verb::Get, "get"),
        Method::POST if collection || subresource.is_some() => (Verb::Create, "create"),
        Method::PUT if !collection => (Verb::Update, "update"),
        Method::PATCH if !collection => (Verb::Patch, "patch"),
        Method::DELETE if collection => (Verb::DeleteCollection, "deletecollection"),
        Method::DELETE => (Verb::Delete, "delete"),
        _ => return Err(method_not_allowed()),
    };
    let verbs = subresource.map_or(&target.resource.verbs, |subresource| &subresource.verbs);
    let across_namespaces = target.resource.namespaced && target.namespace.is_empty();
    if !verbs.iter().any(|known| known == name) || (across_namespaces && verb != Verb::List) {
        return Err(method_not_allowed());
    }
    Ok(verb)
}

/// Checks that the name of the object to read, patch, or delete can be part of a storage key.
///
/// # Errors
/// Returns 400 for a name that cannot be a path segment.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `NamespaceKeyFunc` and `NoNamespaceKeyFunc`.
pub(crate) fn check_name(verb: Verb, target: &Target) -> Result<(), Box<Status>> {
    let errors = match verb {
        Verb::Get | Verb::Patch | Verb::Delete => path_segment_errors(&target.name),
        Verb::List | Verb::Create | Verb::Update | Verb::DeleteCollection | Verb::Connect => Vec::new(),
    };
    if errors.is_empty() {
        return Ok(());
    }
    let message = format!("Name parameter invalid: {}: {}", quote(&target.name), errors.join(";"));
    Err(Box::new(Status::bad_request(message)))
}

/// Returns whether requests for a subresource open a connection instead of reading or writing an object.
///
/// Source: kubernetes `pkg/registry/core/{pod,service,node}/rest`, the types that implement `rest.Connecter`.
pub fn is_connection(subresource: &str) -> bool {
    matches!(subresource, "exec" | "attach" | "portforward" | "proxy")
}

/// Builds the 405 for a method that a resource does not support.
///
/// Source: apiserver pkg/endpoints/groupversion.go; apimachinery pkg/api/errors/errors.go, `NewGenericServerResponse`.
pub(crate) fn method_not_allowed() -> Box<Status> {
    let mut status = Status::failure(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    );
    status.details = Some(kubernetes_types::status::StatusDetails::default());
    Box::new(status)
}

/// Removes the name from the target of a POST of a custom resource, because upstream ignores this name.
///
/// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `serveResource`.
pub(crate) fn drop_name_of_creation(method: &Method, target: &mut Target) {
    if target.resource.custom.is_some() && method == Method::POST && target.subresource.is_empty() {
        target.name.clear();
    }
}

/// Returns the response to a method that a custom resource does not support.
///
/// The response is 404 if the path does not have a required namespace, 400 if it does not have a name, and 405
/// otherwise.
///
/// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `ServeHTTP`; apimachinery
/// pkg/api/errors/errors.go, `NewMethodNotSupported`.
pub(crate) fn method_of_custom(
    target: &Target,
    verb: &str,
    headers: &HeaderMap,
) -> Result<ResponseContent, Box<Status>> {
    if target.resource.namespaced && target.namespace.is_empty() {
        return Ok(ResponseContent::Text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned()));
    }
    if target.name.is_empty() && ["update", "patch"].contains(&verb) {
        if verb == "patch" {
            patches::check_media_type(&target.resource, headers)?;
        }
        return Err(Box::new(Status::bad_request("name must be provided")));
    }
    let gvr = &target.resource.gvr;
    let resource = quote(&gvr.group_resource());
    let message = format!("{verb} is not supported on resources of kind {resource}");
    let mut status = Status::failure(405, "MethodNotAllowed", message);
    status.details = Some(StatusDetails {
        group: gvr.group.clone(),
        kind: gvr.resource.clone(),
        ..StatusDetails::default()
    });
    Err(Box::new(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_subpath_keeps_its_slashes() {
        for (path, expected) in [
            ("/api/v1/nodes/n/proxy", ""),
            ("/api/v1/nodes/n/proxy/", "/"),
            ("/api/v1/nodes/n/proxy/a/b", "/a/b"),
            ("/api/v1/nodes/n/proxy/a//b/", "/a//b/"),
            ("/api/v1/nodes/n/proxy//a", "/a"),
            ("/api/v1/nodes/n/proxy///a", "//a"),
            ("/api/v1/nodes/n/proxy/a%20b%2Fc+d", "/a b/c+d"),
            ("/api/v1/nodes/n/proxy/%", "/%"),
        ] {
            assert_eq!(subpath(path, 5), expected, "{path}");
        }
    }
}
