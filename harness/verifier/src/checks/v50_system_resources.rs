//! V50: a webhook does not match objects that the cluster depends on.

use std::collections::BTreeSet;

use kubernetes_admission::config::FailurePolicy;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::json::{at, text};
use serde_json::Value;

use super::l18_namespaces::NAME_LABEL;
use super::match_outcome::{self, MatchOutcome, RequestTarget};
use super::outage;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V50",
    title: "system resources: the webhook is not called for objects that the control plane and the nodes \
            depend on",
    severity: Severity::Error,
    why: "Components with short timeouts constantly write leader election leases, node leases, endpoints, \
          certificates, and the Pods of kube-system: a webhook that is down or slow can stop the control \
          plane. Even with failurePolicy Ignore, a lease is lost while a webhook hangs if its timeout is \
          long enough. For leader election, this is 5 s (requests time out after half of the renewDeadline \
          of 10 s). For node leases, it is 10 s.",
    help: "Exclude kube-system and kube-node-lease with a namespaceSelector, and remove leases and nodes \
           from the rules.",
    source: "Admission Webhook Good Practices, Limit the scope; kubernetes/kubernetes#90217; Gardener, \
             shoot_status.md",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configuration(run),
};

/// The advice for a namespaceSelector that excludes `kube-system` by a label that Namespaces do not have.
const NAME_LABEL_HELP: &str = "Use the key kubernetes.io/metadata.name in the namespaceSelector. It is the only label \
                               that the API server sets to the name of the Namespace.";

/// The renewal of leases. A webhook that hangs delays it by the webhook's timeout, regardless of the failure policy.
struct Renewal {
    /// The namespace of the leases.
    namespace: &'static str,
    /// The client's request timeout, in seconds.
    gives_up_after: u64,
    /// The consequence of a late renewal for the holder of the lease.
    consequence: &'static str,
}

/// The renewals, sorted by the client's timeout in ascending order.
///
/// Source: client-go tools/leaderelection/resourcelock/interface.go, `NewFromKubeconfig`: the request timeout is half
/// of `renewDeadline`, which component-base config/v1alpha1/defaults.go sets to 10 s; kubernetes
/// cmd/kubelet/app/server.go: the timeout of the heartbeat client is `nodeStatusUpdateFrequency`, 10 s by default;
/// pkg/controller/nodelifecycle/config/v1alpha1/defaults.go: a node becomes `NotReady` after 50 s without a heartbeat.
const RENEWALS: [Renewal; 2] = [
    Renewal {
        namespace: "kube-system",
        gives_up_after: 5,
        consequence: "a leader gives up each renewal after 5 s and loses its lease after 10 s",
    },
    Renewal {
        namespace: "kube-node-lease",
        gives_up_after: 10,
        consequence: "a kubelet gives up each renewal after 10 s, and its node becomes NotReady after 50 s",
    },
];

/// Objects that the cluster depends on, as (group, version, resource, kind, subresource, namespace, name).
const SYSTEM: [(&str, &str, &str, &str, &str, &str, &str); 28] = [
    ("", "v1", "pods", "Pod", "", "kube-system", "kube-proxy-abcde"),
    ("", "v1", "pods", "Pod", "status", "kube-system", "kube-proxy-abcde"),
    ("", "v1", "pods", "Binding", "binding", "kube-system", "kube-proxy-abcde"),
    ("", "v1", "serviceaccounts", "TokenRequest", "token", "kube-system", "kube-proxy"),
    ("", "v1", "configmaps", "ConfigMap", "", "kube-system", "coredns"),
    ("", "v1", "secrets", "Secret", "", "kube-system", "bootstrap-token-abcdef"),
    ("", "v1", "serviceaccounts", "ServiceAccount", "", "kube-system", "kube-proxy"),
    ("", "v1", "services", "Service", "", "kube-system", "kube-dns"),
    ("", "v1", "endpoints", "Endpoints", "", "kube-system", "kube-dns"),
    ("", "v1", "endpoints", "Endpoints", "", "default", "kubernetes"),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", "", "default", "kubernetes"),
    ("apps", "v1", "controllerrevisions", "ControllerRevision", "", "kube-system", "kube-proxy-1"),
    ("apps", "v1", "daemonsets", "DaemonSet", "", "kube-system", "kube-proxy"),
    ("apps", "v1", "deployments", "Deployment", "", "kube-system", "coredns"),
    ("apps", "v1", "replicasets", "ReplicaSet", "", "kube-system", "coredns-1"),
    ("coordination.k8s.io", "v1", "leases", "Lease", "", "kube-system", "kube-scheduler"),
    ("coordination.k8s.io", "v1", "leases", "Lease", "", "kube-node-lease", "node-1"),
    ("", "v1", "nodes", "Node", "", "", "node-1"),
    ("", "v1", "nodes", "Node", "status", "", "node-1"),
    ("", "v1", "namespaces", "Namespace", "", "kube-system", "kube-system"),
    ("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", "", "", "csr-1"),
    (
        "certificates.k8s.io",
        "v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        "status",
        "",
        "csr-1",
    ),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "", "", "system:node"),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", "", "", "system:node"),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "roles",
        "Role",
        "",
        "kube-system",
        "system:controller:bootstrap-signer",
    ),
    ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "", "", "system-node-critical"),
    ("apiregistration.k8s.io", "v1", "apiservices", "APIService", "", "", "v1."),
    (
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "",
        "",
        "a.example.com",
    ),
];

