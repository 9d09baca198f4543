//! Checks the references in sources and documents: statements of `behaviors.md`, files, and sections of documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;
use serde::de::DeserializeOwned;

use super::{collect, nothing, read, root};

/// The directories that implement the statements of `tests/behaviors.md`.
const IMPLEMENTATION: [&str; 4] = ["harness", "cel/src", "managed-fields/src", "command/src"];

/// The paths that tools write and that Git ignores.
const GENERATED: [&str; 4] = ["fuzz/artifacts/", "fuzz/found", "fuzz/target/", "target/"];

/// Returns the IDs of the statements in `tests/behaviors.md`, such as `MUT-04`.
fn statements() -> BTreeSet<String> {
    let text = read(Path::new("tests/behaviors.md"));
    let ids = text.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    let ids: BTreeSet<String> = ids.map(|(id, _)| id.to_owned()).collect();
    assert!(ids.len() > 300, "found only {} statements", ids.len());
    ids
}

fn rust_files_in(folders: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        collect(&root().join(folder), &mut files);
    }
    assert!(files.len() > 100, "found only {} Rust files", files.len());
    files.into_iter().filter_map(|file| file.strip_prefix(root()).map(Path::to_path_buf).ok()).collect()
}

fn yaml<T: DeserializeOwned>(file: &str) -> BTreeMap<String, T> {
    serde_saphyr::from_str(&read(Path::new(file))).expect("the file is a map")
}

/// Returns the IDs in a line `Rule: MUT-04, MUT-05.` of a doc comment, or an empty list for any other line.
///
/// # Errors
/// Returns an error if the line begins like such a line but has a different format.
fn cited(line: &str) -> Result<Vec<&str>, ()> {
    let line = line.trim_start();
    if !["/// Rule:", "/// Rules:"].iter().any(|start| line.starts_with(start)) {
        return Ok(Vec::new());
    }
    let list = line.strip_prefix("/// Rule: ").and_then(|rest| rest.strip_suffix('.')).ok_or(())?;
    let ids: Vec<&str> = list.split(", ").collect();
    if ids.is_sorted() { Ok(ids) } else { Err(()) }
}

#[test]
fn a_citation_has_one_form() {
    for (line, expected) in [
        ("    /// Rule: MUT-04.", Ok(vec!["MUT-04"])),
        ("/// Rule: HTTP-24, MUT-04.", Ok(vec!["HTTP-24", "MUT-04"])),
        ("/// Rules that match.", Ok(vec![])),
        ("// Rule: MUT-04.", Ok(vec![])),
        ("/// Rules: MUT-04.", Err(())),
        ("/// Rule: MUT-04", Err(())),
        ("/// Rule: MUT-05, MUT-04.", Err(())),
    ] {
        assert_eq!(cited(line), expected, "{line}");
    }
}

#[test]
fn every_statement_is_cited_where_it_is_implemented() {
    let mut findings = Vec::new();
    let mut implemented = BTreeSet::new();
    let statements = statements();
    for file in rust_files_in(&IMPLEMENTATION) {
        for (index, line) in read(&file).lines().enumerate() {
            match cited(line) {
                Ok(ids) if ids.iter().all(|id| statements.contains(*id)) => {
                    implemented.extend(ids.into_iter().map(str::to_owned));
                }
                Ok(_) | Err(()) => findings.push(format!(
                    "{}:{}: a citation has the form `Rule: MUT-04, MUT-05.`, with ids of tests/behaviors.md in \
                     alphabetical order",
                    file.display(),
                    index + 1
                )),
            }
        }
    }
    let unproved: BTreeMap<String, String> = yaml("tests/unproved.yaml");
    for id in &statements {
        if !implemented.contains(id) && !unproved.contains_key(id) {
            findings.push(format!(
                "{id}: no doc comment cites it: add a line `Rule: {id}.` where it is implemented"
            ));
        }
    }
    nothing(&findings);
}

