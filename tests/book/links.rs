//! Checks that every link of the site has a target, and that every page is in the table of contents.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::{markdown, pages_in, read, root};

/// The prefixes of links to files in the repository.
const REPOSITORY: [&str; 2] =
    ["https://github.com/admit-dev/admit/blob/main/", "https://github.com/admit-dev/admit/tree/main/"];

/// Joins a path to a directory, and resolves `..` without accessing the file system.
fn joined(folder: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(target).components() {
        if part == Component::ParentDir {
            path.pop();
        } else {
            path.push(part);
        }
    }
    path
}

#[test]
fn every_link_of_the_book_has_a_target() {
    let mut broken = Vec::new();
    let mut count = 0;
    for page in pages_in("docs") {
        let text = read(&page);
        for link in markdown::links(&text) {
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if let Some(file) = REPOSITORY.iter().find_map(|start| path.strip_prefix(start)) {
                PathBuf::from(file)
            } else if path.contains("://") {
                continue;
            } else if path.is_empty() {
                page.clone()
            } else {
                joined(page.parent().expect("a page is in a folder"), path)
            };
            let is_outside = !path.contains("://") && !target.starts_with("docs");
            if is_outside || !root().join(&target).exists() {
                broken.push(format!("{}: {link}", page.display()));
            } else if !anchor.is_empty() && !markdown::anchors(&read(&target)).contains(anchor) {
                broken.push(format!("{}: {link}: no such anchor", page.display()));
            }
        }
    }
    assert!(count > 300, "found only {count} links");
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = read(Path::new("docs/SUMMARY.md"));
    let listed: BTreeSet<PathBuf> =
        markdown::links(&summary).iter().map(|link| Path::new("docs").join(link)).collect();
    let pages: BTreeSet<PathBuf> =
        pages_in("docs").into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, pages);
}
