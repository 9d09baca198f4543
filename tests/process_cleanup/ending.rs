//! Sends a signal to a command while its kube-apiserver runs, and checks that no processes or files remain.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};

use super::machine;

/// A running command. It is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process has exited already, unless the test fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns whether etcd, kube-apiserver, and a suitable `ps` are available; otherwise prints the reason.
pub(crate) fn can_be_tested() -> bool {
    if !machine::has_kube_apiserver() {
        return false;
    }
    let own = std::env::args_os().next().unwrap_or_default();
    match command_lines() {
        Ok(lines) if lines.contains(&*own.to_string_lossy()) => true,
        Ok(_) => {
            machine::skipped("`ps -A -ww -o args=` does not show the running processes");
            false
        }
        Err(error) => {
            machine::skipped(&format!("ps cannot be run: {error}"));
            false
        }
    }
}

/// Sends `signal` to `command` while its servers run. Checks that no processes or files remain.
///
/// Also checks that the exit status is `code`, which is `None` for a process that the signal ends.
#[track_caller]
pub(crate) fn check(mut command: Command, signal: Signal, code: Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    command.env("TMPDIR", folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(command.spawn().unwrap());
    until("kube-apiserver writes its audit log", || {
        assert!(running.0.try_wait().unwrap().is_none(), "it ended before kube-apiserver ran");
        files(folder.path()).iter().any(|name| name.ends_with("audit.log"))
    });
    assert!(!processes(folder.path()).is_empty(), "the servers are not found");

    kill_process(Pid::from_child(&running.0), signal).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), code);
    if code.is_none() {
        until("somebody else cleans up", || {
            processes(folder.path()).is_empty() && files(folder.path()).is_empty()
        });
    }
    assert_eq!(processes(folder.path()), Vec::<String>::new(), "still run");
    assert_eq!(files(folder.path()), Vec::<String>::new(), "are left");
}

/// Polls until the condition holds, for at most a minute.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within a minute: {what}");
}

/// Returns the paths of all files and directories below `folder`.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    // Files may be removed while they are listed.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path().display().to_string());
        found.extend(files(&entry.path()));
    }
    found
}

/// Returns the command lines of processes that contain `folder`.
fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    command_lines().unwrap().lines().filter(|line| line.contains(&folder)).map(str::to_owned).collect()
}

/// Returns the command lines of all processes.
fn command_lines() -> io::Result<String> {
    let output = Command::new("ps").args(["-A", "-ww", "-o", "args="]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
