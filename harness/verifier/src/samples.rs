//! Selects the requests for checks of one webhook: a few of each kind and operation that the webhook matches.

use kubernetes_admission::attributes::{Attributes, GroupVersionKind};
use kubernetes_admission::matching;
use kubernetes_api_server::ClusterFixture;

use super::stored::{OPERATIONS, request_about};
use super::subject::Subject;

/// The maximum number of requests for the checks of a webhook.
pub(super) const MAX_REQUESTS: usize = 32;

/// The requests for a webhook, in bounded memory regardless of the size of the corpus.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// The requests for each kind, in the order in which the kinds were added.
    kinds: Vec<OfKind>,
}

#[derive(Debug)]
struct OfKind {
    kind: GroupVersionKind,
    /// The requests, one list for each of [`OPERATIONS`].
    requests: [Vec<Attributes>; OPERATIONS.len()],
}

impl Samples {
    /// Adds those requests about an object that `subject` matches: creation, unchanged update, and deletion.
    pub(super) fn add(&mut self, subject: &Subject, creation: &Attributes, cluster_fixture: &ClusterFixture) {
        let known = if let Some(known) = self.kinds.iter().position(|known| known.kind == creation.kind) {
            self.kinds.get_mut(known)
        } else {
            self.kinds.push(OfKind { kind: creation.kind.clone(), requests: Default::default() });
            self.kinds.last_mut()
        };
        let requests = known.into_iter().flat_map(|known| &mut known.requests);
        for (operation, requests) in OPERATIONS.into_iter().zip(requests) {
            if requests.len() >= MAX_REQUESTS {
                continue;
            }
            let Some(request) = request_about(creation, operation, cluster_fixture) else { continue };
            if matching::is_called(&subject.webhook, &mut cluster_fixture.evaluation(request.clone())) {
                requests.push(request);
            }
        }
    }

    /// Returns the selected requests: one of each kind, then the next request of each kind, and so on.
    ///
    /// The operations alternate between objects and kinds.
    pub(super) fn requests(&self) -> Vec<Attributes> {
        let kinds =
            self.kinds.iter().filter(|kind| kind.requests.iter().any(|requests| !requests.is_empty()));
        let mut queues: Vec<_> =
            kinds.enumerate().map(|(first, kind)| kind.in_turns(first).into_iter()).collect();
        let mut chosen = Vec::new();
        while chosen.len() < MAX_REQUESTS {
            let before = chosen.len();
            chosen.extend(queues.iter_mut().filter_map(Iterator::next).cloned());
            if chosen.len() == before {
                break;
            }
        }
        chosen.truncate(MAX_REQUESTS);
        chosen
    }
}

impl OfKind {
    /// Returns the requests with alternating operations, starting with the operation at index `first`.
    fn in_turns(&self, first: usize) -> Vec<&Attributes> {
        let mut lists: Vec<&Vec<Attributes>> = self.requests.iter().filter(|list| !list.is_empty()).collect();
        let first = first.checked_rem(lists.len()).unwrap_or_default();
        lists.rotate_left(first);
        let longest = lists.iter().map(|list| list.len()).max().unwrap_or_default();
        (0..longest).flat_map(|object| lists.iter().filter_map(move |list| list.get(object))).collect()
    }
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::UserInfo;
    use serde_json::{Value, json};

    use super::*;

    /// Returns the kinds, names, and operations of the requests for a webhook that matches `operations` on `*`.
    fn chosen(operations: &[&str], objects: &[(&str, &str)]) -> Vec<String> {
        let rule =
            json!({"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "c"}, "webhooks": [{
                "name": "w.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "rules": [rule],
            }],
        });
        let subject = Subject::from_configurations(&[configuration]).unwrap().remove(0);
        let cluster_fixture = ClusterFixture::new([]);
        let mut samples = Samples::default();
        for (kind, name) in objects {
            let object: Value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
            let creation = cluster_fixture.create(object, "default", UserInfo::default()).unwrap();
            samples.add(&subject, &creation, &cluster_fixture);
        }
        let told =
            |request: &Attributes| format!("{} {} {}", request.operation, request.kind.kind, request.name);
        samples.requests().iter().map(told).collect()
    }

    #[test]
    fn requests_alternate_kinds_and_operations() {
        let objects = [("Pod", "a"), ("Pod", "b"), ("Secret", "c"), ("Node", "d")];
        assert_eq!(
            chosen(&["*"], &objects),
            [
                "CREATE Pod a",
                "UPDATE Secret c",
                "DELETE Node d",
                "UPDATE Pod a",
                "DELETE Secret c",
                "CREATE Node d",
                "DELETE Pod a",
                "CREATE Secret c",
                "UPDATE Node d",
                "CREATE Pod b",
                "UPDATE Pod b",
                "DELETE Pod b",
            ]
        );
    }

    #[test]
    fn only_requests_that_the_rules_match_are_chosen() {
        assert_eq!(
            chosen(&["DELETE"], &[("Pod", "a"), ("Secret", "b")]),
            ["DELETE Pod a", "DELETE Secret b"]
        );
        assert_eq!(chosen(&["CONNECT"], &[("Pod", "a")]), Vec::<String>::new());
    }

    #[test]
    fn number_of_requests_is_bounded() {
        assert_eq!(chosen(&["*"], &[("Pod", "a"); 100]).len(), MAX_REQUESTS);
    }
}
