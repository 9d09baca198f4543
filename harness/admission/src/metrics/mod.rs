//! Derives the admission metrics of a server from [`Record`]s.

mod certificates;
mod conversions;
mod pod_security;
mod policies;
mod reloads;
mod summary;

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, TextEncoder};
use tokio::time::Instant;

use self::certificates::Certificates;
pub use self::conversions::{Conversion, Conversions};
pub use self::pod_security::{PodSecurityCounters, PodSecurityRequest};
use self::policies::Policies;
use self::reloads::Reloads;
pub use self::reloads::{Reload, identity};
use self::summary::Summary;
use crate::attributes::Operation;
use crate::conditions::{Evaluation, Outcome};
use crate::config::{FailurePolicy, Webhook};
use crate::event::{CallResult, Called, Conditions, Event, Mismatch, Part, Phase, Record, Timing};
use crate::policy::PoliciesChecked;

/// The upper bounds, in seconds, of the histogram buckets for plugins and phases.
const STEP_BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// The upper bounds, in seconds, of the histogram buckets for webhook calls.
const WEBHOOK_BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// The upper bounds, in seconds, of the histogram buckets for match conditions.
const CONDITION_BUCKETS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// The admission metrics of one server, with kube-apiserver's names and labels.
///
/// Source: apiserver pkg/admission/metrics/metrics.go.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    step: HistogramVec,
    controller: HistogramVec,
    webhook: HistogramVec,
    requests: IntCounterVec,
    rejections: IntCounterVec,
    fail_open: IntCounterVec,
    condition_errors: IntCounterVec,
    condition_exclusions: IntCounterVec,
    condition_seconds: HistogramVec,
    certificates: Certificates,
    conversions: Conversions,
    policies: Policies,
    reloads: Reloads,
    /// A summary metric, implemented in this crate because the metrics library does not support summaries.
    summary: Summary,
}

/// Creates all metrics at zero.
///
/// Rule: MET-01, MET-02, MET-03, MET-04, MET-08, MET-12, MET-13.
impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let metrics = Self {
            step: histogram(
                "STABLE",
                "step_admission_duration_seconds",
                "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).",
                &STEP_BUCKETS,
                &["type", "operation", "rejected"],
            ),
            controller: histogram(
                "STABLE",
                "controller_admission_duration_seconds",
                "Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
                &STEP_BUCKETS,
                &["name", "type", "operation", "rejected"],
            ),
            webhook: histogram(
                "STABLE",
                "webhook_admission_duration_seconds",
                "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
                &WEBHOOK_BUCKETS,
                &["name", "type", "operation", "rejected"],
            ),
            requests: counter(
                "webhook_request_total",
                "Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
                &["name", "type", "operation", "code", "rejected"],
            ),
            rejections: counter(
                "webhook_rejection_count",
                "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
                &["name", "type", "operation", "error_type", "rejection_code"],
            ),
            fail_open: counter(
                "webhook_fail_open_count",
                "Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).",
                &["name", "type"],
            ),
            condition_errors: counter(
                "match_condition_evaluation_errors_total",
                "Admission match condition evaluation errors count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).",
                &["name", "kind", "type", "operation"],
            ),
            condition_exclusions: counter(
                "match_condition_exclusions_total",
                "Admission match condition evaluation exclusions count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).",
                &["name", "kind", "type", "operation"],
            ),
            condition_seconds: histogram(
                "ALPHA",
                "match_condition_evaluation_seconds",
                "Admission match condition evaluation time in seconds, identified by name and broken out for each kind containing matchConditions (webhook or policy), operation and type (validate or admit).",
                &CONDITION_BUCKETS,
                &["name", "kind", "type", "operation"],
            ),
            certificates: Certificates::new(&registry),
            conversions: Conversions::new(&registry),
            policies: Policies::new(&registry),
            reloads: Reloads::new(&registry),
            summary: Summary::default(),
            registry,
        };
        let collectors: [Box<dyn prometheus::core::Collector>; 9] = [
            Box::new(metrics.step.clone()),
            Box::new(metrics.controller.clone()),
            Box::new(metrics.webhook.clone()),
            Box::new(metrics.requests.clone()),
            Box::new(metrics.rejections.clone()),
            Box::new(metrics.fail_open.clone()),
            Box::new(metrics.condition_errors.clone()),
            Box::new(metrics.condition_exclusions.clone()),
            Box::new(metrics.condition_seconds.clone()),
        ];
        for collector in collectors {
            registered(metrics.registry.register(collector));
        }
        metrics
    }
}

