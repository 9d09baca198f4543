//! V49: webhooks do not depend on each other or on the issuers of their certificates.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kubernetes_admission::config::{FailurePolicy, WebhookTarget};
use kubernetes_types::json::at;

use super::backend::{self, BACKEND, DEPLOYMENTS, Needed, PODS, REPLICA_SETS, SECRETS};
use super::{match_outcome, outage};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::sample_request::SampleRequest;
use crate::subject::Subject;
use crate::webhook_probe::ConfigurationSet;

pub(super) const CHECK: Check = Check {
    id: "V49",
    title: "dependency loops: webhooks with failurePolicy Fail do not depend on each other or on the issuer \
            of their certificates",
    severity: Severity::Error,
    why: "Two webhooks that each exclude their own namespace, and are each called for the other's Pods, \
          start one after the other without a problem. When both are down, after a power failure or an \
          upgrade of all nodes, each blocks the other's Pods. The same holds for the issuer of a \
          certificate: a webhook that blocks everything because its certificate has expired also blocks the \
          Secret with the new one. V50 covers the network and DNS Pods in kube-system.",
    help: "Exclude the namespaces of the other webhooks and of the certificate issuer with a \
           namespaceSelector.",
    source: "Admission Webhook Good Practices, Avoid dependency loops; cert-manager, CA Injector; \
             OpenShift, Service CA \
             certificates",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configurations(run),
};

/// The namespace that cert-manager's manifests use, and the name of its webhook.
const CERT_MANAGER: &str = "cert-manager";
const CERT_MANAGERS_WEBHOOK: &str = "webhook.cert-manager.io";
/// The namespace of the controller that issues serving certificates in `OpenShift`.
const SERVICE_CA: &str = "openshift-service-ca";
/// The kinds of objects that are required to start a process.
const WORKLOAD: [Needed; 3] = [PODS, REPLICA_SETS, DEPLOYMENTS];
const CERTIFICATES: [Needed; 3] = [
    SECRETS,
    ("cert-manager.io", "v1", "certificates", "Certificate"),
    ("cert-manager.io", "v1", "certificaterequests", "CertificateRequest"),
];

/// The Service of a webhook, as namespace and name.
type Backend<'a> = (&'a str, &'a str);

/// Objects that must be written in a namespace before a backend can start.
struct Need<'a> {
    objects: &'static [Needed],
    namespace: &'a str,
    name: &'a str,
    /// The purpose of the objects, as a phrase that follows "needed for".
    what: &'static str,
    /// Whether the objects are required for the certificate rather than for the backend itself.
    is_for_certificate: bool,
}

/// The reason why a backend waits for another backend.
#[derive(Clone, Debug)]
struct Reason<'a> {
    text: String,
    severity: Severity,
    /// The reason why it is unknown whether match conditions exclude the objects, if it is unknown.
    unclear: Option<String>,
    /// The webhook that is called when the objects are written.
    asked: &'a Subject,
    /// A request that fails while the webhook is down, or `None` if admit cannot build such a request.
    shown: Option<SampleRequest>,
}

impl Reason<'_> {
    /// Returns a key that sorts reasons by certainty in ascending order.
    fn weight(&self) -> (bool, Severity) {
        (self.unclear.is_none(), self.severity)
    }
}

