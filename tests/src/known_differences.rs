//! Reads `tests/known-differences.toml`: the cases in which admit differs from the recording, with the reasons.

use std::path::Path;

use serde::Deserialize;

use crate::cases;

/// The list of known differences.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDifferences {
    /// The entries of the list.
    #[serde(default, rename = "difference")]
    pub entries: Vec<KnownDifference>,
}

/// Cases that differ for the same reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KnownDifference {
    /// A pattern of case names, such as `selection/*`.
    pub glob: String,
    /// The features that the differential test excludes for this reason.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// The reason why admit differs.
    pub reason: String,
    /// The ID of the row in `docs/differences` that describes the difference for users.
    pub row: String,
}

/// The reason why the list cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The file cannot be read.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// The file is not a valid list.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
}

impl KnownDifferences {
    /// Reads the list of this repository.
    ///
    /// # Errors
    /// Returns an error if the file is missing or invalid.
    pub fn read() -> Result<Self, ListError> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("known-differences.toml");
        Ok(toml::from_str(&std::fs::read_to_string(path)?)?)
    }

    /// Returns the entry that matches the name of a case.
    pub fn find(&self, case: &str) -> Option<&KnownDifference> {
        self.entries.iter().find(|entry| cases::matches(&entry.glob, case))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_states_the_number_of_cases_that_differ() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |page: &str| std::fs::read_to_string(root.join(page)).unwrap();
        let (list, all) = (KnownDifferences::read().unwrap(), cases::find(&cases::folder(), "*").unwrap());
        assert!(all.len() > 1_500, "{} cases", all.len());
        let known = all.iter().filter(|case| list.find(&case.name).is_some()).count();
        for (page, text) in [
            ("docs/project/conformance.md", format!("all agree except {known}, which are listed in")),
            ("README.md", format!("**All but {known} of more than 1,500** recorded cases")),
        ] {
            assert!(read(page).contains(&text), "{page} says {text:?}");
        }
    }

    #[test]
    fn every_known_difference_is_a_row_of_the_documentation() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/differences");
        let pages: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        for entry in KnownDifferences::read().unwrap().entries {
            let row = format!("- id: {}\n", entry.row);
            assert!(pages.iter().any(|page| page.contains(&row)), "{}: no row {}", entry.glob, entry.row);
        }
    }
}
