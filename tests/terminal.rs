//! Tests behavior that all commands share: output errors, closed pipes, colors, progress, and escape sequences.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::helpers::machine;

const PASSES: &str = "tests/features/passes.feature";
const FINDS: &str = "tests/lint/findings/V50-kube-system.yaml";
const MESSAGE: &str = "failed calling webhook \"a.example.com\": failed to call webhook: Post \"https://a.b.svc:443/?timeout=10s\": \
                       context deadline exceeded";

/// Returns the command in the workspace directory, without the environment variables that affect its output.
fn admit(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    for variable in
        ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "TERM", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"]
    {
        command.env_remove(variable);
    }
    command
}

/// Removes the progress lines. They appear every 10 seconds.
fn without_progress(stderr: &str) -> String {
    stderr.split_inclusive('\n').filter(|line| !line.starts_with("running scenarios (")).collect()
}

/// Returns commands that print output, each with its exit status.
fn printing() -> Vec<(Vec<&'static str>, i32)> {
    vec![
        (vec!["--help"], 0),
        (vec!["--version"], 0),
        (vec!["verify", "--help"], 0),
        (vec!["run", PASSES], 0),
        (vec!["run", "--list", PASSES], 0),
        (vec!["steps"], 0),
        (vec!["steps", "-o", "json"], 0),
        (vec!["lint", "-c", FINDS], 1),
        (vec!["lint", "-c", FINDS, "-o", "sarif"], 1),
        (vec!["lint", "--list"], 0),
        (vec!["verify", "-q", "-c", FINDS, "--check", "V50"], 1),
        (vec!["verify", "-q", "-c", FINDS, "--check", "V50", "-o", "json"], 1),
        (vec!["verify", "--list"], 0),
        (vec!["cel", "1 < 2"], 0),
        (vec!["cel", "1 < 2", "-o", "yaml"], 0),
        (vec!["explain-error", MESSAGE], 0),
        (vec!["explain-error", MESSAGE, "-o", "json"], 0),
        (vec!["fakes", "list"], 0),
        (vec!["fakes", "list", "-o", "json"], 0),
        (vec!["certs", "--service", "webhook.demo", "-o", "json"], 0),
    ]
}

#[test]
fn an_error_of_standard_output_is_exit_status_3() {
    for (arguments, _) in printing() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = admit(&arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {stderr}");
        let expected = "error: cannot write to standard output: No space left on device";
        assert!(stderr.contains(expected) && !stderr.contains("panicked"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
    for (arguments, status) in printing() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = admit(&arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), without_progress(&stderr)),
            (Some(status), String::new()),
            "{arguments:?}"
        );
    }
}

#[test]
fn an_error_of_standard_error_is_ignored() {
    for (arguments, status) in [(&["run", "no/such.feature"][..], 2), (&["lint", "--nonsense"], 2)] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = admit(arguments).stderr(full).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
    }
}

#[test]
fn report_files_are_written_before_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (junit, json, sarif, summary) =
        (path("junit.xml"), path("run.json"), path("log.sarif"), path("s.md"));
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let run = admit(&["run", PASSES, "--junit", &junit, "--json", &json]).stdout(full()).output().unwrap();
    assert_eq!(run.status.code(), Some(3));
    assert!(fs::read_to_string(&junit).unwrap().contains("<testcase "));
    assert!(fs::read_to_string(&json).unwrap().contains("\"passed\""));
    let arguments = ["verify", "-c", FINDS, "--check", "V50", "--sarif", &sarif, "--summary", &summary];
    let verify = admit(&arguments).stdout(full()).output().unwrap();
    assert_eq!(verify.status.code(), Some(3));
    assert!(fs::read_to_string(&sarif).unwrap().contains("\"V50\""));
    assert!(fs::read_to_string(&summary).unwrap().contains("V50"));
}

/// Returns the output of a command on a terminal with 100 columns; `None` if the program `script` is not installed.
fn on_terminal(environment: &[(&str, &str)], arguments: &str) -> Option<String> {
    let mut command = Command::new("script");
    let admit = env!("CARGO_BIN_EXE_admit");
    let line = format!("stty cols 100; {admit} {arguments}");
    command.args(["-qec", &line, "/dev/null"]).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(variable);
    }
    let output = command.env("TERM", "xterm-256color").envs(environment.iter().copied()).output();
    match output {
        Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
        Err(error) => {
            machine::skipped(&format!("`script` cannot be run: {error}"));
            None
        }
    }
}

#[test]
fn a_terminal_shows_colors_and_unicode_symbols() {
    let Some(text) = on_terminal(&[], &format!("run {PASSES}")) else { return };
    assert!(text.contains("\u{1b}[32m\u{2714}\u{1b}[0m"), "{text:?}");
    let Some(text) = on_terminal(&[], &format!("lint -c {FINDS}")) else { return };
    assert!(text.contains("\u{1b}[1m\u{1b}[31merror[V50]\u{1b}[0m"), "{text:?}");
}

