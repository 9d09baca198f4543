//! Checks that the top-level modules of a crate do not import each other in a cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use super::{nothing, read, rust_files};

/// The imports of a crate: each top-level module with the modules that it imports from.
type Imports = BTreeMap<String, BTreeSet<String>>;

static STRING: LazyLock<Regex> = LazyLock::new(|| regex(r#""(?:[^"\\]|\\.)*""#));
static IMPORT: LazyLock<Regex> = LazyLock::new(|| regex(r"\buse (?:self::|crate::)?(\w+)::([^;]*);"));
static NAME: LazyLock<Regex> = LazyLock::new(|| regex(r"(\w+)(?:\s+as\s+(\w+))?\s*(?:[,}]|$)"));
static PATH: LazyLock<Regex> = LazyLock::new(|| regex(r"\bcrate::|\b(?:super::)+"));

fn regex(expression: &str) -> Regex {
    Regex::new(expression).expect("the expression is valid")
}

/// Returns the `src` directories of all crates. `files` contains the Rust files of the workspace.
fn crates(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let folders = files.iter().filter_map(|file| {
        let folder = file.parent()?;
        (folder.ends_with("src") && file.ends_with("lib.rs")).then(|| folder.to_path_buf())
    });
    folders.collect()
}

/// Returns the source without comments, strings, and inline test modules.
fn code(source: &str) -> String {
    let outside_tests = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let without_comments: Vec<&str> =
        outside_tests.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    STRING.replace_all(&without_comments.join("\n"), r#""""#).into_owned()
}

/// Returns the first segment of each path at the beginning of `rest`: `a::B` or `{a::B, c::{D, E}}`.
fn first_segments(rest: &str) -> Vec<&str> {
    let segment = |text: &str| text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let Some(list) = rest.strip_prefix('{') else {
        return rest.get(..segment(rest).unwrap_or(rest.len())).into_iter().collect();
    };
    let (mut depth, mut segments, mut starts) = (0_usize, Vec::new(), true);
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => starts = true,
            _ if starts && !letter.is_whitespace() => {
                let item = list.get(at..).unwrap_or_default();
                segments.extend(item.get(..segment(item).unwrap_or(item.len())));
                starts = false;
            }
            _ => {}
        }
    }
    segments
}

/// Returns the names that `lib.rs` imports from the crate's modules, each with its module.
fn reexports(library: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for import in IMPORT.captures_iter(library) {
        let (_, [module, list]) = import.extract();
        if modules.contains(module) {
            for name in NAME.captures_iter(list) {
                let name = name.get(2).or_else(|| name.get(1)).map_or("", |it| it.as_str());
                found.insert(name.to_owned(), module.to_owned());
            }
        }
    }
    found
}

/// Returns the imports among the top-level modules of the crate in `folder`, without its tests.
///
/// `folder` may also be a directory of a crate, such as `src/kinds`.
///
/// Each Rust file of the crate has an entry: its path, its top-level module, and the modules that it imports from.
pub(super) fn imports_by_file<'f>(
    folder: &Path,
    files: &'f [PathBuf],
) -> Vec<(&'f Path, String, BTreeSet<String>)> {
    let mut sources: Vec<(&Path, String, usize, String)> = Vec::new();
    for file in files {
        let Ok(inner) = file.strip_prefix(folder) else { continue };
        let mut parts: Vec<String> =
            inner.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if parts.last().is_some_and(|last| last == "mod") {
            parts.pop();
        }
        let Some(module) = parts.first().cloned() else { continue };
        let is_test = parts.iter().any(|part| part == "tests") || module == "testing";
        if !is_test && !["lib", "main", "bin"].contains(&module.as_str()) {
            sources.push((file.as_path(), module, parts.len(), code(&read(file))));
        }
    }
    let modules: BTreeSet<String> = sources.iter().map(|(_, module, ..)| module.clone()).collect();
    let inside: Vec<String> = folder
        .iter()
        .skip_while(|part| *part != "src")
        .skip(1)
        .map(|part| part.to_string_lossy().into_owned() + "::")
        .collect();
    let inside = inside.concat();
    let library = if inside.is_empty() { "lib.rs" } else { "mod.rs" };
    let reexported = reexports(&code(&read(&folder.join(library))), &modules);
    let imports = sources.into_iter().map(|(file, module, depth, source)| {
        let mut imported: BTreeSet<String> = BTreeSet::new();
        for path in PATH.find_iter(&source) {
            // `super::super::name` in a module two levels deep names a top-level module.
            let is_from_root = path.as_str() == "crate::" || path.as_str().matches("super").count() == depth;
            let rest = source.get(path.end()..).unwrap_or_default();
            let rest = if path.as_str() == "crate::" { rest.strip_prefix(&inside) } else { Some(rest) };
            let Some(rest) = rest.filter(|_| is_from_root) else { continue };
            for name in first_segments(rest) {
                let other = modules.get(name).or_else(|| reexported.get(name));
                imported.extend(other.filter(|other| **other != module).cloned());
            }
        }
        (file, module, imported)
    });
    imports.collect()
}

