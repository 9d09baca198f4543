//! Runs credential plugins: `exec` in a kubeconfig.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use kubernetes_admission::config::{ClientConfig, WebhookTarget};
use kubernetes_types::quoting::quote;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

use super::UserError;
use super::answer::{self, ExecVersion, Printed};
use super::program::{Program, RunError};
use crate::tls::Identity;

/// The maximum number of cached plugins. With `provideClusterInfo`, each `clientConfig` has its own plugin.
const MAX_PLUGINS: usize = 200;
/// The maximum number of install hints for a missing program per period, and the length of the period.
///
/// Source: client-go plugin/pkg/client/auth/exec/exec.go, `newAuthenticator`.
const HINTS: (u32, Duration) = (10, Duration::from_secs(3600));
const HINT: &str = "\n\nIt looks like you are trying to use a client-go credential plugin that is not installed.\n\nTo learn \
                    more about this feature, consult the documentation available at:\n      \
                    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins";

/// The field `exec` of a user, as written in a kubeconfig.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WrittenExec {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<Vec<WrittenVariable>>,
    api_version: Option<String>,
    install_hint: Option<String>,
    provide_cluster_info: Option<bool>,
    interactive_mode: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenVariable {
    name: Option<String>,
    value: Option<String>,
}

/// A credential plugin's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ExecConfig {
    program: Program,
    api_version: String,
    install_hint: String,
    provides_cluster_info: bool,
    interactive_mode: String,
}

impl ExecConfig {
    /// Reads the configuration of a plugin. A relative path to the program is resolved against `folder`.
    ///
    /// Source: client-go tools/clientcmd/loader.go, `GetAuthInfoFileReferences`; tools/clientcmd/api/v1/defaults.go.
    pub(super) fn new(written: WrittenExec, folder: &Path) -> Self {
        let command = written.command.unwrap_or_default();
        let command = if command.contains('/') {
            folder.join(&command).to_string_lossy().into_owned()
        } else {
            command
        };
        let api_version = written.api_version.unwrap_or_default();
        let is_optional = matches!(
            api_version.as_str(),
            "client.authentication.k8s.io/v1beta1" | "client.authentication.k8s.io/v1alpha1"
        );
        let mode = written.interactive_mode.unwrap_or_default();
        let env = written.env.into_iter().flatten();
        Self {
            program: Program {
                command: clean(&command),
                args: written.args.unwrap_or_default(),
                env: env
                    .map(|variable| (variable.name.unwrap_or_default(), variable.value.unwrap_or_default()))
                    .collect(),
            },
            api_version,
            install_hint: written.install_hint.unwrap_or_default(),
            provides_cluster_info: written.provide_cluster_info.unwrap_or_default(),
            interactive_mode: if mode.is_empty() && is_optional { "IfAvailable".to_owned() } else { mode },
        }
    }

    /// Returns the API version that the plugin uses.
    ///
    /// # Errors
    /// Returns kube-apiserver's error for an unknown API version.
    pub(super) fn version(&self) -> Result<ExecVersion, UserError> {
        ExecVersion::parse(&self.api_version).ok_or_else(|| {
            UserError::Client(format!("exec plugin: invalid apiVersion {}", quote(&self.api_version)))
        })
    }
}

/// Returns the shortest equivalent path, without accessing the file system.
///
/// Source: Go path/filepath, `Clean`.
fn clean(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    match (is_absolute, parts.join("/")) {
        (true, path) => format!("/{path}"),
        (false, path) if path.is_empty() => ".".to_owned(),
        (false, path) => path,
    }
}

/// The cluster information that a plugin receives. It describes the webhook.
///
/// Source: client-go pkg/apis/clientauthentication/v1/types.go, `Cluster`; rest/exec.go, `ConfigToExecCluster`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    tls_server_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    certificate_authority_data: String,
    config: Option<Value>,
}

