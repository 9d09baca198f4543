//! Tests commands that receive a signal while they are running.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, OFlags, mknodat, openat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::helpers::machine;

/// A feature whose webhook never answers.
const FEATURE: &str = r#"Feature: Stopped
  Scenario: Hanging
    Given the objects in the file "webhook.yaml" exist
    When a pod is created
    Then the request is admitted
"#;

const WEBHOOK: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: hanging}
webhooks:
- name: hanging.example.com
  clientConfig: {url: 'https://ADDRESS/'}
  rules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]
  timeoutSeconds: 30
  sideEffects: None
  admissionReviewVersions: [v1]
";

#[test]
fn the_second_signal_ends_a_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let feature = folder.path().join("stopped.feature");
    fs::write(&feature, FEATURE).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let webhook = WEBHOOK.replace("ADDRESS", &listener.local_addr().unwrap().to_string());
    fs::write(folder.path().join("webhook.yaml"), webhook).unwrap();
    for (second, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_admit"))
            .arg("run")
            .arg(&feature)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(run.stdout.take().unwrap());
        let mut stderr = BufReader::new(run.stderr.take().unwrap());
        // Once the webhook is called, the scenario runs as long as that call.
        let call = listener.accept().unwrap();
        kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.starts_with("stopping: "), "{line}");
        kill_process(Pid::from_child(&run), second).unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(status), "{rest}");
        assert!(!rest.contains("passed"), "it did not wait for its summary: {rest}");
        drop(call);
    }
}

#[test]
fn the_first_signal_ends_a_verification_that_reads_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut verify = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["verify", "-c"])
        .arg(&fifo)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // This waits until the command, which handles signals by then, opens the FIFO to read.
    let writer = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    kill_process(Pid::from_child(&verify), Signal::TERM).unwrap();
    let mut stderr = String::new();
    verify.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(verify.wait().unwrap().code(), Some(143), "{stderr}");
    drop(writer);
}

/// A container's first process receives a signal only if it handles the signal; otherwise, the kernel ignores it.
#[test]
fn a_signal_ends_a_command_that_is_the_first_of_its_container() {
    let container = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
    let can = Command::new("unshare").args(container).arg("true").output();
    if !can.as_ref().is_ok_and(|output| output.status.success()) {
        return machine::skipped(&format!("unshare cannot be run: {can:?}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
    let pipe = pipe.to_str().unwrap();
    for command in [&["review", "-c", pipe, "-f", pipe][..], &["cel", "-c", pipe]] {
        for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
            let mut container = Command::new("unshare")
                .args(container)
                .arg(env!("CARGO_BIN_EXE_admit"))
                .args(command)
                .spawn()
                .unwrap();
            // The pipe can be opened once the command reads it; the command then waits for data.
            let writer = loop {
                match openat(CWD, pipe, OFlags::WRONLY | OFlags::NONBLOCK, 0.into()) {
                    Ok(writer) => break writer,
                    Err(error) => assert_eq!(error, Errno::NXIO),
                }
                assert_eq!(container.try_wait().unwrap(), None, "it ended before it read");
                std::thread::yield_now();
            };
            let id = container.id();
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
            let command = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
            kill_process(command, signal).unwrap();
            assert_eq!(container.wait().unwrap().code(), Some(status));
            drop(writer);
        }
    }
}