/// Returns the imports among the top-level modules of the crate in `folder`. `files` contains its Rust files.
fn imports_of(folder: &Path, files: &[PathBuf]) -> Imports {
    let mut imports = Imports::new();
    for (_, module, imported) in imports_by_file(folder, files) {
        imports.entry(module).or_default().extend(imported);
    }
    imports
}

/// Returns the modules that `start` imports, directly or through other modules.
fn reachable<'i>(imports: &'i Imports, start: &str) -> BTreeSet<&'i str> {
    let mut found = BTreeSet::new();
    let mut pending = vec![start];
    while let Some(module) = pending.pop() {
        for import in imports.get(module).into_iter().flatten() {
            if found.insert(import.as_str()) {
                pending.push(import);
            }
        }
    }
    found
}

/// Returns the largest set of modules that all import each other, directly or through other modules.
fn largest_cycle(imports: &Imports) -> BTreeSet<&str> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (module.as_str(), reachable(imports, module))).collect();
    let cycles = reached.iter().map(|(module, others)| {
        let back = |other: &&&str| reached.get(*other).is_some_and(|theirs| theirs.contains(module));
        others.iter().filter(back).copied().collect::<BTreeSet<&str>>()
    });
    cycles.max_by_key(BTreeSet::len).unwrap_or_default()
}

#[test]
fn first_segments_of_imports() {
    for (rest, expected) in [
        ("event::Event;", vec!["event"]),
        ("{a, b::{C, D}, e::F};", vec!["a", "b", "e"]),
        ("Failure {", vec!["Failure"]),
        ("{\n    one::A,\n    two::{self, B},\n};", vec!["one", "two"]),
    ] {
        assert_eq!(first_segments(rest), expected, "{rest}");
    }
}

#[test]
fn largest_cycle_includes_indirect_imports() {
    let imports = |edges: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (from, to) in edges {
            imports.entry((*to).to_owned()).or_default();
            imports.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        imports
    };
    let none = imports(&[("a", "b"), ("b", "c"), ("a", "c")]);
    assert_eq!(largest_cycle(&none), BTreeSet::new());
    let three = imports(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "e"), ("e", "d"), ("d", "a")]);
    assert_eq!(largest_cycle(&three), BTreeSet::from(["a", "b", "c"]));
}

#[test]
fn crates_have_no_import_cycles() {
    let mut findings = Vec::new();
    let files = rust_files();
    let crates = crates(&files);
    assert!(crates.len() > 12, "found only {} crates", crates.len());
    for folder in crates {
        let imports = imports_of(&folder, &files);
        let cycle = largest_cycle(&imports);
        if !cycle.is_empty() {
            let modules: Vec<&str> = cycle.iter().copied().collect();
            findings.push(format!(
                "{}: {} modules import each other: {}",
                folder.display(),
                cycle.len(),
                modules.join(", ")
            ));
        }
    }
    nothing(&findings);
}
