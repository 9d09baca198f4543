//! The configuration of `PodSecurity`: defaults for namespaces without labels, and exemptions.

use std::collections::HashSet;

use kubernetes_types::json::text;
use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::{FieldError, aggregate};
use serde_json::Value;

use super::policy::{Level, LevelVersion, Policy, Version};

/// A valid `PodSecurityConfiguration`.
///
/// As in kube-apiserver, the default configuration does not enforce a level in namespaces without labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSecurityConfiguration {
    pub(super) defaults: Policy,
    exemptions: PodSecurityExemptions,
}

/// The levels and versions in the configuration; empty means `privileged` or `latest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSecurityDefaults {
    /// The level that Pods must satisfy.
    pub enforce: String,
    /// The Kubernetes version of the `enforce` level, or `latest`.
    pub enforce_version: String,
    /// The level whose violations are added to the audit annotations.
    pub audit: String,
    /// The Kubernetes version of the `audit` level, or `latest`.
    pub audit_version: String,
    /// The level whose violations cause warnings.
    pub warn: String,
    /// The Kubernetes version of the `warn` level, or `latest`.
    pub warn_version: String,
}

/// The requests that are exempt from Pod Security.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSecurityExemptions {
    /// The exempt user names.
    pub usernames: Vec<String>,
    /// The exempt namespaces.
    pub namespaces: Vec<String>,
    /// The exempt runtime classes.
    pub runtime_classes: Vec<String>,
}

impl PodSecurityConfiguration {
    /// Validates levels, versions, and exemptions, and creates a configuration from them.
    ///
    /// Source: pod-security-admission admission/admission.go, `CompleteConfiguration` and `ValidateConfiguration`;
    /// admission/api/helpers.go, `ToPolicy`; admission/api/validation/validation.go.
    /// Rule: LOAD-16.
    ///
    /// # Errors
    /// Returns the reason why the configuration is invalid, with kube-apiserver's message.
    pub fn new(defaults: &PodSecurityDefaults, exemptions: PodSecurityExemptions) -> Result<Self, String> {
        let mut errors = Vec::new();
        let mut mode = |field: &str, level: &str, version: &str| {
            let level = if level.is_empty() { Ok(Level::Privileged) } else { Level::parse(level) };
            let level = level.map_err(|why| errors.push(format!("{field}: {why}")));
            let version = if version.is_empty() { Ok(Version::Latest) } else { Version::parse(version) };
            let version = version.map_err(|why| errors.push(format!("{field}-version: {why}")));
            Some(LevelVersion { level: level.ok()?, version: version.ok()? })
        };
        let modes = (
            mode("enforce", &defaults.enforce, &defaults.enforce_version),
            mode("audit", &defaults.audit, &defaults.audit_version),
            mode("warn", &defaults.warn, &defaults.warn_version),
        );
        let (Some(enforce), Some(audit), Some(warn)) = modes else {
            return Err(format!("PodSecurity configuration error: {}", aggregate(errors)));
        };
        let errors = exemptions.errors();
        if !errors.is_empty() {
            let errors = aggregate(errors.iter().map(ToString::to_string));
            return Err(format!("PodSecurity invalid: {errors}"));
        }
        Ok(Self { defaults: Policy { enforce, audit, warn }, exemptions })
    }

    pub(super) fn is_exempt_namespace(&self, namespace: &str) -> bool {
        self.exemptions.namespaces.iter().any(|exempt| exempt == namespace)
    }

    pub(super) fn is_exempt_user(&self, username: &str) -> bool {
        self.exemptions.usernames.iter().any(|exempt| exempt == username)
    }

    /// Returns whether the runtime class in a Pod's spec is exempt.
    pub(super) fn is_exempt_runtime_class(&self, spec: &Value) -> bool {
        let class = text(spec, &["runtimeClassName"]);
        self.exemptions.runtime_classes.iter().any(|exempt| exempt == class)
    }
}

impl PodSecurityExemptions {
    fn errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut check = |list: &str, values: &[String], wrong: &dyn Fn(&str) -> Vec<String>| {
            let mut seen = HashSet::new();
            for (index, value) in values.iter().enumerate() {
                let field = format!("exemptions.{list}[{index}]");
                let why = wrong(value);
                if !why.is_empty() {
                    errors.push(FieldError::invalid(field, quote(value), why.join(", ")));
                } else if !seen.insert(value) {
                    errors.push(FieldError::duplicate(field, quote(value)));
                }
            }
        };
        check("namespaces", &self.namespaces, &names::dns1123_label);
        check("runtimeClasses", &self.runtime_classes, &names::dns1123_subdomain);
        check("usernames", &self.usernames, &|name| {
            if name.is_empty() { vec!["username must not be empty".to_owned()] } else { Vec::new() }
        });
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    // The messages that kube-apiserver 1.37.1 prints before it exits.
    #[test]
    fn invalid_configuration_has_upstream_errors() {
        let defaults = |enforce: &str, audit_version: &str| {
            let (enforce, audit_version) = (enforce.to_owned(), audit_version.to_owned());
            PodSecurityDefaults { enforce, audit_version, ..PodSecurityDefaults::default() }
        };
        let none = PodSecurityExemptions::default;
        let levels = "enforce: must be one of privileged, baseline, restricted";
        let versions = "audit-version: must be \"latest\" or \"v1.x\"";
        for (defaults, exemptions, expect) in [
            (defaults("x", ""), none(), format!("PodSecurity configuration error: {levels}")),
            (defaults("x", "1"), none(), format!("PodSecurity configuration error: [{levels}, {versions}]")),
            (
                defaults("", ""),
                PodSecurityExemptions { usernames: names(&["", "a", "a"]), ..none() },
                "PodSecurity invalid: [exemptions.usernames[0]: Invalid value: \"\": username must not be empty, \
                 exemptions.usernames[2]: Duplicate value: \"a\"]"
                    .to_owned(),
            ),
        ] {
            assert_eq!(PodSecurityConfiguration::new(&defaults, exemptions).unwrap_err(), expect);
        }
        let exemptions = PodSecurityExemptions { namespaces: names(&["A", "x", "x"]), ..none() };
        let error = PodSecurityConfiguration::new(&defaults("", ""), exemptions).unwrap_err();
        assert!(error.contains("exemptions.namespaces[0]: Invalid value: \"A\": a lowercase RFC 1123 label"));
        assert!(error.ends_with("exemptions.namespaces[2]: Duplicate value: \"x\"]"), "{error}");
    }

    #[test]
    fn empty_configuration_is_the_default() {
        let empty =
            PodSecurityConfiguration::new(&PodSecurityDefaults::default(), PodSecurityExemptions::default());
        assert_eq!(empty, Ok(PodSecurityConfiguration::default()));
    }
}
