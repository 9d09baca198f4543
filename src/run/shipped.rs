//! The feature files that the binary carries.

/// Path and text of every file in `features/`.
pub(crate) const FEATURES: &[(&str, &str)] = &[
    ("features/authentication.feature", include_str!("../../features/authentication.feature")),
    ("features/authorization.feature", include_str!("../../features/authorization.feature")),
    ("features/failure-policy.feature", include_str!("../../features/failure-policy.feature")),
    ("features/faults.feature", include_str!("../../features/faults.feature")),
    ("features/match-conditions.feature", include_str!("../../features/match-conditions.feature")),
    ("features/match-policy.feature", include_str!("../../features/match-policy.feature")),
    ("features/object-selector.feature", include_str!("../../features/object-selector.feature")),
    ("features/reinvocation.feature", include_str!("../../features/reinvocation.feature")),
    ("features/verify.feature", include_str!("../../features/verify.feature")),
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
