//! The Pod Security policy of a namespace: levels and versions from its labels.

use std::fmt;
use std::sync::LazyLock;

use serde_json::Value;

use kubernetes_types::KUBERNETES_VERSION;
use kubernetes_types::json::{at, text};
use kubernetes_types::status::FieldError;

/// The prefix of the labels and the audit annotations.
pub(super) const PREFIX: &str = "pod-security.kubernetes.io/";

/// A Pod Security level. The variants are ordered from permissive to strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// The Kubernetes version of a level. The variants are ordered from old to new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Version {
    /// The version `v1.N`.
    Minor(u64),
    Latest,
}

/// A level in a version of Kubernetes: `baseline:v1.30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: Version,
}

/// The policy for the Pods in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: LevelVersion,
    /// The level whose violations are audited.
    pub(super) audit: LevelVersion,
    /// The level whose violations cause warnings.
    pub(super) warn: LevelVersion,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minor(minor) => write!(f, "v1.{minor}"),
            Self::Latest => f.write_str("latest"),
        }
    }
}

impl LevelVersion {
    /// Returns the version in the labels of metrics.
    ///
    /// Source: pod-security-admission metrics/metrics.go, `RecordEvaluation`.
    pub(super) fn version_label(self) -> String {
        static SUPPORTED_MINOR: LazyLock<Option<u64>> =
            LazyLock::new(|| KUBERNETES_VERSION.split('.').nth(1).and_then(|minor| minor.parse().ok()));
        let supported = *SUPPORTED_MINOR;
        match self.version {
            // All versions of this level are the same.
            _ if self.level == Level::Privileged => Version::Latest.to_string(),
            Version::Minor(minor) if supported.is_some_and(|supported| minor > supported) => {
                "future".to_owned()
            }
            Version::Latest | Version::Minor(_) => self.version.to_string(),
        }
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level, self.version)
    }
}

impl Level {
    /// Parses the name of a level.
    ///
    /// Source: pod-security-admission api/helpers.go, `ParseLevel`.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "privileged" => Ok(Self::Privileged),
            "baseline" => Ok(Self::Baseline),
            "restricted" => Ok(Self::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }
}

impl Version {
    /// Parses a version: `latest` or `v1.N`.
    ///
    /// Source: pod-security-admission api/helpers.go, `ParseVersion`.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "must be \"latest\" or \"v1.x\"";
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let minor = text.strip_prefix("v1.").filter(|minor| {
            let is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
            is_number && (minor.len() == 1 || !minor.starts_with('0'))
        });
        // Upstream's number is signed.
        let minor =
            minor.and_then(|minor| minor.parse::<i64>().ok()).and_then(|minor| u64::try_from(minor).ok());
        minor.map(Self::Minor).ok_or(WRONG)
    }
}

impl Default for Policy {
    /// Returns the policy that applies without labels and configuration.
    fn default() -> Self {
        let privileged = LevelVersion { level: Level::Privileged, version: Version::Latest };
        Self { enforce: privileged, audit: privileged, warn: privileged }
    }
}

