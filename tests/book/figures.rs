//! Compares numbers in the documentation with what they count.

use std::path::{Path, PathBuf};

use regex::Regex;

use super::{markdown, pages_in, read, root, stdout};

/// The scenarios of a feature file or directory.
#[derive(Debug, PartialEq)]
struct Scenarios {
    all: usize,
    /// The number of scenarios that run without further options.
    runnable: usize,
}

/// Counts the scenarios below `path`, as `admit run` counts them: each example of an outline is one.
fn scenarios(path: &str) -> Scenarios {
    let list = stdout(&["run", "--list", root().join(path).to_str().expect("UTF-8")]);
    let place = Regex::new(r"\.feature:\d+( |$)").expect("a valid expression");
    let is_heading = |line: &str| ["Feature: ", "Rule: "].iter().any(|word| line.trim().starts_with(word));
    let lines: Vec<&str> = list.lines().filter(|line| place.is_match(line) && !is_heading(line)).collect();
    let runnable = lines.iter().filter(|line| !line.contains("  skipped: ")).count();
    Scenarios { all: lines.len(), runnable }
}

#[test]
fn numbers_of_scenarios_and_features_are_those_of_the_files() {
    let shipped = scenarios("features");
    let features = std::fs::read_dir(root().join("features")).expect("the directory exists").count();
    let counts = Regex::new(r"(more than )?(\d[\d,]*) (?:shipped )?(scenarios|features)\b").expect("valid");
    let file = Regex::new(r"features/[a-z-]+\.feature").expect("valid");
    let runnable = Regex::new(r"(\d+) run on both").expect("valid");
    let mut pages = vec![PathBuf::from("README.md"), PathBuf::from("CHANGELOG.md")];
    pages.extend(pages_in("docs"));
    let mut stated = 0;
    for page in pages {
        for line in markdown::prose(&read(&page)).lines() {
            for found in counts.captures_iter(line).filter(|found| found.get(1).is_none()) {
                let expected = match (&found[3], file.find(line)) {
                    ("features", _) => features,
                    (_, Some(file)) => scenarios(file.as_str()).all,
                    (_, None) => shipped.all,
                };
                assert_eq!(found[2], expected.to_string(), "{}: {line}", page.display());
                stated += 1;
            }
            if let Some(found) = runnable.captures(line) {
                assert_eq!(found[1], shipped.runnable.to_string(), "{}: {line}", page.display());
            }
        }
    }
    let conformance = read(Path::new("docs/project/conformance.md"));
    assert!(runnable.is_match(&conformance), "the page states how many scenarios run on both servers");
    assert!(stated > 0, "no page states a number of scenarios");
}