impl Cluster {
    fn new(webhook: &ClientConfig) -> Self {
        let tls_server_name = match &webhook.target {
            WebhookTarget::Service(service) => service.host(),
            WebhookTarget::Url(_) => String::new(),
        };
        Self {
            server: format!("https://{}", webhook.target.authority()),
            tls_server_name,
            certificate_authority_data: BASE64_STANDARD.encode(&webhook.ca_bundle),
            config: None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential<'a> {
    kind: &'static str,
    api_version: String,
    spec: ExecCredentialSpec<'a>,
}

#[derive(Serialize)]
struct ExecCredentialSpec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a Cluster>,
    interactive: bool,
}

type Key = (ExecConfig, Option<Cluster>);

/// The credential plugins and their latest output. Clones share the same plugins.
#[derive(Clone, Default)]
pub(in super::super) struct Plugins(Arc<SyncMutex<HashMap<Key, Arc<Plugin>>>>);

impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugins").finish_non_exhaustive()
    }
}

impl Plugins {
    /// Returns the plugin with the configuration `config` for calls to `webhook`.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`ExecConfig::version`].
    pub(super) fn plugin(
        &self,
        config: &ExecConfig,
        webhook: &ClientConfig,
    ) -> Result<Arc<Plugin>, UserError> {
        let version = config.version()?;
        let cluster = config.provides_cluster_info.then(|| Cluster::new(webhook));
        let key = (config.clone(), cluster);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plugin) = known.get(&key) {
            return Ok(Arc::clone(plugin));
        }
        if known.len() == MAX_PLUGINS {
            known.clear();
        }
        let (config, cluster) = key.clone();
        let plugin = Arc::new(Plugin { config, version, cluster, state: Arc::default() });
        known.insert(key, Arc::clone(&plugin));
        Ok(plugin)
    }
}

/// A credential plugin and its latest credentials.
pub(in super::super) struct Plugin {
    config: ExecConfig,
    version: ExecVersion,
    cluster: Option<Cluster>,
    /// The plugin's state. It is locked while the program runs, so that only one instance runs at a time.
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    printed: Option<Arc<Printed>>,
    /// The start of the current period for hints, and the number of hints in it.
    hints: Option<(Instant, u32)>,
}

impl Plugin {
    /// Returns the credentials. Runs the program if it has not run yet, or if its credentials have expired.
    ///
    /// # Errors
    /// Returns kube-apiserver's error if the program fails or prints invalid output.
    ///
    /// Source: client-go plugin/pkg/client/auth/exec/exec.go, `getCreds`.
    /// Rule: HTTP-20.
    pub(super) async fn credentials(self: &Arc<Self>) -> Result<Arc<Printed>, UserError> {
        let state = Arc::clone(&self.state).lock_owned().await;
        match &state.printed {
            Some(printed) if printed.expires.is_none_or(|expires| Timestamp::now() <= expires) => {
                Ok(Arc::clone(printed))
            }
            Some(_) | None => self.run(state).await,
        }
        .map_err(|error| match error {
            UserError::Request(text) => UserError::Request(format!("getting credentials: {text}")),
            other @ (UserError::Client(_) | UserError::Unsupported(_)) => other,
        })
    }

    /// Runs the program again, unless `used` is no longer its latest output. If it fails, the old credentials are kept.
    ///
    /// Source: client-go plugin/pkg/client/auth/exec/exec.go, `maybeRefreshCreds`.
    async fn refresh(self: &Arc<Self>, used: &Arc<Printed>) {
        let state = Arc::clone(&self.state).lock_owned().await;
        if state.printed.as_ref().is_some_and(|printed| Arc::ptr_eq(printed, used)) {
            // Like client-go, ignore the error: the next call reports it if it persists.
            let _ = self.run(state).await;
        }
    }

    /// Runs the program. It continues to run if the call ends first, so that the next call can use its output.
    async fn run(self: &Arc<Self>, mut state: OwnedMutexGuard<State>) -> Result<Arc<Printed>, UserError> {
        let plugin = Arc::clone(self);
        let running = tokio::spawn(async move {
            let printed = Arc::new(plugin.ask(&mut state).await?);
            state.printed = Some(Arc::clone(&printed));
            Ok(printed)
        });
        running.await.unwrap_or_else(|error| Err(UserError::Request(format!("exec: {error}"))))
    }

