//! Reads `--admission-control-config-file`, the configuration of kube-apiserver's admission plugins.

mod in_tree;

use std::path::{Path, PathBuf};

use harness::client::{Credentials, WebhookCredentials};
use harness::config::Phase;
use harness::server::{AdmissionPlugins, PluginConfiguration};
use serde_json::{Map, Value};

use crate::admission_plugins::{MUTATING, VALIDATING};
use crate::component_config::{check_kind, mistyped, object, strict, text, unknown_fields};
use crate::static_manifests::{self, Loaded};
use crate::{Failure, documents};

/// The option `--admission-control-config-file`, for every command that calls webhooks.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AdmissionControl {
    /// Read the configuration of the admission plugins from this file, in kube-apiserver's format. The two webhook
    /// plugins may use kubeconfig files with credentials for webhooks and directories with webhook configurations; the
    /// configurations of `PodSecurity` and `PodNodeSelector` are also supported
    #[arg(
        id = "admission_control_config_file",
        long = "admission-control-config-file",
        value_name = "FILE",
        help_heading = "Webhooks"
    )]
    pub(crate) file: Option<PathBuf>,
}

const VERSION: &str = "apiserver.config.k8s.io/v1";
/// The deprecated API version of `AdmissionConfiguration`. It has the same fields.
const OLD_VERSION: &str = "apiserver.k8s.io/v1alpha1";

/// The configuration of the enabled admission plugins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plugins {
    /// The credentials for calls to webhooks.
    pub(crate) credentials: WebhookCredentials,
    /// The webhooks in static manifests.
    pub(crate) manifests: Loaded,
    pub(crate) in_tree: PluginConfiguration,
}

impl AdmissionControl {
    /// Reads the configuration of the enabled plugins.
    ///
    /// Returns the default configuration if the option is not set or no enabled plugin has an entry.
    ///
    /// # Errors
    /// Returns a usage failure that names the file and contains kube-apiserver's error, or [`Failure::unsupported`] for
    /// a configuration that admit does not support.
    pub(crate) fn read(&self, selection: &AdmissionPlugins) -> Result<Plugins, Failure> {
        let Some(file) = &self.file else { return Ok(Plugins::default()) };
        let configured = plugins(file)?;
        refuse_policies(&configured, selection, file)?;
        let mut plugins =
            Plugins { in_tree: in_tree::read(&configured, selection, file)?, ..Plugins::default() };
        // The server starts the plugins in this order.
        for (phase, name) in [(Phase::Mutating, MUTATING), (Phase::Validating, VALIDATING)] {
            if !selection.has(name) {
                continue;
            }
            let configuration = webhook_plugin(&configured, name, file)?;
            let credentials = credentials(&configuration, name, file)?;
            match phase {
                Phase::Mutating => plugins.credentials.mutating = credentials,
                Phase::Validating => plugins.credentials.validating = credentials,
            }
            plugins.manifests.load(phase, &configuration.static_manifests_dir).map_err(|error| {
                (format!("--admission-control-config-file {}: plugin {name}", file.display()), error)
            })?;
        }
        Ok(plugins)
    }
}

/// The entry of a plugin in an `AdmissionConfiguration`.
#[derive(Debug, PartialEq)]
struct PluginEntry {
    name: String,
    /// The path of the plugin's configuration, relative to the directory of the file.
    path: String,
    configuration: Option<Value>,
}

/// Reads the plugin entries of an `AdmissionConfiguration` file.
///
/// Source: apiserver pkg/admission/config.go, `ReadAdmissionConfiguration`.
/// Rule: LOAD-02.
fn plugins(file: &Path) -> Result<Vec<PluginEntry>, Failure> {
    let shown = file.display();
    let wrong = |what: String| Failure::usage(format!("--admission-control-config-file {shown}: {what}"));
    let object = object(file).map_err(wrong)?;
    plugins_of(&object).map_err(wrong)
}

fn plugins_of(object: &Map<String, Value>) -> Result<Vec<PluginEntry>, String> {
    check_kind(object, "AdmissionConfiguration", &[VERSION, OLD_VERSION])?;
    let mut unknown = unknown_fields(object, "", &["apiVersion", "kind", "plugins"]);
    let mut plugins = Vec::new();
    let written = match object.get("plugins") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(plugins)) => plugins,
        Some(other) => {
            return Err(mistyped(
                other,
                "AdmissionConfiguration.plugins",
                "[]v1.AdmissionPluginConfiguration",
            ));
        }
    };
    for (index, plugin) in written.iter().enumerate() {
        let Value::Object(members) = plugin else {
            return Err(mistyped(
                plugin,
                "AdmissionConfiguration.plugins",
                "v1.AdmissionPluginConfiguration",
            ));
        };
        let text =
            |field: &str| text(members, field, &format!("AdmissionPluginConfiguration.plugins.{field}"));
        plugins.push(PluginEntry {
            name: text("name")?,
            path: text("path")?,
            configuration: members.get("configuration").filter(|value| !value.is_null()).cloned(),
        });
        let path = format!("plugins[{index}].");
        unknown.extend(unknown_fields(members, &path, &["name", "path", "configuration"]));
    }
    if unknown.is_empty() { Ok(plugins) } else { Err(strict(&unknown)) }
}

