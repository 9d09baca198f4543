//! Combines findings with one cause. The finding that names the cause lists the others as consequences.

use std::collections::BTreeSet;

use super::check::Severity;
use super::rejection::{REJECTS, error_in};
use super::report::{CheckReport, Consequence, Finding, TOGETHER};
use super::validity::without_positions;

/// A rule that identifies findings of one check as the cause of other findings.
struct Cause {
    /// The check whose findings name the cause best.
    check: &'static str,
    /// Returns whether a finding of the check is a cause.
    applies: fn(&Finding) -> bool,
    /// Returns whether another finding, of the same or another check, follows from the known finding.
    explains: fn(&Known<'_>, &str, &Finding) -> bool,
}

/// A finding that may be the cause of other findings.
struct Known<'a> {
    finding: &'a Finding,
    check: &'a str,
    /// The fields that the finding is about, without list positions and keys.
    fields: BTreeSet<String>,
    /// Whether the webhook overwrites whole lists or maps.
    overwrites_whole: bool,
}

/// The checks that examine a webhook's changes.
const CHANGES: [&str; 22] = [
    "V01", "V02", "V03", "V04", "V05", "V07", "V08", "V09", "V10", "V14", "V15", "V16", "V17", "V18", "V20",
    "V21", "V23", "V31", "V34", "V35", "V36", "V58",
];

/// The causes, in the order in which they are applied, starting with objects that the API server rejects.
const CAUSES: [Cause; 17] = [
    Cause {
        check: "V19",
        applies: |finding| finding.severity == Severity::Error,
        explains: |known, check, other| {
            CHANGES.contains(&check) && (known.has_reason_of(other) || known.has_fields_of(other))
        },
    },
    rejected("V09"),
    rejected("V34"),
    rejected("V31"),
    rejected("V05"),
    rejected("V07"),
    rejected("V10"),
    rejected("V04"),
    Cause {
        check: "V22",
        applies: |finding| envelope_member(finding).is_some(),
        explains: |known, check, other| {
            envelope_member(known.finding) == envelope_member(other) && ["V22", "V23"].contains(&check)
        },
    },
    Cause {
        check: "V18",
        applies: |finding| finding.severity == Severity::Error,
        explains: |known, check, other| {
            let types = ["changes apiVersion", "changes kind"];
            let both = [&known.finding.kind, &other.kind];
            let is_type_meta = check == "V18" && both.iter().all(|kind| types.contains(&kind.as_str()));
            is_type_meta || (check != "V18" && CHANGES.contains(&check) && known.has_fields_of(other))
        },
    },
    Cause {
        check: "V11",
        applies: |finding| finding.severity == Severity::Error,
        explains: |known, check, other| {
            CHANGES.contains(&check) && known.has_fields_of(other) && changes_only_values(other)
        },
    },
    Cause {
        check: "V01",
        applies: |finding| finding.severity == Severity::Error,
        explains: |known, check, other| {
            let follows = ["V02", "V04", "V05", "V07", "V09", "V10", "V34"];
            follows.contains(&check) && (known.has_reason_of(other) || known.has_fields_of(other))
        },
    },
    Cause {
        check: "V03",
        applies: |finding| finding.severity == Severity::Error,
        explains: |known, check, other| {
            let follows = ["V04", "V08", "V09", "V10", "V14", "V17", "V18", "V21", "V58"];
            let is_whole = known.overwrites_whole && follows.contains(&check);
            known.is_same_without_the_other_webhook(check, other)
                || is_whole
                || (CHANGES.contains(&check) && known.has_fields_of(other))
        },
    },
    Cause {
        check: "V02",
        applies: |finding| finding.severity == Severity::Error,
        explains: |known, check, other| {
            known.is_same_without_the_other_webhook(check, other)
                || (check == "V04" && known.has_fields_of(other))
        },
    },
    Cause {
        check: "V31",
        applies: |finding| finding.severity == Severity::Error,
        explains: |known, check, other| {
            ["V15", "V16", "V31", "V35"].contains(&check) && known.has_reason_of(other)
        },
    },
    Cause {
        check: "V15",
        applies: |_| true,
        explains: |known, check, other| check == "V15" && known.has_reason_of(other),
    },
    Cause {
        check: "V08",
        applies: |_| true,
        explains: |known, check, other| {
            known.is_same_without_the_other_webhook(check, other)
                || (check == "V58" && known.has_fields_of(other))
        },
    },
];

