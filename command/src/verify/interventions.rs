//! What the user wants to be done to the webhooks, and how that is run.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use harness::verify::{Bundle, Intervention, Rotation, Stop};
use tokio::process::Command;

/// Commands that renew and end the webhooks.
#[derive(Debug, clap::Args)]
pub(super) struct Interventions {
    /// Shell command that renews the certificates of all webhooks; runs after the other checks, while the webhooks are
    /// being called
    #[arg(long, value_name = "COMMAND", help_heading = "Target")]
    rotate_command: Option<String>,

    /// The authority (PEM) of the renewed certificates, if it is not in the caBundle; trusted in addition to it as soon as
    /// the file exists
    #[arg(long, value_name = "FILE", requires = "rotate_command", help_heading = "Target")]
    rotated_ca_bundle: Option<PathBuf>,

    /// Seconds that the command may take, and a webhook after it to serve the new certificate: a mounted Secret takes
    /// more than a minute
    #[arg(long, value_name = "SECONDS", default_value_t = 120, help_heading = "Pace")]
    rotate_within: u32,

    /// Shell command that stops the webhooks, as a rollout would; runs last, while the webhooks are being called
    #[arg(long, value_name = "COMMAND", help_heading = "Target")]
    stop_command: Option<String>,

    /// Seconds for which calls continue after that command has started, since endpoints take a while to be updated
    #[arg(long, value_name = "SECONDS", default_value_t = 5, help_heading = "Pace")]
    drain: u32,
}

/// How long a webhook may take to end: what the kubelet grants unless a pod says otherwise.
const GRACE: Duration = Duration::from_secs(30);

impl Interventions {
    /// How the certificates are renewed, if the user said so.
    pub(super) fn rotation(&self) -> Option<Rotation> {
        let shell = self.rotate_command.as_ref()?;
        let file = self.rotated_ca_bundle.clone();
        Some(Rotation {
            command: intervention(shell),
            ca_bundle: file.map(|file| Bundle::new(move || output::read(&file).ok())),
            patience: Duration::from_secs(self.rotate_within.into()),
        })
    }

    /// How the webhooks are ended, if the user said so.
    pub(super) fn stop(&self) -> Option<Stop> {
        let shell = self.stop_command.as_ref()?;
        let drain = Duration::from_secs(self.drain.into());
        Some(Stop { command: intervention(shell), drain, patience: GRACE })
    }
}

/// A command for the shell. What it prints goes to standard error: standard output is for the report.
fn intervention(shell: &str) -> Intervention {
    let shell = shell.to_owned();
    Intervention::new(move || run(shell.clone()))
}

/// # Errors
/// It cannot be started, or does not end with 0.
async fn run(text: String) -> Result<(), String> {
    let mut command = shell(&text);
    let status = command.stdout(std::io::stderr()).status().await;
    let status = status.map_err(|error| format!("`{text}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{text}`: {status}")) }
}

/// A command that the user gave as text. It ends when it is dropped.
pub(super) fn shell(text: &str) -> Command {
    // As system(3) does: PATH need not have it.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(text).stdin(Stdio::null()).kill_on_drop(true);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_that_fails_says_how() {
        assert_eq!(run("true".to_owned()).await, Ok(()));
        let error = run("exit 7".to_owned()).await.unwrap_err();
        assert_eq!(error, "`exit 7`: exit status: 7");
    }
}
