//! Reads feature files, with scenario outlines as one scenario a row.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cucumber::feature::Ext as _;
use gherkin::{Feature, GherkinEnv, ParseFileError};

use super::shipped;
use crate::Failure;

/// Reads the features at `paths`: files, and folders with all that they hold; without a path the shipped ones.
///
/// # Errors
/// One failure that names every file that cannot be read or understood.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Feature>, Failure> {
    let features = if paths.is_empty() {
        shipped::FEATURES.iter().map(|(path, text)| parse_shipped(path, text)).collect::<Vec<_>>()
    } else {
        find(paths)?.iter().map(|path| parse_file(path)).collect()
    };
    let mut read = Vec::new();
    let mut problems = Vec::new();
    for feature in features {
        match feature {
            Ok(feature) => read.push(feature),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(read) } else { Err(Failure::usage(problems.join("\n"))) }
}

/// The feature files at `paths`: every file once, a folder's sorted by name.
fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let unreadable = |error: io::Error| Failure::usage(format!("{}: {}", path.display(), reason(&error)));
        if fs::metadata(path).map_err(unreadable)?.is_dir() {
            let before = files.len();
            walk(path, &mut files).map_err(unreadable)?;
            if files.len() == before {
                return Err(Failure::nothing_run(format!(
                    "{}: no *.feature file in this folder",
                    path.display()
                )));
            }
        } else {
            files.push(path.clone());
        }
    }
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(fs::canonicalize(file).unwrap_or_else(|_| file.clone())));
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // A link to a folder is not followed: it may lead back here.
        if entry.file_type()?.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "feature") {
            files.push(path);
        }
    }
    Ok(())
}

fn parse_shipped(path: &str, text: &str) -> Result<Feature, String> {
    let mut feature =
        Feature::parse(text, GherkinEnv::default()).map_err(|error| located(path, &error.to_string()))?;
    feature.path = Some(path.into());
    expanded(path, feature)
}

fn parse_file(path: &Path) -> Result<Feature, String> {
    let shown = path.display().to_string();
    match Feature::parse_path(path, GherkinEnv::default()) {
        Ok(feature) => expanded(&shown, feature),
        Err(ParseFileError::Reading { source, .. }) => Err(format!("{shown}: {}", reason(&source))),
        Err(ParseFileError::Parsing { error: Some(error), source, .. }) => {
            let (position, _) = split_parse_error(&source.to_string());
            Err(format!("{shown}:{position}: {}", lower_case_fragment(&error.to_string())))
        }
        Err(ParseFileError::Parsing { error: None, source, .. }) => Err(located(&shown, &source.to_string())),
    }
}

fn expanded(path: &str, feature: Feature) -> Result<Feature, String> {
    feature.expand_examples().map_err(|error| {
        format!(
            "{path}:{}:{}: <{}> is no column of this outline's examples",
            error.pos.line, error.pos.col, error.name
        )
    })
}

fn located(path: &str, parse_error: &str) -> String {
    let (position, expected) = split_parse_error(parse_error);
    if expected.is_empty() {
        format!("{path}:{position}: this is not Gherkin")
    } else {
        format!("{path}:{position}: expected {}", expected.join(", "))
    }
}

/// The parser keeps line, column and expectation private and prints them as `Error at 3:5: {"a", "b"}`.
fn split_parse_error(message: &str) -> (String, Vec<String>) {
    let rest = message.strip_prefix("Error at ").unwrap_or(message);
    let (position, expected) = rest.split_once(": ").unwrap_or((rest, ""));
    let mut expected: Vec<_> = expected
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|token| token.trim().replace("\\n", "end of line"))
        .filter(|token| !token.is_empty() && !token.starts_with('['))
        .collect();
    expected.sort();
    expected.dedup();
    (position.to_owned(), expected)
}

fn lower_case_fragment(sentence: &str) -> String {
    let mut characters = sentence.trim_end_matches('.').chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::InvalidData => "not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}
