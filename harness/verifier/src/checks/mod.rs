//! Registers the checks. Each check has a file and a line in this module.

mod backend;
mod collection;
mod common_requests;
mod expression_types;
mod l01_validity;
mod l02_fields;
mod l03_version;
mod l04_served;
mod l05_rule_scope;
mod l06_timeout;
mod l07_ca_bundle;
mod l08_service;
mod l09_order;
mod l10_duplicate_names;
mod l11_policy_validity;
mod l12_policy_bindings;
mod l13_policy_rules;
mod l14_policy_actions;
mod l15_policy_expressions;
mod l16_policy_reinvocation;
mod l17_mutations;
mod l18_namespaces;
mod l19_policy_order;
mod large_object;
mod match_conditions;
mod match_outcome;
mod matched_kinds;
mod mutation_trial;
mod outage;
mod overwritten;
mod policy_examples;
mod recorded_writes;
mod requests;
mod typical_request;
mod typical_status;
mod v01_idempotence;
mod v02_completeness;
mod v03_preserves_others;
mod v04_restore;
mod v05_collective_idempotence;
mod v06_order;
mod v07_convergence;
mod v08_reinvocation_policy;
mod v09_repeated_apply;
mod v10_write_loop;
mod v11_determinism;
mod v12_concurrency;
mod v13_independence;
mod v14_unknown_fields;
mod v15_absent_parents;
mod v16_strict_patch;
mod v17_minimal_patch;
mod v18_identity;
mod v19_validity;
mod v20_empty_patch;
mod v21_mirror_pods;
mod v22_envelope;
mod v23_review_versions;
mod v24_patch_format;
mod v25_denial;
mod v26_warnings;
mod v27_audit_annotations;
mod v28_redirects;
mod v29_delete;
mod v30_connect;
mod v31_subresources;
mod v32_generate_name;
mod v33_equivalents;
mod v34_finalizer_removal;
mod v35_forward_compatibility;
mod v36_large_objects;
mod v37_malformed;
mod v38_dry_run;
mod v39_side_effects;
mod v40_repeated_side_effects;
mod v41_latency;
mod v42_client_disconnect;
mod v43_graceful_shutdown;
mod v44_overload;
mod v45_certificate;
mod v46_rotation;
mod v47_tls_versions;
mod v48_self_lockout;
mod v49_dependency_loop;
mod v50_system_resources;
mod v51_virtual_resources;
mod v52_total_timeout;
mod v53_rules;
mod v54_bypass_by_label;
mod v55_match_conditions;
mod v56_overlap;
mod v57_explicit_defaults;
mod v58_reinvocation;
mod v59_round_trip;
mod v60_list;
mod v61_metadata;
mod v62_conversion_response;
mod v63_deterministic_conversion;
mod v64_unknown_version;
mod v65_same_version;
mod v66_large_lists;
mod v67_invalid_objects;
mod webhook_response;
mod write_attribution;

pub(super) use self::collection::called as called_together;
pub(super) use self::l04_served::never_matching;
pub use self::l07_ca_bundle::is_placeholder;
pub use self::match_conditions::unknown_metadata_field;
pub(super) use self::match_conditions::with_unknown_fields;
pub use self::recorded_writes::NOT_OBSERVED;
use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::matching;

use super::check::{Check, Violation};
use super::comparison::Difference;
use super::webhook_probe::WebhookProbe;

