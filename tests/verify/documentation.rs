//! Checks that `docs/reference/checks.md` matches the list of checks that the command prints.
//!
//! `UPDATE_EXPECT=1 cargo test --test command verify::` writes the page.

use std::process::Command;

use expect_test::expect_file;
use harness::verify::checks;
use serde_json::{Value, json};

use super::command::ends_with;

/// Returns the output of `admit verify --list` with these arguments.
fn list(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    let output = command.args(["verify", "--list"]).args(arguments).output().expect("the command runs");
    ends_with(&output, 0)
}

#[test]
fn the_page_of_the_checks_is_their_list_as_markdown() {
    expect_file!["../../docs/reference/checks.md"].assert_eq(&list(&["-o", "markdown"]));
}

#[test]
fn the_list_of_checks_has_a_line_for_each_and_details_on_request() {
    let text = list(&[]);
    assert!(text.starts_with("V01  error    idempotence\nV02  "), "{text}");
    assert!(text.contains("Details: admit verify --explain ID, or --list -v for all checks\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with('V')).count(), checks::ALL.len(), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let text = list(&["-v"]);
    for check in checks::ALL {
        assert!(text.contains(check.id) && text.contains(check.why), "{}", check.id);
    }
}

#[test]
fn the_list_of_checks_is_the_same_for_programs() {
    let from_json: Value = serde_json::from_str(&list(&["-o", "json"])).expect("JSON");
    let from_yaml: Value = serde_saphyr::from_str(&list(&["-o", "yaml"])).expect("YAML");
    assert_eq!(from_json, from_yaml);
    assert_eq!(from_json["version"], 1);
    assert_eq!(from_json["checks"].as_array().map(Vec::len), Some(checks::ALL.len()));
    let check = checks::find("V20").expect("there is such a check");
    let expected = json!({
        "id": "V20", "title": check.title, "severity": "note", "why": check.why, "help": check.help,
        "source": check.source,
        "page": concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/docs/reference/checks.md#v20"),
    });
    let chosen: Value = serde_json::from_str(&list(&["-o", "json", "--check", "V20"])).expect("JSON");
    assert_eq!(chosen, json!({"version": 1, "checks": [expected]}));
}

#[test]
fn an_unknown_check_is_an_error_that_names_the_list_and_the_other_command() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_admit")).args(["verify", "-c", "x", "--check", "V99"]).output();
    let text = ends_with(&output.expect("the command runs"), 2);
    assert!(text.contains("unknown check `V99`; see `admit verify --list`\n"), "{text}");
    let output =
        Command::new(env!("CARGO_BIN_EXE_admit")).args(["verify", "-c", "x", "--check", "L04"]).output();
    let text = ends_with(&output.expect("the command runs"), 2);
    assert!(text.contains("L04 is a check of `admit lint`, not of `admit verify`; see "), "{text}");
}
