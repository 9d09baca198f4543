//! Records the writes of webhooks to their API server.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape;

/// The maximum number of writes to keep. Additional writes are only counted.
const MAX_WRITES: usize = 1000;

/// The maximum number of distinct unserved requests to keep.
const MAX_UNSERVED: usize = 100;

/// A request of a webhook that its API server does not serve but a cluster might.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unserved {
    /// The verb, such as `list` or `watch`.
    pub verb: String,
    /// The resource, such as `apps/v1 deployments/status`, or the path if it has no resource.
    pub resource: String,
    /// The HTTP status of the response.
    pub status: u16,
    /// The message of the response.
    pub message: String,
}

impl std::fmt::Display for Unserved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verb, resource, status, message } = self;
        write!(f, "{verb} {resource}: {status} {message}")
    }
}

/// Records the requests to an API server. Clones share the same record.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Writes>>);

#[derive(Debug, Default)]
struct Writes {
    all: Log,
    creations: Log,
    /// The object that each request created last, as its kind and name.
    created: BTreeMap<String, String>,
    contacts: u64,
    unserved: BTreeSet<Unserved>,
}

/// A log that keeps the newest requests and counts all requests.
#[derive(Debug, Default)]
struct Log {
    count: u64,
    latest: VecDeque<String>,
}

impl Log {
    fn push(&mut self, request: String) {
        self.count += 1;
        if self.latest.len() == MAX_WRITES {
            self.latest.pop_front();
        }
        self.latest.push_back(request);
    }

    fn since(&self, mark: u64) -> Vec<String> {
        let new = usize::try_from(self.count.saturating_sub(mark)).unwrap_or(usize::MAX);
        self.latest.iter().skip(self.latest.len().saturating_sub(new)).cloned().collect()
    }
}

impl Recorder {
    /// Records a request and returns whether it may create an object.
    ///
    /// If it may, the caller must record the status of the response with [`Self::answer`]. Only changes to objects
    /// count as writes. Dry runs do not count. Access reviews do not count because clients create them only to get a
    /// response, and leases do not count because they are heartbeats.
    pub fn request(&self, method: &str, path: &str, query: &str) -> bool {
        let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writes.contacts += 1;
        let is_write = matches!(method, "POST" | "PUT" | "PATCH" | "DELETE");
        let is_harmless = path.starts_with("/apis/authorization.k8s.io/")
            || path.starts_with("/apis/authentication.k8s.io/")
            || path.starts_with("/apis/coordination.k8s.io/")
            || query.split('&').any(|pair| pair == "dryRun=All");
        if is_write && !is_harmless {
            writes.all.push(format!("{method} {path}"));
        }
        is_write && !is_harmless && method == "POST"
    }

    /// Records the status of the response to a request that may create an object; 201 means that an object was created.
    pub fn answer(&self, path: &str, status: u16) {
        if status == 201 {
            let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            writes.creations.push(format!("POST {path}"));
        }
    }

    /// Records the object that a request created, for the messages of findings.
    pub fn created(&self, path: &str, object: &Value) {
        let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let request = format!("POST {path}");
        if writes.created.len() < MAX_WRITES || writes.created.contains_key(&request) {
            writes.created.insert(request, shape::kind_and_name(object));
        }
    }

    /// Returns the object that a request created last, such as `ConfigMap default/log`.
    ///
    /// `request` is a write as [`Self::since`] returns it.
    pub fn last_created(&self, request: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).created.get(request).cloned()
    }

    /// Records an error response if the server does not serve the request.
    ///
    /// Responses about objects that do not exist are ignored.
    pub fn refused(&self, method: &str, path: &str, query: &str, status: u16, message: &str) {
        let is_unserved = match status {
            404 => NOT_FOUND.contains(&message.trim()),
            405 | 415 | 501 => true,
            _ => false,
        };
        let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_unserved && writes.unserved.len() < MAX_UNSERVED {
            let (resource, is_collection) = resource(path);
            let verb = verb(method, query, is_collection).to_owned();
            let message = message.trim().trim_start_matches(&format!("{status} ")).to_owned();
            writes.unserved.insert(Unserved { verb, resource, status, message });
        }
    }

    /// Returns the distinct requests so far that the server does not serve.
    pub fn unserved(&self) -> Vec<Unserved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unserved.iter().cloned().collect()
    }

    /// Returns the number of writes so far, for use with [`Self::since`].
    pub fn mark(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.count
    }

    /// Returns the writes since `mark`, oldest first, such as `POST /api/v1/namespaces/default/configmaps`.
    pub fn since(&self, mark: u64) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.since(mark)
    }

    /// Returns the number of created objects so far, for use with [`Self::creations_since`].
    pub fn creations_mark(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).creations.count
    }

    /// Returns the writes since `mark` that created an object, oldest first.
    pub fn creations_since(&self, mark: u64) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).creations.since(mark)
    }

    /// Returns whether the server received a request. If not, it is unknown whether the webhook uses the server.
    pub fn was_contacted(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contacts > 0
    }
}