/// The checks of `admit verify`, sorted by ID.
pub const ALL: &[&Check] = &[
    &v01_idempotence::CHECK,
    &v02_completeness::CHECK,
    &v03_preserves_others::CHECK,
    &v04_restore::CHECK,
    &v05_collective_idempotence::CHECK,
    &v06_order::CHECK,
    &v07_convergence::CHECK,
    &v08_reinvocation_policy::CHECK,
    &v09_repeated_apply::CHECK,
    &v10_write_loop::CHECK,
    &v11_determinism::CHECK,
    &v12_concurrency::CHECK,
    &v13_independence::CHECK,
    &v14_unknown_fields::CHECK,
    &v15_absent_parents::CHECK,
    &v16_strict_patch::CHECK,
    &v17_minimal_patch::CHECK,
    &v18_identity::CHECK,
    &v19_validity::CHECK,
    &v20_empty_patch::CHECK,
    &v21_mirror_pods::CHECK,
    &v22_envelope::CHECK,
    &v23_review_versions::CHECK,
    &v24_patch_format::CHECK,
    &v25_denial::CHECK,
    &v26_warnings::CHECK,
    &v27_audit_annotations::CHECK,
    &v28_redirects::CHECK,
    &v29_delete::CHECK,
    &v30_connect::CHECK,
    &v31_subresources::CHECK,
    &v32_generate_name::CHECK,
    &v33_equivalents::CHECK,
    &v34_finalizer_removal::CHECK,
    &v35_forward_compatibility::CHECK,
    &v36_large_objects::CHECK,
    &v37_malformed::CHECK,
    &v38_dry_run::CHECK,
    &v39_side_effects::CHECK,
    &v40_repeated_side_effects::CHECK,
    &v41_latency::CHECK,
    &v42_client_disconnect::CHECK,
    &v43_graceful_shutdown::CHECK,
    &v44_overload::CHECK,
    &v45_certificate::CHECK,
    &v46_rotation::CHECK,
    &v47_tls_versions::CHECK,
    &v48_self_lockout::CHECK,
    &v49_dependency_loop::CHECK,
    &v50_system_resources::CHECK,
    &v51_virtual_resources::CHECK,
    &v52_total_timeout::CHECK,
    &v53_rules::CHECK,
    &v54_bypass_by_label::CHECK,
    &v55_match_conditions::CHECK,
    &v56_overlap::CHECK,
    &v57_explicit_defaults::CHECK,
    &v58_reinvocation::CHECK,
    &v59_round_trip::CHECK,
    &v60_list::CHECK,
    &v61_metadata::CHECK,
    &v62_conversion_response::CHECK,
    &v63_deterministic_conversion::CHECK,
    &v64_unknown_version::CHECK,
    &v65_same_version::CHECK,
    &v66_large_lists::CHECK,
    &v67_invalid_objects::CHECK,
];

/// Creates a link to a section of the Kubernetes documentation on webhooks.
macro_rules! dynamic {
    ($anchor:literal) => {
        concat!(
            "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#",
            $anchor
        )
    };
}
macro_rules! practices {
    ($anchor:literal) => {
        concat!(
            "https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/#",
            $anchor
        )
    };
}

/// Creates a link to a section of the Kubernetes documentation on validating policies.
macro_rules! validating {
    ($anchor:literal) => {
        concat!(
            "https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#",
            $anchor
        )
    };
}
/// Creates a link to a section of the Kubernetes documentation on mutating policies.
macro_rules! mutating {
    ($anchor:literal) => {
        concat!(
            "https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/#",
            $anchor
        )
    };
}

/// The static checks, sorted by ID, each with its page of the Kubernetes documentation. They require only manifests.
pub const STATIC: &[(&Check, &str)] = &[
    (&l01_validity::CHECK, dynamic!("webhook-configuration")),
    (&l02_fields::CHECK, "https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation"),
    (
        &l03_version::CHECK,
        "https://kubernetes.io/docs/reference/using-api/deprecation-guide/#webhook-resources-v122",
    ),
    (&l04_served::CHECK, dynamic!("matching-requests-rules")),
    (&l05_rule_scope::CHECK, practices!("webhook-limit-scope")),
    (&l06_timeout::CHECK, practices!("small-timeout")),
    (&l07_ca_bundle::CHECK, dynamic!("contacting-the-webhook")),
    (&l08_service::CHECK, dynamic!("service-reference")),
    (&l09_order::CHECK, dynamic!("reinvocation-policy")),
    (&l10_duplicate_names::CHECK, dynamic!("webhook-configuration")),
    (&l11_policy_validity::CHECK, validating!("getting-started-with-validating-admission-policy")),
    (&l12_policy_bindings::CHECK, validating!("parameter-resources")),
    (&l13_policy_rules::CHECK, validating!("match-criteria")),
    (&l14_policy_actions::CHECK, validating!("getting-started-with-validating-admission-policy")),
    (&l15_policy_expressions::CHECK, validating!("validation-expression")),
    (&l16_policy_reinvocation::CHECK, mutating!("what-resources-make-a-policy")),
    (&l17_mutations::CHECK, mutating!("patch-type-apply-configuration")),
    (&l18_namespaces::CHECK, dynamic!("matching-requests-namespaceselector")),
    (&l19_policy_order::CHECK, mutating!("what-resources-make-a-policy")),
    (&v48_self_lockout::CHECK, practices!("avoid-self-mutation")),
    (&v49_dependency_loop::CHECK, practices!("avoid-dependency-loops")),
    (&v50_system_resources::CHECK, practices!("webhook-limit-scope")),
    (&v51_virtual_resources::CHECK, dynamic!("excluded-virtual-resources")),
    (&v52_total_timeout::CHECK, dynamic!("timeouts")),
    (&v53_rules::CHECK, dynamic!("matching-requests-rules")),
    (&v54_bypass_by_label::CHECK, dynamic!("matching-requests-objectselector")),
    (&v55_match_conditions::CHECK, dynamic!("matching-requests-matchconditions")),
    (&v56_overlap::CHECK, practices!("ordering-idempotence")),
    (&v57_explicit_defaults::CHECK, dynamic!("webhook-configuration")),
];

