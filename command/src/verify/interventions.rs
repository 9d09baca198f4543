//! Runs the user's commands that renew certificates and stop webhooks.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use harness::verify::{Bundle, Intervention, Rotation, Stop};
use tokio::process::Command;

/// The commands that renew certificates and stop webhooks.
#[derive(Debug, clap::Args)]
pub(super) struct Interventions {
    /// Run this shell command to renew the certificates of all webhooks (V46). It runs after the other checks, while
    /// the webhooks are being called
    #[arg(long, value_name = "COMMAND", help_heading = "Target")]
    rotate_command: Option<String>,

    /// Trust the CA certificates in this PEM file in addition to the caBundle as soon as the file exists. Use it if a
    /// different authority issues the renewed certificates
    #[arg(long, value_name = "FILE", requires = "rotate_command", help_heading = "Target")]
    rotated_ca_bundle: Option<PathBuf>,

    /// Allow this many seconds for --rotate-command, and then the same time for a webhook to serve the new certificate.
    /// The kubelet updates a mounted Secret only after a minute or more
    #[arg(long, value_name = "SECONDS", default_value_t = 120, help_heading = "Pace")]
    rotate_within: u32,

    /// Run this shell command to stop the webhooks as a rollout would (V43). It runs last, while the webhooks are being
    /// called
    #[arg(long, value_name = "COMMAND", help_heading = "Target")]
    stop_command: Option<String>,

    /// Continue calls for this many seconds after --stop-command has started, because endpoints are updated with a
    /// delay
    #[arg(long, value_name = "SECONDS", default_value_t = 5, help_heading = "Pace")]
    drain: u32,
}

/// The maximum time for a webhook to stop: the default grace period of a Pod.
const GRACE: Duration = Duration::from_secs(30);

impl Interventions {
    /// Returns how to renew the certificates, if the user specified a command.
    pub(super) fn rotation(&self) -> Option<Rotation> {
        let shell = self.rotate_command.as_ref()?;
        let file = self.rotated_ca_bundle.clone();
        Some(Rotation {
            command: intervention(shell),
            ca_bundle: file.map(|file| Bundle::new(move || output::read(&file).ok())),
            patience: Duration::from_secs(self.rotate_within.into()),
        })
    }

    /// Returns how to stop the webhooks, if the user specified a command.
    pub(super) fn stop(&self) -> Option<Stop> {
        let shell = self.stop_command.as_ref()?;
        let drain = Duration::from_secs(self.drain.into());
        Some(Stop { command: intervention(shell), drain, patience: GRACE })
    }
}

/// Creates an intervention that runs a shell command. The command's output goes to standard error.
fn intervention(shell: &str) -> Intervention {
    let shell = shell.to_owned();
    Intervention::new(move || run(shell.clone()))
}

/// Runs a shell command and waits for it.
///
/// # Errors
/// Returns an error if the command cannot be started or fails.
async fn run(text: String) -> Result<(), String> {
    let mut command = shell(&text);
    let status = command.stdout(std::io::stderr()).status().await;
    let status = status.map_err(|error| format!("`{text}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{text}`: {status}")) }
}

/// Creates a process for a shell command. The process is killed when it is dropped.
pub(super) fn shell(text: &str) -> Command {
    // The path is absolute, as in system(3), because PATH may not contain it.
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
