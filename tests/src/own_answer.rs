//! What admit answers to a case that is a known difference, so that one difference cannot hide another.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cases::CaseFile;
use crate::difference::{differences, side_by_side};
use crate::yaml;

const HEAD: &str =
    "# Written by `cargo run -p tests -- own`: what admit answers here. apiserver.yaml says what is right.\n";

/// What admit answers to a case; several answers if it may give one or another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnAnswer {
    alternatives: Vec<Value>,
}

impl OwnAnswer {
    /// Reads what was written down of a case.
    ///
    /// # Errors
    /// Nothing was, or it cannot be read: what to do.
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

    /// Adds an answer, unless it is there.
    pub fn add(&mut self, answer: Value) {
        if !self.alternatives.contains(&answer) {
            self.alternatives.push(answer);
        }
    }

    /// Writes it down beside the case.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let document = json!({"version": 1, "anyOf": self.alternatives});
        fs::write(path, format!("{HEAD}{}", yaml::write(&document)))
    }

    /// Where the nearest of the answers differs from what admit answers now; none if one is the same.
    pub fn difference(&self, now: &Value) -> Option<String> {
        let all = self.alternatives.iter().map(|alternative| differences(alternative, now));
        let nearest = all.min_by_key(Vec::len)?;
        (!nearest.is_empty()).then(|| side_by_side(&nearest))
    }
}