/// Rejects policies in manifests, because kube-apiserver would enforce them.
fn refuse_policies(
    plugins: &[PluginEntry],
    selection: &AdmissionPlugins,
    file: &Path,
) -> Result<(), Failure> {
    for name in ["MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"] {
        if !selection.has(name) {
            continue;
        }
        let Some(configuration) = configuration(plugins, name, file)? else { continue };
        let folder = configuration.get("staticManifestsDir").unwrap_or(&Value::Null);
        if !folder.is_null() && folder != "" {
            let what = format!(
                "--admission-control-config-file {}: plugin {name}: staticManifestsDir: admit does not support admission policies in files",
                file.display()
            );
            return Err(Failure::unsupported(what));
        }
    }
    Ok(())
}

/// Returns the configuration of a plugin, or `None` if it does not have one. Only the first entry of a plugin is used.
///
/// Rule: LOAD-02.
fn configuration(
    plugins: &[PluginEntry],
    name: &str,
    file: &Path,
) -> Result<Option<Map<String, Value>>, Failure> {
    let Some(plugin) = plugins.iter().find(|plugin| plugin.name == name) else { return Ok(None) };
    let wrong = |what: String| wrong(file, name, &what);
    match &plugin.configuration {
        Some(Value::Object(members)) => Ok(Some(members.clone())),
        Some(_) => Err(wrong("configuration: expected an object".to_owned())),
        None if plugin.path.is_empty() => Ok(None),
        None => {
            let path = file.parent().unwrap_or(Path::new("")).join(&plugin.path);
            object(&path).map(Some).map_err(|what| wrong(format!("{}: {what}", path.display())))
        }
    }
}

fn wrong(file: &Path, name: &str, what: &str) -> Failure {
    Failure::usage(format!("--admission-control-config-file {}: plugin {name}: {what}", file.display()))
}

fn webhook_plugin(plugins: &[PluginEntry], name: &str, file: &Path) -> Result<WebhookAdmission, Failure> {
    match configuration(plugins, name, file)? {
        None => Ok(WebhookAdmission::default()),
        Some(configuration) => webhook_admission(&configuration).map_err(|what| wrong(file, name, &what)),
    }
}

fn credentials(configuration: &WebhookAdmission, name: &str, file: &Path) -> Result<Credentials, Failure> {
    let kubeconfig = Path::new(&configuration.kube_config_file);
    if configuration.kube_config_file.is_empty() {
        return Ok(Credentials::default());
    }
    let what = |what: &dyn std::fmt::Display| {
        wrong(file, name, &format!("kubeConfigFile {}: {what}", kubeconfig.display()))
    };
    let bytes = output::read_regular(kubeconfig).map_err(|error| what(&error))?;
    let text = documents::text(bytes, kubeconfig.display())?;
    Credentials::parse(&text, kubeconfig.parent().unwrap_or(Path::new("/"))).map_err(|error| what(&error))
}

/// The fields of a `WebhookAdmissionConfiguration`.
#[derive(Debug, Default, PartialEq, Eq)]
struct WebhookAdmission {
    kube_config_file: String,
    static_manifests_dir: String,
}

