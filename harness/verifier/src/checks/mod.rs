//! The registry of the checks: one file each (or for a small family), one line each.

mod backend;
mod common;
mod down;
mod filling;
mod l01_accepted;
mod l02_fields;
mod l03_version;
mod l04_served;
mod l05_wide;
mod l06_patience;
mod l07_bundle;
mod l08_service;
mod l09_order;
mod l10_twice;
mod matched;
mod overwritten;
mod recorded;
mod requests;
mod said;
mod together;
mod usual;
mod v01_idempotence;
mod v02_completeness;
mod v03_survival;
mod v04_restore;
mod v05_collection;
mod v06_order;
mod v07_convergence;
mod v08_policy;
mod v09_apply_twice;
mod v10_write_loop;
mod v11_determinism;
mod v12_parallel;
mod v13_independence;
mod v14_unknown_fields;
mod v15_absent_parents;
mod v16_strict_patch;
mod v17_sparing;
mod v18_identity;
mod v19_validity;
mod v20_no_empty_patch;
mod v21_mirror_pods;
mod v22_envelope;
mod v23_review_versions;
mod v24_patch_form;
mod v25_denial;
mod v26_warnings;
mod v27_audit_keys;
mod v28_detours;
mod v29_delete;
mod v30_connect;
mod v31_subresources;
mod v32_names;
mod v33_equivalents;
mod v34_deletion;
mod v35_evolution;
mod v36_large_bodies;
mod v37_malformed;
mod v38_dry_run;
mod v39_no_effects;
mod v40_repeated;
mod v41_latency;
mod v42_departure;
mod v43_stop;
mod v44_overload;
mod v45_certificate;
mod v46_rotation;
mod v47_versions;
mod v48_self_lockout;
mod v49_cycle;
mod v50_system;
mod v51_virtual;
mod v52_timeouts;
mod v53_rules;
mod v54_bypass;
mod v55_conditions;
mod v56_overlap;
mod v57_explicit;
mod v58_reinvocation;
mod v59_round_trip;
mod v60_list;
mod v61_metadata;
mod v62_conversion;
mod v63_same_conversion;
mod v64_unknown_version;
mod v65_same_version;
mod v66_large_lists;
mod v67_near_misses;
mod windows;

use super::check::Check;
use super::comparison::Difference;

/// Every check, by id.
pub const ALL: &[&Check] = &[
    &v01_idempotence::CHECK,
    &v02_completeness::CHECK,
    &v03_survival::CHECK,
    &v04_restore::CHECK,
    &v05_collection::CHECK,
    &v06_order::CHECK,
    &v07_convergence::CHECK,
    &v08_policy::CHECK,
    &v09_apply_twice::CHECK,
    &v10_write_loop::CHECK,
    &v11_determinism::CHECK,
    &v12_parallel::CHECK,
    &v13_independence::CHECK,
    &v14_unknown_fields::CHECK,
    &v15_absent_parents::CHECK,
    &v16_strict_patch::CHECK,
    &v17_sparing::CHECK,
    &v18_identity::CHECK,
    &v19_validity::CHECK,
    &v20_no_empty_patch::CHECK,
    &v21_mirror_pods::CHECK,
    &v22_envelope::CHECK,
    &v23_review_versions::CHECK,
    &v24_patch_form::CHECK,
    &v25_denial::CHECK,
    &v26_warnings::CHECK,
    &v27_audit_keys::CHECK,
    &v28_detours::CHECK,
    &v29_delete::CHECK,
    &v30_connect::CHECK,
    &v31_subresources::CHECK,
    &v32_names::CHECK,
    &v33_equivalents::CHECK,
    &v34_deletion::CHECK,
    &v35_evolution::CHECK,
    &v36_large_bodies::CHECK,
    &v37_malformed::CHECK,
    &v38_dry_run::CHECK,
    &v39_no_effects::CHECK,
    &v40_repeated::CHECK,
    &v41_latency::CHECK,
    &v42_departure::CHECK,
    &v43_stop::CHECK,
    &v44_overload::CHECK,
    &v45_certificate::CHECK,
    &v46_rotation::CHECK,
    &v47_versions::CHECK,
    &v48_self_lockout::CHECK,
    &v49_cycle::CHECK,
    &v50_system::CHECK,
    &v51_virtual::CHECK,
    &v52_timeouts::CHECK,
    &v53_rules::CHECK,
    &v54_bypass::CHECK,
    &v55_conditions::CHECK,
    &v56_overlap::CHECK,
    &v57_explicit::CHECK,
    &v58_reinvocation::CHECK,
    &v59_round_trip::CHECK,
    &v60_list::CHECK,
    &v61_metadata::CHECK,
    &v62_conversion::CHECK,
    &v63_same_conversion::CHECK,
    &v64_unknown_version::CHECK,
    &v65_same_version::CHECK,
    &v66_large_lists::CHECK,
    &v67_near_misses::CHECK,
];

