//! Runs what the user wants to be done to the webhooks.

use std::process::Stdio;

use harness::verify::Intervention;
use tokio::process::Command;

/// A command for the shell. What it prints goes to standard error: standard output is for the report.
pub(super) fn intervention(shell: &str) -> Intervention {
    let shell = shell.to_owned();
    Intervention::new(move || run(shell.clone()))
}

/// # Errors
/// It cannot be started, or does not end with 0.
async fn run(shell: String) -> Result<(), String> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(&shell).stdin(Stdio::null()).stdout(std::io::stderr()).kill_on_drop(true);
    let status = command.status().await.map_err(|error| format!("`{shell}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shell}`: {status}")) }
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