fn run(configuration_set: &ConfigurationSet<'_>) -> Observed {
    let closed: Vec<&Subject> = configuration_set
        .subjects
        .iter()
        .copied()
        .filter(|subject| subject.webhook.failure_policy == FailurePolicy::Fail)
        .collect();
    if closed.is_empty() {
        return Err(Skipped::not_applicable("no webhook has failurePolicy Fail: none can block a restart"));
    }
    let elsewhere: Vec<String> =
        closed.iter().filter(|subject| backend(subject).is_none()).map(|subject| subject.name()).collect();
    if !elsewhere.is_empty() {
        configuration_set.notes.add(format!(
            "the clientConfig of {} has a URL: the namespaces of their backends are unknown, and loops \
             through them are not detected",
            elsewhere.join(", ")
        ));
    }
    let of_cert_manager =
        configuration_set.subjects.iter().find(|subject| subject.webhook.id.name == CERT_MANAGERS_WEBHOOK);
    let cert_manager =
        of_cert_manager.and_then(|subject| backend(subject)).map_or(CERT_MANAGER, |(namespace, _)| namespace);
    let mut needs: BTreeMap<Backend<'_>, Vec<Need<'_>>> = BTreeMap::new();
    for subject in &closed {
        let Some(own) = backend(subject) else { continue };
        let of_backend = needs.entry(own).or_insert_with(|| vec![of_backend(own)]);
        of_backend.extend(of_certificate(subject, own, cert_manager));
    }
    let has_issuer = needs.values().flatten().any(|need| need.is_for_certificate);
    match needs.len() {
        0 => {
            return Err(Skipped::not_applicable("the namespaces of the backends are unknown: see the notes"));
        }
        1 if !has_issuer => {
            let reason = "only one backend has failurePolicy Fail, and the issuer of its certificate is \
                          unknown";
            return Err(Skipped::not_applicable(reason));
        }
        _ => {}
    }
    let waits = waits(&needs, &closed, configuration_set);
    let mut violations = Vec::new();
    let mut unclear = Ok(Vec::new());
    let mut known = BTreeSet::new();
    for start in needs.keys().copied() {
        let Some(cycle) = shortest(start, &waits) else { continue };
        let members: BTreeSet<Backend<'_>> = cycle.iter().copied().collect();
        if known.insert(members) {
            match violation_of(&cycle, &waits) {
                Ok(found) => violations.extend(found),
                skip => unclear = skip,
            }
        }
    }
    if violations.is_empty() { unclear } else { Ok(violations) }
}

/// Returns the Service of a webhook, or `None` for a webhook with a URL.
fn backend(subject: &Subject) -> Option<Backend<'_>> {
    match &subject.webhook.client_config.target {
        WebhookTarget::Service(service) => Some((&service.namespace, &service.name)),
        WebhookTarget::Url(_) => None,
    }
}

fn of_backend((namespace, name): Backend<'_>) -> Need<'_> {
    Need { objects: &BACKEND, namespace, name, what: "its own backend", is_for_certificate: false }
}

/// Returns the objects that are required to renew a webhook's certificate, if annotations name the issuer.
///
/// Source: cert-manager pkg/apis/certmanager/v1/types.go, `WantInjectAnnotation` and adjacent constants;
/// openshift/service-ca-operator, `service.beta.openshift.io/inject-cabundle`.
fn of_certificate<'a>(subject: &'a Subject, (own, _): Backend<'a>, cert_manager: &'a str) -> Vec<Need<'a>> {
    let annotation = |key: &str| {
        let annotations = at(&subject.configuration, &["metadata", "annotations"]);
        annotations.get(key).and_then(|value| value.as_str()).filter(|value| !value.is_empty())
    };
    let need =
        |objects, namespace, name, what| Need { objects, namespace, name, what, is_for_certificate: true };
    let mut needs = Vec::new();
    if let Some((namespace, name)) =
        annotation("cert-manager.io/inject-ca-from").and_then(|at| at.split_once('/'))
    {
        needs.push(need(&CERTIFICATES, namespace, name, "its certificate, which cert-manager issues"));
        needs.push(need(&WORKLOAD, cert_manager, CERT_MANAGER, "cert-manager, which issues its certificate"));
    }
    if let Some((namespace, name)) =
        annotation("cert-manager.io/inject-ca-from-secret").and_then(|at| at.split_once('/'))
    {
        needs.push(need(
            &CERTIFICATES[..1],
            namespace,
            name,
            "its certificate, whose CA cert-manager injects",
        ));
        needs.push(need(&WORKLOAD, cert_manager, CERT_MANAGER, "cert-manager, which injects its caBundle"));
    }
    if annotation("service.beta.openshift.io/inject-cabundle") == Some("true") {
        needs.push(need(
            &CERTIFICATES[..1],
            own,
            "serving-cert",
            "its certificate, which the Service CA issues",
        ));
        needs.push(need(&WORKLOAD, SERVICE_CA, "service-ca", "the Service CA, which issues its certificate"));
    }
    needs
}

type Waits<'a> = BTreeMap<Backend<'a>, BTreeMap<Backend<'a>, Reason<'a>>>;

