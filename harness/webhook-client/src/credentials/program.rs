//! Runs the program of a credential plugin.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kubernetes_types::quoting::system_error;
use kubernetes_types::status::Unsupported;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use super::UserError;

/// The maximum run time of a plugin. client-go does not have a limit.
const MAX_RUN_TIME: Duration = Duration::from_secs(60);
/// The maximum size of a plugin's output, in bytes. client-go does not have a limit.
const MAX_STDOUT: u64 = 1 << 20;

/// The program of a credential plugin, as client-go runs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Program {
    /// A path, or a name to look up in PATH.
    pub(super) command: String,
    pub(super) args: Vec<String>,
    /// Environment variables in addition to the variables of this process.
    pub(super) env: Vec<(String, String)>,
}

/// The reason why a program did not print usable output.
pub(super) enum RunError {
    /// The program does not exist.
    NotFound,
    Other(UserError),
}

impl From<UserError> for RunError {
    fn from(error: UserError) -> Self {
        Self::Other(error)
    }
}

impl Program {
    /// Runs the program with `info` in `KUBERNETES_EXEC_INFO` and returns its standard output.
    ///
    /// The program's standard input is empty. Its standard error is the standard error of this process.
    ///
    /// # Errors
    /// Returns [`RunError`] if the program cannot be started or fails, or if its run time or output exceeds the limit.
    ///
    /// Source: client-go plugin/pkg/client/auth/exec/exec.go, `refreshCredsLocked` and `wrapCmdRunErrorLocked`.
    pub(super) async fn run(&self, info: &str) -> Result<Vec<u8>, RunError> {
        let file = self.file().ok_or(RunError::NotFound)?;
        let mut command = Command::new(&file);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env("KUBERNETES_EXEC_INFO", info);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| not_started(&file, &error))?;
        let running = async {
            let mut stdout = Vec::new();
            if let Some(pipe) = child.stdout.take() {
                pipe.take(MAX_STDOUT + 1).read_to_end(&mut stdout).await?;
            }
            if stdout.len() as u64 > MAX_STDOUT {
                return Ok(Err(MAX_STDOUT));
            }
            Ok::<_, io::Error>(Ok((stdout, child.wait().await?)))
        };
        let unsupported = |what: String| UserError::Unsupported(Unsupported { what });
        let (stdout, status) = match timeout(MAX_RUN_TIME, running).await {
            Ok(Ok(Ok(done))) => done,
            Ok(Ok(Err(limit))) => {
                return Err(unsupported(format!(
                    "credential plugins that print more than {} KiB",
                    limit >> 10
                ))
                .into());
            }
            Ok(Err(error)) => return Err(UserError::Request(format!("exec: {error}")).into()),
            Err(_elapsed) => {
                let longest = MAX_RUN_TIME.as_secs();
                return Err(
                    unsupported(format!("credential plugins that run longer than {longest} s")).into()
                );
            }
        };
        if status.success() { Ok(stdout) } else { Err(self.failed(status).into()) }
    }

    fn failed(&self, status: ExitStatus) -> UserError {
        let code = status.code().unwrap_or(-1);
        UserError::Request(format!("exec: executable {} failed with exit code {code}", self.command))
    }

    /// Returns the path of the program; `None` if PATH has no match or if the first match is in a relative directory.
    ///
    /// Source: Go `os/exec/lp_unix.go`, `LookPath`.
    fn file(&self) -> Option<PathBuf> {
        if self.command.contains('/') {
            return Some(PathBuf::from(&self.command));
        }
        look_in(&env::var_os("PATH").unwrap_or_default(), &self.command)
    }
}

fn look_in(path: &OsStr, command: &str) -> Option<PathBuf> {
    let files = env::split_paths(path).map(|folder| folder.join(command));
    files.into_iter().find(|file| is_executable(file)).filter(|file| file.is_absolute())
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// Returns Go's error for a program that cannot be started.
///
/// Source: Go `os/exec_posix.go`, `startProcess`.
fn not_started(file: &Path, error: &io::Error) -> UserError {
    if error.kind() == io::ErrorKind::InvalidInput {
        let what = "credential plugins with a NUL byte in command, args or env".to_owned();
        return UserError::Unsupported(Unsupported { what });
    }
    let reason = system_error(error);
    UserError::Request(format!("exec: fork/exec {}: {reason}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        // The PATH of the tests may lack the commands that the script uses.
        let script = format!("PATH=$PATH:/usr/bin:/bin; {script}");
        Program { command: "/bin/sh".to_owned(), args: vec!["-c".to_owned(), script], env: Vec::new() }
    }

    #[tokio::test]
    async fn the_output_of_a_plugin_is_limited() {
        let printed = shell("head -c 1048576 /dev/zero").run("").await.unwrap_or_default();
        assert_eq!(printed.len() as u64, MAX_STDOUT);
        let error = shell("cat /dev/zero").run("").await.err();
        assert!(matches!(&error, Some(RunError::Other(UserError::Unsupported(what)))
                if what.what == "credential plugins that print more than 1024 KiB"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_run_time_of_a_plugin_is_limited() {
        // Neither prints nor exits before it is killed.
        let error = shell("exec tail -f /dev/null").run("").await.err();
        assert!(matches!(&error, Some(RunError::Other(UserError::Unsupported(what)))
                if what.what == "credential plugins that run longer than 60 s"));
    }

    #[test]
    fn relative_directories_in_path_are_ignored() {
        let folder = if Path::new("/usr/bin/env").is_file() { "/usr/bin" } else { "/bin" };
        assert!(look_in(OsStr::new(folder), "env").is_some());
        assert!(look_in(OsStr::new("relative:/nowhere"), "env").is_none());
        assert!(look_in(OsStr::new(folder), "no-such-command").is_none());
    }
}
