//! Stops the servers of a target if the test process is killed.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that reads process IDs from a pipe that only this process can write to.
///
/// If this process ends in any way, the pipe closes, and the shell kills the processes and removes their folder.
/// Dropping the watchdog stops it.
///
/// A parent death signal would be simpler, but it exists only on Linux and is bound to the thread that started the
/// child.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// The shell process. Its standard input is the pipe.
    shell: Child,
}

/// The path of the shell.
///
/// The path is absolute, as in system(3), because PATH may not contain the shell's folder.
const SHELL: &str = "/bin/sh";

const SCRIPT: &str = r#"PATH=/bin:/usr/bin:$PATH
while read -r pid; do pids="$pids $pid"; done
kill -KILL $pids
rm -rf -- "$1""#;

impl Watchdog {
    /// Starts a watchdog, which also removes `folder` after it kills the servers.
    pub(super) fn start(folder: &Path) -> io::Result<Self> {
        let shell = Command::new(SHELL)
            .args(["-c", SCRIPT, "envtest-watchdog"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C must not stop the shell, because this process cleans up.
            .process_group(0)
            .spawn()?;
        Ok(Self { shell })
    }

    /// Adds a process. Stop the watchdog soon after the process ends, because the process ID can be reused.
    pub(super) fn watch(&mut self, pid: u32) -> io::Result<()> {
        self.shell.stdin.as_mut().map_or(Ok(()), |pipe| writeln!(pipe, "{pid}"))
    }
}

/// Kills the shell before the pipe closes, so that the shell does not kill the processes.
impl Drop for Watchdog {
    fn drop(&mut self) {
        // An error means that the shell has already ended.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ChildStdin;

    use super::*;

    /// Starts a process that ends when it is killed or its pipe closes.
    fn sleeper() -> (Child, ChildStdin) {
        let mut child =
            Command::new(SHELL).args(["-c", "read -r line"]).stdin(Stdio::piped()).spawn().unwrap();
        let pipe = child.stdin.take().unwrap();
        (child, pipe)
    }

    #[test]
    fn watched_process_is_killed_when_the_pipe_closes() {
        let folder = tempfile::tempdir().unwrap().keep();
        std::fs::write(folder.join("file"), "").unwrap();
        let (mut sleeper, _pipe) = sleeper();
        let mut watchdog = Watchdog::start(&folder).unwrap();
        watchdog.watch(sleeper.id()).unwrap();
        // As the kernel does when a process ends.
        drop(watchdog.shell.stdin.take());
        assert_eq!(sleeper.wait().unwrap().signal(), Some(9));
        assert!(watchdog.shell.wait().unwrap().success());
        assert!(!folder.exists());
    }

    #[test]
    fn dropped_watchdog_kills_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (mut sleeper, _pipe) = sleeper();
        let mut watchdog = Watchdog::start(folder.path()).unwrap();
        watchdog.watch(sleeper.id()).unwrap();
        drop(watchdog);
        assert!(sleeper.try_wait().unwrap().is_none(), "it was killed");
        assert!(folder.path().exists());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
