//! Reports which statements of `tests/behaviors.md` are proved by cases, or by command tests on both servers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::case::Case;
use crate::cases;
use crate::known_differences::KnownDifferences;
use crate::names::Names;

/// The proved statements, section by section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The sections, in file order.
    pub sections: Vec<Section>,
    /// The IDs of statements that are not in the file, each with the case that refers to it.
    pub unknown: Vec<(String, String)>,
}

/// A section of `tests/behaviors.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The heading of the section, without its number.
    pub title: String,
    /// The IDs of the statements in the section, in file order, with their status.
    pub statements: Vec<(String, Standing)>,
}

/// The proof status of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// No case or test refers to the statement.
    Unproved,
    /// The statement cannot be proved; `unproved.yaml` contains the reason.
    Unprovable,
    /// Only cases in which admit is known to differ refer to the statement.
    NotImitated,
    /// A case or a test proves the statement on a real server and on admit.
    Proved,
}

impl Coverage {
    /// Counts the statements that cases and command tests prove.
    ///
    /// The cases are in `folder`. The command tests are in `proves.yaml` and `webhook_authentication/proves.yaml`, next
    /// to `statements`; `unproved.yaml` is also read.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn count(statements: &Path, folder: &Path, known: &KnownDifferences) -> io::Result<Self> {
        let mut standing: BTreeMap<String, Standing> = BTreeMap::new();
        let mut named = Vec::new();
        for file in cases::find(folder, "*")? {
            let text = Names::random().expand(&fs::read_to_string(file.path())?);
            let case =
                Case::parse(&text).map_err(|error| io::Error::other(format!("{}: {error}", file.name)))?;
            let gained =
                if known.find(&file.name).is_some() { Standing::NotImitated } else { Standing::Proved };
            for statement in case.proves {
                let entry = standing.entry(statement.clone()).or_insert(Standing::Unproved);
                *entry = (*entry).max(gained);
                named.push((statement, file.name.clone()));
            }
        }
        let reasons: BTreeMap<String, String> = read(&statements.with_file_name("unproved.yaml"))?;
        for statement in reasons.into_keys() {
            named.push((statement.clone(), "unproved.yaml".to_owned()));
            if standing.insert(statement.clone(), Standing::Unprovable).is_some() {
                return Err(io::Error::other(format!("unproved.yaml: a case proves {statement}")));
            }
        }
        for (statement, situations) in beside(statements)? {
            standing.insert(statement.clone(), Standing::Proved);
            named.push((statement, situations.join(", ")));
        }
        let sections = sections(&fs::read_to_string(statements)?, &standing);
        let every: BTreeSet<&str> =
            sections.iter().flat_map(|section| &section.statements).map(|(id, _)| id.as_str()).collect();
        let unknown =
            named.into_iter().filter(|(statement, _)| !every.contains(statement.as_str())).collect();
        Ok(Self { sections, unknown })
    }

    /// Returns the number of statements with this status.
    pub fn total(&self, standing: Standing) -> usize {
        self.sections.iter().map(|section| section.total(standing)).sum()
    }

    /// Returns a table of all sections, followed by the unproved statements.
    pub fn table(&self) -> String {
        let mut lines = vec![format!(
            "{:58} {:>6} {:>8} {:>12} {:>10}",
            "section", "proved", "unproved", "not imitated", "unprovable"
        )];
        let row = |title: &str, counts: [usize; 4]| {
            format!("{title:58} {:>6} {:>8} {:>12} {:>10}", counts[0], counts[1], counts[2], counts[3])
        };
        let order = [Standing::Proved, Standing::Unproved, Standing::NotImitated, Standing::Unprovable];
        for section in &self.sections {
            lines.push(row(&section.title, order.map(|standing| section.total(standing))));
        }
        lines.push(row("total", order.map(|standing| self.total(standing))));
        let apart = [
            ("unproved", Standing::Unproved),
            ("not imitated", Standing::NotImitated),
            ("unprovable, for reasons in tests/unproved.yaml", Standing::Unprovable),
        ];
        for (what, standing) in apart {
            let of = |section: &Section| -> Vec<String> {
                let these = section.statements.iter().filter(|it| it.1 == standing);
                these.map(|(id, _)| id.clone()).collect()
            };
            lines.push(format!("\n{what}:"));
            lines.extend(
                self.sections
                    .iter()
                    .map(of)
                    .filter(|ids| !ids.is_empty())
                    .map(|ids| format!("  {}", ids.join(" "))),
            );
        }
        lines.join("\n")
    }
}

