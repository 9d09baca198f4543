//! Reads and writes recordings: the results of cases on a real kube-apiserver.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::yaml;

/// The result of a case on a real kube-apiserver.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The version of the server, such as `v1.37.1`.
    pub apiserver: String,
    /// The results of the case. There are several if the behavior of the server varies.
    pub alternatives: Vec<Value>,
}

/// The reason why a recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file cannot be read or written.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// The file is not a valid recording.
    #[error("{0}")]
    Syntax(#[from] Box<serde_saphyr::Error>),
    /// The recording has a different format version.
    #[error("no recording of version 1")]
    Version,
}

impl Recording {
    /// Formats the recording as YAML. Equal recordings have equal text.
    pub fn text(&self) -> String {
        let mut document = json!({"version": 1, "apiserver": self.apiserver});
        match self.alternatives.as_slice() {
            [only] => {
                document["requests"] = only["requests"].clone();
                document["metrics"] = only["metrics"].clone();
            }
            several => document["anyOf"] = json!(several),
        }
        format!(
            "# Written by `just record` on a real kube-apiserver; nothing else may write it.\n{}",
            yaml::write(&document)
        )
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// Returns an error if the file is missing or invalid.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        Self::parse(&fs::read_to_string(path)?)
    }

    /// Parses a recording.
    ///
    /// # Errors
    /// Returns an error if `text` is not a valid recording.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut document: Value = serde_saphyr::from_str(text).map_err(Box::new)?;
        if document["version"] != 1 {
            return Err(RecordingError::Version);
        }
        let alternatives = match document.get("anyOf").and_then(Value::as_array) {
            Some(alternatives) => alternatives.clone(),
            None => {
                vec![json!({"requests": document["requests"].take(), "metrics": document["metrics"].take()})]
            }
        };
        Ok(Self { apiserver: document["apiserver"].as_str().unwrap_or_default().to_owned(), alternatives })
    }
}
