//! A cluster that a kubeconfig names, as a target.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};

use super::{AuditLog, Target, TargetArguments, TargetKind};
use crate::Failure;

/// The cluster that the arguments name, once it has answered.
pub(super) async fn target(arguments: &TargetArguments) -> Result<Target, Failure> {
    let Some(fakes_host) = arguments.fakes_host.clone() else {
        return Err(Failure::usage(
            "--target cluster needs --fakes-host HOST: the name or address under which the cluster's API server \
             reaches this machine (kind on Linux: the gateway of the docker network `kind`)",
        ));
    };
    let audit = match &arguments.audit_log {
        Some(path) => AuditLog::follow_from_end(path).map_err(|error| {
            Failure::environment(format!("cannot read the audit log {}: {error}", path.display()))
        })?,
        None => AuditLog::not_shown(),
    };
    let client = client(arguments).await?;
    client.apiserver_version().await.map_err(|error| {
        Failure::environment(format!(
            "the cluster does not answer: {}\n  check it with: kubectl {}version",
            with_causes(&error),
            context_option(arguments)
        ))
    })?;
    Ok(Target {
        kind: TargetKind::Cluster,
        client,
        fakes_host,
        fakes_listen: arguments.fakes_listen.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        services: arguments.services(),
        audit,
    })
}

async fn client(arguments: &TargetArguments) -> Result<kube::Client, Failure> {
    let options =
        KubeConfigOptions { context: arguments.kubeconfig_context.clone(), ..KubeConfigOptions::default() };
    let config = match &arguments.kubeconfig {
        Some(path) => kube::Config::from_custom_kubeconfig(read(path)?, &options).await,
        None => kube::Config::from_kubeconfig(&options).await,
    };
    let mut config = config.map_err(|error| {
        Failure::environment(format!(
            "no usable kubeconfig: {error}\n  set KUBECONFIG or give --kubeconfig FILE, and --context NAME if its \
             current context is another one"
        ))
    })?;
    // The client would send a request again that a webhook refused with 429, 503 or 504.
    config.default_retry = false;
    kube::Client::try_from(config)
        .map_err(|error| Failure::environment(format!("cannot make a client from the kubeconfig: {error}")))
}

fn read(path: &Path) -> Result<Kubeconfig, Failure> {
    Kubeconfig::read_from(path)
        .map_err(|error| Failure::usage(format!("kubeconfig {}: {error}", path.display())))
}

fn context_option(arguments: &TargetArguments) -> String {
    arguments.kubeconfig_context.as_ref().map_or_else(String::new, |name| format!("--context {name} "))
}

/// The error with what caused it, each once: the client's own words are often only "client error".
fn with_causes(error: &dyn std::error::Error) -> String {
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
