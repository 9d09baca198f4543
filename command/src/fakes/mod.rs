//! `admit fakes`: webhooks that misbehave on demand, on this machine or in a cluster.

mod admin;
mod api;
mod configurations;
mod delete;
mod deploy;
mod fleet;
mod install;
mod journal;
pub(crate) mod local;
mod manifests;
mod names;
mod probe;
mod progress;
mod rollout;
mod safety;
mod source;
mod stand_ins;

pub(crate) use api::{Api, Kind};
pub(crate) use deploy::DEFAULT_IMAGE;
pub(crate) use fleet::{Fleet, FleetDeployment, RemoteFake};
pub(crate) use names::FakesNamespace;
use source::understand;

use std::sync::Arc;

use crate::{ExitCode, Failure};

/// Serve webhooks that misbehave on demand, on this machine or in a cluster.
///
/// Without a subcommand, prints the webhook configurations for `kubectl apply -f -`, serves the webhooks on this machine,
/// and logs each call to standard error until SIGINT or SIGTERM.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Fakes {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    arguments: fake_webhooks::Arguments,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(fake_webhooks::List),
    Deploy(deploy::Deploy),
    Journal(journal::Journal),
    Delete(delete::Delete),
}

impl Fakes {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            None => serve(self.arguments).await,
            Some(Command::List(list)) => match list.run() {
                Ok(()) => Ok(ExitCode::Ok),
                Err(error) => Err(Failure::environment(format!("cannot write to standard output: {error}"))),
            },
            Some(Command::Deploy(deploy)) => deploy.run().await,
            Some(Command::Journal(journal)) => journal.run().await,
            Some(Command::Delete(delete)) => delete.run().await,
        }
    }
}

async fn serve(arguments: fake_webhooks::Arguments) -> Result<ExitCode, Failure> {
    let log: fake_webhooks::Log = Arc::new(|line| crate::screen::status!("{line}"));
    let understand =
        |text: &str, shown: &str| Ok(understand(text, shown).map_err(|failure| failure.to_string())?);
    match arguments.run(&understand, &log).await {
        Ok(()) => Ok(ExitCode::Ok),
        Err(error) if error.is_usage() => Err(Failure::usage(error)),
        Err(error) => Err(Failure::environment(error)),
    }
}
