//! What webhooks write at the API server behind them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// More writes than this are counted, not kept.
const MOST: usize = 1000;

/// Writes down what reaches an API server. Clones are the same recorder.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Writes>>);

#[derive(Debug, Default)]
struct Writes {
    count: u64,
    latest: VecDeque<String>,
    contacts: u64,
    created: u64,
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
            writes.count += 1;
            if writes.latest.len() == MOST {
                writes.latest.pop_front();
            }
            writes.latest.push_back(format!("{method} {path}"));
        }
        is_write && !is_harmless && method == "POST"
    }

    /// What was answered to a request that might create an object: 201 says that it did.
    pub fn answer(&self, status: u16) {
        if status == 201 {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).created += 1;
        }
    }

    /// How many objects were created until now.
    pub fn created(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).created
    }

    /// How many writes there were until now: a mark for [`Self::since`].
    pub fn mark(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// The writes since `mark`, oldest first, such as `POST /api/v1/namespaces/default/configmaps`.
    pub fn since(&self, mark: u64) -> Vec<String> {
        let writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = usize::try_from(writes.count.saturating_sub(mark)).unwrap_or(usize::MAX);
        writes.latest.iter().skip(writes.latest.len().saturating_sub(new)).cloned().collect()
    }

    /// Whether anybody has ever asked anything: without that nobody knows whether the webhook uses this server at all.
    pub fn was_contacted(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contacts > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
