//! Runs the server process under load.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use super::SoakError;

/// The environment variable that the documentation recommends for a container with a memory limit of 512 MiB.
const ENVIRONMENT: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "0");
/// The flags that the documentation recommends for a container with a memory limit of 512 MiB.
const FITTING: [&str; 3] =
    ["--max-inflight-bytes=48Mi", "--quota-backend-bytes=96Mi", "--watch-cache-bytes=16Mi"];

/// An `admit serve` process. It has a memory limit if control groups are available, and stops on drop.
pub(super) struct Attacked {
    child: Child,
    folder: PathBuf,
    group: Option<PathBuf>,
}

/// The maximum time to wait until the server is ready.
const TIMEOUT: Duration = Duration::from_secs(30);
const MEBIBYTE: u64 = 1 << 20;

impl Attacked {
    /// Starts the server with a memory limit in MiB.
    pub(super) async fn start(command: &Path, memory: u64) -> Result<Self, SoakError> {
        let failed = |what: &str, error: std::io::Error| SoakError::Command(format!("{what}: {error}"));
        let folder = std::env::temp_dir().join(format!("admit-soak-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&folder).map_err(|error| failed("a folder", error))?;
        let log = fs::File::create(folder.join("log")).map_err(|error| failed("a log", error))?;
        let child = Command::new(command)
            .args(["serve", "--kubeconfig-out"])
            .arg(folder.join("kubeconfig"))
            .args(FITTING)
            .env(ENVIRONMENT.0, ENVIRONMENT.1)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(&command.display().to_string(), error))?;
        let group = child.id().and_then(|id| confine(id, memory));
        let mut attacked = Self { child, folder, group };
        let kubeconfig = attacked.kubeconfig();
        let ready = async {
            let made = async {
                while !kubeconfig.exists() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::select! {
                () = made => Ok(()),
                ended = attacked.ended() => Err(SoakError::Command(ended)),
            }
        };
        tokio::time::timeout(TIMEOUT, ready).await.map_err(|_elapsed| {
            SoakError::Command(format!("it is not ready after {} s", TIMEOUT.as_secs()))
        })??;
        Ok(attacked)
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    pub(super) fn is_confined(&self) -> bool {
        self.group.is_some()
    }

    /// Waits until the server exits. Returns its exit status and its last output.
    pub(super) async fn ended(&mut self) -> String {
        let status = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        format!("{status}, {}", log.lines().last().unwrap_or("without a word"))
    }

    /// Returns the resident memory of the server, in MiB.
    pub(super) fn resident(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Returns the peak memory of the server, in MiB.
    pub(super) fn peak(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Returns a value of `/proc/PID/status`, in kB.
    fn status(&self, name: &str) -> u64 {
        let text = self.child.id().and_then(|id| fs::read_to_string(format!("/proc/{id}/status")).ok());
        let text = text.unwrap_or_default();
        let value =
            text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok());
        value.map_or(0, |kilobytes: u64| kilobytes * 1024 / MEBIBYTE)
    }
}

impl Drop for Attacked {
    fn drop(&mut self) {
        drop(self.child.start_kill());
        drop(fs::remove_dir_all(&self.folder));
        if let Some(group) = &self.group {
            // The control group is empty shortly after the process has exited.
            for _ in 0..100 {
                if fs::remove_dir(group).is_ok() {
                    break;
                }
                drop(self.child.try_wait());
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Moves a process into a new control group with a limit in MiB; returns `None` if this is not permitted.
fn confine(id: u32, memory: u64) -> Option<PathBuf> {
    let bytes = (memory * MEBIBYTE).to_string();
    // Version 2, and version 1.
    [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")]
        .into_iter()
        .find_map(|(root, limit)| {
            // Elsewhere a directory can be created, too, but it has no effect.
            if !Path::new(root).join("cgroup.procs").exists() {
                return None;
            }
            let group = Path::new(root).join(format!("admit-soak-{id}"));
            fs::create_dir(&group).ok()?;
            let confined = fs::write(group.join(limit), &bytes)
                .and_then(|()| fs::write(group.join("cgroup.procs"), id.to_string()));
            if confined.is_err() {
                drop(fs::remove_dir(&group));
                return None;
            }
            Some(group)
        })
}
