//! `PodSecurity`: enforces the Pod Security Standards that the labels of namespaces select.

mod baseline;
mod checks;
mod configuration;
mod messages;
mod policy;
mod restricted;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::metrics::{PodSecurityCounters, PodSecurityRequest};
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::{at, text};
use kubernetes_types::status::{FieldError, Status, aggregate};
use serde_json::Value;

use self::checks::{details, reasons, violations};
pub use self::configuration::{PodSecurityConfiguration, PodSecurityDefaults, PodSecurityExemptions};
use self::policy::{Level, LevelVersion, PREFIX, Policy};
use super::containers::items;
use super::forbidden;
use crate::storage::ObjectReader;

/// Rejects Pods that violate the enforced level of their namespace.
///
/// Reports violations of the audit and warn levels in Pods and in the pod templates of workloads. Rejects invalid
/// namespace labels and warns about existing Pods that violate a new label. Skips exempt requests.
///
/// Source: kubernetes plugin/pkg/admission/security/podsecurity/admission.go; pod-security-admission
/// admission/admission.go.
pub(crate) struct PodSecurity {
    objects: Arc<dyn ObjectReader>,
    configuration: PodSecurityConfiguration,
    counters: PodSecurityCounters,
}

/// The maximum number of Pods that are checked when the labels of a namespace change.
const MAX_PODS_TO_CHECK: usize = 3000;

impl PodSecurity {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(
        objects: Arc<dyn ObjectReader>,
        configuration: PodSecurityConfiguration,
        counters: PodSecurityCounters,
    ) -> Self {
        Self { objects, configuration, counters }
    }

    fn policy(&self, namespace: &Value) -> (Policy, Vec<FieldError>) {
        Policy::from_labels(namespace, self.configuration.defaults)
    }

    fn check_namespace(&self, attributes: &Attributes, remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let Some(namespace) = attributes.object.as_ref().filter(|_| attributes.subresource.is_empty()) else {
            return Ok(());
        };
        let (new, errors) = self.policy(namespace);
        let old = attributes.old_object.as_ref().filter(|_| attributes.operation == Operation::Update);
        let old = old.map(|old| self.policy(old));
        if !errors.is_empty() && old.as_ref().is_none_or(|(_, old)| *old != errors) {
            let (group, kind) = (&attributes.kind.group, &attributes.kind.kind);
            return Err(Box::new(Status::invalid(group, kind, &attributes.name, &errors)));
        }
        if let Some((old, _)) = &old {
            let is_relaxed =
                new.enforce.version == old.enforce.version && new.enforce.level <= old.enforce.level;
            if new.enforce.level == Level::Privileged || is_relaxed {
                return Ok(());
            }
        }
        if self.configuration.is_exempt_namespace(&attributes.namespace) {
            remarks.warnings.extend(new.ignored(namespace, &self.configuration.defaults));
        } else if old.is_some() {
            remarks.warnings = self.existing(text(namespace, &["metadata", "name"]), new.enforce);
        }
        Ok(())
    }

