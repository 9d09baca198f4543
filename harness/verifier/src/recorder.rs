//! What webhooks write at the API server behind them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::report::Unserved;

/// More writes than this are counted, not kept.
const MOST: usize = 1000;

/// More requests that are not served are not told apart.
const MOST_UNSERVED: usize = 100;

/// Writes down what reaches an API server. Clones are the same recorder.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Writes>>);

#[derive(Debug, Default)]
struct Writes {
    all: Log,
    creations: Log,
    contacts: u64,
    unserved: BTreeSet<Unserved>,
}

/// Requests, of which the latest are kept.
#[derive(Debug, Default)]
struct Log {
    count: u64,
    latest: VecDeque<String>,
}

impl Log {
    fn push(&mut self, request: String) {
        self.count += 1;
        if self.latest.len() == MOST {
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
    /// A request has come.
    ///
    /// Only what changes objects is a write: neither reviews of access, which are created only to be answered, nor
    /// leases, by which a process says that it lives, nor what is a dry run itself.
    ///
    /// Whether it is one that may create an object: the recorder then wants to know its end, by [`Self::answer`].
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

    /// What was answered to a request to `path` that might create an object: 201 says that it did.
    pub fn answer(&self, path: &str, status: u16) {
        if status == 201 {
            let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            writes.creations.push(format!("POST {path}"));
        }
    }

    /// A request was answered so: with 4xx or 5xx. Only what the server does not serve at all is kept, and not that it has
    /// no such object.
    pub fn refused(&self, method: &str, path: &str, query: &str, status: u16, message: &str) {
        let is_unserved = match status {
            404 => NOT_FOUND.contains(&message.trim()),
            405 | 415 | 501 => true,
            _ => false,
        };
        let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_unserved && writes.unserved.len() < MOST_UNSERVED {
            let (resource, is_collection) = resource(path);
            let verb = verb(method, query, is_collection).to_owned();
            let message = message.trim().trim_start_matches(&format!("{status} ")).to_owned();
            writes.unserved.insert(Unserved { verb, resource, status, message });
        }
    }

    /// What was asked until now and is not served, each once.
    pub fn unserved(&self) -> Vec<Unserved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unserved.iter().cloned().collect()
    }

    /// How many writes there were until now: a mark for [`Self::since`].
    pub fn mark(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.count
    }

    /// The writes since `mark`, oldest first, such as `POST /api/v1/namespaces/default/configmaps`.
    pub fn since(&self, mark: u64) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.since(mark)
    }

    /// How many objects were created until now: a mark for [`Self::creations_since`].
    pub fn creations_mark(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).creations.count
    }

    /// The writes since `mark` that created an object, oldest first.
    pub fn creations_since(&self, mark: u64) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).creations.since(mark)
    }

    /// Whether anybody has ever asked anything: without that nobody knows whether the webhook uses this server at all.
    pub fn was_contacted(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contacts > 0
    }
}

/// What the server says where it has no such resource, and no such path.
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

/// The resource of a path without names, such as `apps/v1 deployments/status`, and whether it is a whole collection; the
/// path itself if it is none of a resource.
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
    fn what_is_not_served_is_told_once_and_without_names() {
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
    fn only_what_was_answered_with_201_is_a_creation() {
        let recorder = Recorder::default();
        let path = "/api/v1/namespaces/a/configmaps";
        let mark = recorder.creations_mark();
        for status in [201, 409, 200] {
            assert!(recorder.request("POST", path, ""));
            recorder.answer(path, status);
        }
        assert_eq!(recorder.creations_since(mark), [format!("POST {path}")]);
        assert_eq!((recorder.creations_mark(), recorder.mark()), (1, 3));
    }

    #[test]
    fn only_what_changes_objects_is_a_write() {
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