/// Returns the rule for a check whose findings name what the API server rejects.
const fn rejected(check: &'static str) -> Cause {
    Cause {
        check,
        applies: |finding| finding.kind.starts_with(REJECTS),
        explains: |known, check, other| {
            CHANGES.contains(&check) && (known.has_reason_of(other) || known.has_fields_of(other))
        },
    }
}

/// The fields that every write changes.
const COUNTERS: [&str; 2] = ["metadata.resourceVersion", "metadata.generation"];

/// Moves findings that follow from another finding to the consequences of that finding.
///
/// A consequence is not more severe than its cause, and is only about webhooks of the cause.
pub(super) fn fold(checks: &mut [CheckReport]) {
    // A finding that is taken out leaves an empty place, so that the other findings keep their places.
    let mut places: Vec<(String, Option<Finding>)> = Vec::new();
    for check in &mut *checks {
        let findings = std::mem::take(&mut check.findings).into_iter();
        places.extend(findings.map(|finding| (check.id.clone(), Some(finding))));
    }
    for cause in &CAUSES {
        for index in 0..places.len() {
            let finding = places.get_mut(index).and_then(|(check, place)| {
                place.take_if(|finding| check.as_str() == cause.check && (cause.applies)(finding))
            });
            let Some(mut finding) = finding else { continue };
            let consequences = take(&mut places, cause, &finding);
            finding.consequences.extend(consequences);
            if let Some((_, place)) = places.get_mut(index) {
                *place = Some(finding);
            }
        }
    }
    for check in checks {
        let own = places.iter_mut().filter(|(id, _)| *id == check.id);
        check.findings = own.filter_map(|(_, place)| place.take()).collect();
    }
}

/// Takes the findings that follow from `finding`. `places` must not contain `finding` itself.
fn take(places: &mut [(String, Option<Finding>)], cause: &Cause, finding: &Finding) -> Vec<Consequence> {
    let overwrites_whole = places.iter().filter(|(check, _)| check == "V17").any(|(_, place)| {
        let is_whole = |other: &Finding| other.kind.starts_with("writes a whole");
        place.as_ref().is_some_and(|other| is_about_same(finding, other) && is_whole(other))
    });
    let mut known = Known { finding, check: cause.check, fields: fields(finding), overwrites_whole };
    let mut consequences = Vec::new();
    // The fields of a consequence explain further consequences.
    loop {
        let before = consequences.len();
        for (check, place) in &mut *places {
            let follows = place.take_if(|other| {
                other.severity <= finding.severity
                    && is_about_same(finding, other)
                    && (cause.explains)(&known, check, other)
            });
            if let Some(other) = follows {
                known.fields.extend(fields(&other));
                consequences.push(consequence(check, &other));
                consequences.extend(other.consequences);
            }
        }
        if consequences.len() == before {
            return consequences;
        }
    }
}

fn consequence(check: &str, finding: &Finding) -> Consequence {
    Consequence {
        check: check.to_owned(),
        kind: finding.kind.clone(),
        severity: finding.severity,
        message: finding.message.clone(),
        webhooks: finding.webhooks.keys().cloned().collect(),
        fields: finding.fields.clone(),
        accepted: None,
    }
}

/// Returns whether all webhooks of `other` are webhooks of `finding`.
fn is_about_same(finding: &Finding, other: &Finding) -> bool {
    if other.webhooks.keys().all(|webhook| finding.webhooks.contains_key(webhook)) {
        return true;
    }
    let mut called = other.steps.iter().filter(|step| !step.is_other).map(|step| &step.webhook).peekable();
    other.webhook() == TOGETHER
        && called.peek().is_some()
        && called.all(|webhook| finding.webhooks.contains_key(webhook))
}

/// Returns whether each difference is a field with two values, so that nothing is added or removed.
fn changes_only_values(finding: &Finding) -> bool {
    let mut differences = finding.differences.iter();
    !finding.differences.is_empty() && differences.all(|it| it.expected.is_some() && it.found.is_some())
}