pub(super) fn run(subject: &Subject, cluster_fixture: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.rules.is_empty() {
        return Err(Skipped::not_applicable("the webhook has no rules and is never called"));
    }
    let mut caught = BTreeSet::new();
    let mut leases = BTreeSet::new();
    let mut unclear = None;
    let mut shown = None;
    for (group, version, resource, kind, subresource, namespace, name) in SYSTEM {
        let place = RequestTarget { group, version, resource, kind, subresource, namespace, name };
        let catch = match_outcome::is_called_for_writes(
            webhook,
            &place,
            &match_outcome::LabelSet::new(),
            cluster_fixture,
        );
        let mut name = resource.to_owned();
        if !subresource.is_empty() {
            name = format!("{name}/{subresource}");
        }
        if !namespace.is_empty() {
            name = format!("{name} in {namespace}");
        }
        match catch {
            MatchOutcome::Called => {
                if resource == "leases" {
                    leases.insert(namespace);
                }
                if shown.is_none() && subresource.is_empty() && kind != "Namespace" {
                    let needed = (group, version, resource, kind);
                    shown = outage::request(webhook, needed, namespace, cluster_fixture);
                }
                caught.insert(name);
            }
            MatchOutcome::NotCalled => {}
            MatchOutcome::Unclear(why) => {
                unclear.get_or_insert((name, why));
            }
        }
    }
    if let (true, Some((name, why))) = (caught.is_empty(), unclear) {
        return Err(match_outcome::unclear(&name, &why));
    }
    let mut violations = Vec::new();
    let timeout = webhook.timeout.as_secs();
    let mut renewals = RENEWALS.iter().filter(|renewal| leases.contains(renewal.namespace));
    if let Some(renewal) = renewals.find(|renewal| timeout >= renewal.gives_up_after) {
        let Renewal { namespace, gives_up_after, consequence } = renewal;
        let message = format!(
            "the webhook is called for leases in {namespace} with a timeout of {timeout} s: while it hangs, \
             {consequence}; set timeoutSeconds to less than {gives_up_after}, or exclude leases"
        );
        violations.push(Violation::new("may delay lease renewals too long", message).at("timeoutSeconds"));
    }
    if !caught.is_empty() {
        let caught = caught.into_iter().collect::<Vec<_>>().join(", ");
        let (severity, policy) = match webhook.failure_policy {
            FailurePolicy::Fail => (Severity::Error, "Fail"),
            FailurePolicy::Ignore => (Severity::Warning, "Ignore"),
        };
        let message = format!(
            "with failurePolicy {policy}, the webhook is called for {caught}; exclude them with rules or a \
             namespaceSelector"
        );
        let mut violation = Violation::new("matches system resources", message).with_severity(severity);
        if excludes_by_unset_label(subject) {
            violation = violation.with_help(NAME_LABEL_HELP);
        }
        violations.push(violation.with_requests(shown).at("rules"));
    }
    Ok(violations)
}

/// Returns whether the namespaceSelector names `kube-system` as the value of a label that the API server does not set.
fn excludes_by_unset_label(subject: &Subject) -> bool {
    let webhook = subject.configuration.get("webhooks").and_then(|webhooks| webhooks.get(subject.index));
    let selector = webhook.map_or(&Value::Null, |webhook| at(webhook, &["namespaceSelector"]));
    let expressions = at(selector, &["matchExpressions"]).as_array().into_iter().flatten();
    let mut expressions = expressions.filter(|expression| text(expression, &["key"]) != NAME_LABEL);
    expressions.any(|expression| {
        at(expression, &["values"])
            .as_array()
            .is_some_and(|values| values.iter().any(|value| value == "kube-system"))
    })
}
