//! Derives the audit annotations of a request from its [`Record`].

use std::collections::BTreeMap;
use std::time::Duration;

use kubernetes_types::names;
use kubernetes_types::quoting::encode;
use serde_json::Value;
use url::Url;

use crate::event::{CallResult, Called, Event, Phase, Record};
use crate::policy::{AnnotationOutcome, PoliciesChecked, Violation};

/// Returns the annotations for an audit event of the level `Request`.
///
/// If a key has several values, the first one is kept. Calls that end after the response was sent are left out.
///
/// Source: apiserver pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go; pkg/admission/attributes.go;
/// kubernetes plugin/pkg/admission/security/podsecurity/admission.go, `Validate`.
/// Rule: AUD-02, AUD-03, AUD-09.
pub fn annotations(record: &Record) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::new();
    let in_time = |called: &&Called| record.cut_off.is_none_or(|limit| called.started + called.took < limit);
    for event in &record.events {
        if let Event::PluginRemarked { audit_annotations, .. } = event {
            for (key, value) in audit_annotations {
                annotations.entry(key.clone()).or_insert_with(|| value.clone());
            }
        } else if let Event::Policies(checked) = event {
            for (key, value) in policy_annotations(checked) {
                if is_qualified_name(&key) {
                    annotations.entry(key).or_insert(value);
                }
            }
        }
    }
    for called in record.calls().filter(in_time) {
        for (key, value) in call_annotations(called) {
            if is_qualified_name(&key) {
                annotations.entry(key).or_insert(value);
            }
        }
    }
    annotations
}

/// Returns the latency annotations of a request that took `total`; empty if the request took half a second or less.
///
/// Source: apiserver pkg/endpoints/filters/audit.go; `pkg/endpoints/request/webhook_duration.go`.
/// Rule: AUD-11.
pub fn latencies(record: &Record, total: Duration) -> BTreeMap<String, String> {
    if total <= Duration::from_millis(500) {
        return BTreeMap::new();
    }
    let of = |phase| record.calls().filter(move |called| called.phase == phase).map(|called| called.took);
    let mutating: Duration = of(Phase::Mutating).sum();
    let validating = of(Phase::Validating).max().unwrap_or_default();
    [("mutating-webhook", mutating), ("total", total), ("validating-webhook", validating)]
        .into_iter()
        .filter(|(_, duration)| !duration.is_zero())
        .map(|(what, duration)| (format!("apiserver.latency.k8s.io/{what}"), go_duration(duration)))
        .collect()
}

/// Returns the annotations of the policies of a request, as pairs of the full key and the value.
///
/// If a key has different values for several bindings or params, the values are joined.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go, `auditAnnotationCollector` and
/// `publishValidationFailureAnnotations`.
/// Rule: POL-40, POL-42, POL-43.
fn policy_annotations(checked: &PoliciesChecked) -> Vec<(String, String)> {
    let mut annotations = Vec::new();
    for policy in &checked.policies {
        let mut by_key: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let runs = policy.bindings.iter().flat_map(|binding| &binding.runs);
        for annotation in runs.flat_map(|run| &run.annotations) {
            if let AnnotationOutcome::Published(value) = &annotation.outcome {
                let values = by_key.entry(&annotation.key).or_default();
                if !values.contains(&value.as_str()) {
                    values.push(value);
                }
            }
        }
        annotations.extend(
            by_key.into_iter().map(|(key, values)| (format!("{}/{key}", policy.policy), values.join(", "))),
        );
    }
    if !checked.violations.is_empty() {
        let violations: Vec<String> = checked.violations.iter().map(violation).collect();
        annotations.push((
            "validation.policy.admission.k8s.io/validation_failure".to_owned(),
            format!("[{}]", violations.join(",")),
        ));
    }
    annotations
}

fn violation(violation: &Violation) -> String {
    let Violation { message, policy, binding, expression_index, validation_actions } = violation;
    let actions: Vec<String> = validation_actions.iter().map(|action| json_string(action.as_str())).collect();
    format!(
        "{{\"message\":{},\"policy\":{},\"binding\":{},\"expressionIndex\":{expression_index},\"validationActions\":[{}]}}",
        json_string(message),
        json_string(policy),
        json_string(binding),
        actions.join(",")
    )
}

