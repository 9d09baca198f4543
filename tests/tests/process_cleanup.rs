//! Checks that etcd and kube-apiserver exit with the tools, regardless of how the tools end.
//!
//! Needs KUBEBUILDER_ASSETS; without it, the tests are skipped with a message.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

#[path = "../process_cleanup/ending.rs"]
mod ending;

use std::process::Command;

use rustix::process::Signal;

use crate::machine;

#[test]
fn no_server_outlives_a_tool() {
    if !ending::can_be_tested() {
        return;
    }
    let found = tempfile::tempdir().unwrap();
    let out = found.path().display().to_string();
    for arguments in [&["differential", "--seed", "1", "--out", &out][..], &["record", "--check", "*"]] {
        for (signal, code) in [(Signal::TERM, Some(130)), (Signal::INT, Some(130)), (Signal::KILL, None)] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tests"));
            command.args(arguments);
            ending::check(command, signal, code);
        }
    }
}
