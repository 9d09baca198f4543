//! What expressions in Kubernetes can mention, by version.
//!
//! A server checks new expressions against what the release before it knew, so that it can be rolled back, and evaluates
//! stored ones with all that it knows itself.

mod admission;
mod devices;
mod history;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::environment::Environment;

pub use admission::{Variables, with_admission_variables};
pub use devices::{DeviceSizes, with_device};

/// A release of Kubernetes, such as 1.37.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: u32,
    minor: u32,
}

/// A text that is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid version '{0}': expected MAJOR.MINOR, such as 1.37")]
pub struct VersionError(String);

/// Which expressions are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Expressions {
    /// New and changed ones: they can mention what the release before knew.
    New,
    /// Stored ones: they can mention all that the release knows.
    Stored,
}

impl Version {
    /// A version such as 1.37.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The release before.
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

    /// A patch level and what follows it do not count.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError(text.to_owned());
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or_else(error);
        Ok(Self { major: number()?, minor: number()? })
    }
}

/// The environment of a release's expressions, without variables.
///
/// Source: apiserver pkg/cel/environment/base.go, `DefaultCompatibilityVersion`, and environment.go, `EnvSet`.
/// Rule: VLD-30.
pub fn environment(release: Version, expressions: Expressions) -> Environment {
    environment_at(match expressions {
        Expressions::New => release.previous(),
        Expressions::Stored => release,
    })
}

/// The environment that is compatible with a version, without variables.
///
/// Source: apiserver pkg/cel/environment/environment.go, `filterAndBuildOpts`.
pub fn environment_at(compatibility: Version) -> Environment {
    history::CHANGES
        .iter()
        .filter(|change| change.is_in(compatibility))
        .fold(Environment::standard(), |environment, change| (change.apply)(environment))
}