impl Policy {
    /// Returns the policy in the labels of a namespace and the errors for invalid labels.
    ///
    /// Missing labels get their value from `defaults`. An invalid `enforce` level becomes restricted; an invalid
    /// `audit` or `warn` level becomes privileged.
    ///
    /// Source: pod-security-admission api/helpers.go, `PolicyToEvaluate`.
    pub(super) fn from_labels(namespace: &Value, defaults: Self) -> (Self, Vec<FieldError>) {
        let labels = at(namespace, &["metadata", "labels"]);
        let mut policy = defaults;
        let mut errors = Vec::new();
        let label = |mode: &str| {
            let key = format!("{PREFIX}{mode}");
            labels.get(&key).and_then(Value::as_str).map(|text| (key, text))
        };
        let mut read = |mode: &str, of_mode: &mut LevelVersion, otherwise: Level| {
            let level = label(mode).map(|(key, text)| {
                let parsed = Level::parse(text).map_err(|why| errors.push(invalid(&key, text, why)));
                of_mode.level = parsed.unwrap_or(otherwise);
                parsed.is_ok()
            });
            let version = label(&format!("{mode}-version")).map(|(key, text)| {
                let parsed = Version::parse(text).map_err(|why| errors.push(invalid(&key, text, why)));
                of_mode.version = parsed.unwrap_or(Version::Latest);
            });
            (level, version.is_some())
        };
        let (enforces, _) = read("enforce", &mut policy.enforce, Level::Restricted);
        read("audit", &mut policy.audit, Level::Privileged);
        let (warns, has_warn_version) = read("warn", &mut policy.warn, Level::Privileged);
        if warns.is_none() && enforces == Some(true) && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !has_warn_version {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }

    /// Returns whether all levels are privileged.
    pub(super) fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|mode| mode.level == Level::Privileged)
    }

    /// Returns the warning that the labels of an exempt namespace are ignored; `None` if no label sets a policy.
    ///
    /// Source: pod-security-admission admission/admission.go, `exemptNamespaceWarning`.
    pub(super) fn ignored(&self, namespace: &Value, defaults: &Self) -> Option<String> {
        if self.is_privileged() || self.is_equivalent(defaults) {
            return None;
        }
        let labels = at(namespace, &["metadata", "labels"]);
        let is_labeled = |mode: &str| {
            ["", "-version"].iter().any(|of| labels.get(format!("{PREFIX}{mode}{of}")).is_some())
        };
        let modes = [("enforce", self.enforce), ("audit", self.audit), ("warn", self.warn)].into_iter();
        let asked = modes.filter(|(name, mode)| mode.level != Level::Privileged && is_labeled(name));
        let asked: Vec<String> = asked.map(|(name, mode)| format!("{name}={mode}")).collect();
        Some(format!(
            "namespace \"{}\" is exempt from Pod Security, and the policy ({}) will be ignored",
            text(namespace, &["metadata", "name"]),
            asked.join(", ")
        ))
    }

    /// Returns whether two policies are equivalent; the version of the privileged level does not matter.
    ///
    /// Source: pod-security-admission api/helpers.go, `Equivalent`.
    fn is_equivalent(&self, other: &Self) -> bool {
        let pairs = [(self.enforce, other.enforce), (self.audit, other.audit), (self.warn, other.warn)];
        pairs.iter().all(|(one, other)| {
            one == other || (one.level == Level::Privileged && other.level == Level::Privileged)
        })
    }
}

fn invalid(label: &str, text: &str, why: &str) -> FieldError {
    FieldError::invalid(format!("metadata.labels[{label}]"), Value::from(text), why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(labels: &[(&str, &str)]) -> (Policy, Vec<String>) {
        let labels: serde_json::Map<String, Value> =
            labels.iter().map(|(mode, text)| (format!("{PREFIX}{mode}"), json!(text))).collect();
        let (policy, errors) =
            Policy::from_labels(&json!({"metadata": {"labels": labels}}), Policy::default());
        (policy, errors.iter().map(ToString::to_string).collect())
    }

    #[track_caller]
    fn check(labels: &[(&str, &str)], enforce: &str, audit: &str, warn: &str) {
        let (policy, _) = policy(labels);
        let found = [policy.enforce, policy.audit, policy.warn].map(|mode| mode.to_string());
        assert_eq!(found, [enforce, audit, warn]);
    }

    #[test]
    fn warn_level_defaults_to_enforced_level() {
        check(&[], "privileged:latest", "privileged:latest", "privileged:latest");
        let enforced = [("enforce", "baseline"), ("enforce-version", "v1.30")];
        check(&enforced, "baseline:v1.30", "privileged:latest", "baseline:v1.30");
        check(
            &[("enforce", "restricted"), ("warn-version", "v1.9")],
            "restricted:latest",
            "privileged:latest",
            "restricted:v1.9",
        );
        check(
            &[("enforce", "restricted"), ("warn", "privileged"), ("audit", "baseline")],
            "restricted:latest",
            "baseline:latest",
            "privileged:latest",
        );
    }

    #[test]
    fn invalid_enforced_level_is_restricted() {
        check(
            &[("enforce", "x"), ("warn", "x"), ("audit", "x")],
            "restricted:latest",
            "privileged:latest",
            "privileged:latest",
        );
        let (_, errors) = policy(&[("enforce", "x"), ("warn-version", "v1.01")]);
        assert_eq!(
            errors,
            [
                "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"x\": must be one of privileged, \
                 baseline, restricted",
                "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"v1.01\": must be \"latest\" or \
                 \"v1.x\"",
            ]
        );
        for text in ["1.30", "v1.", "v1.-1", "v1.x", "v2.0", "v1.99999999999999999999", ""] {
            assert!(Version::parse(text).is_err(), "{text}");
        }
        assert_eq!(Version::parse("v1.0"), Ok(Version::Minor(0)));
    }
}
