//! The environments of expressions in Kubernetes, by version.
//!
//! kube-apiserver checks new expressions against the environment of the previous release, so that the server can be
//! rolled back, and evaluates stored expressions in its full environment.

mod admission;
mod devices;
mod history;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::environment::Environment;

pub use admission::{
    Variables, with_admission_variables, with_composed_variable, with_composed_variables, with_patch_types,
};
pub use devices::{DeviceSizes, with_device};

/// A release of Kubernetes, such as 1.37.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: u32,
    minor: u32,
}

/// The error for a string that is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid version '{0}': expected MAJOR.MINOR, such as 1.37")]
pub struct VersionError(String);

/// Whether expressions are new or stored. This determines their environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Expressions {
    /// New and changed expressions. They use the environment of the previous release.
    New,
    /// Stored expressions. They use the full environment of the release.
    Stored,
}

/// The Kubernetes release whose expressions are supported.
pub const RELEASE: Version = Version::new(1, 37);

impl Version {
    /// Creates a version such as 1.37.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Returns the previous minor release.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self { major: self.major, minor: self.minor.saturating_sub(1) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = VersionError;

    /// Parses a version such as `1.37` or `v1.37.2`; the patch level and all text after it are ignored.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError(text.to_owned());
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or_else(error);
        Ok(Self { major: number()?, minor: number()? })
    }
}

/// Returns the environment in which a release compiles new or stored expressions, without variables.
///
/// Source: apiserver pkg/cel/environment/base.go, `DefaultCompatibilityVersion`, and environment.go, `EnvSet`.
/// Rule: VLD-30.
pub fn environment(release: Version, expressions: Expressions) -> Environment {
    environment_at(match expressions {
        Expressions::New => release.previous(),
        Expressions::Stored => release,
    })
}

/// Returns the environment that is compatible with a version, without variables.
///
/// Source: apiserver pkg/cel/environment/environment.go, `filterAndBuildOpts`.
pub fn environment_at(compatibility: Version) -> Environment {
    history::CHANGES
        .iter()
        .filter(|change| change.is_in(compatibility))
        .fold(Environment::standard(), |environment, change| (change.apply)(environment))
}