impl Metrics {
    /// Counts the events and timings in the record of one request.
    ///
    /// Rule: MET-09, MET-11.
    pub fn observe(&self, operation: Operation, record: &Record) {
        for event in &record.events {
            match event {
                Event::Called(called) => self.observe_call(operation, called),
                Event::Conditions(conditions) => self.observe_conditions(operation, conditions),
                Event::Skipped { webhook, phase, mismatch: Mismatch::Conditions, .. } => {
                    let kind = match phase {
                        Phase::Mutating => "admit",
                        Phase::Validating => "validate",
                    };
                    let labels = [webhook.name.as_str(), "webhook", kind, operation.as_str()];
                    self.condition_exclusions.with_label_values(&labels).inc();
                }
                Event::Skipped { .. }
                | Event::PluginChanged { .. }
                | Event::PluginRefused { .. }
                | Event::PluginRemarked { .. }
                | Event::MatchFailed { .. } => {}
                Event::Policies(checked) => self.observe_policies(operation, checked),
            }
        }
        for pass in &record.timings {
            self.observe_timing(operation, pass);
        }
    }

    /// Counts an attempt to read the manifests of a plugin.
    ///
    /// `now` is in seconds since 1970; `hostname` is the server's host name.
    pub fn observe_reload(&self, phase: Phase, reload: Reload<'_>, hostname: &str, now: f64) {
        self.reloads.observe(phase, reload, hostname, now);
    }

    /// Returns the counters for calls to conversion webhooks.
    pub fn conversions(&self) -> Conversions {
        self.conversions.clone()
    }

    /// Registers and returns the counters of the plugin `PodSecurity`. A server creates the plugin at most once.
    pub fn pod_security(&self) -> PodSecurityCounters {
        PodSecurityCounters::new(&self.registry)
    }

    /// Formats the metrics in the Prometheus text format.
    pub fn render(&self) -> String {
        let mut text = TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default();
        self.summary.render(&mut text, Instant::now());
        text
    }

    /// Counts a call to `webhook` that ran for `took` before the client disconnected.
    ///
    /// Source: apiserver `pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go`, where such a call fails
    /// because the request was canceled.
    /// Rule: MET-07.
    pub(crate) fn observe_abandoned(&self, operation: Operation, webhook: &Webhook, took: Duration) {
        let rejected = flag(webhook.failure_policy == FailurePolicy::Fail);
        let labels = [webhook.id.name.as_str(), kind(webhook.phase), operation.as_str(), "503", rejected];
        self.observe_request(labels, took);
    }

    /// Counts a call. A call that failed open counts as not rejected, with the code of its failure.
    ///
    /// Rule: MET-01, MET-02, MET-03, MET-04, MET-05, MET-06.
    fn observe_call(&self, operation: Operation, called: &Called) {
        if let CallResult::Failed { failure, .. } = &called.result {
            self.certificates.observe(&failure.reason);
        }
        let (name, kind) = (called.webhook.name.as_str(), kind(called.phase));
        let operation = operation.as_str();
        // Internal errors of the API server have the code 0.
        let (code, rejected, error_type) = match &called.result {
            CallResult::Allowed { .. } => (200, false, None),
            CallResult::Denied(status) => (status.code, true, Some("no_error")),
            CallResult::Failed { failure, failed_open: true } => (i32::from(failure.code), false, None),
            CallResult::Failed { failure, failed_open: false } => {
                (i32::from(failure.code), true, Some("calling_webhook_error"))
            }
            CallResult::ServerError { .. } => (0, true, Some("apiserver_internal_error")),
            // The webhook was not called.
            CallResult::Unknown => return,
        };
        let code = code.min(600).to_string();
        if let Some(error_type) = error_type {
            self.rejections.with_label_values(&[name, kind, operation, error_type, &code]).inc();
        }
        if matches!(called.result, CallResult::Failed { failed_open: true, .. }) {
            self.fail_open.with_label_values(&[name, kind]).inc();
        }
        self.observe_request([name, kind, operation, &code, flag(rejected)], called.took);
    }

    fn observe_request(&self, [name, kind, operation, code, rejected]: [&str; 5], took: Duration) {
        self.requests.with_label_values(&[name, kind, operation, code, rejected]).inc();
        self.webhook.with_label_values(&[name, kind, operation, rejected]).observe(took.as_secs_f64());
    }

    /// Observes the duration of evaluated conditions and counts their errors, unless all conditions are true.
    ///
    /// The `type` label of a validating webhook differs from its `type` label in the exclusion metric.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/accessors.go, `GetCompiledMatcher`;
    /// pkg/admission/plugin/webhook/matchconditions/matcher.go, `Match`.
    /// Rule: MET-09, MET-10.
    fn observe_conditions(&self, operation: Operation, conditions: &Conditions) {
        let Conditions { webhook, phase, evaluation, .. } = conditions;
        let labels = [webhook.name.as_str(), "webhook", kind(*phase), operation.as_str()];
        self.observe_evaluation(labels, evaluation);
    }

