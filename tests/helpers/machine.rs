//! Finds installed programs for tests.
//!
//! A test first checks the version of a program, and is skipped if the version is not supported.

#![allow(dead_code, reason = "each test borrows something else")]

use std::io::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A version: its major and its minor number.
pub(crate) type Version = (u32, u32);

/// The version of Kubernetes that admit implements.
const KUBERNETES: Version = (1, 37);

/// A program, the arguments that print its version, and the supported versions.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) ask: &'static [&'static str],
    pub(crate) wanted: RangeInclusive<Version>,
}

/// Prints the reason why the running test is skipped. The test harness does not capture this line.
///
/// The format is `skipped: PACKAGE TARGET TEST: REASON`.
pub(crate) fn skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    let (package, target) = (env!("CARGO_PKG_NAME"), env!("CARGO_CRATE_NAME"));
    let reason = reason.trim().replace('\n', " ");
    let line = format!("skipped: {package} {target} {test}: {reason}\n");
    // One write, so that lines of other tests do not mix with it. Errors are ignored, because the output may be
    // closed.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Returns a kubectl of the version that admit implements, from `KUBEBUILDER_ASSETS` or PATH; or skips the test.
pub(crate) fn kubectl() -> Option<PathBuf> {
    find_kubectl(KUBERNETES..=KUBERNETES)
}

/// Returns a kubectl that supports clusters of the version that admit implements; otherwise skips the test.
///
/// Source: <https://kubernetes.io/releases/version-skew-policy/#kubectl>
pub(crate) fn kubectl_for_a_cluster() -> Option<PathBuf> {
    let (major, minor) = KUBERNETES;
    find_kubectl((major, minor - 1)..=(major, minor + 1))
}

fn find_kubectl(wanted: RangeInclusive<Version>) -> Option<PathBuf> {
    let program = Program { name: "kubectl", ask: &["version", "--client"], wanted };
    let folders: Vec<PathBuf> = assets().into_iter().chain(path()).collect();
    or_skipped(find(&program, &folders, "in KUBEBUILDER_ASSETS or on PATH"))
}

/// Returns whether `KUBEBUILDER_ASSETS` contains etcd and kube-apiserver of this version; otherwise skips the test.
pub(crate) fn has_kube_apiserver() -> bool {
    let Some(folder) = assets() else {
        skipped("KUBEBUILDER_ASSETS does not name a folder with etcd and kube-apiserver");
        return false;
    };
    let programs = [
        Program { name: "kube-apiserver", ask: &["--version"], wanted: KUBERNETES..=KUBERNETES },
        Program { name: "etcd", ask: &["--version"], wanted: (3, 5)..=(3, u32::MAX) },
    ];
    let folders = [folder];
    programs.iter().all(|program| or_skipped(find(program, &folders, "in KUBEBUILDER_ASSETS")).is_some())
}

/// Returns whether Go is available and can download the toolchain of a module; otherwise skips the test.
///
/// Source: <https://go.dev/doc/toolchain>
pub(crate) fn has_go() -> bool {
    is_on_path(&Program { name: "go", ask: &["version"], wanted: (1, 21)..=(1, u32::MAX) })
}

/// Returns whether Python with a pip that checks hashes is available; otherwise skips the test.
pub(crate) fn has_python() -> bool {
    is_on_path(&Program { name: "python3", ask: &["--version"], wanted: (3, 10)..=(3, u32::MAX) })
        && is_on_path(&Program {
            name: "python3",
            ask: &["-m", "pip", "--version"],
            wanted: (22, 0)..=(u32::MAX, u32::MAX),
        })
}

/// Returns whether Node.js with npm is available; otherwise skips the test.
pub(crate) fn has_node() -> bool {
    is_on_path(&Program { name: "node", ask: &["--version"], wanted: (20, 0)..=(u32::MAX, u32::MAX) })
        && is_on_path(&Program { name: "npm", ask: &["--version"], wanted: (9, 0)..=(u32::MAX, u32::MAX) })
}

/// Returns whether Maven and a Java that runs source files are available; otherwise skips the test.
pub(crate) fn has_java() -> bool {
    is_on_path(&Program { name: "java", ask: &["--version"], wanted: (17, 0)..=(u32::MAX, u32::MAX) })
        && is_on_path(&Program { name: "mvn", ask: &["--version"], wanted: (3, 6)..=(u32::MAX, u32::MAX) })
}

/// Returns whether a Cargo that supports edition 2024 is available; otherwise skips the test.
pub(crate) fn has_cargo() -> bool {
    is_on_path(&Program { name: "cargo", ask: &["--version"], wanted: (1, 89)..=(1, u32::MAX) })
}

/// Returns whether a Docker daemon responds; otherwise skips the test.
pub(crate) fn has_docker() -> bool {
    let ask = &["version", "--format", "{{.Server.Version}}"];
    is_on_path(&Program { name: "docker", ask, wanted: (20, 10)..=(u32::MAX, u32::MAX) })
}

fn is_on_path(program: &Program) -> bool {
    or_skipped(find(program, &path(), "on PATH")).is_some()
}

fn assets() -> Option<PathBuf> {
    std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from)
}

fn path() -> Vec<PathBuf> {
    std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect()
}

fn or_skipped(found: Result<PathBuf, String>) -> Option<PathBuf> {
    found.map_err(|reason| skipped(&reason)).ok()
}

fn find(program: &Program, folders: &[PathBuf], place: &str) -> Result<PathBuf, String> {
    let files = folders.iter().map(|folder| folder.join(program.name)).filter(|file| file.is_file());
    choose(program, files.map(|file| (version(&file, program.ask), file)), place)
}

/// Returns the first of the installed programs whose version is supported.
///
/// # Errors
/// Returns the supported and the found versions if no version is supported.
pub(crate) fn choose(
    program: &Program,
    files: impl Iterator<Item = (Result<Version, String>, PathBuf)>,
    place: &str,
) -> Result<PathBuf, String> {
    let mut others = Vec::new();
    for (version, file) in files {
        let name = file.display();
        match version {
            Ok(version) if program.wanted.contains(&version) => return Ok(file),
            Ok((major, minor)) => others.push(format!("{name} is {major}.{minor}")),
            Err(error) => others.push(format!("{name}: {error}")),
        }
    }
    let found = if others.is_empty() { String::new() } else { format!(": {}", others.join(", ")) };
    Err(format!("no {} {} {place}{found}", program.name, describe(&program.wanted)))
}

fn version(file: &Path, ask: &[&str]) -> Result<Version, String> {
    let output = Command::new(file).args(ask).output().map_err(|error| error.to_string())?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if stdout.contains("admit") {
        // A comparison of admit with itself is useless.
        return Err("it is admit itself".to_owned());
    }
    read_version(&stdout).ok_or_else(|| {
        let text = stdout.into_owned() + &String::from_utf8_lossy(&output.stderr);
        format!("{} ({})", text.trim(), output.status)
    })
}

/// Returns the first `MAJOR.MINOR` in the output of a program.
pub(crate) fn read_version(text: &str) -> Option<Version> {
    let captures = regex::Regex::new(r"(\d+)\.(\d+)").ok()?.captures(text)?;
    Some((captures[1].parse().ok()?, captures[2].parse().ok()?))
}

fn describe(wanted: &RangeInclusive<Version>) -> String {
    let ((major, minor), last) = (wanted.start(), wanted.end());
    match last {
        _ if wanted.start() == last => format!("{major}.{minor}"),
        (_, u32::MAX) => format!("{major}.{minor} or newer"),
        (last_major, last_minor) => format!("{major}.{minor} to {last_major}.{last_minor}"),
    }
}
