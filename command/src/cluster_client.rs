//! Creates a Kubernetes client from a kubeconfig.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::Failure;

/// The options that select a cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ClusterArguments {
    /// Use this kubeconfig; by default KUBECONFIG, then ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Use this context of the kubeconfig; by default the current context
    #[arg(long = "context", value_name = "NAME")]
    pub(crate) kubeconfig_context: Option<String>,
}

impl ClusterArguments {
    /// Connects to the cluster and checks that it responds.
    ///
    /// # Errors
    /// Returns an error if there is no usable kubeconfig or the cluster does not respond. The error suggests a fix.
    pub(crate) async fn connect(&self) -> Result<kube::Client, Failure> {
        self.connect_with_version().await.map(|(client, _)| client)
    }

    /// Connects to the cluster as [`connect`](Self::connect) does; also returns the `gitVersion` of the server.
    ///
    /// # Errors
    /// See [`connect`](Self::connect).
    pub(crate) async fn connect_with_version(&self) -> Result<(kube::Client, String), Failure> {
        let client = self.client().await?;
        let version = client.apiserver_version().await.map_err(|error| {
            let context = self.kubeconfig_context.as_ref();
            let what = if let kube::Error::Api(status) = &error {
                format!("the API server rejects the request: {} {}", status.code, status.message)
            } else {
                format!("the cluster does not respond: {}", with_causes(&error))
            };
            Failure::environment(format!(
                "{what}\n  check it with: kubectl {}version",
                context.map_or_else(String::new, |name| format!("--context {name} "))
            ))
        })?;
        Ok((client, version.git_version))
    }

    /// Returns the name of the context; empty if the kubeconfig does not have one.
    pub(crate) fn context_name(&self) -> String {
        let current = || {
            let kubeconfig = match &self.kubeconfig {
                Some(path) => Kubeconfig::read_from(path),
                None => Kubeconfig::read(),
            };
            kubeconfig.ok()?.current_context
        };
        self.kubeconfig_context.clone().or_else(current).unwrap_or_default()
    }

    async fn client(&self) -> Result<kube::Client, Failure> {
        let options =
            KubeConfigOptions { context: self.kubeconfig_context.clone(), ..KubeConfigOptions::default() };
        let config = match &self.kubeconfig {
            Some(path) => kube::Config::from_custom_kubeconfig(read(path)?, &options).await,
            None => kube::Config::from_kubeconfig(&options).await,
        };
        let mut config = config.map_err(|error| {
            Failure::environment(format!(
                "cannot use the kubeconfig: {error}\n  set KUBECONFIG, or pass --kubeconfig FILE and, for \
                 another cluster, --context NAME"
            ))
        })?;
        // Otherwise the client would retry requests that a webhook denied with 429, 503, or 504.
        config.default_retry = false;
        kube::Client::try_from(config).map_err(|error| {
            Failure::environment(format!("cannot create a client from the kubeconfig: {error}"))
        })
    }
}

/// Reads a kubeconfig. Only a regular file can name other files by relative paths.
fn read(path: &Path) -> Result<Kubeconfig, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::usage(format!("kubeconfig {}: {error}", path.display()));
    if path.is_file() || !path.exists() {
        return Kubeconfig::read_from(path).map_err(|error| failed(&cause(&error)));
    }
    // A device may never end.
    let bytes = output::read(path).map_err(|error| failed(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| failed(&error))?;
    Kubeconfig::from_yaml(&text).map_err(|error| failed(&cause(&error)))
}

/// Returns the cause of an error about a kubeconfig, whose own message repeats the path.
fn cause(error: &kube::config::KubeconfigError) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Formats an error with its distinct causes: the client's own message is often only "client error".
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}