/// The check that calls the webhooks of each pair in both orders.
pub(super) const ORDER: &str = "V06";

/// The ID of the check that repeats requests. A webhook that fails it can fail other checks by chance.
pub const DETERMINISM: &str = "V11";

/// Returns whether the violation shows that the webhook gives different responses to the same request.
pub(super) fn shows_nondeterminism(check: &Check, violation: &Violation) -> bool {
    check.id == DETERMINISM && v11_determinism::VARIES.contains(&violation.kind.as_str())
}

/// The checks that compare responses to different requests. They are invalid for a nondeterministic webhook.
pub(super) const COMPARING: &[&str] = &["V02", "V03", "V08", "V13", "V14", "V21", "V29", "V33", "V34"];

/// The checks of a response that apply to any operation.
///
/// For a webhook whose rules do not match creations, they examine an update or a deletion of the object.
pub(super) const ANY_OPERATION: &[&str] = &["V11", "V22", "V25", "V26", "V27", "V28"];

/// Returns the CONNECT requests and the requests for subresources that the webhook is called for.
pub(super) fn subresource_requests(webhook_probe: &WebhookProbe<'_>) -> Vec<Attributes> {
    let connections = v30_connect::matched(webhook_probe).into_iter().map(|(_, request)| request);
    let mut requests: Vec<Attributes> = connections.chain(v31_subresources::matched(webhook_probe)).collect();
    let cluster_fixture = &webhook_probe.environment.cluster_fixture;
    let webhook = &webhook_probe.subject.webhook;
    requests.retain(|request| matching::is_called(webhook, &mut cluster_fixture.evaluation(request.clone())));
    requests
}

/// Returns the check with the given ID, ignoring case.
pub fn find(id: &str) -> Option<&'static Check> {
    ALL.iter().find(|check| check.id.eq_ignore_ascii_case(id)).copied()
}

/// Formats the first three fields of `differences`, and the number of remaining fields.
fn fields(differences: &[Difference]) -> String {
    listed(differences.iter().map(|difference| difference.path.as_str()))
}

/// Formats the first ten fields of `differences`, and the number of remaining fields.
fn all_fields(differences: &[Difference]) -> String {
    at_most(10, differences.iter().map(|difference| difference.path.as_str()))
}

/// Formats the first three of `names`, and the number of remaining names.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    at_most(3, names)
}

/// Formats the first `most` of `names`, and the number of remaining names.
fn at_most<'a>(most: usize, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.split_at_checked(most) {
        Some((first, more)) if !more.is_empty() => format!("{} and {} more", first.join(", "), more.len()),
        Some(_) | None => names.join(", "),
    }
}

#[cfg(test)]
mod any_shape;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Probe;

    #[test]
    fn ids_are_in_order_and_unique() {
        for pair in ALL.windows(2) {
            assert!(pair[0].id < pair[1].id, "{} stands before {}", pair[0].id, pair[1].id);
        }
    }

    #[test]
    fn static_checks_of_verify_and_lint_are_the_same() {
        let is_static = |check: &Check| {
            matches!(
                check.probe,
                Probe::Configuration(_) | Probe::ConfigurationAndObject(..) | Probe::Configurations(_)
            )
        };
        let verified: Vec<&str> = ALL.iter().filter(|check| is_static(check)).map(|check| check.id).collect();
        let linted = STATIC.iter().map(|(check, _)| check.id).filter(|id| id.starts_with('V'));
        assert_eq!(linted.collect::<Vec<_>>(), verified);
        assert!(STATIC.is_sorted_by(|(a, _), (b, _)| a.id < b.id));
    }

    #[test]
    fn every_check_has_complete_texts() {
        for check in ALL.iter().chain(STATIC.iter().map(|(check, _)| check)) {
            let number = check.id.strip_prefix(['V', 'L']).filter(|number| number.len() == 2);
            let is_id = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
            assert!(is_id, "{}", check.id);
            assert!(!check.title.is_empty() && !check.title.ends_with('.'), "{}: title", check.id);
            assert!(check.why.len() > 80 && check.why.ends_with('.'), "{}: why", check.id);
            assert!(check.title.contains(": "), "{}: the title has no name", check.id);
            assert!(check.help.len() > 15 && check.help.ends_with('.'), "{}: help", check.id);
            assert!(!check.source.is_empty(), "{}: source", check.id);
        }
    }
}
