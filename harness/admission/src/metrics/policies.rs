//! Counts the decisions of admission policies and observes their duration.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

use super::registered;
use crate::policy::{
    AnnotationOutcome, BindingRecord, MutationRecord, PoliciesChecked, ValidationAction, Verdict,
};

/// The upper bounds, in seconds, of the histogram buckets.
const BUCKETS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];
const LABELS: [&str; 4] = ["policy", "policy_binding", "error_type", "enforcement_action"];
const MUTATING_LABELS: [&str; 3] = ["policy", "policy_binding", "error_type"];

/// The metrics of policies.
///
/// Source: apiserver pkg/admission/plugin/policy/{validating,mutating}/metrics/metrics.go.
/// Rule: MAP-70, POL-60.
#[derive(Debug)]
pub(super) struct Policies {
    checks: IntCounterVec,
    seconds: HistogramVec,
    mutations: IntCounterVec,
    mutation_seconds: HistogramVec,
}

impl Policies {
    pub(super) fn new(registry: &Registry) -> Self {
        let checks = registered(IntCounterVec::new(
            Opts::new(
                "apiserver_validating_admission_policy_check_total",
                "[BETA] Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.",
            ),
            &LABELS,
        ));
        let seconds = HistogramOpts::new(
            "apiserver_validating_admission_policy_check_duration_seconds",
            "[BETA] Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.",
        );
        let seconds = registered(HistogramVec::new(seconds.buckets(BUCKETS.to_vec()), &LABELS));
        registered(registry.register(Box::new(checks.clone())));
        registered(registry.register(Box::new(seconds.clone())));
        let mutations = registered(IntCounterVec::new(
            Opts::new(
                "apiserver_mutating_admission_policy_check_total",
                "[ALPHA] Mutation admission policy check total, labeled by policy and further identified by binding.",
            ),
            &MUTATING_LABELS,
        ));
        let mutation_seconds = HistogramOpts::new(
            "apiserver_mutating_admission_policy_check_duration_seconds",
            "[ALPHA] Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.",
        );
        let mutation_seconds =
            registered(HistogramVec::new(mutation_seconds.buckets(BUCKETS.to_vec()), &MUTATING_LABELS));
        registered(registry.register(Box::new(mutations.clone())));
        registered(registry.register(Box::new(mutation_seconds.clone())));
        Self { checks, seconds, mutations, mutation_seconds }
    }

    /// Counts the violations and failures of validating policies, and all mutations of mutating policies.
    ///
    /// Validations that are true are not counted.
    ///
    /// Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go, `Dispatch`;
    /// pkg/admission/plugin/policy/mutating/dispatcher.go, `dispatchInvocations`.
    pub(super) fn observe(&self, checked: &PoliciesChecked) {
        for policy in &checked.policies {
            for binding in &policy.bindings {
                self.observe_binding(&policy.policy, binding);
            }
        }
    }

    fn observe_binding(&self, policy: &str, binding: &BindingRecord) {
        let count = |error_type: &str, action: &str, took: Duration| {
            let labels = [policy, &*binding.binding, error_type, action];
            self.checks.with_label_values(&labels).inc();
            self.seconds.with_label_values(&labels).observe(took.as_secs_f64());
        };
        for run in &binding.runs {
            for MutationRecord { outcome, took } in &run.mutations {
                let error_type = outcome.as_ref().map_or_else(|error| error_type(error), |_| "no_error");
                let labels = [policy, &*binding.binding, error_type];
                self.mutations.with_label_values(&labels).inc();
                self.mutation_seconds.with_label_values(&labels).observe(took.as_secs_f64());
            }
            for decision in &run.decisions {
                let error_type = error_type(&decision.message);
                match decision.verdict {
                    Verdict::Admitted => {}
                    Verdict::Ignored => count(error_type, "allow", decision.took),
                    Verdict::Denied | Verdict::Failed => {
                        for action in &binding.validation_actions {
                            let action = match action {
                                ValidationAction::Deny => "deny",
                                ValidationAction::Warn => "warn",
                                ValidationAction::Audit => "audit",
                            };
                            count(error_type, action, decision.took);
                        }
                    }
                }
            }
            for annotation in &run.annotations {
                if let AnnotationOutcome::Failed(error) = &annotation.outcome {
                    count(error_type(error), "deny", annotation.took);
                }
            }
        }
    }
}

/// Returns the type of an error, according to the beginning of its message.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/errors.go, `ErrorType`.
fn error_type(message: &str) -> &'static str {
    if message.starts_with("compilation") {
        "compile_error"
    } else if message.starts_with("validation failed due to running out of cost budget") {
        "out_of_budget"
    } else {
        "invalid_error"
    }
}