#[test]
fn colors_and_symbols_can_be_turned_off() {
    for variable in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
        for arguments in
            [format!("run -q {PASSES}"), format!("run --list {PASSES}"), format!("lint -c {FINDS}")]
        {
            let Some(text) = on_terminal(&[variable], &arguments) else { return };
            assert!(!text.contains("\u{1b}["), "{variable:?} {arguments}: {text:?}");
        }
        // The progress bar needs escape sequences, which a dumb terminal does not support.
        let Some(text) = on_terminal(&[variable], &format!("run {PASSES}")) else { return };
        assert!(!text.contains('\u{2714}') && text.contains("    ok "), "{variable:?}: {text:?}");
        assert!(!text.contains("\u{1b}[32m"), "{variable:?}: {text:?}");
        if variable.0 == "TERM" {
            assert!(!text.contains('\u{1b}'), "{text:?}");
        }
    }
}

#[test]
fn a_terminal_shows_a_progress_bar_unless_the_command_is_quiet() {
    let Some(text) = on_terminal(&[], &format!("run {PASSES}")) else { return };
    assert!(text.contains("running scenarios (0 of ") && text.contains("\u{1b}[2K"), "{text:?}");
    let Some(text) = on_terminal(&[], &format!("run --quiet {PASSES}")) else { return };
    assert!(!text.contains("running scenarios"), "{text:?}");
}

/// Escape sequences that clear the screen and set the title, an 8-bit CSI, and a bidirectional override.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}";

#[track_caller]
fn is_harmless(arguments: &[&str], folder: &Path) {
    let output: Output = admit(arguments).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("[2J"), "{arguments:?}: {text:?}");
    for sequence in ["\u{1b}[2J", "\u{1b}]", "\u{7}", "\u{9b}", "\u{202e}"] {
        assert!(!text.contains(sequence), "{arguments:?}: {text:?}");
    }
}

#[test]
fn escape_sequences_in_files_never_reach_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let feature = format!(
        "@tag{HOSTILE}\nFeature: f{HOSTILE}\n  Rule: r{HOSTILE}\n    Scenario: s{HOSTILE}\n      Given the objects in \
         the file \"{HOSTILE}\" exist\n"
    );
    write("f.feature", &feature);
    for arguments in [&["run", "f.feature"][..], &["run", "--list", "f.feature"], &["run", "-q", "f.feature"]]
    {
        is_harmless(&[&["--color", "always"], arguments].concat(), folder.path());
    }
    let json = |text: &str| serde_json::to_string(text).unwrap();
    let name = json(&format!("n{HOSTILE}"));
    let expression = json(&format!("'{HOSTILE}' == object.kind"));
    let kind = "ValidatingWebhookConfiguration";
    write(
        "c.json",
        &format!(
            r#"{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "{kind}", "metadata": {{"name": {name}}},
            "webhooks": [{{"name": {name}, "matchConditions": [{{"name": {name}, "expression": {expression}}}]}}]}}"#
        ),
    );
    write("o.json", &format!(r#"{{"apiVersion": "v1", "kind": {name}, "metadata": {{"name": {name}}}}}"#));
    for format in ["text", "json", "yaml"] {
        let cel = ["--color", "always", "cel", "--each", "-c", "c.json", "-f", "o.json", "-o", format];
        is_harmless(&cel, folder.path());
    }
    for format in ["text", "json", "markdown", "sarif"] {
        is_harmless(&["--color", "always", "lint", "-c", "c.json", "-o", format], folder.path());
    }
    write("fakes.json", &format!(r#"{{"webhooks": [{{"name": {name}, "behavior": "allow"}}]}}"#));
    let service = format!("{HOSTILE}.demo");
    for arguments in [
        &["explain-error", &MESSAGE.replace("a.example", HOSTILE)][..],
        &["review", "-f", "o.json", "-c", "c.json"],
        &["review", "-f", "o.json", "-c", "c.json", "-o", "json"],
        &["verify", "-c", "c.json", "--check", "V50"],
        &["verify", "-c", "c.json", "--check", "V50", "-o", "json"],
        &["fakes", "-f", "fakes.json"],
        &["certs", "--service", &service],
        &["steps", HOSTILE],
    ] {
        is_harmless(&[&["--color", "always"], arguments].concat(), folder.path());
    }
}

#[test]
fn usage_errors_name_the_option_that_the_user_needs() {
    for (arguments, expected) in [
        (
            &["version"][..],
            "error: unrecognized subcommand 'version'\n\n  tip: `admit --version` prints the version\n",
        ),
        (&["explain-error"], "\n\n  tip: pass a message, or -f - to read messages from standard input\n"),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_admit"));
        let output = command.args(arguments).env("NO_COLOR", "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.ends_with(expected), "{arguments:?}: {text}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
