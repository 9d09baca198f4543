//! Ends the servers of a target when this process is killed, which leaves it no time to do so itself.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that reads process ids from a pipe which only this process can write to. The pipe ends with this process,
/// however that ends: the shell then kills them and removes their folder. Dropped means that it does nothing.
///
/// A signal at the parent's death would be simpler, but there is none outside of Linux, and there it belongs to the
/// thread that started the child, which is one of many here.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// Its standard input is the pipe.
    shell: Child,
}

/// As system(3) does. Neither it nor `rm` need be on PATH.
const SHELL: &str = "/bin/sh";

const SCRIPT: &str = r#"PATH=/bin:/usr/bin:$PATH
while read -r pid; do pids="$pids $pid"; done
kill -KILL $pids
rm -rf -- "$1""#;

impl Watchdog {
    /// `folder` is removed once the servers are killed.
    pub(super) fn start(folder: &Path) -> io::Result<Self> {
        let shell = Command::new(SHELL)
            .args(["-c", SCRIPT, "envtest-watchdog"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C on the terminal is for this process, which cleans up then.
            .process_group(0)
            .spawn()?;
        Ok(Self { shell })
    }

    /// Kills this process, too, when the time comes. The watch must not go on for long once its end was waited for, lest
    /// another process have its id by then.
    pub(super) fn watch(&mut self, pid: u32) -> io::Result<()> {
        self.shell.stdin.as_mut().map_or(Ok(()), |pipe| writeln!(pipe, "{pid}"))
    }
}

/// The shell is gone before its pipe ends.
impl Drop for Watchdog {
    fn drop(&mut self) {
        // It can only have ended already, and then there is nothing to wait for.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ChildStdin;

    use super::*;

    /// A process that ends when it is killed, or with the pipe.
    fn sleeper() -> (Child, ChildStdin) {
        let mut child =
            Command::new(SHELL).args(["-c", "read -r line"]).stdin(Stdio::piped()).spawn().unwrap();
        let pipe = child.stdin.take().unwrap();
        (child, pipe)
    }

    #[test]
    fn what_is_watched_is_killed_when_the_pipe_ends() {
        let folder = tempfile::tempdir().unwrap().keep();
        std::fs::write(folder.join("file"), "").unwrap();
        let (mut sleeper, _pipe) = sleeper();
        let mut watchdog = Watchdog::start(&folder).unwrap();
        watchdog.watch(sleeper.id()).unwrap();
        // What the kernel does when a process ends.
        drop(watchdog.shell.stdin.take());
        assert_eq!(sleeper.wait().unwrap().signal(), Some(9));
        assert!(watchdog.shell.wait().unwrap().success());
        assert!(!folder.exists());
    }

    #[test]
    fn nothing_is_killed_when_the_watch_ends_first() {
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
