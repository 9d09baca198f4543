//! Whatever ends `admit run`, its etcd and kube-apiserver end with it.
//!
//! Needs KUBEBUILDER_ASSETS; without it the tests are skipped and say so.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on must stop, and it says why it skips"
)]

mod ending;

use std::process::Command;

#[test]
fn no_server_outlives_a_run() {
    if !ending::can_be_tested() {
        return;
    }
    for (signal, code) in [("TERM", Some(130)), ("INT", Some(130)), ("KILL", None)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.args(["run", "--target", "envtest"]);
        ending::check(command, signal, code);
    }
}