/// Returns the annotations of one call, as pairs of the full key and the value.
///
/// Rule: AUD-01, AUD-04, AUD-05, AUD-06, AUD-08.
fn call_annotations(called: &Called) -> Vec<(String, String)> {
    let name = &called.webhook.name;
    let place = format!("round_{}_index_{}", called.round.number(), called.index);
    let mut annotations: Vec<(String, String)> = called
        .audit_annotations
        .iter()
        .map(|(key, value)| (format!("{name}/{key}"), value.clone()))
        .collect();
    if matches!(called.result, CallResult::Failed { failed_open: true, .. }) {
        let phase = match called.phase {
            Phase::Mutating => "mutation",
            Phase::Validating => "validating",
        };
        annotations.push((format!("failed-open.{phase}.webhook.admission.k8s.io/{place}"), name.clone()));
    }
    if let CallResult::Failed { failure, .. } = &called.result {
        annotations.extend(certificate_annotation(&failure.reason));
    }
    // Whether the webhook changes the object is unknown.
    if called.phase == Phase::Mutating && !matches!(called.result, CallResult::Unknown) {
        let (patch, changed) = match &called.result {
            CallResult::Allowed { patch, changed } => (patch.as_ref(), *changed),
            CallResult::ServerError { patch, .. } => (patch.as_ref(), false),
            CallResult::Denied(_) | CallResult::Failed { .. } | CallResult::Unknown => (None, false),
        };
        let who = format!(
            "{{\"configuration\":{},\"webhook\":{}",
            json_string(&called.webhook.configuration),
            json_string(name)
        );
        if let Some(patch) = patch {
            annotations.push((
                format!("patch.webhook.admission.k8s.io/{place}"),
                format!("{who},\"patch\":{},\"patchType\":\"JSONPatch\"}}", patch.written()),
            ));
        }
        annotations.push((
            format!("mutation.webhook.admission.k8s.io/{place}"),
            format!("{who},\"mutated\":{changed}}}"),
        ));
    }
    annotations
}

/// The reason why the server rejects a certificate that it accepted in earlier versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertificateFlaw {
    MissingSan,
    InsecureSha1,
}

impl CertificateFlaw {
    /// Returns the certificate flaw that the `reason` of a failed call names.
    ///
    /// Source: apiserver `pkg/util/x509metrics/server_cert_deprecations.go`, which also looks at the error text.
    pub(crate) fn from_reason(reason: &str) -> Option<Self> {
        let flaws = [
            ("x509: certificate relies on legacy Common Name field", Self::MissingSan),
            ("x509: cannot verify signature: insecure algorithm SHA1", Self::InsecureSha1),
        ];
        flaws.into_iter().find_map(|(error, flaw)| reason.contains(error).then_some(flaw))
    }
}

/// Returns the annotation for the certificate flaw that the `reason` of a failed call names.
///
/// Source: as [`CertificateFlaw::from_reason`].
fn certificate_annotation(reason: &str) -> Option<(String, String)> {
    let (what, says) = match CertificateFlaw::from_reason(reason)? {
        CertificateFlaw::MissingSan => (
            "missing-san",
            "relies on a legacy Common Name field instead of the SAN extension for subject validation",
        ),
        CertificateFlaw::InsecureSha1 => ("insecure-sha1", "uses an insecure SHA-1 signature"),
    };
    let url = Url::parse(reason.split_once("Post \"")?.1.split_once('"')?.0).ok()?;
    Some((format!("{what}.invalid-cert.kubernetes.io/{}", url.host_str()?), says.to_owned()))
}

fn json_string(text: &str) -> String {
    encode(&Value::from(text))
}

/// Returns whether `key` is a DNS subdomain, a slash, and a name, as audit annotations require.
///
/// Source: apiserver pkg/admission/attributes.go, `checkKeyFormat`.
/// Rule: AUD-02.
pub fn is_qualified_name(key: &str) -> bool {
    key.contains('/') && names::label_key(key).is_empty()
}

