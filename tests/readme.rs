//! What the README shows holds.

#![expect(clippy::expect_used, reason = "a test may panic about a README that it cannot read")]

use std::process::Command;

const README: &str = include_str!("../README.md");

/// The text of the first code block in this language.
fn block(language: &str) -> &'static str {
    blocks(language).next().expect("the README has such a block")
}

fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let start = format!("```{language}\n");
    let rests: Vec<&str> = README.split(&start).skip(1).collect();
    rests.into_iter().map(|rest| rest.split("```").next().expect("the block ends"))
}

fn admit() -> Command {
    Command::new(env!("CARGO_BIN_EXE_admit"))
}

#[test]
fn its_feature_passes() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let feature = folder.path().join("my.feature");
    std::fs::write(&feature, block("gherkin")).expect("the folder can be written");
    let output = admit().arg("run").arg(&feature).output().expect("admit starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.ends_with("1 passed, 0 failed\n"), "{text}");
}

#[test]
fn its_fakes_are_understood() {
    let file = fake_webhooks::FakesFile::parse(block("yaml"), "README.md").expect("the file is right");
    assert_eq!(file.webhooks.len(), 3);
    let composed = blocks("yaml").nth(1).expect("the README has a second file of fakes");
    let file = fake_webhooks::FakesFile::parse(&format!("version: 1\nwebhooks:\n{composed}"), "README.md");
    assert_eq!(file.expect("the entry is right").webhooks.len(), 1);
    let count = format!("prints {} faults", fake_webhooks::catalog().len());
    assert!(README.contains(&count), "the README has another number: {count}");
}

#[test]
fn its_exit_statuses_are_those_of_the_help() {
    let output = admit().arg("--help").output().expect("admit starts");
    let help = String::from_utf8_lossy(&output.stdout);
    let statuses = help.split("Exit status:\n").nth(1).expect("the help ends with the exit statuses");
    let rows = statuses.lines().filter_map(|line| line.trim().split_once("  "));
    let mut count = 0;
    for (status, meaning) in rows {
        assert!(README.contains(&format!("| {status} | {meaning} |")), "{status} {meaning}");
        count += 1;
    }
    assert!(count > 5, "{help}");
}
