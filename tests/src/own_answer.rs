//! Records the answers of admit for known differences, so that one difference cannot hide another.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cases::CaseFile;
use crate::difference::{differences, side_by_side};
use crate::yaml;

const HEAD: &str =
    "# Written by `cargo run -p tests -- own`: what admit answers here. apiserver.yaml says what is right.\n";

/// The recorded answers of admit to a case; there are several if they vary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnAnswer {
    alternatives: Vec<Value>,
}

impl OwnAnswer {
    /// Reads the recorded answer of a case.
    ///
    /// # Errors
    /// Returns an error with instructions if the answer is missing or cannot be read.
    pub fn read(case: &CaseFile) -> Result<Self, String> {
        let path = case.own_answer();
        let wrong = |error: &dyn std::fmt::Display| {
            format!("{}: {error}\n  write it with: cargo run -p tests -- own '{}'", path.display(), case.name)
        };
        let text = fs::read_to_string(&path).map_err(|error| wrong(&error))?;
        let document: Value = serde_saphyr::from_str(&text).map_err(|error| wrong(&error))?;
        let alternatives = document["anyOf"].as_array().filter(|_| document["version"] == 1);
        let alternatives = alternatives.cloned().ok_or_else(|| wrong(&"not of version 1"))?;
        Ok(Self { alternatives })
    }

    /// Adds an answer, unless it is already present.
    pub fn add(&mut self, answer: Value) {
        if !self.alternatives.contains(&answer) {
            self.alternatives.push(answer);
        }
    }

    /// Writes the answers next to the case.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let document = json!({"version": 1, "anyOf": self.alternatives});
        fs::write(path, format!("{HEAD}{}", yaml::write(&document)))
    }

    /// Describes how the closest recorded answer differs from the current answer; `None` if one is equal.
    pub fn difference(&self, now: &Value) -> Option<String> {
        let all = self.alternatives.iter().map(|alternative| differences(alternative, now));
        let nearest = all.min_by_key(Vec::len)?;
        (!nearest.is_empty()).then(|| side_by_side(&nearest))
    }
}
