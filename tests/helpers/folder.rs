//! Runs the command in a folder with files.

use std::fs;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Creates a folder with these files, each with its name and its text.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Runs the command in `folder` with the arguments in `line`.
pub(crate) fn admit(folder: &TempDir, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command
        .args(line.split_whitespace())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .env("NO_COLOR", "1");
    for variable in ["GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}