    /// Returns warnings about existing Pods that violate the newly enforced level.
    fn existing(&self, namespace: &str, enforce: LevelVersion) -> Vec<String> {
        let mut pods = self.objects.list("", "pods", namespace);
        pods.retain(|pod| !self.configuration.is_exempt_runtime_class(at(pod, &["spec"])));
        let mut controllers = HashSet::new();
        // One Pod of each controller is checked first.
        let is_first = |pod: &&Arc<Value>| {
            let owners = items(at(pod, &["metadata"]), "ownerReferences");
            let controller = owners.into_iter().find(|owner| at(owner, &["controller"]) == true);
            controller.is_none_or(|owner| controllers.insert(text(owner, &["uid"]).to_owned()))
        };
        let (first, others): (Vec<_>, Vec<_>) = pods.iter().partition(is_first);
        let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for pod in first.into_iter().chain(others).take(MAX_PODS_TO_CHECK) {
            let violations = violations(enforce, at(pod, &["metadata"]), at(pod, &["spec"]));
            if !violations.is_empty() {
                found.entry(reasons(&violations)).or_default().push(text(pod, &["metadata", "name"]));
            }
        }
        let mut warnings = Vec::new();
        if pods.len() > MAX_PODS_TO_CHECK {
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {MAX_PODS_TO_CHECK} of {} existing pods",
                pods.len()
            ));
        }
        if !found.is_empty() {
            warnings.push(format!(
                "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{enforce}\""
            ));
        }
        let mut of_pods: Vec<String> = found
            .into_iter()
            .map(|(reasons, pods)| {
                let name = pods.iter().min().copied().unwrap_or_default();
                match pods.len() {
                    1 => format!("{name}: {reasons}"),
                    2 => format!("{name} (and 1 other pod): {reasons}"),
                    count => format!("{name} (and {} other pods): {reasons}", count - 1),
                }
            })
            .collect();
        of_pods.sort_unstable();
        warnings.extend(of_pods);
        warnings
    }

    fn check_pod(&self, attributes: &Attributes, remarks: &mut Remarks) -> Result<(), Box<Status>> {
        /// The subresources that do not contain a Pod or are not covered by the standards.
        const IGNORED: [&str; 8] =
            ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];
        if IGNORED.contains(&attributes.subresource.as_str()) {
            return Ok(());
        }
        if self.is_exempt(attributes, remarks) {
            return Ok(());
        }
        let name = &attributes.namespace;
        let Some(namespace) = self.objects.get("", "namespaces", "", name) else {
            let status = Box::new(Status::internal_error(&format!("failed to lookup namespace \"{name}\"")));
            let error = format!("{}: namespaces \"{name}\" not found", status.message);
            annotate(remarks, "error", error);
            self.counters.failed(true, labels(attributes));
            return Err(status);
        };
        let (policy, errors) = self.policy(&namespace);
        if errors.is_empty() && policy.is_privileged() {
            annotate(remarks, "enforce-policy", Policy::default().enforce.to_string());
            self.evaluated(true, policy.enforce, "enforce", attributes);
            return Ok(());
        }
        let Some(pod) = &attributes.object else { return Ok(()) };
        let old = attributes.old_object.as_ref().filter(|_| attributes.operation == Operation::Update);
        if old.is_some_and(|old| !is_significant(pod, old)) {
            return Ok(());
        }
        if self.is_exempt_by_runtime_class(pod, attributes, remarks) {
            return Ok(());
        }
        self.note_errors(&errors, attributes, remarks);
        annotate(remarks, "enforce-policy", policy.enforce.to_string());
        let mut evaluation = Evaluation::new(pod);
        let refused = evaluation.violations(policy.enforce).map(str::to_owned);
        self.evaluated(refused.is_none(), policy.enforce, "enforce", attributes);
        self.remark(policy, refused.is_none(), &mut evaluation, (attributes, remarks));
        match refused {
            None => Ok(()),
            Some(found) => {
                let why = format!("violates PodSecurity \"{}\": {found}", policy.enforce);
                Err(forbidden(attributes, &why))
            }
        }
    }

    /// Returns whether the namespace or the user is exempt. Adds an audit annotation for an exempt request.
    fn is_exempt(&self, attributes: &Attributes, remarks: &mut Remarks) -> bool {
        let exempt = if self.configuration.is_exempt_namespace(&attributes.namespace) {
            "namespace"
        } else if self.configuration.is_exempt_user(&attributes.user.username) {
            "user"
        } else {
            return false;
        };
        annotate(remarks, "exempt", exempt.to_owned());
        self.counters.exempt(labels(attributes));
        true
    }

    /// Returns whether the runtime class of a Pod or a pod template is exempt. Adds an audit annotation if so.
    fn is_exempt_by_runtime_class(
        &self,
        pod: &Value,
        attributes: &Attributes,
        remarks: &mut Remarks,
    ) -> bool {
        let is_exempt = self.configuration.is_exempt_runtime_class(at(pod, &["spec"]));
        if is_exempt {
            annotate(remarks, "exempt", "runtimeClass".to_owned());
            self.counters.exempt(labels(attributes));
        }
        is_exempt
    }

    fn check_workload(&self, attributes: &Attributes, template: &[&str], remarks: &mut Remarks) {
        let name = &attributes.namespace;
        let Some(workload) = attributes.object.as_ref().filter(|_| attributes.subresource.is_empty()) else {
            return;
        };
        if self.is_exempt(attributes, remarks) {
            return;
        }
        let Some(namespace) = self.objects.get("", "namespaces", "", name) else {
            let error = format!("failed to lookup namespace \"{name}\": namespaces \"{name}\" not found");
            annotate(remarks, "error", error);
            self.counters.failed(true, labels(attributes));
            return;
        };
        let (policy, errors) = self.policy(&namespace);
        let is_privileged = [policy.audit, policy.warn].iter().all(|mode| mode.level == Level::Privileged);
        let template = at(workload, template);
        if (errors.is_empty() && is_privileged) || template.is_null() {
            return;
        }
        if self.is_exempt_by_runtime_class(template, attributes, remarks) {
            return;
        }
        self.note_errors(&errors, attributes, remarks);
        self.remark(policy, true, &mut Evaluation::new(template), (attributes, remarks));
    }

    /// Adds the audit annotations and the warnings for the violations of a policy.
    ///
    /// Source: pod-security-admission admission/admission.go, `EvaluatePod`.
    fn remark(
        &self,
        policy: Policy,
        may_warn: bool,
        evaluation: &mut Evaluation<'_>,
        (attributes, remarks): (&Attributes, &mut Remarks),
    ) {
        let mut would_violate = |mode: LevelVersion, name: &str| {
            let found = evaluation.violations(mode)?;
            self.evaluated(false, mode, name, attributes);
            Some(format!("would violate PodSecurity \"{mode}\": {found}"))
        };
        if let Some(audited) = would_violate(policy.audit, "audit") {
            annotate(remarks, "audit-violations", audited);
        }
        if may_warn {
            remarks.warnings.extend(would_violate(policy.warn, "warn"));
        }
    }

    /// Reports the errors for invalid namespace labels in the audit annotations and the metrics.
    fn note_errors(&self, errors: &[FieldError], attributes: &Attributes, remarks: &mut Remarks) {
        if !errors.is_empty() {
            let errors = aggregate(errors.iter().map(ToString::to_string));
            annotate(remarks, "error", format!("Failed to parse policy: {errors}"));
            self.counters.failed(false, labels(attributes));
        }
    }

    /// Counts the evaluation of a level and version in the metrics.
    fn evaluated(&self, is_allowed: bool, evaluated: LevelVersion, mode: &str, attributes: &Attributes) {
        let (level, version) = (evaluated.level.to_string(), evaluated.version_label());
        self.counters.evaluated(is_allowed, (&level, &version), mode, labels(attributes));
    }
}

