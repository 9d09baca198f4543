//! `PodSecurity`: the Pod Security Standards that the labels of namespaces ask for.

mod baseline;
mod checks;
mod policy;
mod restricted;
mod words;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use self::checks::{details, reasons, violations};
use self::policy::{Level, LevelVersion, PREFIX, Policy};
use super::containers::items;
use super::forbidden;
use crate::attributes::{Attributes, Operation};
use crate::json::{at, text};
use crate::plugin::{Plugin, Remarks};
use crate::server::storage::ObjectReader;
use crate::status::{FieldError, Status, aggregate};

/// Refuses Pods that violate what their namespace enforces, and says what violates what it audits and warns of, also in the
/// templates of workloads. Refuses labels of namespaces that it cannot understand, and warns of the Pods that a new label
/// would refuse.
///
/// Source: kubernetes plugin/pkg/admission/security/podsecurity/admission.go; pod-security-admission
/// admission/admission.go.
pub(crate) struct PodSecurity {
    objects: Arc<dyn ObjectReader>,
}

/// Of how many Pods a namespace's new labels are compared.
const MOST_PODS: usize = 3000;

impl PodSecurity {
    /// The plugin of a server with these objects.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }

    fn check_namespace(&self, attributes: &Attributes, remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let Some(namespace) = attributes.object.as_ref().filter(|_| attributes.subresource.is_empty()) else {
            return Ok(());
        };
        let (new, errors) = Policy::of(namespace);
        let old = attributes.old_object.as_ref().filter(|_| attributes.operation == Operation::Update);
        let old = old.map(Policy::of);
        if !errors.is_empty() && old.as_ref().is_none_or(|(_, old)| *old != errors) {
            let (group, kind) = (&attributes.kind.group, &attributes.kind.kind);
            return Err(Box::new(Status::invalid(group, kind, &attributes.name, &errors)));
        }
        let Some((old, _)) = old else { return Ok(()) };
        let is_relaxed = new.enforce.version == old.enforce.version && new.enforce.level <= old.enforce.level;
        if new.enforce.level != Level::Privileged && !is_relaxed {
            remarks.warnings = self.existing(text(namespace, &["metadata", "name"]), new.enforce);
        }
        Ok(())
    }

    /// Warnings of the Pods that are there and violate what is enforced from now on.
    fn existing(&self, namespace: &str, enforce: LevelVersion) -> Vec<String> {
        let pods = self.objects.list("", "pods", namespace);
        let mut controllers = HashSet::new();
        // One Pod of each controller comes first.
        let is_first = |pod: &&Arc<Value>| {
            let owners = items(at(pod, &["metadata"]), "ownerReferences");
            let controller = owners.into_iter().find(|owner| at(owner, &["controller"]) == true);
            controller.is_none_or(|owner| controllers.insert(text(owner, &["uid"]).to_owned()))
        };
        let (first, others): (Vec<_>, Vec<_>) = pods.iter().partition(is_first);
        let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for pod in first.into_iter().chain(others).take(MOST_PODS) {
            let violations = violations(enforce, at(pod, &["metadata"]), at(pod, &["spec"]));
            if !violations.is_empty() {
                found.entry(reasons(&violations)).or_default().push(text(pod, &["metadata", "name"]));
            }
        }
        let mut warnings = Vec::new();
        if pods.len() > MOST_PODS {
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {MOST_PODS} of {} existing pods",
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
        /// Subresources whose object is not a Pod, or that the standards do not cover.
        const IGNORED: [&str; 8] =
            ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];
        if IGNORED.contains(&attributes.subresource.as_str()) {
            return Ok(());
        }
        let name = &attributes.namespace;
        let Some(namespace) = self.objects.get("", "namespaces", "", name) else {
            let status = Box::new(Status::internal_error(&format!("failed to lookup namespace \"{name}\"")));
            let error = format!("{}: namespaces \"{name}\" not found", status.message);
            annotate(remarks, "error", error);
            return Err(status);
        };
        let (policy, errors) = Policy::of(&namespace);
        if errors.is_empty() && policy.is_privileged() {
            annotate(remarks, "enforce-policy", Policy::default().enforce.to_string());
            return Ok(());
        }
        let Some(pod) = &attributes.object else { return Ok(()) };
        let old = attributes.old_object.as_ref().filter(|_| attributes.operation == Operation::Update);
        if old.is_some_and(|old| !is_significant(pod, old)) {
            return Ok(());
        }
        annotate_errors(remarks, &errors);
        annotate(remarks, "enforce-policy", policy.enforce.to_string());
        let found = violations(policy.enforce, at(pod, &["metadata"]), at(pod, &["spec"]));
        let refused = !found.is_empty();
        remark(policy, !refused, pod, remarks);
        if refused {
            let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, details(&found));
            return Err(forbidden(attributes, &why));
        }
        Ok(())
    }

    fn check_workload(&self, attributes: &Attributes, template: &[&str], remarks: &mut Remarks) {
        let name = &attributes.namespace;
        let Some(workload) = attributes.object.as_ref().filter(|_| attributes.subresource.is_empty()) else {
            return;
        };
        let Some(namespace) = self.objects.get("", "namespaces", "", name) else {
            let error = format!("failed to lookup namespace \"{name}\": namespaces \"{name}\" not found");
            annotate(remarks, "error", error);
            return;
        };
        let (policy, errors) = Policy::of(&namespace);
        let is_privileged = [policy.audit, policy.warn].iter().all(|mode| mode.level == Level::Privileged);
        let template = at(workload, template);
        if (errors.is_empty() && is_privileged) || template.is_null() {
            return;
        }
        annotate_errors(remarks, &errors);
        remark(policy, true, template, remarks);
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

/// What is audited and warned of.
///
/// Source: pod-security-admission admission/admission.go, `EvaluatePod`.
fn remark(policy: Policy, may_warn: bool, pod: &Value, remarks: &mut Remarks) {
    let would_violate = |mode: LevelVersion| {
        let found = violations(mode, at(pod, &["metadata"]), at(pod, &["spec"]));
        (!found.is_empty()).then(|| format!("would violate PodSecurity \"{mode}\": {}", details(&found)))
    };
    if let Some(audited) = would_violate(policy.audit) {
        annotate(remarks, "audit-violations", audited);
    }
    if may_warn {
        remarks.warnings.extend(would_violate(policy.warn));
    }
}

fn annotate(remarks: &mut Remarks, key: &str, value: String) {
    remarks.audit_annotations.insert(format!("{PREFIX}{key}"), value);
}

fn annotate_errors(remarks: &mut Remarks, errors: &[FieldError]) {
    if !errors.is_empty() {
        let errors = aggregate(errors.iter().map(ToString::to_string));
        annotate(remarks, "error", format!("Failed to parse policy: {errors}"));
    }
}

/// Whether an update changes what matters: containers that come or go, images, ephemeral containers.
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
    let old_ephemeral = of(old, "ephemeralContainers");
    let is_new = |(name, image): &(String, String)| {
        old_ephemeral.iter().find(|(old, _)| old == name).is_none_or(|(_, old)| old != image)
    };
    ["containers", "initContainers"].iter().any(|list| images(pod, list) != images(old, list))
        || of(pod, "ephemeralContainers").iter().any(is_new)
}