/// Returns for each backend which other backends it waits for, and why.
fn waits<'a>(
    needs: &BTreeMap<Backend<'a>, Vec<Need<'a>>>,
    closed: &[&'a Subject],
    configuration_set: &ConfigurationSet<'_>,
) -> Waits<'a> {
    let mut waits = Waits::new();
    for (waiting, need) in
        needs.iter().flat_map(|(waiting, needs)| needs.iter().map(move |need| (*waiting, need)))
    {
        for subject in closed {
            let Some(asked) = backend(subject) else { continue };
            let is_own = asked == waiting;
            if is_own && !need.is_for_certificate {
                continue;
            }
            let at = (need.namespace, need.name);
            let mut caught =
                backend::caught(&subject.webhook, need.objects, at, configuration_set.cluster_fixture);
            if is_own && need.namespace == waiting.0 {
                for resources in [&mut caught.resources, &mut caught.unclear] {
                    resources.retain(|resource| BACKEND.iter().all(|(_, _, needed, _)| needed != resource));
                }
            }
            let (resources, unclear) = match (caught.resources, caught.unclear) {
                (resources, unclear) if resources.is_empty() && unclear.is_empty() => continue,
                (resources, unclear) if resources.is_empty() => (unclear, Some(caught.why)),
                (resources, _) => (resources, None),
            };
            let (severity, unless) = backend::certainty(&subject.webhook);
            let text = format!(
                "{} is called for {} in {}, needed for {}{unless}",
                subject.name(),
                resources.join(", "),
                need.namespace,
                need.what
            );
            let mut shown = need.objects.iter().filter(|needed| resources.contains(&needed.2));
            let shown = shown.find_map(|needed| {
                outage::request(&subject.webhook, *needed, need.namespace, configuration_set.cluster_fixture)
            });
            let reason = Reason { text, severity, unclear, asked: subject, shown };
            let known = waits.entry(waiting).or_default().entry(asked).or_insert_with(|| reason.clone());
            if known.weight() < reason.weight() {
                *known = reason;
            }
        }
    }
    waits
}

/// Returns the shortest cycle through `start`, if any.
fn shortest<'a>(start: Backend<'a>, waits: &Waits<'a>) -> Option<Vec<Backend<'a>>> {
    let mut ways = VecDeque::from([vec![start]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in waits.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
            if *next == start {
                return Some(way);
            }
            if seen.insert(*next) {
                let mut longer = way.clone();
                longer.push(*next);
                ways.push_back(longer);
            }
        }
    }
    None
}

/// Returns the violation for a dependency loop, unless match conditions may break the loop.
fn violation_of(cycle: &[Backend<'_>], waits: &Waits<'_>) -> Observed {
    let name = |(namespace, name): &Backend<'_>| format!("{namespace}/{name}");
    let mut names: Vec<String> = cycle.iter().map(name).collect();
    let reasons: Vec<(String, &Reason<'_>)> = cycle
        .iter()
        .zip(cycle.iter().cycle().skip(1))
        .filter_map(|(waiting, asked)| Some((name(waiting), waits.get(waiting)?.get(asked)?)))
        .collect();
    let severity = reasons.iter().map(|(_, reason)| reason.severity).min().unwrap_or(Severity::Error);
    let texts: Vec<String> =
        reasons.iter().map(|(waiting, reason)| format!("{waiting} waits: {}", reason.text)).collect();
    names.sort();
    let (kind, end) = match names.as_slice() {
        [alone] => (
            format!("{alone} blocks the renewal of its own certificate"),
            "once it has expired, a cluster operator has to delete the configuration by hand",
        ),
        _ => (
            format!("{} wait for each other", names.join(", ")),
            "once all of them are down, a cluster operator has to delete a configuration by hand",
        ),
    };
    let shown: Option<Vec<SampleRequest>> = reasons.iter().map(|(_, reason)| reason.shown.clone()).collect();
    let violation = Violation::new(kind, format!("{}; {end}", texts.join("; "))).with_severity(severity);
    let violation = violation.with_requests(shown.unwrap_or_default());
    let first = reasons.first().map(|(_, reason)| &reason.asked.webhook.id);
    let violation = first.map_or(violation.clone(), |id| violation.about(id).at("namespaceSelector"));
    match reasons.iter().find_map(|(_, reason)| Some((reason.unclear.as_ref()?, reason.asked))) {
        None => Ok(vec![violation]),
        Some((why, asked)) => {
            let what = format!("a loop through {}: {}", asked.name(), violation.message);
            Err(match_outcome::unclear(&what, why))
        }
    }
}