/// The documentation of webhooks, and of how to use them well.
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

/// The static checks, which need nothing but manifests, by id: each with the page of the documentation that it is about.
pub const STATIC: &[(&Check, &str)] = &[
    (&l01_accepted::CHECK, dynamic!("webhook-configuration")),
    (&l02_fields::CHECK, "https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation"),
    (
        &l03_version::CHECK,
        "https://kubernetes.io/docs/reference/using-api/deprecation-guide/#webhook-resources-v122",
    ),
    (&l04_served::CHECK, dynamic!("matching-requests-rules")),
    (&l05_wide::CHECK, practices!("webhook-limit-scope")),
    (&l06_patience::CHECK, practices!("small-timeout")),
    (&l07_bundle::CHECK, dynamic!("contacting-the-webhook")),
    (&l08_service::CHECK, dynamic!("service-reference")),
    (&l09_order::CHECK, dynamic!("reinvocation-policy")),
    (&l10_twice::CHECK, dynamic!("webhook-configuration")),
    (&v48_self_lockout::CHECK, practices!("avoid-self-mutation")),
    (&v49_cycle::CHECK, practices!("avoid-dependency-loops")),
    (&v50_system::CHECK, practices!("webhook-limit-scope")),
    (&v51_virtual::CHECK, dynamic!("excluded-virtual-resources")),
    (&v52_timeouts::CHECK, dynamic!("timeouts")),
    (&v53_rules::CHECK, dynamic!("matching-requests-rules")),
    (&v54_bypass::CHECK, dynamic!("matching-requests-objectselector")),
    (&v55_conditions::CHECK, dynamic!("matching-requests-matchconditions")),
    (&v56_overlap::CHECK, practices!("ordering-idempotence")),
    (&v57_explicit::CHECK, dynamic!("webhook-configuration")),
];

/// The checks that compare what a webhook says to different requests: of one that answers the same request in several ways
/// they can tell nothing.
pub(super) const COMPARING: &[&str] = &["V02", "V03", "V08", "V13", "V14", "V21", "V29", "V33", "V34"];

/// The check with this id, in any case.
pub fn find(id: &str) -> Option<&'static Check> {
    ALL.iter().find(|check| check.id.eq_ignore_ascii_case(id)).copied()
}

/// The first few fields of `differences`, for a sentence.
fn fields(differences: &[Difference]) -> String {
    listed(differences.iter().map(|difference| difference.path.as_str()))
}

/// The first few of `names`, for a sentence.
fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 3;
    let names: Vec<&str> = names.into_iter().collect();
    match names.split_at_checked(MOST) {
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
    fn the_static_checks_of_a_verification_are_those_of_a_lint() {
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
    fn every_check_says_why_and_where_from() {
        for check in ALL.iter().chain(STATIC.iter().map(|(check, _)| check)) {
            let number = check.id.strip_prefix(['V', 'L']).filter(|number| number.len() == 2);
            let is_id = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
            assert!(is_id, "{}", check.id);
            assert!(!check.title.is_empty() && !check.title.ends_with('.'), "{}: title", check.id);
            assert!(check.why.len() > 80 && check.why.ends_with('.'), "{}: why", check.id);
            assert!(!check.source.is_empty(), "{}: source", check.id);
        }
    }
}
