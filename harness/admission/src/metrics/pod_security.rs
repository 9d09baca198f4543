//! Counts the evaluations, exemptions, and errors of the plugin `PodSecurity`.

use prometheus::{IntCounterVec, Opts, Registry};

use super::registered;

/// The metric labels of a request that the plugin evaluates.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "upstream's metrics have these labels")]
pub struct PodSecurityRequest<'a> {
    /// `create` or `update`.
    pub operation: &'a str,
    /// `pod`, or `controller` for a workload.
    pub resource: &'a str,
    /// The subresource; may be empty.
    pub subresource: &'a str,
}

/// The counters of the plugin `PodSecurity`. Clones share their counters.
///
/// Source: pod-security-admission metrics/metrics.go.
#[derive(Clone, Debug)]
pub struct PodSecurityCounters {
    evaluations: IntCounterVec,
    exemptions: IntCounterVec,
    errors: IntCounterVec,
}

impl PodSecurityCounters {
    pub(super) fn new(registry: &Registry) -> Self {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let counter = registered(IntCounterVec::new(Opts::new(name, format!("[ALPHA] {help}")), labels));
            registered(registry.register(Box::new(counter.clone())));
            counter
        };
        let counters = Self {
            evaluations: counter(
                "pod_security_evaluations_total",
                "Number of policy evaluations that occurred, not counting ignored or exempt requests.",
                &[
                    "decision",
                    "policy_level",
                    "policy_version",
                    "mode",
                    "request_operation",
                    "resource",
                    "subresource",
                ],
            ),
            exemptions: counter(
                "pod_security_exemptions_total",
                "Number of exempt requests, not counting ignored or out of scope requests.",
                &["request_operation", "resource", "subresource"],
            ),
            errors: counter(
                "pod_security_errors_total",
                "Number of errors preventing normal evaluation. Non-fatal errors may result in the latest restricted \
                 profile being used for evaluation.",
                &["fatal", "request_operation", "resource", "subresource"],
            ),
        };
        // The server shows these before the first request.
        for operation in ["create", "update"] {
            let labels = ["allow", "privileged", "latest", "enforce", operation, "pod", ""];
            counters.evaluations.with_label_values(&labels);
            for resource in ["pod", "controller"] {
                counters.exemptions.with_label_values(&[operation, resource, ""]);
            }
        }
        counters
    }

    /// Counts an evaluation of a policy with this level and version; `mode` is `enforce`, `audit`, or `warn`.
    pub fn evaluated(
        &self,
        is_allowed: bool,
        (level, version): (&str, &str),
        mode: &str,
        request: PodSecurityRequest<'_>,
    ) {
        let PodSecurityRequest { operation, resource, subresource } = request;
        let decision = if is_allowed { "allow" } else { "deny" };
        let labels = [decision, level, version, mode, operation, resource, subresource];
        self.evaluations.with_label_values(&labels).inc();
    }

    /// Counts an exempt request.
    pub fn exempt(&self, request: PodSecurityRequest<'_>) {
        let PodSecurityRequest { operation, resource, subresource } = request;
        self.exemptions.with_label_values(&[operation, resource, subresource]).inc();
    }

    /// Counts an error. The error is fatal if the request was not evaluated.
    pub fn failed(&self, is_fatal: bool, request: PodSecurityRequest<'_>) {
        let PodSecurityRequest { operation, resource, subresource } = request;
        let fatal = if is_fatal { "true" } else { "false" };
        self.errors.with_label_values(&[fatal, operation, resource, subresource]).inc();
    }
}