/// The server's messages for an unknown resource and an unknown path.
const NOT_FOUND: [&str; 2] = ["the server could not find the requested resource", "404 page not found"];

fn verb<'a>(method: &'a str, query: &str, is_collection: bool) -> &'a str {
    let watches = query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1");
    match method {
        "GET" if watches => "watch",
        "GET" if is_collection => "list",
        "GET" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if is_collection => "deletecollection",
        "DELETE" => "delete",
        other => other,
    }
}

/// Returns the resource in a path, such as `apps/v1 deployments/status`, and whether the path names a collection.
///
/// The resource does not contain names of objects. Returns the path itself if it does not contain a resource.
pub(super) fn resource(path: &str) -> (String, bool) {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => ((*version).to_owned(), rest),
        ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return (path.to_owned(), false),
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    match rest {
        [] => (path.to_owned(), false),
        [resource] => (format!("{version} {resource}"), true),
        [resource, _] => (format!("{version} {resource}"), false),
        [resource, _, subresource, ..] => (format!("{version} {resource}/{subresource}"), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unserved_request_is_listed_once_without_names() {
        let recorder = Recorder::default();
        let unsupported = "unsupported: application/apply-patch+yaml";
        for (method, path, query, status, message) in [
            ("GET", "/api/v1/namespaces/a/configmaps/b", "", 404, "configmaps \"b\" not found"),
            ("GET", "/apis/example.com/v1/widgets", "", 404, "404 page not found\n"),
            ("GET", "/apis/example.com/v1/widgets", "watch=true", 404, "404 page not found\n"),
            ("PATCH", "/api/v1/namespaces/a/configmaps/b", "force=true", 415, unsupported),
            ("PATCH", "/api/v1/namespaces/a/configmaps/c", "force=true", 415, unsupported),
            ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", "", 415, unsupported),
            ("GET", "/openapi/v3", "", 501, "unsupported: OpenAPI documents"),
            ("PUT", "/api/v1/namespaces/a/configmaps/b", "", 409, "the object has been modified"),
        ] {
            recorder.refused(method, path, query, status, message);
        }
        let told: Vec<String> = recorder.unserved().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "get /openapi/v3: 501 unsupported: OpenAPI documents",
                "list example.com/v1 widgets: 404 page not found",
                "patch apps/v1 deployments/status: 415 unsupported: application/apply-patch+yaml",
                "patch v1 configmaps: 415 unsupported: application/apply-patch+yaml",
                "watch example.com/v1 widgets: 404 page not found",
            ]
        );
    }

    #[test]
    fn only_status_201_is_a_creation() {
        let recorder = Recorder::default();
        let path = "/api/v1/namespaces/a/configmaps";
        let mark = recorder.creations_mark();
        for status in [201, 409, 200] {
            assert!(recorder.request("POST", path, ""));
            recorder.answer(path, status);
        }
        assert_eq!(recorder.creations_since(mark), [format!("POST {path}")]);
        assert_eq!((recorder.creations_mark(), recorder.mark()), (1, 3));
        assert_eq!(recorder.last_created(&format!("POST {path}")), None);
        for name in ["one", "two"] {
            let metadata = serde_json::json!({"namespace": "a", "name": name});
            recorder.created(path, &serde_json::json!({"kind": "ConfigMap", "metadata": metadata}));
        }
        assert_eq!(recorder.last_created(&format!("POST {path}")).as_deref(), Some("ConfigMap a/two"));
    }

    #[test]
    fn only_changes_of_objects_are_writes() {
        let recorder = Recorder::default();
        assert!(!recorder.was_contacted());
        let mark = recorder.mark();
        for (method, path, query) in [
            ("GET", "/api/v1/pods", ""),
            ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", ""),
            ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", ""),
            ("POST", "/api/v1/namespaces/a/configmaps", "fieldManager=x&dryRun=All"),
            ("DELETE", "/api/v1/namespaces/a/configmaps/b", ""),
        ] {
            recorder.request(method, path, query);
        }
        assert!(recorder.was_contacted());
        assert_eq!(recorder.since(mark), ["DELETE /api/v1/namespaces/a/configmaps/b"]);
        assert_eq!(recorder.since(recorder.mark()), Vec::<String>::new());
    }
}
