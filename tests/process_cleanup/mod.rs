//! Checks that etcd and kube-apiserver exit with `admit run`, regardless of how the command ends.
//!
//! Needs KUBEBUILDER_ASSETS; without it, the tests are skipped with a message.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod ending;

use std::process::Command;

use rustix::process::Signal;

use crate::helpers::machine;

#[test]
fn no_server_outlives_a_run() {
    if !ending::can_be_tested() {
        return;
    }
    for (signal, code) in [(Signal::TERM, Some(143)), (Signal::INT, Some(130)), (Signal::KILL, None)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.args(["run", "--target", "envtest"]);
        ending::check(command, signal, code);
    }
}