/// Parses a `WebhookAdmissionConfiguration`.
///
/// Source: apiserver pkg/admission/plugin/webhook/config/kubeconfig.go, `LoadConfig`.
/// Rule: LOAD-02, LOAD-03, NEW-08.
fn webhook_admission(object: &Map<String, Value>) -> Result<WebhookAdmission, String> {
    check_kind(object, "WebhookAdmissionConfiguration", &[VERSION])?;
    let text = |field: &str| text(object, field, &format!("WebhookAdmission.{field}"));
    let kube_config_file = text("kubeConfigFile")?;
    let static_manifests_dir = text("staticManifestsDir")?;
    let known = ["apiVersion", "kind", "kubeConfigFile", "staticManifestsDir"];
    let unknown = unknown_fields(object, "", &known);
    if !unknown.is_empty() {
        return Err(strict(&unknown));
    }
    if !kube_config_file.is_empty() && !Path::new(&kube_config_file).is_absolute() {
        return Err(format!(
            "kubeConfigFile: Invalid value: {kube_config_file:?}: must be an absolute file path"
        ));
    }
    static_manifests::check(&static_manifests_dir)?;
    Ok(WebhookAdmission { kube_config_file, static_manifests_dir })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(object: Value) -> Map<String, Value> {
        let Value::Object(members) = object else { panic!("an object is wanted") };
        members
    }

    // The text after the file name is what kube-apiserver 1.37.1 prints before it exits.
    #[test]
    fn an_invalid_configuration_is_rejected_with_the_servers_error() {
        let kind = |mut object: Value| {
            object["apiVersion"] = json!(VERSION);
            object["kind"] = json!("AdmissionConfiguration");
            plugins_of(&members(object)).unwrap_err()
        };
        assert_eq!(
            kind(json!({"foo": 1, "plugins": [{"name": "x", "bar": 2}]})),
            "strict decoding error: unknown field \"foo\", unknown field \"plugins[0].bar\""
        );
        assert_eq!(
            kind(json!({"plugins": 5})),
            "json: cannot unmarshal number into Go struct field AdmissionConfiguration.plugins of type \
             []v1.AdmissionPluginConfiguration"
        );
        assert_eq!(
            kind(json!({"plugins": [{"name": 5}]})),
            "json: cannot unmarshal number into Go struct field AdmissionPluginConfiguration.plugins.name of type string"
        );
        let webhook = |mut object: Value| {
            object["apiVersion"] = json!(VERSION);
            object["kind"] = json!("WebhookAdmissionConfiguration");
            webhook_admission(&members(object))
        };
        for (object, expect) in [
            (
                json!({"kubeConfigFile": "rel/kube.config"}),
                "kubeConfigFile: Invalid value: \"rel/kube.config\": must be an absolute file path",
            ),
            (
                json!({"staticManifestsDir": "x"}),
                "staticManifestsDir: Invalid value: \"x\": must be an absolute file path",
            ),
            (
                json!({"staticManifestsDir": "/nowhere"}),
                "staticManifestsDir: Invalid value: \"/nowhere\": unable to read: stat /nowhere: no such file or directory",
            ),
            (
                json!({"staticManifestsDir": "/dev/null"}),
                "staticManifestsDir: Invalid value: \"/dev/null\": must be a directory",
            ),
            (json!({"foo": 1}), "strict decoding error: unknown field \"foo\""),
            (
                json!({"kubeConfigFile": 5}),
                "json: cannot unmarshal number into Go struct field WebhookAdmission.kubeConfigFile of type string",
            ),
        ] {
            assert_eq!(webhook(object).unwrap_err(), expect);
        }
        assert_eq!(webhook(json!({})).unwrap(), WebhookAdmission::default());
        for (version, name) in
            [("apiserver.config.k8s.io/v1alpha1", "WebhookAdmission"), (VERSION, "WebhookAdmission")]
        {
            let error =
                webhook_admission(&members(json!({"apiVersion": version, "kind": name}))).unwrap_err();
            let begin = format!("no kind \"WebhookAdmission\" is registered for version {version:?}");
            assert!(error.starts_with(&begin), "{error}");
        }
    }

    #[test]
    fn paths_are_relative_to_the_directory_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let kubeconfig = write("kubeconfig", "users: [{name: '*', user: {token: t}}]");
        let file = write(
            "admission.yaml",
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
             - {name: MutatingAdmissionWebhook, path: webhooks.yaml}\n- {name: Other, path: nowhere}\n",
        );
        let control = AdmissionControl { file: Some(file) };
        let error = control.read(&AdmissionPlugins::default()).unwrap_err().to_string();
        assert!(error.contains("webhooks.yaml: No such file"), "{error}");
        write(
            "webhooks.yaml",
            &format!(
                "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\nkubeConfigFile: {}\n",
                kubeconfig.display()
            ),
        );
        let credentials = control.read(&AdmissionPlugins::default()).unwrap().credentials;
        assert_eq!(format!("{:?}", credentials.mutating), "Credentials { users: 1, .. }");
        assert_eq!(format!("{:?}", credentials.validating), "Credentials { users: 0, .. }");
    }
    #[test]
    fn policies_from_files_are_unsupported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("admission.json");
        for name in ["MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"] {
            let read = |directory: &str| {
                let plugin = json!({"name": name, "configuration": {"staticManifestsDir": directory}});
                let configuration =
                    json!({"apiVersion": VERSION, "kind": "AdmissionConfiguration", "plugins": [plugin]});
                std::fs::write(&file, configuration.to_string()).unwrap();
                AdmissionControl { file: Some(file.clone()) }.read(&AdmissionPlugins::default())
            };
            let failure = read("/x").unwrap_err();
            assert_eq!(failure.code, crate::ExitCode::Unsupported, "{failure}");
            assert!(read("").is_ok());
        }
    }
}
