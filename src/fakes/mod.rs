//! `admit fakes`.

use std::sync::Arc;

use crate::{ExitCode, Failure};

/// Serves webhooks that misbehave on demand.
///
/// Prints the configurations that point an API server at them, ready for `kubectl apply -f -`, and then a line for each
/// call to standard error, until SIGINT or SIGTERM.
#[derive(Debug, clap::Args)]
pub(crate) struct Fakes {
    #[command(flatten)]
    arguments: fake_webhooks::Arguments,
}

impl Fakes {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        let log: fake_webhooks::Log = Arc::new(|line| anstream::eprintln!("{line}"));
        match self.arguments.run(&log).await {
            Ok(()) => Ok(ExitCode::Ok),
            Err(error) if error.is_usage() => Err(Failure::usage(error)),
            Err(error) => Err(Failure::environment(error)),
        }
    }
}