    /// Counts the decisions of policies, and observes their match conditions in the same way as those of webhooks.
    ///
    /// Rule: POL-60, POL-61.
    fn observe_policies(&self, operation: Operation, checked: &PoliciesChecked) {
        self.policies.observe(checked);
        for policy in &checked.policies {
            let labels = [&*policy.policy, "policy", "validate", operation.as_str()];
            let runs = policy.bindings.iter().flat_map(|binding| &binding.runs);
            for evaluation in runs.filter_map(|run| run.conditions.as_ref()) {
                self.observe_evaluation(labels, evaluation);
            }
        }
    }

    fn observe_evaluation(&self, labels: [&str; 4], evaluation: &Evaluation) {
        if evaluation.outcome == Outcome::True {
            return;
        }
        self.condition_seconds.with_label_values(&labels).observe(evaluation.took.as_secs_f64());
        let errors = evaluation.counted_errors();
        if errors > 0 {
            self.condition_errors.with_label_values(&labels).inc_by(errors);
        }
    }

    /// Observes the duration of one plugin in one round, or of one phase.
    ///
    /// Rule: MET-12, MET-13.
    fn observe_timing(&self, operation: Operation, pass: &Timing) {
        let kind = match pass.phase {
            Phase::Mutating => "admit",
            Phase::Validating => "validate",
        };
        let labels = [kind, operation.as_str(), flag(pass.refused)];
        let seconds = pass.took.as_secs_f64();
        match pass.part {
            Part::Plugin(name) => {
                self.controller.with_label_values(&[name, labels[0], labels[1], labels[2]]).observe(seconds);
            }
            Part::Phase => {
                self.step.with_label_values(&labels).observe(seconds);
                self.summary.observe(labels, seconds, Instant::now());
            }
        }
    }
}

/// Returns the `type` label of a call.
///
/// Rule: MET-05.
fn kind(phase: Phase) -> &'static str {
    match phase {
        Phase::Mutating => "admit",
        Phase::Validating => "validating",
    }
}

