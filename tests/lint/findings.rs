//! Tests each possible finding with a file that has only this finding.
//!
//! `UPDATE_EXPECT=1 cargo test --test command lint::` writes the expected output.

use expect_test::expect_file;

use super::{files, lint, prints, report};

const FOLDER: &str = "tests/lint/findings";

/// Returns the paths of the files, relative to the workspace, each with its name.
fn all() -> Vec<(String, String)> {
    let files = files(FOLDER, ".yaml").into_iter();
    let name = |file: std::path::PathBuf| file.file_stem().expect("a name").to_string_lossy().into_owned();
    files.map(name).map(|name| (format!("{FOLDER}/{name}.yaml"), name)).collect()
}

/// Removes the number of days since a certificate expired. It depends on the date of the test.
fn without_days(text: &str) -> String {
    match text.split_once(" days ago") {
        Some((before, after)) => {
            format!("{}N days ago{after}", before.trim_end_matches(|it: char| it.is_ascii_digit()))
        }
        None => text.to_owned(),
    }
}

#[test]
fn a_flawless_configuration_with_its_service_and_its_pods_has_no_finding() {
    let text = prints(&lint(&["-c", &format!("{FOLDER}/flawless.yaml")]), 0);
    assert!(text.starts_with("2 configurations: no problems found\n"), "{text}");
    assert!(text.ends_with(" checks passed (-v lists them)\n0 findings in 2 configurations\n"), "{text}");
}

#[test]
fn each_file_has_the_finding_that_its_name_says_and_no_other() {
    let mut checks = std::collections::BTreeSet::new();
    for (file, name) in all().into_iter().filter(|(_, name)| name != "flawless") {
        let (report, status) = report(&file);
        let findings = report["findings"].as_array().expect("a list");
        let ids: Vec<&str> = findings.iter().filter_map(|finding| finding["check"].as_str()).collect();
        let id = name.split('-').next().expect("an id");
        assert_eq!(ids, [id], "{file}: {report:#}");
        // Only L19 is about a pair of objects.
        let other = (id == "L19").then_some("team-of-namespace");
        assert_eq!(findings[0]["other"].as_str(), other, "{file}");
        // Other checks of a rejected configuration are not completed.
        if !["L01", "L11"].contains(&id) {
            assert_eq!(report["notChecked"], serde_json::json!([]), "{file}");
        }
        assert_eq!(status, Some(i32::from(findings[0]["severity"] == "error")), "{file}");
        checks.insert(id.to_owned());
        let text = lint(&["-c", &file]).stdout;
        let golden = super::root().join(FOLDER).join(format!("{name}.txt"));
        expect_file![golden].assert_eq(&without_days(&String::from_utf8_lossy(&text)));
    }
    let all = harness::verify::checks::STATIC.iter().map(|(check, _)| check.id.to_owned());
    assert_eq!(checks, all.collect(), "each check has a file");
}
