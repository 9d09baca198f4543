//! Reads the configuration of in-tree plugins that do not call webhooks.

use std::collections::BTreeMap;
use std::path::Path;

use harness::server::{
    AdmissionPlugins, PluginConfiguration, PodNodeSelectorConfiguration, PodSecurityConfiguration,
    PodSecurityDefaults, PodSecurityExemptions,
};
use serde_json::{Map, Value};

use super::{PluginEntry, configuration, wrong};
use crate::Failure;
use crate::component_config::{check_kind, mistyped, strict, text, unknown_fields};

const POD_SECURITY_VERSIONS: [&str; 3] = [
    "pod-security.admission.config.k8s.io/v1",
    "pod-security.admission.config.k8s.io/v1beta1",
    "pod-security.admission.config.k8s.io/v1alpha1",
];

/// Reads the configuration of the enabled plugins.
///
/// # Errors
/// Returns a usage failure that names the file and the error, or [`Failure::unsupported`] for a configuration that
/// admit does not support.
pub(super) fn read(
    plugins: &[PluginEntry],
    selection: &AdmissionPlugins,
    file: &Path,
) -> Result<PluginConfiguration, Failure> {
    let of = |name: &str| if selection.has(name) { configuration(plugins, name, file) } else { Ok(None) };
    let unsupported = |name: &str, what: &str| {
        let file = file.display();
        Failure::unsupported(format!("--admission-control-config-file {file}: plugin {name}: {what}"))
    };
    let mut read = PluginConfiguration::default();
    if let Some(configuration) = of("PodSecurity")? {
        read.pod_security = pod_security(&configuration).map_err(|what| wrong(file, "PodSecurity", &what))?;
    }
    if let Some(configuration) = of("PodNodeSelector")? {
        read.pod_node_selector =
            pod_node_selector(&configuration).map_err(|what| unsupported("PodNodeSelector", &what))?;
    }
    if of("ResourceQuota")?.is_some() {
        return Err(unsupported("ResourceQuota", "admit does not support its configuration"));
    }
    Ok(read)
}

/// Parses a `PodSecurityConfiguration`.
///
/// Source: pod-security-admission admission/api/load/load.go, `LoadFromData`.
/// Rule: LOAD-16.
fn pod_security(object: &Map<String, Value>) -> Result<PodSecurityConfiguration, String> {
    const DEFAULTS: [&str; 6] =
        ["audit", "audit-version", "enforce", "enforce-version", "warn", "warn-version"];
    const EXEMPTIONS: [&str; 3] = ["namespaces", "runtimeClasses", "usernames"];
    let version = check_kind(object, "PodSecurityConfiguration", &POD_SECURITY_VERSIONS)?;
    let version = version.rsplit('/').next().unwrap_or_default();
    let none = Map::new();
    let member = |field: &str, kind: &str| match object.get(field) {
        None | Some(Value::Null) => Ok(&none),
        Some(Value::Object(members)) => Ok(members),
        Some(other) => {
            Err(mistyped(other, &format!("PodSecurityConfiguration.{field}"), &format!("{version}.{kind}")))
        }
    };
    let written = member("defaults", "PodSecurityDefaults")?;
    let default = |field: &str| text(written, field, &format!("PodSecurityDefaults.defaults.{field}"));
    let defaults = PodSecurityDefaults {
        audit: default("audit")?,
        audit_version: default("audit-version")?,
        enforce: default("enforce")?,
        enforce_version: default("enforce-version")?,
        warn: default("warn")?,
        warn_version: default("warn-version")?,
    };
    let exempt = member("exemptions", "PodSecurityExemptions")?;
    let exemptions = PodSecurityExemptions {
        namespaces: texts(exempt, "namespaces")?,
        runtime_classes: texts(exempt, "runtimeClasses")?,
        usernames: texts(exempt, "usernames")?,
    };
    // Unknown fields are reported in document order.
    let mut unknown = Vec::new();
    for name in object.keys() {
        unknown.extend(match name.as_str() {
            "apiVersion" | "kind" => Vec::new(),
            "defaults" => unknown_fields(written, "defaults.", &DEFAULTS),
            "exemptions" => unknown_fields(exempt, "exemptions.", &EXEMPTIONS),
            other => vec![format!("unknown field \"{other}\"")],
        });
    }
    if !unknown.is_empty() {
        return Err(strict(&unknown));
    }
    PodSecurityConfiguration::new(&defaults, exemptions)
}

/// Reads a list of strings from the `exemptions` of a `PodSecurityConfiguration`.
fn texts(object: &Map<String, Value>, field: &str) -> Result<Vec<String>, String> {
    let path = format!("PodSecurityExemptions.exemptions.{field}");
    let values = match object.get(field) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(values)) => values,
        Some(other) => return Err(mistyped(other, &path, "[]string")),
    };
    let text = |value: &Value| match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(mistyped(other, &path, "string"))
        }
    };
    values.iter().map(text).collect()
}

