//! Runs the `fake-webhooks` command: `admit fakes` as a separate binary, for containers in a cluster.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use fake_webhooks::{FakesFile, Log};

/// Serve admission webhooks that respond correctly or misbehave on demand.
#[derive(Debug, Parser)]
#[command(version, about, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct FakeWebhooks {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    arguments: fake_webhooks::Arguments,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(fake_webhooks::List),
}

#[tokio::main]
async fn main() -> ExitCode {
    let log: Log = Arc::new(|line| {
        // A closed standard error must not stop the server.
        let _ = writeln!(std::io::stderr(), "{line}");
    });
    let FakeWebhooks { command, arguments } = FakeWebhooks::parse();
    if let Some(Command::List(list)) = command {
        return match list.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                log(&format!("error: cannot write to standard output: {error}"));
                ExitCode::from(3)
            }
        };
    }
    match arguments.run(&|text, shown| Ok(vec![FakesFile::parse(text, shown)?]), &log).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&format!("error: {error}"));
            ExitCode::from(if error.is_usage() { 2 } else { 3 })
        }
    }
}
