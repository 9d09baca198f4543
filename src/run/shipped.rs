//! The feature files that the binary carries.

/// Path and text of every file in `features/`.
pub(crate) const FEATURES: &[(&str, &str)] =
    &[("features/reinvocation.feature", include_str!("../../features/reinvocation.feature"))];