/// Parses the configuration of `PodNodeSelector`.
///
/// Source: kubernetes plugin/pkg/admission/podnodeselector/admission.go, `readConfig`.
/// Rule: LOAD-17.
fn pod_node_selector(object: &Map<String, Value>) -> Result<PodNodeSelectorConfiguration, String> {
    let mut selectors = BTreeMap::new();
    for (name, value) in object {
        if !name.eq_ignore_ascii_case("podNodeSelectorPluginConfig") || value.is_null() {
            continue;
        }
        let Value::Object(members) = value else {
            return Err(format!("{name}: admit supports only an object"));
        };
        for (namespace, selector) in members {
            let Value::String(selector) = selector else {
                return Err(format!("{name}.{namespace}: admit supports only a string"));
            };
            selectors.insert(namespace.clone(), selector.clone());
        }
    }
    Ok(PodNodeSelectorConfiguration(selectors))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(name: &str, configuration: Option<Value>) -> PluginEntry {
        PluginEntry { name: name.to_owned(), path: String::new(), configuration }
    }

    fn read_one(name: &str, configuration: Option<Value>) -> Result<PluginConfiguration, String> {
        let selection = AdmissionPlugins::select(&["PodNodeSelector"], &[]).unwrap();
        read(&[entry(name, configuration)], &selection, Path::new("x.yaml"))
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn unsupported_plugin_configurations_are_rejected() {
        let begin = "--admission-control-config-file x.yaml: plugin";
        for (name, configuration, expect) in [
            ("ResourceQuota", json!({}), "ResourceQuota: admit does not support its configuration"),
            (
                "PodNodeSelector",
                json!({"podNodeSelectorPluginConfig": {"x": 5}}),
                "PodNodeSelector: podNodeSelectorPluginConfig.x: admit supports only a string",
            ),
        ] {
            assert_eq!(read_one(name, Some(configuration)), Err(format!("{begin} {expect}")));
            assert_eq!(read_one(name, None), Ok(PluginConfiguration::default()));
        }
        assert_eq!(read_one("EventRateLimit", Some(json!({}))), Ok(PluginConfiguration::default()));
    }

    #[test]
    fn disabled_plugins_are_ignored() {
        let selection = AdmissionPlugins::select(&[], &["PodSecurity", "ResourceQuota"]).unwrap();
        let plugins = ["PodSecurity", "PodNodeSelector", "ResourceQuota"]
            .map(|name| entry(name, Some(json!({"podNodeSelectorPluginConfig": 5}))));
        let read = read(&plugins, &selection, Path::new("x.yaml"));
        assert_eq!(read.map_err(|failure| failure.to_string()), Ok(PluginConfiguration::default()));
    }

    #[test]
    fn node_selectors_are_read() {
        let read = read_one("PodNodeSelector", Some(json!({"PODNODESELECTORPLUGINCONFIG": {"x": "a=b=c"}})));
        let expect = BTreeMap::from([("x".to_owned(), "a=b=c".to_owned())]);
        assert_eq!(read.unwrap().pod_node_selector, PodNodeSelectorConfiguration(expect));
    }

    #[test]
    fn each_version_of_a_pod_security_configuration_is_read() {
        let mut different = Vec::new();
        for version in POD_SECURITY_VERSIONS {
            let object = json!({
                "apiVersion": version, "kind": "PodSecurityConfiguration",
                "defaults": {"enforce": "baseline", "warn-version": "v1.30"}, "exemptions": {"usernames": ["u"]},
            });
            different.push(read_one("PodSecurity", Some(object)).unwrap());
        }
        different.dedup();
        assert_eq!(different.len(), 1);
        assert_ne!(different.first(), Some(&PluginConfiguration::default()));
    }

    // The text after the plugin name is what kube-apiserver 1.37.1 prints before it exits.
    #[test]
    fn an_invalid_pod_security_configuration_is_rejected_with_the_servers_error() {
        for (mut object, expect) in [
            (
                json!({"defaults": {"bar": 1}, "exemptions": {"baz": 2}, "foo": 1}),
                "strict decoding error: unknown field \"defaults.bar\", unknown field \"exemptions.baz\", unknown \
                 field \"foo\"",
            ),
            (
                json!({"defaults": {"enforce": 5}}),
                "json: cannot unmarshal number into Go struct field PodSecurityDefaults.defaults.enforce of type string",
            ),
            (
                json!({"defaults": 5}),
                "json: cannot unmarshal number into Go struct field PodSecurityConfiguration.defaults of type \
                 v1.PodSecurityDefaults",
            ),
            (
                json!({"exemptions": {"usernames": "u"}}),
                "json: cannot unmarshal string into Go struct field PodSecurityExemptions.exemptions.usernames of type \
                 []string",
            ),
            (
                json!({"exemptions": {"usernames": [5]}}),
                "json: cannot unmarshal number into Go struct field PodSecurityExemptions.exemptions.usernames of type \
                 string",
            ),
            (
                json!({"defaults": {"enforce": "x"}}),
                "PodSecurity configuration error: enforce: must be one of privileged, baseline, restricted",
            ),
        ] {
            object["apiVersion"] = json!("pod-security.admission.config.k8s.io/v1");
            object["kind"] = json!("PodSecurityConfiguration");
            let error = read_one("PodSecurity", Some(object)).unwrap_err();
            assert_eq!(
                error,
                format!("--admission-control-config-file x.yaml: plugin PodSecurity: {expect}")
            );
        }
    }
}