fn flag(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn histogram(stability: &str, name: &str, help: &str, buckets: &[f64], labels: &[&str]) -> HistogramVec {
    let opts = HistogramOpts::new(format!("apiserver_admission_{name}"), format!("[{stability}] {help}"));
    registered(HistogramVec::new(opts.buckets(buckets.to_vec()), labels))
}

fn counter(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    registered(IntCounterVec::new(
        Opts::new(format!("apiserver_admission_{name}"), format!("[ALPHA] {help}")),
        labels,
    ))
}

fn registered<T>(result: prometheus::Result<T>) -> T {
    result.unwrap_or_else(|error| unreachable!("the names are constants and differ: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kubernetes_types::status::Status;

    use super::*;
    use crate::conditions::{Evaluated, Evaluation, EvaluationError};
    use crate::config::FailurePolicy;
    use crate::event::{CallFailure, Round};
    use crate::testing::{called, webhook};

    #[track_caller]
    fn check(called: Called, expect: &[&str]) {
        let metrics = Metrics::default();
        let record = Record { events: vec![Event::Called(Box::new(called))], ..Record::default() };
        metrics.observe(Operation::Create, &record);
        let text = metrics.render();
        let counts: Vec<&str> = text
            .lines()
            .filter(|line| !line.ends_with(" 0"))
            .filter(|line| !line.starts_with('#') && !line.contains("_bucket") && !line.contains("_sum"))
            .collect();
        assert_eq!(counts, expect);
    }

    #[test]
    fn failing_open_is_not_counted_as_a_rejection_and_keeps_its_code() {
        let failure = CallFailure { reason: String::new(), code: 503 };
        check(
            called("w.x.y", CallResult::Failed { failure, failed_open: true }),
            &[
                r#"apiserver_admission_webhook_admission_duration_seconds_count{name="w.x.y",operation="CREATE",rejected="false",type="admit"} 1"#,
                r#"apiserver_admission_webhook_fail_open_count{name="w.x.y",type="admit"} 1"#,
                r#"apiserver_admission_webhook_request_total{code="503",name="w.x.y",operation="CREATE",rejected="false",type="admit"} 1"#,
            ],
        );
    }

    #[test]
    fn unknown_response_is_not_counted() {
        check(called("w.x.y", CallResult::Unknown), &[]);
    }

    #[test]
    fn a_denial_counts_with_its_code_up_to_600() {
        let denied = CallResult::Denied(Box::new(Status { code: 799, ..Status::default() }));
        check(
            Called { phase: Phase::Validating, ..called("v.x.y", denied) },
            &[
                r#"apiserver_admission_webhook_admission_duration_seconds_count{name="v.x.y",operation="CREATE",rejected="true",type="validating"} 1"#,
                r#"apiserver_admission_webhook_rejection_count{error_type="no_error",name="v.x.y",operation="CREATE",rejection_code="600",type="validating"} 1"#,
                r#"apiserver_admission_webhook_request_total{code="600",name="v.x.y",operation="CREATE",rejected="true",type="validating"} 1"#,
            ],
        );
    }

    #[test]
    fn an_error_of_the_server_has_the_code_0() {
        check(
            called("w.x.y", CallResult::ServerError { status: Box::default(), patch: None }),
            &[
                r#"apiserver_admission_webhook_admission_duration_seconds_count{name="w.x.y",operation="CREATE",rejected="true",type="admit"} 1"#,
                r#"apiserver_admission_webhook_rejection_count{error_type="apiserver_internal_error",name="w.x.y",operation="CREATE",rejection_code="0",type="admit"} 1"#,
                r#"apiserver_admission_webhook_request_total{code="0",name="w.x.y",operation="CREATE",rejected="true",type="admit"} 1"#,
            ],
        );
    }

    /// Returns the events for a webhook that is not called because its conditions have `values` and lead to `outcome`.
    fn conditions(values: &[Result<bool, &str>], outcome: Outcome) -> Vec<Event> {
        let evaluated = |value: &Result<bool, &str>| Evaluated {
            name: "n".into(),
            expression: "e".into(),
            value: value.map_err(|error| EvaluationError::Server(error.to_owned())),
            cost: 1,
            took: Duration::ZERO,
        };
        let conditions = values.iter().map(evaluated).collect();
        let webhook = webhook("w.x.y").id;
        let (phase, round) = (Phase::Validating, Round::First);
        let evaluation = Evaluation { conditions, outcome, took: Duration::from_millis(2) };
        vec![
            Event::Conditions(Box::new(Conditions {
                webhook: webhook.clone(),
                phase,
                round,
                failure_policy: FailurePolicy::Ignore,
                evaluation,
            })),
            Event::Skipped { webhook, phase, round, mismatch: Mismatch::Conditions },
        ]
    }

    #[test]
    fn conditions_are_counted_by_outcome() {
        let labels =
            |kind: &str| format!(r#"{{kind="webhook",name="w.x.y",operation="CREATE",type="{kind}"}}"#);
        let counts = |events: Vec<Event>| {
            let metrics = Metrics::default();
            metrics.observe(Operation::Create, &Record { events, ..Record::default() });
            let text = metrics.render();
            let count = |name: &str, kind: &str| {
                let start = format!("apiserver_admission_match_condition_{name}{} ", labels(kind));
                text.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
            };
            [
                count("evaluation_errors_total", "validating"),
                count("exclusions_total", "validate"),
                count("evaluation_seconds_count", "validating"),
            ]
        };
        let some = |count: &str| Some(count.to_owned());
        let excluded = conditions(&[Err("a"), Ok(false), Err("b")], Outcome::False { index: 1 });
        assert_eq!(counts(excluded), [some("1"), some("1"), some("1")]);
        let failed = conditions(&[Err("a"), Err("b")], Outcome::Errors("[a, b]".to_owned()));
        assert_eq!(counts(failed), [some("2"), some("1"), some("1")]);
        let exhausted = conditions(&[Err("a"), Ok(true)], Outcome::OutOfBudget);
        assert_eq!(counts(exhausted), [None, some("1"), some("1")]);
        let called = conditions(&[Ok(true)], Outcome::True).into_iter().take(1).collect();
        assert_eq!(counts(called), [None, None, None]);
    }

    #[test]
    fn plugins_and_phases_are_timed() {
        let metrics = Metrics::default();
        let pass =
            |part| Timing { part, phase: Phase::Validating, took: Duration::from_millis(250), refused: true };
        let timings = vec![pass(Part::Plugin("ValidatingAdmissionWebhook")), pass(Part::Phase)];
        metrics.observe(Operation::Delete, &Record { timings, ..Record::default() });
        let text = metrics.render();
        for line in [
            r#"apiserver_admission_controller_admission_duration_seconds_bucket{name="ValidatingAdmissionWebhook",operation="DELETE",rejected="true",type="validate",le="0.5"} 1"#,
            r#"apiserver_admission_step_admission_duration_seconds_bucket{operation="DELETE",rejected="true",type="validate",le="0.1"} 0"#,
            r#"apiserver_admission_step_admission_duration_seconds_summary_sum{operation="DELETE",rejected="true",type="validate"} 0.25"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