    /// Runs the program and decodes its output. Fails if the program requires a terminal as its standard input.
    ///
    /// Source: client-go plugin/pkg/client/auth/exec/exec.go, `refreshCredsLocked` and `isInteractive`.
    async fn ask(&self, state: &mut State) -> Result<Printed, UserError> {
        let complaint = match self.config.interactive_mode.as_str() {
            "Never" | "IfAvailable" => None,
            "Always" => Some("standard input is not a terminal".to_owned()),
            mode => Some(format!("unknown interactiveMode: {}", quote(mode))),
        };
        if let Some(complaint) = complaint {
            let text = format!("exec plugin cannot support interactive mode: {complaint}");
            return Err(UserError::Request(text));
        }
        let info = ExecCredential {
            kind: "ExecCredential",
            api_version: self.version.api_version(),
            spec: ExecCredentialSpec { cluster: self.cluster.as_ref(), interactive: false },
        };
        let info = serde_json::to_string(&info)
            .map_err(|error| UserError::Request(format!("encode ExecCredentials: {error}")))?;
        match self.config.program.run(&format!("{info}\n")).await {
            Ok(stdout) => answer::read(&stdout, self.version),
            Err(RunError::Other(error)) => Err(error),
            Err(RunError::NotFound) => {
                let hint = if state.may_hint() { self.hint() } else { String::new() };
                let command = &self.config.program.command;
                Err(UserError::Request(format!("exec: executable {command} not found{hint}")))
            }
        }
    }

    fn hint(&self) -> String {
        match self.config.install_hint.as_str() {
            "" => HINT.to_owned(),
            hint => format!("{HINT}\n\n{hint}"),
        }
    }
}

impl State {
    /// Counts a hint, and returns whether the limit allows showing it.
    ///
    /// Source: client-go plugin/pkg/client/auth/exec/exec.go, `sometimes`.
    fn may_hint(&mut self) -> bool {
        let (most, interval) = HINTS;
        let now = Instant::now();
        let (since, count) = self.hints.filter(|(since, _)| now - *since < interval).unwrap_or((now, 0));
        let may = count < most;
        self.hints = Some((since, count + u32::from(may)));
        may
    }
}

/// Credentials from a plugin, and the plugin itself, to run it again if the webhook rejects the credentials.
pub(in super::super) struct FromPlugin {
    plugin: Arc<Plugin>,
    pub(super) printed: Arc<Printed>,
}

impl FromPlugin {
    /// Runs `plugin` if necessary, and returns its credentials.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Plugin::credentials`].
    pub(super) async fn ask(plugin: Arc<Plugin>) -> Result<Self, UserError> {
        let printed = plugin.credentials().await?;
        Ok(Self { plugin, printed })
    }

    /// Returns the client certificate; `None` if the plugin did not print a certificate.
    pub(in super::super) fn identity(&self) -> Option<&Identity> {
        self.printed.identity.as_ref()
    }

    /// Runs the plugin again after the webhook returned 401.
    pub(in super::super) async fn unauthorized(self) {
        self.plugin.refresh(&self.printed).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_go_cleans_them() {
        for (path, expect) in [
            ("", "."),
            ("plugin", "plugin"),
            ("/a/./b//c/../plugin", "/a/b/plugin"),
            ("/../a", "/a"),
            ("a/..", "."),
            ("../../a", "../../a"),
            ("a/../../b", "../b"),
        ] {
            assert_eq!(clean(path), expect, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_hint_is_logged_ten_times_an_hour() {
        let mut state = State::default();
        let mut said = || (0..20).filter(|_| state.may_hint()).count();
        assert_eq!(said(), 10);
        tokio::time::advance(Duration::from_secs(3599)).await;
        assert_eq!(said(), 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(said(), 10);
    }
}