impl Plugin for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn validate(&self, attributes: &Attributes, remarks: &mut Remarks) -> Result<(), Box<Status>> {
        if !matches!(attributes.operation, Operation::Create | Operation::Update) {
            return Ok(());
        }
        let template: &[&str] = match attributes.resource.group_resource().as_str() {
            "namespaces" => return self.check_namespace(attributes, remarks),
            "pods" => return self.check_pod(attributes, remarks),
            "podtemplates" => &["template"],
            "replicationcontrollers"
            | "replicasets.apps"
            | "deployments.apps"
            | "statefulsets.apps"
            | "daemonsets.apps"
            | "jobs.batch" => &["spec", "template"],
            "cronjobs.batch" => &["spec", "jobTemplate", "spec", "template"],
            _ => return Ok(()),
        };
        self.check_workload(attributes, template, remarks);
        Ok(())
    }
}

/// Evaluates a Pod or a pod template, at most once per level and version.
///
/// Source: pod-security-admission admission/admission.go, `EvaluatePod`, `cachedResults`.
struct Evaluation<'a> {
    pod: &'a Value,
    /// The details of the violations by level and version; `None` if there are no violations.
    found: HashMap<LevelVersion, Option<String>>,
}

impl<'a> Evaluation<'a> {
    fn new(pod: &'a Value) -> Self {
        Self { pod, found: HashMap::new() }
    }

    /// Returns the details of the violations; `None` if there are no violations.
    fn violations(&mut self, mode: LevelVersion) -> Option<&str> {
        let evaluate = || {
            let found = violations(mode, at(self.pod, &["metadata"]), at(self.pod, &["spec"]));
            (!found.is_empty()).then(|| details(&found))
        };
        self.found.entry(mode).or_insert_with(evaluate).as_deref()
    }
}

/// Returns the metric labels of a request.
fn labels(attributes: &Attributes) -> PodSecurityRequest<'_> {
    PodSecurityRequest {
        operation: if attributes.operation == Operation::Create { "create" } else { "update" },
        resource: if attributes.resource.group_resource() == "pods" { "pod" } else { "controller" },
        subresource: &attributes.subresource,
    }
}

fn annotate(remarks: &mut Remarks, key: &str, value: String) {
    remarks.audit_annotations.insert(format!("{PREFIX}{key}"), value);
}

/// Returns whether an update changes the images of the containers, or adds or changes an ephemeral container.
///
/// Source: pod-security-admission admission/admission.go, `isSignificantPodUpdate`.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let of = |pod: &Value, list: &str| -> Vec<(String, String)> {
        let containers = items(at(pod, &["spec"]), list);
        let read = |container: &Value| {
            (text(container, &["name"]).to_owned(), text(container, &["image"]).to_owned())
        };
        containers.map(read).collect()
    };
    let images =
        |pod: &Value, list: &str| of(pod, list).into_iter().map(|(_, image)| image).collect::<Vec<_>>();
    // If containers have the same name, the first one is used, so it is collected last.
    let old_ephemeral: HashMap<String, String> = of(old, "ephemeralContainers").into_iter().rev().collect();
    let is_new = |(name, image): &(String, String)| old_ephemeral.get(name) != Some(image);
    ["containers", "initContainers"].iter().any(|list| images(pod, list) != images(old, list))
        || of(pod, "ephemeralContainers").iter().any(is_new)
}
