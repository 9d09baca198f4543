//! Implements admit's file format for OpenAPI documents, in which repeated parts are stored once.
//!
//! The file is compressed with gzip. It has one line for each part, then an empty line, and then one line for each
//! document: its name, its `ETag`, and its content, separated by tabs. Everywhere, `\u{1}N;` refers to the part on line
//! N, counted from zero. A part refers only to earlier parts. The documents are compact JSON, which contains no control
//! characters.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha512};

use super::Error;

/// A document, as a server sent it.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) name: String,
    pub(super) text: String,
}

/// The minimum length of a part. Shorter values are not replaced with references.
const SHORTEST: usize = 24;

/// Returns the content of the file that contains the documents.
pub(super) fn packed(documents: &[Document]) -> Result<Vec<u8>, Error> {
    let mut packer = Packer::default();
    for document in documents {
        packer.count(&document.name, &document.text)?;
    }
    let mut lines = String::new();
    for document in documents {
        let text = packer.emit_members(&document.name, &document.text)?;
        let etag = etag(&document.text);
        let _ = writeln!(lines, "{}\t{etag}\t{text}", document.name);
    }
    let text = packer.parts.join("\n") + "\n\n" + &lines;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?)
}

/// Returns the `ETag` of a document, without its quotes.
///
/// Source: kube-openapi `pkg/handler3/handler.go`, `computeETag`.
fn etag(text: &str) -> String {
    Sha512::digest(text).iter().fold(String::new(), |mut etag, byte| {
        let _ = write!(etag, "{byte:02X}");
        etag
    })
}

/// Reduces a v2 document to the paths and definitions whose names contain `word`.
pub(super) fn only(text: &str, word: &str) -> Result<String, Error> {
    let members = |name: &str, text: &str| -> Result<Vec<(String, Box<RawValue>)>, Error> {
        members(name, text).map(|found| found.into_iter().filter(|(key, _)| key.contains(word)).collect())
    };
    let mut parts = Vec::new();
    for (key, value) in self::members("v2", text)? {
        if key == "paths" || key == "definitions" {
            let kept: Vec<String> = members(&key, value.get())?
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key), value.get()))
                .collect();
            parts.push(format!("\"{key}\":{{{}}}", kept.join(",")));
        }
    }
    Ok(format!("{{{}}}", parts.join(",")))
}

#[derive(Debug, Default)]
struct Packer {
    occurrences: HashMap<String, usize>,
    known: HashMap<String, usize>,
    parts: Vec<String>,
}

impl Packer {
    fn count(&mut self, name: &str, text: &str) -> Result<(), Error> {
        if text.len() < SHORTEST {
            return Ok(());
        }
        let occurrences = self.occurrences.entry(text.to_owned()).or_default();
        *occurrences += 1;
        if *occurrences == 1 {
            if text.starts_with('{') {
                for (_, member) in members(name, text)? {
                    self.count(name, member.get())?;
                }
            } else if text.starts_with('[') {
                for item in items(name, text)? {
                    self.count(name, item.get())?;
                }
            }
        }
        Ok(())
    }

    /// Returns a value with references in it, or a reference to its part if the value occurs several times.
    fn emit(&mut self, name: &str, text: &str) -> Result<String, Error> {
        if self.occurrences.get(text).is_none_or(|occurrences| *occurrences < 2) {
            return self.emit_members(name, text);
        }
        let number = if let Some(number) = self.known.get(text) {
            *number
        } else {
            let part = self.emit_members(name, text)?;
            self.parts.push(part);
            let number = self.parts.len() - 1;
            self.known.insert(text.to_owned(), number);
            number
        };
        Ok(format!("\u{1}{number};"))
    }

    /// Returns a value in which nested parts are replaced with references.
    fn emit_members(&mut self, name: &str, text: &str) -> Result<String, Error> {
        if text.len() < SHORTEST {
            return Ok(text.to_owned());
        }
        let mut parts = Vec::new();
        if text.starts_with('{') {
            for (key, member) in members(name, text)? {
                parts.push(format!("{}:{}", Value::from(key), self.emit(name, member.get())?));
            }
            Ok(format!("{{{}}}", parts.join(",")))
        } else if text.starts_with('[') {
            for item in items(name, text)? {
                parts.push(self.emit(name, item.get())?);
            }
            Ok(format!("[{}]", parts.join(",")))
        } else {
            Ok(text.to_owned())
        }
    }
}

/// Returns the members of a JSON object in their original order.
fn members(what: &str, text: &str) -> Result<Vec<(String, Box<RawValue>)>, Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde::Deserializer::deserialize_map(&mut deserializer, Members)
        .map_err(|source| Error::Json { what: what.to_owned(), source })
}

fn items(what: &str, text: &str) -> Result<Vec<Box<RawValue>>, Error> {
    serde_json::from_str(text).map_err(|source| Error::Json { what: what.to_owned(), source })
}

struct Members;

impl<'de> serde::de::Visitor<'de> for Members {
    type Value = Vec<(String, Box<RawValue>)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}
