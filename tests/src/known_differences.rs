//! What admit does not do as the recordings say, and why: `tests/known-differences.toml`.

use std::path::Path;

use serde::Deserialize;

use crate::cases;

/// The list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDifferences {
    /// Its entries.
    #[serde(default, rename = "difference")]
    pub entries: Vec<KnownDifference>,
}

/// Cases that differ for one reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KnownDifference {
    /// Which cases, as in `selection/*`.
    pub glob: String,
    /// Features that the random tester leaves out for this reason.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// Why they differ.
    pub reason: String,
    /// What a user of admit notices of it.
    pub a_user_notices: String,
}

/// Why the list cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// There is no such file.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// It is no such list.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
}

impl KnownDifferences {
    /// Reads the list of this repository.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read() -> Result<Self, ListError> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("known-differences.toml");
        Ok(toml::from_str(&std::fs::read_to_string(path)?)?)
    }

    /// The entry for a case.
    pub fn of(&self, case: &str) -> Option<&KnownDifference> {
        self.entries.iter().find(|entry| cases::matches(&entry.glob, case))
    }
}
