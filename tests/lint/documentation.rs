//! Checks that `docs/reference/lint-checks.md` matches the list of checks that the command prints.
//!
//! `UPDATE_EXPECT=1 cargo test --test command lint::` writes the page.

use expect_test::expect_file;
use harness::verify::checks;
use serde_json::Value;

use super::{lint, prints};

#[test]
fn the_page_of_the_checks_is_their_list_as_markdown() {
    expect_file!["../../docs/reference/lint-checks.md"]
        .assert_eq(&prints(&lint(&["--list", "-o", "markdown"]), 0));
}

#[test]
fn the_list_has_each_check_with_its_page_for_people_and_programs() {
    let text = prints(&lint(&["--list"]), 0);
    assert!(text.starts_with("L01  error    configuration validity\n"), "{text}");
    assert!(text.ends_with("\n\nDetails: admit lint --explain ID, or --list -v for all checks\n"), "{text}");
    assert_eq!(text.lines().count(), checks::STATIC.len() + 2, "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let text = prints(&lint(&["--list", "-v"]), 0);
    let list: Value = serde_json::from_str(&prints(&lint(&["--list", "-o", "json"]), 0)).expect("JSON");
    assert_eq!(list["checks"].as_array().map(Vec::len), Some(checks::STATIC.len()));
    for (index, (check, page)) in checks::STATIC.iter().enumerate() {
        assert!(text.contains(check.why) && text.contains(page), "{}", check.id);
        let listed = &list["checks"][index];
        assert_eq!((listed["id"].as_str(), listed["page"].as_str()), (Some(check.id), Some(*page)));
        assert!(page.starts_with("https://kubernetes.io/docs/"), "{page}");
    }
    let one = prints(&lint(&["--list", "-o", "json", "--check", "v48"]), 0);
    let one: Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(one["checks"].as_array().map(Vec::len), Some(1));
}