/// Formats a duration as Go prints it, such as `1.234567891s`.
///
/// Source: Go's time/time.go, `Duration.String`.
pub fn go_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let fraction = |whole: u128, rest: u128, digits: usize, unit: &str| {
        let rest = format!("{rest:0digits$}");
        match rest.trim_end_matches('0') {
            "" => format!("{whole}{unit}"),
            rest => format!("{whole}.{rest}{unit}"),
        }
    };
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => fraction(nanos / 1_000, nanos % 1_000, 3, "µs"),
        1_000_000..1_000_000_000 => fraction(nanos / 1_000_000, nanos % 1_000_000, 6, "ms"),
        _ => {
            let seconds = duration.as_secs();
            let rest = fraction(u128::from(seconds % 60), u128::from(duration.subsec_nanos()), 9, "s");
            match (seconds / 3600, seconds / 60 % 60) {
                (0, 0) => rest,
                (0, minutes) => format!("{minutes}m{rest}"),
                (hours, minutes) => format!("{hours}h{minutes}m{rest}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CallFailure, Round};
    use crate::patch::Patch;
    use crate::testing::called;

    #[track_caller]
    fn check(calls: Vec<Called>, expect: &[(&str, &str)]) {
        let events = calls.into_iter().map(|called| Event::Called(Box::new(called))).collect();
        let found = annotations(&Record { events, ..Record::default() });
        let found: Vec<(&str, &str)> =
            found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn a_patch_annotation_has_sorted_keys_and_no_html_escapes() {
        let patch = br#"[{"value": "<&>", "path": "/data/k", "op": "add"}]"#;
        let patch = Patch::decode(patch).unwrap().operations_of(patch);
        check(
            vec![called("w.x.y", CallResult::Allowed { patch: Some(patch), changed: true })],
            &[
                (
                    "mutation.webhook.admission.k8s.io/round_0_index_0",
                    r#"{"configuration":"c","webhook":"w.x.y","mutated":true}"#,
                ),
                (
                    "patch.webhook.admission.k8s.io/round_0_index_0",
                    r#"{"configuration":"c","webhook":"w.x.y","patch":[{"op":"add","path":"/data/k","value":"\u003c\u0026\u003e"}],"patchType":"JSONPatch"}"#,
                ),
            ],
        );
    }

    #[test]
    fn a_failed_open_annotation_has_the_webhook_name() {
        let failed = || CallResult::Failed {
            failure: CallFailure { reason: String::new(), code: 503 },
            failed_open: true,
        };
        let mutating = Called { round: Round::Second, index: 3, ..called("w.x.y", failed()) };
        let validating = Called { phase: Phase::Validating, index: 1, ..called("v.x.y", failed()) };
        check(
            vec![mutating, validating],
            &[
                ("failed-open.mutation.webhook.admission.k8s.io/round_1_index_3", "w.x.y"),
                ("failed-open.validating.webhook.admission.k8s.io/round_0_index_1", "v.x.y"),
                (
                    "mutation.webhook.admission.k8s.io/round_1_index_3",
                    r#"{"configuration":"c","webhook":"w.x.y","mutated":false}"#,
                ),
            ],
        );
    }

    #[test]
    fn unknown_response_has_no_annotations() {
        check(vec![called("w.x.y", CallResult::Unknown)], &[]);
    }

    #[test]
    fn the_first_value_of_a_key_wins_and_invalid_keys_are_dropped() {
        let with = |entries: &[(&str, &str)]| Called {
            phase: Phase::Validating,
            audit_annotations: entries
                .iter()
                .map(|&(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            ..called("w.x.y", CallResult::Allowed { patch: None, changed: false })
        };
        check(
            vec![
                with(&[("k", "first"), ("a/b", "two slashes"), ("", "empty"), ("-x", "dash")]),
                with(&[("k", "second")]),
            ],
            &[("w.x.y/k", "first")],
        );
    }

    #[test]
    fn durations_are_formatted_as_in_go() {
        for (nanos, text) in [
            (0, "0s"),
            (999, "999ns"),
            (1_500, "1.5µs"),
            (20_000_000, "20ms"),
            (1_000_000_000, "1s"),
            (61_050_000_000, "1m1.05s"),
            (3_600_000_000_000, "1h0m0s"),
        ] {
            assert_eq!(go_duration(Duration::from_nanos(nanos)), text);
        }
    }
}
