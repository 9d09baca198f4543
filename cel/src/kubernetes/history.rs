//! The Kubernetes versions in which libraries and options were introduced or removed.

use super::Version;
use crate::environment::{Environment, MacroSet, Validator};
use crate::library;
use crate::types::Type;

/// A library or option, and the versions of Kubernetes that include it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// The first version that includes the library or option.
    introduced: Version,
    /// The first version that no longer includes the library or option, if any.
    removed: Option<Version>,
    /// Adds the library or option to an environment.
    pub(super) apply: fn(Environment) -> Environment,
}

/// A version before expressions were introduced, for libraries and options that every version includes.
const ALWAYS: Version = Version::new(1, 0);

/// All libraries and options, in upstream's order. It determines the order of overloads and of validator errors.
///
/// Source: apiserver pkg/cel/environment/base.go, `baseOpts`.
/// Rule: NEW-10.
pub(super) const CHANGES: &[Change] = &[
    Change::since(ALWAYS, |environment| {
        environment
            .with_validator(Validator::HomogeneousLiterals)
            .with_functions(library::url::functions())
            .with_functions(library::regex::library())
    }),
    Change::between(ALWAYS, Version::new(1, 37), |environment| {
        environment.with_functions(library::kubernetes_lists::library(0))
    }),
    Change::since(Version::new(1, 27), |environment| {
        environment.with_functions(library::authorizer::functions())
    }),
    Change::since(Version::new(1, 28), |environment| {
        environment
            .with_comparisons_across_types()
            .with_macros(MacroSet::Optional)
            .with_type("optional_type", Type::optional(Type::Dyn))
            .with_functions(library::optional::functions())
            .with_functions(library::quantity::functions())
    }),
    Change::since(Version::new(1, 29), |environment| {
        environment
            .with_validator(Validator::Duration)
            .with_validator(Validator::Timestamp)
            .with_validator(Validator::Matches)
            .with_validator(Validator::HomogeneousLiterals)
    }),
    Change::between(ALWAYS, Version::new(1, 29), |environment| {
        environment.with_functions(library::strings::library(0))
    }),
    Change::since(Version::new(1, 29), |environment| {
        environment.with_functions(library::strings::library(2)).with_validator(Validator::StringFormat)
    }),
    Change::since(Version::new(1, 29), |environment| environment.with_functions(library::sets::library())),
    Change::since(Version::new(1, 30), |environment| {
        environment
            .with_functions(library::ip::functions())
            .with_type("net.IP", library::ip::ip())
            .with_functions(library::cidr::functions())
            .with_type("net.CIDR", library::cidr::cidr())
    }),
    Change::since(Version::new(1, 31), |environment| {
        environment.with_functions(library::named_format::functions())
    }),
    Change::since(Version::new(1, 31), |environment| {
        environment.with_functions(library::authorizer::selector_functions())
    }),
    Change::since(Version::new(1, 32), |environment| {
        environment.with_macros(MacroSet::TwoVariables).with_functions(library::comprehensions::library())
    }),
    Change::since(Version::new(1, 33), |environment| {
        environment.with_functions(library::semver::functions())
    }),
    Change::since(Version::new(1, 34), |environment| {
        environment.with_macros(MacroSet::SortBy).with_functions(library::lists::library())
    }),
    Change::since(Version::new(1, 37), |environment| {
        environment.with_functions(library::kubernetes_lists::library(1))
    }),
];

impl Change {
    const fn since(introduced: Version, apply: fn(Environment) -> Environment) -> Self {
        Self { introduced, removed: None, apply }
    }

    const fn between(introduced: Version, removed: Version, apply: fn(Environment) -> Environment) -> Self {
        Self { introduced, removed: Some(removed), apply }
    }

    /// Returns whether `version` includes the library or option.
    pub(super) fn is_in(&self, version: Version) -> bool {
        version >= self.introduced && self.removed.is_none_or(|removed| version < removed)
    }
}
