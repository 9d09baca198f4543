//! Tests the documentation site: its generated pages, links, command lines, and schemas.
//!
//! `UPDATE_EXPECT=1 cargo test --test book` writes the generated pages and the output that pages show.

#![expect(clippy::expect_used, reason = "a test may panic about a page that it cannot read")]
#![expect(clippy::print_stdout, reason = "a test prints which command lines it does not run")]
#![expect(clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic at a wrong offset")]

mod examples;
mod figures;
mod fixtures;
mod generated;
mod links;
mod markdown;
mod sandbox;
mod schemas;
mod shell;
mod snippets;
mod source_values;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the Markdown files in a directory and its subdirectories, relative to the root, in alphabetical order.
fn pages_in(folder: &str) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder exists") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.extend(path.strip_prefix(root()).map(Path::to_path_buf));
            }
        }
    }
    pages.sort();
    pages
}

/// Returns the `admit` command without the environment variables that affect it.
fn admit() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    for variable in ["KUBECONFIG", "KUBEBUILDER_ASSETS", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

fn run(arguments: &[&str]) -> Output {
    admit().args(arguments).output().expect("admit starts")
}

/// Returns the standard output of a command that must succeed.
fn stdout(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}
