//! Runs the `admit lint` command on files.

#![expect(clippy::expect_used, reason = "what is not there fails the test")]
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]

mod baseline;
mod documentation;
mod findings;
mod recorded;
mod usage;
mod verified;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Returns the workspace directory. The command runs in this directory.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn lint(arguments: &[&str]) -> Output {
    lint_with_input(arguments, "")
}

fn lint_with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_admit"))
        .arg("lint")
        .args(arguments)
        .current_dir(root())
        .env("NO_COLOR", "1")
        .env_remove("GITHUB_ACTIONS")
        .env_remove("GITHUB_STEP_SUMMARY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("the command ends")
}

/// Returns the standard output; asserts that the exit status is `status` and the standard error is empty.
#[track_caller]
fn prints(output: &Output, status: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((output.status.code(), &*stderr), (Some(status), ""), "{stdout}");
    stdout
}

/// Returns the `-o json` report of a file, and the exit status.
fn report(file: &str) -> (Value, Option<i32>) {
    let output = lint(&["-c", file, "-o", "json"]);
    (serde_json::from_slice(&output.stdout).expect("JSON"), output.status.code())
}

/// Returns the files in a workspace directory that have this suffix, in alphabetical order.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(end));
    files.sort();
    files
}
