//! A recording: what a real kube-apiserver made of a case.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::yaml;

/// What a real kube-apiserver made of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Which server, such as `v1.37.1`.
    pub apiserver: String,
    /// What it did; several if it may do one or another.
    pub alternatives: Vec<Value>,
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file cannot be read or written.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// It is no recording.
    #[error("{0}")]
    Syntax(#[from] Box<serde_saphyr::Error>),
    /// It is none of this version.
    #[error("no recording of version 1")]
    Version,
}

impl Recording {
    /// The recording as text; equal recordings give equal bytes.
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
    /// There is none, or it is none.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        Self::parse(&fs::read_to_string(path)?)
    }

    /// Parses a recording.
    ///
    /// # Errors
    /// It is none.
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
