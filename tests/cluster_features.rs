//! Runs features on a real cluster, with their webhooks in a pod behind a Service.
//!
//! The features must pass and must not leave any objects behind.
//!
//! Uses the cluster from the kubeconfig in `ADMIT_TEST_CLUSTER`. The image of the fakes must be on every node. Needs
//! kubectl 1.36 to 1.38. `ADMIT_TEST_AUDIT_LOG` may contain the path of the API server's audit log. Without the first
//! variable, the tests are skipped with a message; they never use any other cluster.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that cannot go on must stop; it says what it does, and how long a real cluster takes"
)]

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::helpers::machine;

/// A cluster that only one test uses at a time, because each test checks that no objects remain in it.
struct Cluster {
    kubeconfig: OsString,
    kubectl: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());
const RUN: &str = "admit.example.com/run";
const OUTSIDE_NAMESPACES: &str = "validatingwebhookconfigurations,mutatingwebhookconfigurations,\
     validatingadmissionpolicies,validatingadmissionpolicybindings,\
     mutatingadmissionpolicies,mutatingadmissionpolicybindings,customresourcedefinitions,namespaces";

impl Cluster {
    /// Returns the test cluster. If there is none, prints the reason and returns `None`.
    fn of_tests() -> Option<Self> {
        let Some(kubeconfig) = std::env::var_os("ADMIT_TEST_CLUSTER") else {
            machine::skipped("ADMIT_TEST_CLUSTER does not name the kubeconfig of a cluster for tests");
            return None;
        };
        let kubectl = machine::kubectl_for_a_cluster()?;
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Self { kubeconfig, kubectl, _turn: turn })
    }

    fn command(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// Returns an `admit run` command that uses this cluster as its target.
    fn run(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_admit"), &["run", "--target", "cluster"]);
        command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
        if let Some(log) = std::env::var_os("ADMIT_TEST_AUDIT_LOG") {
            command.arg("--audit-log").arg(log);
        }
        command
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.command(&self.kubectl, arguments).output().unwrap();
        assert!(output.status.success(), "kubectl {}: {}", arguments.join(" "), text(&output.stderr));
        text(&output.stdout)
    }

    /// Returns the cluster-scoped objects that runs created, and the namespaces of the fakes.
    fn made(&self) -> String {
        let of_runs = self.kubectl(&["get", OUTSIDE_NAMESPACES, "-o", "name", "-l", RUN]);
        let fakes = self.kubectl(&[
            "get",
            OUTSIDE_NAMESPACES,
            "-o",
            "name",
            "-l",
            "app.kubernetes.io/name=admit-fakes",
        ]);
        of_runs + &fakes
    }

    /// Waits until terminating namespaces are deleted, and checks that no other objects remain.
    fn check_that_nothing_is_left(&self) {
        let started = Instant::now();
        for label in [RUN, "app.kubernetes.io/name=admit-fakes"] {
            self.kubectl(&["wait", "--for=delete", "namespaces", "-l", label, "--timeout=120s"]);
        }
        assert_eq!(self.made(), "");
        println!("{:.1} s: until nothing is left", started.elapsed().as_secs_f64());
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn timed(what: &str, command: &mut Command) -> Output {
    let started = Instant::now();
    let output = command.output().unwrap();
    print!("{}{}", text(&output.stderr), text(&output.stdout));
    println!("{:.1} s: {what}", started.elapsed().as_secs_f64());
    output
}

#[test]
fn the_shipped_features_pass_with_webhooks_behind_a_service_and_leave_nothing() {
    let Some(cluster) = Cluster::of_tests() else { return };
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let mut run = cluster.run(&["--quiet", "--fakes-in-cluster"]);
    let output = timed("admit run --target cluster --fakes-in-cluster", run.arg("--json").arg(&report));
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    println!("{}", report["counts"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(report["counts"]["passed"].as_u64() > Some(100), "{}", report["counts"]);
    cluster.check_that_nothing_is_left();
}

#[test]
fn kept_objects_can_be_reused_and_removed_as_printed() {
    let Some(cluster) = Cluster::of_tests() else { return };
    let some = ["features/faults.feature", "--name", "E07-wrong", "--fakes-in-cluster=admit-test-kept"];
    let kept = timed("a run that keeps what it made", cluster.run(&some).arg("--keep"));
    assert_eq!(kept.status.code(), Some(0));
    let made = cluster.made();
    for part in [
        "mutatingwebhookconfiguration.admissionregistration.k8s.io/admit-a",
        "namespace/admit-a",
        "namespace/admit-test-kept",
    ] {
        assert!(made.contains(part), "`{part}` is not in: {made}");
    }

    let again = timed("a run with the fakes of an earlier one", &mut cluster.run(&some));
    assert_eq!(again.status.code(), Some(0));
    assert!(cluster.made().contains("namespace/admit-test-kept"), "it was there before");

    let told = text(&kept.stderr);
    let advice: Vec<Vec<&str>> = told
        .lines()
        .skip_while(|line| !line.ends_with("remove them with:"))
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    let [kubectl, admit] = advice.as_slice() else { unreachable!("two commands, not {told}") };
    cluster.kubectl(&kubectl[1..]);
    let deleted = timed("admit fakes delete", &mut cluster.command(env!("CARGO_BIN_EXE_admit"), &admit[1..]));
    assert!(deleted.status.success());
    cluster.check_that_nothing_is_left();
}

#[test]
fn a_run_that_is_stopped_leaves_nothing() {
    let Some(cluster) = Cluster::of_tests() else { return };
    // Once while the pod starts, and once while webhooks are called.
    for sign in ["applied Service", "the pod is ready"] {
        let mut run = cluster.run(&["features/failure-policy.feature", "--fakes-in-cluster"]);
        let mut run = run.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut told = BufReader::new(run.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(sign) {
            line.clear();
            assert!(told.read_line(&mut line).unwrap() > 0, "it ended before it said `{sign}`");
        }
        kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        let mut rest = String::new();
        told.read_to_string(&mut rest).unwrap();
        println!("{rest}");
        assert_eq!(run.wait().unwrap().code(), Some(130), "{rest}");
        cluster.check_that_nothing_is_left();
    }
}

#[test]
fn fakes_that_do_not_come_up_are_taken_out_again() {
    let Some(cluster) = Cluster::of_tests() else { return };
    let mut run =
        cluster.run(&["features/faults.feature", "--fakes-in-cluster", "--image", "127.0.0.1:1/none:1"]);
    let output = timed("a run without an image", &mut run);
    assert_eq!(output.status.code(), Some(3));
    let told = text(&output.stderr);
    assert!(told.contains("kind load docker-image 127.0.0.1:1/none:1"), "{told}");
    cluster.check_that_nothing_is_left();
}