#[test]
fn every_cited_statement_exists() {
    let statements = statements();
    let areas: BTreeSet<&str> =
        statements.iter().filter_map(|id| id.split_once('-')).map(|(area, _)| area).collect();
    let areas: Vec<&str> = areas.into_iter().collect();
    let id = Regex::new(&format!(r"\b(?:{})-\d{{2}}\b", areas.join("|"))).expect("the expression is one");
    let mut findings = Vec::new();
    for file in rust_files_in(&["harness", "cel", "managed-fields", "command", "tests"]) {
        for (index, line) in read(&file).lines().enumerate() {
            for found in id.find_iter(line).filter(|found| !statements.contains(found.as_str())) {
                findings.push(format!("{}:{}: there is no {}", file.display(), index + 1, found.as_str()));
            }
        }
    }
    nothing(&findings);
}

/// Returns the text of a document in one line, without its code blocks.
fn prose(document: &str) -> String {
    let mut is_code = false;
    let text = read(Path::new(document));
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// Returns whether `path` exists in the tree. Ignores the part that begins with the first placeholder (`NAME`, `*`).
fn exists(path: &str) -> bool {
    let fixed: PathBuf = path.split('/').take_while(|part| *part != "NAME" && !part.contains('*')).collect();
    root().join(fixed).exists()
}

#[test]
fn documents_name_files_that_exist() {
    let folders: BTreeSet<String> = std::fs::read_dir(root())
        .expect("the folder is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let quoted = Regex::new("`([^` ]+)`").expect("the expression is one");
    let link = Regex::new(r"\]\(([^)#]+)").expect("the expression is one");
    let mut findings = Vec::new();
    let mut found = 0;
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"] {
        let prose = prose(document);
        let is_of_the_tree = |path: &&str| {
            let in_a_folder = path.split_once('/').is_some_and(|(folder, _)| folders.contains(folder));
            // The README also refers to files of its readers.
            in_a_folder
                || (document == "ARCHITECTURE.md"
                    && (path.contains('/')
                        || Path::new(path).extension().is_some_and(|extension| extension == "rs")))
        };
        let links = link.captures_iter(&prose).filter_map(|link| Some(link.get(1)?.as_str()));
        let links = links.filter(|target| !target.contains("://"));
        let quoted = quoted.captures_iter(&prose).filter_map(|quoted| Some(quoted.get(1)?.as_str()));
        for path in links.chain(quoted.filter(is_of_the_tree)) {
            found += 1;
            if !GENERATED.iter().any(|generated| path.starts_with(generated)) && !exists(path) {
                findings.push(format!("{document}: there is no {path}"));
            }
        }
    }
    assert!(found > 80, "found only {found} paths");
    nothing(&findings);
}

/// For each section of the Kubernetes page on admission control, readers can find the code that implements it.
#[test]
fn the_architecture_has_each_section_of_the_page_about_webhooks() {
    let coverage = read(Path::new("docs/project/coverage.md"));
    let page = coverage.split("\n## ").find(|page| page.starts_with("Dynamic admission control\n"));
    let sections = page.into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix("### "));
    let sections: BTreeSet<&str> = sections.filter(|section| *section != "Without a scenario").collect();
    assert!(sections.len() > 20, "found only {} sections", sections.len());
    let architecture = read(Path::new("ARCHITECTURE.md"));
    let table = architecture
        .split("\n## ")
        .find(|part| part.starts_with("Where each section of the documentation is implemented\n"));
    let rows = table.into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix("| "));
    let rows: BTreeSet<&str> = rows.skip(1).filter_map(|row| Some(row.split_once(" | ")?.0)).collect();
    let missing = sections
        .difference(&rows)
        .map(|section| format!("ARCHITECTURE.md: no row for the section {section}"));
    let unknown = rows
        .difference(&sections)
        .map(|row| format!("ARCHITECTURE.md: docs/project/coverage.md has no section {row}"));
    nothing(&missing.chain(unknown).collect::<Vec<_>>());
}
