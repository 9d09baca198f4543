//! Validates JSON pointers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A JSON pointer other than the root, such as `/metadata/labels/a~1b`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer(String);

impl Pointer {
    /// Returns the pointer as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with('/') {
            Ok(Self(text))
        } else {
            Err(format!("invalid JSON pointer `{text}`: must be like /metadata/labels/name"))
        }
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.0
    }
}
