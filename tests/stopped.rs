//! Commands that are stopped by signals while they still have something to do.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// The first scenario says by its end that the run is under way; the second one is still there when the signals come.
const FEATURE: &str = r#"Feature: Stopped
  Scenario: First
    When a pod is created
    Then the request is admitted
  Scenario: Second
    Given a mutating webhook "slow" for pods
    And "slow" has a timeout of 30 seconds
    And "slow" never answers
    When a pod is created
    Then the request is admitted
"#;

#[test]
fn the_second_signal_ends_a_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let feature = folder.path().join("stopped.feature");
    fs::write(&feature, FEATURE).unwrap();
    for (second, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["run", "--concurrency", "1"])
            .arg(&feature)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(run.stdout.take().unwrap());
        let mut stderr = BufReader::new(run.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("First") {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "it ended before its first scenario");
        }
        kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
        line.clear();
        stderr.read_line(&mut line).unwrap();
        assert!(line.starts_with("stopping: "), "{line}");
        kill_process(Pid::from_child(&run), second).unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(status), "{rest}");
        assert!(!rest.contains("passed"), "it did not wait for its summary: {rest}");
    }
}