impl Section {
    fn total(&self, standing: Standing) -> usize {
        self.statements.iter().filter(|it| it.1 == standing).count()
    }
}

/// Returns the statements that command tests prove, each with the situations or functions that prove it.
///
/// The command tests run on admit and on kube-apiserver.
///
/// # Errors
/// Returns an error if a file cannot be read.
fn beside(statements: &Path) -> io::Result<BTreeMap<String, Vec<String>>> {
    let mut all: BTreeMap<String, Vec<String>> =
        read(&statements.with_file_name("webhook_authentication/proves.yaml"))?;
    let of_tests: BTreeMap<String, BTreeMap<String, Vec<String>>> =
        read(&statements.with_file_name("proves.yaml"))?;
    for (statement, functions) in of_tests.into_values().flatten() {
        all.entry(statement).or_default().extend(functions);
    }
    Ok(all)
}

fn read<T: DeserializeOwned>(file: &Path) -> io::Result<T> {
    serde_saphyr::from_str(&fs::read_to_string(file)?)
        .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))
}

/// Parses the headings `## 5. Title` and the statements `- **SEL-05** …`.
fn sections(text: &str, standing: &BTreeMap<String, Standing>) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let title = heading.split_once(". ").map_or(heading, |(_, title)| title);
            sections.push(Section { title: title.to_owned(), statements: Vec::new() });
        } else if let Some(rest) = line.strip_prefix("- **")
            && let Some((id, _)) = rest.split_once("**")
            && id.contains('-')
            && let Some(section) = sections.last_mut()
        {
            let found = standing.get(id).copied().unwrap_or(Standing::Unproved);
            section.statements.push((id.to_owned(), found));
        }
    }
    sections.retain(|section| !section.statements.is_empty());
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_the_command_that_prove_a_statement_are_there() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let statements = fs::read_to_string(folder.join("behaviors.md")).unwrap();
        let tests: BTreeMap<String, BTreeMap<String, Vec<String>>> =
            read(&folder.join("proves.yaml")).unwrap();
        for (test, proved) in tests {
            let files = [format!("{test}.rs"), format!("tests/{test}.rs")].map(|file| folder.join(file));
            let below =
                fs::read_dir(folder.join(&test)).into_iter().flatten().map(|entry| entry.unwrap().path());
            let sources = files.into_iter().chain(below).filter(|file| file.is_file());
            let source: String = sources.map(|file| fs::read_to_string(file).unwrap()).collect();
            for (statement, functions) in proved {
                assert!(statements.contains(&format!("- **{statement}** ")), "{statement} is no statement");
                for function in functions {
                    assert!(source.contains(&format!("fn {function}(")), "{test} has no {function}");
                }
            }
        }
    }

    #[test]
    fn statements_stand_under_their_headings() {
        let text = "## 1. First (A)\n- **A-01** x\n- **not one** y\n## Other\ntext\n## 2. Second (B)\n- **B-01** z\n- **B-02** z\n";
        let standing = BTreeMap::from([("B-01".to_owned(), Standing::Proved)]);
        let sections = sections(text, &standing);
        let titles: Vec<&str> = sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["First (A)", "Second (B)"]);
        assert_eq!(sections[1].total(Standing::Proved), 1);
        assert_eq!(sections[1].total(Standing::Unproved), 1);
    }
}
