//! Every exit status of the command, named in one place.

use std::fmt;
use std::future::Future;

use fake_webhooks::{StopSignal, StopSignals};
use kubernetes_api_listener::ListenError;

/// What the command's exit status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Success.
    Ok = 0,
    /// A scenario failed, a request that was reviewed is denied, or a check found something.
    Failed = 1,
    /// The command line, a feature or another input file is invalid. (clap exits with 2 too.)
    Usage = 2,
    /// An environment error: a port, the cluster, KUBEBUILDER_ASSETS, or a webhook without a valid response where that
    /// decided.
    Environment = 3,
    /// Nothing was selected to run.
    NothingRun = 4,
    /// Scenarios failed, all of them because admit does not imitate something that kube-apiserver can do.
    Unsupported = 5,
    /// Nothing was found, but something that should have been checked could not be.
    NotChecked = 6,
    /// SIGINT came before the end; what a shell shows for a command that it ended.
    Interrupted = 130,
    /// The same for SIGTERM.
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

/// The table that `admit --help` ends with.
pub(crate) const TABLE: &str = "\
Exit status:
    0  success
    1  a scenario failed, a request is denied, or a check found something
    2  the command line or an input file is invalid
    3  environment error: a port, the cluster, KUBEBUILDER_ASSETS, or no valid response of a webhook
    4  nothing was selected to run
    5  everything that failed did so because admit does not imitate it
    6  nothing was found, but not everything could be checked
  130  stopped by SIGINT
  143  stopped by SIGTERM";

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

/// A message for people, what to do about it, and the exit status.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub code: ExitCode,
    message: String,
}

impl Failure {
    /// A failure of an input: names the file, line or field and what was expected.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { code: ExitCode::Usage, message: message.to_string() }
    }

    /// An environment error: says what to do.
    pub fn environment(message: impl fmt::Display) -> Self {
        Self { code: ExitCode::Environment, message: message.to_string() }
    }

    /// admit does not imitate what an input asks for.
    pub fn unsupported(message: impl fmt::Display) -> Self {
        Self { code: ExitCode::Unsupported, message: message.to_string() }
    }

    /// There is nothing to run.
    pub fn nothing_run(message: impl fmt::Display) -> Self {
        Self { code: ExitCode::NothingRun, message: message.to_string() }
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
    // Nobody waits for what still runs: the process ends.
    runtime.shutdown_background();
    outcome
}

/// Signals end the process also where it is the first of its container, for which the kernel ignores those that it does
/// not handle. The other commands handle them anyway.
pub(crate) fn end_on_signals_as_init() -> Result<(), Failure> {
    const INIT: u32 = 1;
    if std::process::id() == INIT { heed_signals(0).map(drop) } else { Ok(()) }
}

/// From now on the command heeds `count` signals itself; the one after those ends the process at once.
pub(crate) fn heed_signals(count: usize) -> Result<StopSignals, Failure> {
    StopSignals::listen(count)
        .map_err(|error| Failure::environment(format!("cannot listen for signals: {error}")))
}
