//! Reads feature files, and expands each row of a scenario outline into a scenario.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cucumber::feature::Ext as _;
use gherkin::{EnvError, Feature, GherkinEnv, ParseFileError};

use super::pieces;
use crate::{Failure, documents, similar_file};

/// Reads the feature files at `paths` and in the folders among them; without paths, returns `shipped`.
///
/// # Errors
/// Returns one failure that names every file that cannot be read or parsed.
pub(crate) fn read(paths: &[PathBuf], shipped: &[(&str, &str)]) -> Result<Vec<Feature>, Failure> {
    let features = if paths.is_empty() {
        shipped.iter().map(|(path, text)| parse_shipped(path, text)).collect::<Vec<_>>()
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

/// Returns the feature files at `paths` without duplicates; the files of a folder are sorted by name.
fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let unreadable = |error: io::Error| {
            let suggestion = similar_file::suggestion(&error, path);
            Failure::usage(format!("{}: {}{suggestion}", path.display(), reason(&error)))
        };
        if fs::metadata(path).map_err(unreadable)?.is_dir() {
            let before = files.len();
            walk(path, &mut files).map_err(unreadable)?;
            if files.len() == before {
                return Err(Failure::nothing_run(format!(
                    "{}: no *.feature file in this directory",
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
        // Links to folders are not followed, because they may form a cycle.
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
        Feature::parse(text, GherkinEnv::default()).map_err(|error| not_gherkin(path, &error.to_string()))?;
    feature.path = Some(path.into());
    expanded(path, feature)
}

fn parse_file(path: &Path) -> Result<Feature, String> {
    let shown = path.display().to_string();
    let bytes = output::read(path).map_err(|error| format!("{shown}: {}", reason(&error)))?;
    let text = documents::text(bytes, &shown).map_err(|failure| failure.to_string())?;
    let parsed = pieces::parse(&text).or_else(|| Feature::parse(&text, GherkinEnv::default()).ok());
    if let Some(mut feature) = parsed {
        feature.path = Some(path.to_owned());
        return expanded(&shown, feature);
    }
    if let Some(problem) = other_beginning(&shown, &text) {
        return Err(problem);
    }
    // Only the parser of files returns the cause of the error.
    match Feature::parse_path(path, GherkinEnv::default()) {
        Ok(feature) => expanded(&shown, feature),
        Err(ParseFileError::Reading { source, .. }) => Err(format!("{shown}: {}", reason(&source))),
        Err(ParseFileError::Parsing { error: Some(error), source, .. }) => {
            Err(environment_error(path, &text, &error, &source.to_string()))
        }
        Err(ParseFileError::Parsing { error: None, source, .. }) => {
            Err(not_gherkin(&shown, &source.to_string()))
        }
    }
}

/// Returns an error if the first line, except for comments and tags, does not begin with the keyword Feature.
///
/// Files in other languages have other keywords and are not checked.
fn other_beginning(shown: &str, text: &str) -> Option<String> {
    let is_language = |line: &str| {
        line.trim().strip_prefix('#').is_some_and(|comment| comment.trim().starts_with("language"))
    };
    if text.lines().any(is_language) {
        return None;
    }
    let is_first = |line: &str| !line.is_empty() && !line.starts_with(['#', '@']);
    let (number, line) =
        text.lines().enumerate().find(|(_, line)| is_first(line.trim_start_matches('\u{feff}').trim()))?;
    let start = line.trim_start_matches('\u{feff}').trim();
    if FEATURE_KEYWORDS.iter().any(|keyword| start.starts_with(keyword)) {
        return None;
    }
    let column = line.chars().take_while(|letter| letter.is_whitespace()).count() + 1;
    Some(format!(
        "{shown}:{}:{column}: the file must begin with `Feature: NAME`, found `{start}`",
        number + 1
    ))
}

/// Formats a parser error with the line that caused it. The parser itself reports the line after it.
fn environment_error(path: &Path, text: &str, error: &EnvError, parse_error: &str) -> String {
    let (position, _) = split_parse_error(parse_error);
    let shown = path.display();
    match error {
        EnvError::UnknownKeyword(start) => {
            let start = start.lines().next().unwrap_or_default().trim();
            let Some((number, line)) =
                text.lines().enumerate().find(|(_, line)| line.trim().starts_with(start))
            else {
                return format!("{shown}:{position}: {start:?} does not begin a line of Gherkin");
            };
            let column = line.chars().take_while(|letter| letter.is_whitespace()).count() + 1;
            format!("{shown}:{}:{column}: expected {}", number + 1, expected_instead_of(line.trim()))
        }
        EnvError::UnsupportedLanguage(language) => {
            format!("{shown}:1:1: expected a language that Gherkin supports, found `{language}`")
        }
        EnvError::InconsistentCellCount(_) => {
            format!("{shown}:{position}: expected as many cells in every row of the table above")
        }
    }
}

fn expanded(path: &str, feature: Feature) -> Result<Feature, String> {
    feature.expand_examples().map_err(|error| {
        format!(
            "{path}:{}:{}: <{}> is not a column of this outline's examples",
            error.pos.line, error.pos.col, error.name
        )
    })
}

/// Returns a description of what the parser expects instead of `line`.
fn expected_instead_of(line: &str) -> String {
    if line.starts_with("\"\"\"") || line.starts_with("```") {
        "the doc string that begins here to end".to_owned()
    } else if line.starts_with('|') {
        format!("a row of a table, which ends with `|`, found `{line}`")
    } else {
        format!("a line that begins with {KEYWORDS}, found `{line}`")
    }
}

/// Formats an error for which the parser returns only a position and the expected tokens.
fn not_gherkin(path: &str, parse_error: &str) -> String {
    let (position, expected) = split_parse_error(parse_error);
    if expected.is_empty() {
        format!("{path}:{position}: expected Gherkin: a `Feature:` with scenarios")
    } else {
        format!("{path}:{position}: expected {}", expected.join(" or "))
    }
}

/// Splits the parser's message into its position and the expected words.
///
/// The parser does not expose the line, the column, and the expected tokens, but prints them as `Error at 3:5: {"a",
/// "b"}`. Tokens that are not words are dropped.
fn split_parse_error(message: &str) -> (String, Vec<String>) {
    let rest = message.strip_prefix("Error at ").unwrap_or(message);
    let (position, expected) = rest.split_once(": ").unwrap_or((rest, ""));
    let mut expected: Vec<_> = expected
        .split("\", \"")
        .map(|token| token.trim_matches(['{', '}', '"', '\\', ' ']))
        .filter(|token| {
            token.chars().all(|letter| letter.is_alphabetic() || letter == ' ') && *token != "no match"
        })
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect();
    expected.sort();
    (position.to_owned(), expected)
}

/// The English keywords that begin a feature.
const FEATURE_KEYWORDS: [&str; 3] = ["Feature:", "Business Need:", "Ability:"];

const KEYWORDS: &str = "Feature, Background, Rule, Scenario, Examples, Given, When, Then, And, But or *";

fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::InvalidData { "not UTF-8 text".to_owned() } else { error.to_string() }
}