/// Returns the fields that a finding is about, without list positions and keys.
fn fields(finding: &Finding) -> BTreeSet<String> {
    let differences = finding.differences.iter().map(|difference| without_positions(&difference.path));
    let mut fields: BTreeSet<String> = differences.chain(finding.fields.iter().cloned()).collect();
    // V19 has no differences, but its kind names the field.
    if let Some((_, rejected)) = finding.kind.split_once("rejected: ")
        && let Some((field, _)) = rejected.split_once(": ")
    {
        fields.insert(field.to_owned());
    }
    // An object lacks both fields of a TypeMeta for one reason.
    let type_meta = ["apiVersion", "kind"].map(str::to_owned);
    if type_meta.iter().any(|field| fields.contains(field)) {
        fields.extend(type_meta);
    }
    fields.retain(|field| !COUNTERS.contains(&field.as_str()) && !field.is_empty());
    fields
}

/// Returns `field`, or `apiVersion` for `kind`, so that both fields of a `TypeMeta` are the same field.
fn type_meta(field: &str) -> &str {
    if field == "kind" { "apiVersion" } else { field }
}

/// Returns the member of the response envelope that a finding of V22 or V23 is about, or `None` if there is no response: a
/// missing response to one review does not explain a missing response to another one.
///
/// A version that fails is about the member that kube-apiserver's message names.
fn envelope_member(finding: &Finding) -> Option<&str> {
    let is_about = |message: &str| finding.message.contains(message);
    match finding.kind.split(' ').next().unwrap_or_default() {
        "no" => None,
        "fails" if is_about("expected response.uid") => Some("uid"),
        "fails" if is_about("expected webhook response of") => Some("apiVersion"),
        "response.uid" => Some("uid"),
        member => Some(type_meta(member)),
    }
}

