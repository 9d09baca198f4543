//! Waits until the webhooks under test can be called.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

use harness::verify::{Environment, Subject};
use tokio::time::Instant;

use super::interventions::shell;
use super::target::{Services, place};

/// The interval between attempts to reach a webhook that is not ready.
const PERIOD: Duration = Duration::from_millis(200);

/// The HTTP statuses that servers return while they start, and for paths that are not registered yet.
const NOT_YET: [u16; 2] = [404, 503];

/// The deadline that `--wait` sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    /// The value of `--wait`.
    wait: Duration,
    at: Instant,
}

impl Deadline {
    pub(super) fn after(wait: Duration) -> Self {
        Self { wait, at: Instant::now() + wait }
    }
}

/// Waits until all webhooks can be called, or until `deadline`.
///
/// Returns the names of the webhooks whose servers did not present a certificate before the deadline, by reason. The
/// checks report whether the other webhooks respond.
pub(super) async fn wait(
    subjects: &[Subject],
    environment: &Environment,
    services: &Services,
    Deadline { wait, at: until }: Deadline,
) -> BTreeMap<String, Vec<String>> {
    let mut silent = BTreeSet::new();
    let mut unreached: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for subject in subjects {
        let place = place(subject, services);
        // Each server is awaited only once.
        while Instant::now() < until && !silent.contains(&place) && !is_there(subject, environment).await {
            tokio::time::sleep(PERIOD).await;
        }
        let (Some((host, port)), true) = (&place, !wait.is_zero()) else { continue };
        if silent.contains(&place)
            || (Instant::now() >= until && !has_certificate(subject, environment).await)
        {
            let seconds = wait.as_secs();
            let why = format!("no TLS server at {host}:{port} within the {seconds} s of --wait");
            unreached.entry(why).or_default().push(subject.name());
            silent.insert(place);
        }
    }
    unreached
}

/// Returns whether a webhook accepts connections, presents a certificate, and serves its path.
///
/// A server may accept connections before it serves its path.
async fn is_there(subject: &Subject, environment: &Environment) -> bool {
    if !has_certificate(subject, environment).await {
        return false;
    }
    let exchange = environment.post(&subject.called, "{}".into()).await;
    !exchange.reply.is_ok_and(|reply| NOT_YET.contains(&reply.status))
}

async fn has_certificate(subject: &Subject, environment: &Environment) -> bool {
    let inspection = environment.inspect(&subject.webhook).await;
    inspection.is_ok_and(|inspection| inspection.complaint.is_none() || !inspection.chain.is_empty())
}

/// Repeats the command of `--ready-command` until it succeeds.
///
/// # Errors
/// Returns the last failure, including the command's standard error, if the command does not succeed by the deadline.
pub(super) async fn run_until_success(command: &str, deadline: Deadline) -> Result<(), String> {
    let mut last = "it is still running".to_owned();
    loop {
        match tokio::time::timeout_at(deadline.at, run(command)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(reason)) => last = reason,
            Err(_elapsed) => break,
        }
        tokio::time::sleep_until(deadline.at.min(Instant::now() + PERIOD)).await;
        if Instant::now() >= deadline.at {
            break;
        }
    }
    let seconds = deadline.wait.as_secs();
    Err(format!("--ready-command: `{command}` has not succeeded within the {seconds} s of --wait: {last}"))
}

/// Runs the command of `--ready-command` once.
///
/// # Errors
/// Returns an error if the command cannot be started or fails.
async fn run(command: &str) -> Result<(), String> {
    // Only the last failure is reported.
    let output = shell(command).stdout(Stdio::null()).output().await.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let written = String::from_utf8_lossy(&output.stderr);
    let written = written.trim();
    Err(if written.is_empty() { output.status.to_string() } else { format!("{}: {written}", output.status) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_is_run_until_it_succeeds() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("runs");
        // The third run succeeds.
        let command = format!("echo >> {0}; {{ read a && read b && read c; }} < {0}", file.display());
        assert_eq!(run_until_success(&command, Deadline::after(Duration::from_secs(60))).await, Ok(()));
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "\n\n\n");
    }

    #[tokio::test]
    async fn readiness_error_contains_the_last_failure_of_the_command() {
        let soon = || Deadline::after(Duration::from_secs(1));
        let error = run_until_success("echo not yet >&2; exit 7", soon()).await.unwrap_err();
        let expected = "--ready-command: `echo not yet >&2; exit 7` has not succeeded within the 1 s of --wait: \
                        exit status: 7: not yet";
        assert_eq!(error, expected);
        let error = run_until_success("while :; do :; done", soon()).await.unwrap_err();
        assert!(error.ends_with(": it is still running"), "{error}");
    }
}
