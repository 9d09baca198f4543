//! The feature files that the binary carries.

/// Path and text of every file in `features/`.
pub(crate) const FEATURES: &[(&str, &str)] = &[];
