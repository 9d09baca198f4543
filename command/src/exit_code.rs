//! Defines the exit statuses of the command.

use std::fmt;
use std::future::Future;

use fake_webhooks::{StopSignal, StopSignals};
use kubernetes_api_listener::ListenError;

/// The exit status of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Success.
    Ok = 0,
    /// A scenario failed, a reviewed request was denied, or a check has findings.
    Failed = 1,
    /// The command line, a feature, or another input file is invalid. (clap also exits with 2.)
    Usage = 2,
    /// An environment error, such as an unavailable port or cluster, or a webhook that does not return a required
    /// response.
    Environment = 3,
    /// Nothing was selected to run.
    NothingRun = 4,
    /// Scenarios failed, but only because admit does not support a feature of kube-apiserver.
    Unsupported = 5,
    /// A check could not be completed and no check has findings, a part of a cluster could not be read, or a decision
    /// depends on a webhook that was not called.
    NotChecked = 6,
    /// The command was interrupted by SIGINT. Shells report this status for such a command.
    Interrupted = 130,
    /// The command was terminated by SIGTERM.
    Terminated = 143,
}

impl From<StopSignal> for ExitCode {
    fn from(signal: StopSignal) -> Self {
        match signal {
            StopSignal::Interrupt => Self::Interrupted,
            StopSignal::Terminate => Self::Terminated,
        }
    }
}

/// The table at the end of `admit --help`.
pub(crate) const TABLE: &str = "\
Exit status:
    0  success
    1  a scenario failed, a request was denied, or a check has findings
    2  the command line or an input file is invalid
    3  environment error, such as an unavailable port or cluster; review: an invalid webhook response
    4  nothing was selected to run, or a webhook to verify was never called
    5  all failures were caused by features that admit does not support
    6  verify: no findings that fail the run, but a webhook response is missing or
       invalid, or a check selected with --check cannot run; pull: a part of the
       cluster could not be read; review: the decision depends on webhooks
       that admit did not call, or admit pull did not read all objects
  130  stopped by SIGINT
  143  stopped by SIGTERM";

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

/// A failed command: a message for the user that suggests what to do, and the exit status.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub code: ExitCode,
    message: String,
}

impl Failure {
    fn new(code: ExitCode, message: &dyn fmt::Display) -> Self {
        Self { code, message: output::without_error_numbers(&message.to_string()).into_owned() }
    }

    /// Creates a failure for invalid input. The message must name the file, line, or field, and what is expected.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(ExitCode::Usage, &message)
    }

    /// Creates an environment error. The message must say what to do.
    pub fn environment(message: impl fmt::Display) -> Self {
        Self::new(ExitCode::Environment, &message)
    }

    /// Creates a failure for a feature that admit does not support.
    pub fn unsupported(message: impl fmt::Display) -> Self {
        Self::new(ExitCode::Unsupported, &message)
    }

    /// Creates a failure if there is nothing to run.
    pub fn nothing_run(message: impl fmt::Display) -> Self {
        Self::new(ExitCode::NothingRun, &message)
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        Self::environment(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Runs `command` on a tokio runtime.
pub(crate) fn with_runtime(
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("cannot start the runtime: {error}")))?;
    let outcome = runtime.block_on(command);
    // Do not wait for remaining tasks: the process exits.
    runtime.shutdown_background();
    outcome
}

/// Makes signals end the process even if it is the first process in a container.
///
/// The kernel does not deliver a signal to the first process unless the process handles it. Commands that handle
/// signals do not need this function.
pub(crate) fn end_on_signals_as_init() -> Result<(), Failure> {
    const INIT: u32 = 1;
    if std::process::id() == INIT { install_signal_handlers(0).map(drop) } else { Ok(()) }
}

/// Handles the next `count` signals in the command; any later signal ends the process immediately.
pub(crate) fn install_signal_handlers(count: usize) -> Result<StopSignals, Failure> {
    StopSignals::listen(count)
        .map_err(|error| Failure::environment(format!("cannot listen for signals: {error}")))
}
