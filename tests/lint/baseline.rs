//! Tests `--baseline` and `--write-baseline` of `admit lint`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{lint, prints, root};

/// A configuration for which the command reports a note about a rule.
const WIDE: &str = "tests/lint/findings/L05-scope.yaml";
const TWICE: &str = "tests/lint/findings/L10-twice.yaml";
const TIMEOUT: &str = "tests/lint/findings/L06-timeout.yaml";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        Path::new(self.0.path()).join(name).to_string_lossy().into_owned()
    }

    /// Runs `admit lint` with the baseline `name`, and returns its standard output.
    #[track_caller]
    fn lint(&self, option: &str, name: &str, more: &[&str], status: i32) -> String {
        let path = self.path(name);
        let text = prints(&lint(&[&[option, &path], more].concat()), status);
        text.replace(&path, name)
    }
}

#[test]
fn missing_baseline_is_reported_with_the_option_that_writes_it() {
    let output = lint(&["--baseline", "nowhere.yaml", "-c", TWICE]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.ends_with("; create the file with --write-baseline FILE\n"), "{stderr}");
}

#[test]
fn known_findings_are_accepted_and_only_others_fail() {
    let folder = Folder::new();
    let failing = ["-c", TWICE, "--fail-on", "note"];
    prints(&lint(&failing), 1);
    // Known findings do not fail the run, but every entry needs a reason before it counts.
    let written = lint(&[&["--write-baseline", &folder.path("known.yaml")], &failing[..]].concat());
    let stderr = String::from_utf8_lossy(&written.stderr);
    let missing = "1 entry in the baseline has no reason: fill in `reason`, or pass --baseline-reason TEXT\n";
    assert_eq!((written.status.code(), &*stderr), (Some(0), missing));
    let stdout = String::from_utf8_lossy(&written.stdout);
    assert!(
        stdout.contains("  = help: ") && stdout.contains("  = baseline: accepts this finding from now on\n"),
        "{stdout}"
    );
    let refused = lint(&[&["--baseline", &folder.path("known.yaml")], &failing[..]].concat());
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("known.yaml:9: findings[0].reason: must say why the finding is accepted"),
        "{stderr}"
    );
    let reason = [&["--baseline-reason", "injector#12"], &failing[..]].concat();
    folder.lint("--write-baseline", "known.yaml", &reason, 0);
    let written = fs::read_to_string(folder.path("known.yaml")).expect("it is written");
    let entry = "- check: L10\n  kind: duplicate name\n  webhooks:\n  - injector\n  reason: injector#12\n";
    assert!(written.starts_with("# Findings of admit lint ") && written.ends_with(entry), "{written}");
    let text = folder.lint("--baseline", "known.yaml", &failing, 0);
    let accepted = "\naccepted[L10] tests/lint/findings/L10-twice.yaml:25: injector metadata.name: the configuration replaces an \
                    earlier ValidatingWebhookConfiguration \"injector\" in the manifests (injector#12)\n";
    assert!(text.contains(accepted), "{text}");
    assert!(text.ends_with("\n0 findings, 1 accepted in 2 configurations\n"), "{text}");

    // A finding that is not in the baseline fails the run.
    let other = fs::read_to_string(root().join(TIMEOUT)).expect("the file is there");
    fs::write(folder.path("other.yaml"), other.replace("name: injector\n", "name: other\n"))
        .expect("it is written");
    let other = folder.path("other.yaml");
    let text = folder.lint("--baseline", "known.yaml", &[&failing[..], &["-c", &other]].concat(), 1);
    assert!(text.contains("warning[L06]") && text.contains("accepted[L10]"), "{text}");
    assert!(text.contains("1 finding (1 warning), 1 accepted in 3 configurations\n"), "{text}");
}

#[test]
fn stale_entries_are_reported_and_dropped_when_the_file_is_rewritten() {
    let folder = Folder::new();
    let write = ["--baseline-reason", "injector#12", "-c", TIMEOUT];
    folder.lint("--write-baseline", "known.yaml", &write, 0);
    let stale = "warning: the baseline accepts L06 \"long timeout\" of injector/pods.example.com, which the check no \
                 longer finds: remove the entry\n --> known.yaml:5\n";
    let text = folder.lint("--baseline", "known.yaml", &["-c", WIDE], 0);
    assert!(text.contains(stale), "{text}");
    // A skipped check does not make its entries outdated.
    for skip in [["--skip", "L06=why not"], ["--check", "L05"]] {
        let arguments = [&["-c", WIDE], &skip[..]].concat();
        let text = folder.lint("--baseline", "known.yaml", &arguments, 0);
        assert!(!text.contains("the baseline accepts"), "{text}");
        let path = folder.path("known.yaml");
        let arguments = [&["--baseline-reason", "wide", "--write-baseline", &path], &arguments[..]].concat();
        assert_eq!(lint(&arguments).status.code(), Some(0));
    }
    let text = folder.lint("--baseline", "known.yaml", &["-c", TIMEOUT], 0);
    assert!(text.contains("accepted[L06]"), "{text}");
    let path = folder.path("known.yaml");
    let output = lint(&["--write-baseline", &path, "-c", WIDE]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let removed =
        format!("{path}: removed L06 \"long timeout\" for injector/pods.example.com: no longer found\n");
    assert_eq!((output.status.code(), stderr), (Some(0), removed));
    let written = fs::read_to_string(folder.path("known.yaml")).expect("it is written");
    assert!(!written.contains("L06") && written.contains("L05"), "{written}");
}

#[test]
fn machine_readable_reports_contain_accepted_findings() {
    let folder = Folder::new();
    folder.lint("--write-baseline", "known.yaml", &["--baseline-reason", "injector#12", "-c", TWICE], 0);
    let output = |format: &str| folder.lint("--baseline", "known.yaml", &["-c", TWICE, "-o", format], 0);
    let report: Value = serde_json::from_str(&output("json")).expect("JSON");
    assert_eq!(report["findings"][0]["accepted"], "injector#12");
    let sarif: Value = serde_json::from_str(&output("sarif")).expect("JSON");
    let suppressions = &sarif["runs"][0]["results"][0]["suppressions"];
    assert_eq!(suppressions[0]["justification"], "injector#12", "{suppressions}");
    let junit = output("junit");
    assert!(junit.contains("failures=\"0\"") && junit.contains("accepted: injector#12"), "{junit}");
}

#[test]
fn an_entry_about_a_configuration_that_cannot_be_read_is_not_stale() {
    let folder = Folder::new();
    folder.lint("--write-baseline", "known.yaml", &["--baseline-reason", "r", "-c", TIMEOUT], 0);
    let text = fs::read_to_string(root().join(TIMEOUT)).expect("the file is there");
    let broken = text.replace("sideEffects: None", "sideEffects: Perhaps");
    assert_ne!(text, broken);
    fs::write(folder.path("broken.yaml"), broken).expect("it is written");
    let text = folder.lint("--baseline", "known.yaml", &["-c", &folder.path("broken.yaml")], 1);
    assert!(text.contains("error[L01]") && !text.contains("the baseline accepts"), "{text}");
}
