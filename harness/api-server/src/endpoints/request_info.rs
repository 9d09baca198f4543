//! Derives the attributes for authorization and the audit log from a path and a method, even for unknown resources.

use http::Method;

use super::authorization::impersonation::unescaped;
use crate::apimachinery::query::Query;

/// The attributes of a request.
///
/// Source: apiserver pkg/endpoints/request/requestinfo.go, `NewRequestInfo`.
/// Rule: RBAC-02.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    /// The verb: `create`, `update`, `patch`, `get`, `list`, `watch`, `delete`, or `deletecollection`.
    ///
    /// Empty for other methods. For a non-resource path, the verb is the method in lowercase.
    pub(crate) verb: String,
    /// The decoded path.
    pub(crate) path: String,
    /// The object of the request; `None` for a non-resource path.
    pub(crate) object: Option<RequestObject>,
    /// The field selector in the query, if the verb uses it.
    pub(crate) field_selector: String,
    /// The label selector in the query, if the verb uses it.
    pub(crate) label_selector: String,
}

/// The resource in a path. Parts that the path does not contain are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestObject {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    /// The namespace; for a Namespace, the name of the Namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
}

impl RequestInfo {
    pub(crate) fn new(method: &Method, path: &str, query: &Query) -> Self {
        let path = unescaped(path);
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", rest @ ..] if rest.len() >= 2 => ("", rest),
            ["apis", group, rest @ ..] if rest.len() >= 2 => (*group, rest),
            _ => return Self { verb: method.as_str().to_ascii_lowercase(), path, ..Self::default() },
        };
        let Some((version, rest)) = rest.split_first() else { return Self::default() };
        let by_path = matches!(rest, ["proxy" | "watch", _, ..]);
        let (mut verb, rest) = match rest {
            [verb, rest @ ..] if by_path => (*verb, rest),
            _ => (of_method(method), rest),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace] | ["namespaces", namespace, "status" | "finalize", ..] => {
                (*namespace, rest)
            }
            ["namespaces", namespace, of_namespace @ ..] => (*namespace, of_namespace),
            _ => ("", rest),
        };
        let part = |index: usize| rest.get(index).copied().unwrap_or_default();
        let mut name = part(1).to_owned();
        if name.is_empty() && verb == "get" {
            verb = if crate::registry::read::is_watch(query) { "watch" } else { "list" };
            let only = only_name(query.first("fieldSelector").unwrap_or_default());
            // A value that is not a valid path segment is ignored.
            if ![".", ".."].contains(&only) && !only.contains(['/', '%']) {
                only.clone_into(&mut name);
            }
        }
        if name.is_empty() && verb == "delete" {
            verb = "deletecollection";
        }
        let object = RequestObject {
            group: group.to_owned(),
            version: (*version).to_owned(),
            resource: part(0).to_owned(),
            namespace: namespace.to_owned(),
            name,
            subresource: if verb == "proxy" { String::new() } else { part(2).to_owned() },
        };
        let has_selectors = !by_path && ["list", "watch", "deletecollection"].contains(&verb);
        let selector =
            |name: &str| query.first(name).filter(|_| has_selectors).unwrap_or_default().to_owned();
        Self {
            verb: verb.to_owned(),
            object: Some(object),
            field_selector: selector("fieldSelector"),
            label_selector: selector("labelSelector"),
            path,
        }
    }

    /// Returns whether the request is long-running and therefore does not have a time limit.
    ///
    /// Source: kubernetes pkg/controlplane/apiserver/config.go, `BasicLongRunningRequestCheck`.
    pub(crate) fn is_long_running(&self) -> bool {
        let Some(object) = &self.object else { return self.path.starts_with("/debug/pprof/") };
        let connections = ["attach", "exec", "proxy", "log", "portforward"];
        ["watch", "proxy"].contains(&self.verb.as_str()) || connections.contains(&object.subresource.as_str())
    }
}

fn of_method(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// Returns the name that a field selector requires; empty if the selector does not require a name.
///
/// Rule: RBAC-05.
fn only_name(selector: &str) -> &str {
    let mut names = selector.split(',').filter_map(|term| {
        let (field, value) = term.split_once("==").or_else(|| term.split_once('='))?;
        (field == "metadata.name").then_some(value)
    });
    names.next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, path_and_query: &str, verb: &str, object: Option<[&str; 6]>) {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let info = RequestInfo::new(&method.parse().unwrap(), path, &Query::parse(query));
        let object = object.map(|parts| {
            let [group, version, resource, namespace, name, subresource] = parts.map(str::to_owned);
            RequestObject { group, version, resource, namespace, name, subresource }
        });
        assert_eq!((info.verb.as_str(), info.object), (verb, object), "{method} {path_and_query}");
    }

    #[test]
    fn request_info_depends_only_on_path_and_method() {
        let configmaps = ["", "v1", "configmaps", "ns", "", ""];
        check("GET", "/api/v1/namespaces/ns/configmaps", "list", Some(configmaps));
        check("GET", "/api/v1/namespaces/ns/configmaps?watch=1", "watch", Some(configmaps));
        check("POST", "/api/v1/namespaces/ns/configmaps", "create", Some(configmaps));
        check("DELETE", "/api/v1/namespaces/ns/configmaps", "deletecollection", Some(configmaps));
        check("FOO", "/api/v1/namespaces/ns/configmaps", "", Some(configmaps));
        let named = ["", "v1", "configmaps", "ns", "a", ""];
        check("HEAD", "/api/v1/namespaces/ns/configmaps/a", "get", Some(named));
        check("GET", "/api/v1/namespaces/ns/configmaps?fieldSelector=metadata.name%3Da", "list", Some(named));
        check("GET", "/apis/x.y/v9/foos/a/bar", "get", Some(["x.y", "v9", "foos", "", "a", "bar"]));
        check("PATCH", "/api/v1/namespaces/ns", "patch", Some(["", "v1", "namespaces", "ns", "ns", ""]));
        check(
            "PUT",
            "/api/v1/namespaces/ns/finalize",
            "update",
            Some(["", "v1", "namespaces", "ns", "ns", "finalize"]),
        );
        check("GET", "/api/v1/watch/foos", "watch", Some(["", "v1", "foos", "", "", ""]));
        for path in ["/", "/api/v1", "/apis/apps/v1", "/version", "/metrics/a/b/c"] {
            check("GET", path, "get", None);
        }
    }
}