impl Known<'_> {
    /// Returns whether the message of `other` contains this finding's reason: the text after the first colon.
    fn has_reason_of(&self, other: &Finding) -> bool {
        const SHORTEST: usize = 10;
        let message = &self.finding.message;
        let reason = message.split_once(": ").map(|(_, reason)| error_in(message, reason));
        reason.is_some_and(|reason| reason.len() >= SHORTEST && other.message.contains(reason))
    }

    /// Returns whether each field of `other` is equal to, below, or above a field of this finding.
    fn has_fields_of(&self, other: &Finding) -> bool {
        let is_below = |field: &str, parent: &str| {
            field.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let fields = fields(other);
        let is_known =
            |field: &String| self.fields.iter().any(|known| is_below(field, known) || is_below(known, field));
        !fields.is_empty() && fields.iter().all(is_known)
    }

    /// Returns whether `other` is a finding of the same check that differs only in another webhook's change.
    fn is_same_without_the_other_webhook(&self, check: &str, other: &Finding) -> bool {
        let kind =
            |finding: &Finding| finding.kind.split("another webhook").next().unwrap_or_default().to_owned();
        check == self.check && kind(self.finding) == kind(other)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn finding(kind: &str, severity: &str, message: &str, paths: &[&str]) -> Value {
        let differences: Vec<Value> = paths.iter().map(|path| json!({"path": path, "expected": 1})).collect();
        json!({"kind": kind, "severity": severity, "message": message, "webhooks": {"c/w": 1}, "examples": [],
            "differences": differences, "steps": []})
    }

    #[track_caller]
    fn check(checks: &[(&str, &[Value])], expected: &Value) {
        let mut checks: Vec<CheckReport> = checks
            .iter()
            .map(|(id, findings)| {
                let check = json!({"id": id, "title": "t", "severity": "error", "why": "w", "source": "s",
                    "results": [], "findings": findings});
                serde_json::from_value(check).unwrap()
            })
            .collect();
        fold(&mut checks);
        let all = checks.iter().flat_map(|check| check.findings.iter().map(move |found| (&check.id, found)));
        let all = all.map(|(id, found)| {
            let follow = found.consequences.iter().map(|it| format!("{} {}", it.check, it.kind));
            json!({format!("{id} {}", found.kind): follow.collect::<Vec<_>>()})
        });
        assert_eq!(all.collect::<Value>(), *expected);
    }

    #[test]
    fn invalid_envelope_is_one_finding_in_all_review_versions() {
        let v22 = finding("uid when it denies", "error", "response.uid is missing", &["response.uid"]);
        let fails = "the webhook lists v1 but fails on a review in that version: expected response.uid=\"u\", got \"\"";
        let v23 = [
            finding("fails in v1", "error", fails, &[]),
            finding("response.uid in v1beta1", "warning", "m", &[]),
            finding("kind in v1beta1", "warning", "m", &[]),
        ];
        check(
            &[("V22", &[v22]), ("V23", &v23)],
            &json!([
                {"V22 uid when it denies": ["V23 fails in v1", "V23 response.uid in v1beta1"]},
                {"V23 kind in v1beta1": []},
            ]),
        );
    }

    #[test]
    fn an_error_of_the_api_server_is_one_cause_whatever_it_means() {
        let rejected = |what: &str, meaning: &str| {
            let error = "spec.containers[0].name: Duplicate value: \"a\"; try another";
            super::super::rejection::message(what, error, meaning)
        };
        let v19 = finding(
            "rejected: spec.containers.name: Duplicate value",
            "error",
            &rejected("the result", "a"),
            &[],
        );
        let v09 = finding(
            "the API server rejects an update",
            "error",
            &rejected("an update", "b"),
            &["metadata.labels"],
        );
        check(
            &[("V09", &[v09]), ("V19", &[v19])],
            &json!([{"V19 rejected: spec.containers.name: Duplicate value": ["V09 the API server rejects an update"]}]),
        );
    }

    #[test]
    fn what_the_api_server_rejects_is_the_cause() {
        let v21 = finding("changes a mirror Pod", "warning", "m", &["spec.containers"]);
        let v50 = finding("matches system resources", "error", "m", &[]);
        let v19 = finding(
            "rejected: spec.containers: Required value",
            "error",
            "the API server rejects the result: spec.containers: Required value",
            &[],
        );
        let other =
            finding("changes a mirror Pod as well", "warning", "m", &["spec.containers", "spec.volumes"]);
        check(
            &[("V19", &[v19]), ("V21", &[v21, other]), ("V50", &[v50])],
            &json!([
                {"V19 rejected: spec.containers: Required value": ["V21 changes a mirror Pod"]},
                {"V21 changes a mirror Pod as well": []},
                {"V50 matches system resources": []},
            ]),
        );
    }

    #[test]
    fn replaced_object_is_one_finding() {
        let v03 = |does: &str| {
            finding(&format!("removes what another webhook added, which {does}"), "error", "m", &[])
        };
        let v17 = finding("writes a whole map", "note", "m", &[]);
        let v10 = finding("undoes what the owner writes", "warning", "m", &["spec.replicas"]);
        let same = "V03 removes what another webhook added, which adds a volume";
        check(
            &[("V03", &[v03("adds a label"), v03("adds a volume")]), ("V10", &[v10]), ("V17", &[v17])],
            &json!([{"V03 removes what another webhook added, which adds a label": [
                same, "V10 undoes what the owner writes", "V17 writes a whole map",
            ]}]),
        );
    }

    #[test]
    fn value_that_varies_is_the_cause_but_not_of_added_containers() {
        let mut changed = finding("not idempotent", "error", "m", &["metadata.annotations.at"]);
        changed["differences"][0]["found"] = 2.into();
        let mut added = finding("changes a restored object", "error", "m", &["spec.containers[random]"]);
        added["differences"][0] = json!({"path": "spec.containers[random]", "found": {}});
        let v11 = finding(
            "not deterministic",
            "error",
            "m",
            &["metadata.annotations.at", "spec.containers[random]"],
        );
        check(
            &[("V01", &[changed]), ("V04", &[added]), ("V11", &[v11])],
            &json!([
                {"V04 changes a restored object": []},
                {"V11 not deterministic": ["V01 not idempotent"]},
            ]),
        );
    }

    #[test]
    fn finding_about_other_fields_or_a_more_severe_one_does_not_follow() {
        let v01 = finding("not idempotent", "error", "m", &["metadata.labels.a"]);
        let same = finding(
            "changed by a second apply",
            "warning",
            "m",
            &["metadata.labels", "metadata.resourceVersion"],
        );
        let other = finding("changes the object on every update", "warning", "m", &["spec"]);
        check(
            &[("V01", std::slice::from_ref(&v01)), ("V09", std::slice::from_ref(&same)), ("V10", &[other])],
            &json!([{"V01 not idempotent": ["V09 changed by a second apply"]},
                {"V10 changes the object on every update": []}]),
        );
        let mut of_another = same;
        of_another["webhooks"] = json!({"c/v": 1});
        check(
            &[("V01", &[v01]), ("V09", &[of_another])],
            &json!([{"V01 not idempotent": []}, {"V09 changed by a second apply": []}]),
        );
    }
}
