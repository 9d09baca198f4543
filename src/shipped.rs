//! Contains the feature files that are built into the binary.

/// The path and text of every file in `features/`.
pub(crate) const FEATURES: &[(&str, &str)] = &[
    ("features/audit-annotations.feature", include_str!("../features/audit-annotations.feature")),
    ("features/authentication.feature", include_str!("../features/authentication.feature")),
    ("features/authorization.feature", include_str!("../features/authorization.feature")),
    ("features/configurations.feature", include_str!("../features/configurations.feature")),
    ("features/conversion.feature", include_str!("../features/conversion.feature")),
    ("features/deadlock.feature", include_str!("../features/deadlock.feature")),
    ("features/dry-run.feature", include_str!("../features/dry-run.feature")),
    ("features/failure-policy.feature", include_str!("../features/failure-policy.feature")),
    ("features/faults.feature", include_str!("../features/faults.feature")),
    ("features/idempotence.feature", include_str!("../features/idempotence.feature")),
    ("features/match-conditions.feature", include_str!("../features/match-conditions.feature")),
    ("features/match-policy.feature", include_str!("../features/match-policy.feature")),
    ("features/metrics.feature", include_str!("../features/metrics.feature")),
    ("features/mutating-policies.feature", include_str!("../features/mutating-policies.feature")),
    ("features/namespace-selector.feature", include_str!("../features/namespace-selector.feature")),
    ("features/object-selector.feature", include_str!("../features/object-selector.feature")),
    ("features/operations.feature", include_str!("../features/operations.feature")),
    ("features/reinvocation.feature", include_str!("../features/reinvocation.feature")),
    ("features/review-versions.feature", include_str!("../features/review-versions.feature")),
    ("features/reviews.feature", include_str!("../features/reviews.feature")),
    ("features/rules.feature", include_str!("../features/rules.feature")),
    ("features/services.feature", include_str!("../features/services.feature")),
    ("features/timeouts.feature", include_str!("../features/timeouts.feature")),
    ("features/validating-policies.feature", include_str!("../features/validating-policies.feature")),
    ("features/verify.feature", include_str!("../features/verify.feature")),
    ("features/warnings.feature", include_str!("../features/warnings.feature")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_file_is_shipped() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/features");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| format!("features/{}", entry.unwrap().file_name().to_string_lossy()))
            .collect();
        files.sort();
        let shipped: Vec<_> = FEATURES.iter().map(|(path, _)| *path).collect();
        assert_eq!(shipped, files);
    }
}
