//! The OpenAPI documents of kube-apiserver. `tests openapi --record` records them.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{LazyLock, OnceLock};

use bytes::Bytes;
use flate2::read::GzDecoder;

use super::Document;

/// The gzip-compressed documents and their shared parts.
///
/// The data consists of one line for each part, an empty line, and one line for each document with its name, its
/// `ETag`, and its text, separated by tabs. In parts and documents, `\u{1}N;` refers to the part on line N, counted
/// from zero. A part refers only to earlier parts.
const PACKED: &[u8] = include_bytes!("documents.gz");

/// The documents. They are decompressed on first use.
pub(super) static LIBRARY: LazyLock<Library> = LazyLock::new(|| match Library::read(PACKED) {
    Ok(library) => library,
    Err(error) => unreachable!("documents.gz is part of the program: {error}"),
});

/// All documents by name: `v2`, v3 documents such as `v3/api/v1`, and the samples for custom resources.
#[derive(Debug, Default)]
pub(super) struct Library {
    parts: Vec<Box<str>>,
    documents: BTreeMap<Box<str>, Packed>,
}

#[derive(Debug)]
struct Packed {
    etag: Box<str>,
    text: Box<str>,
    whole: OnceLock<Document>,
}

impl Library {
    fn read(packed: &[u8]) -> std::io::Result<Self> {
        let mut text = String::new();
        GzDecoder::new(packed).read_to_string(&mut text)?;
        let mut library = Self::default();
        let mut lines = text.lines();
        library.parts = lines.by_ref().take_while(|line| !line.is_empty()).map(Box::from).collect();
        for line in lines {
            let mut columns = line.splitn(3, '\t');
            if let (Some(name), Some(etag), Some(text)) = (columns.next(), columns.next(), columns.next()) {
                let packed = Packed { etag: etag.into(), text: text.into(), whole: OnceLock::new() };
                library.documents.insert(name.into(), packed);
            }
        }
        Ok(library)
    }

    /// Returns the documents whose names start with `prefix`: the rest of each name and the `ETag`.
    pub(super) fn etags<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.documents
            .iter()
            .filter_map(move |(name, packed)| Some((name.strip_prefix(prefix)?, &*packed.etag)))
    }

    /// Returns a document; `None` for an unknown name.
    pub(super) fn document(&self, name: &str) -> Option<Document> {
        let packed = self.documents.get(name)?;
        let whole = || Document::new(packed.etag.to_string(), Bytes::from(self.expanded(&packed.text)));
        Some(packed.whole.get_or_init(whole).clone())
    }

    /// Returns the text of a document; empty for an unknown name.
    pub(super) fn text(&self, name: &str) -> String {
        self.documents.get(name).map(|packed| self.expanded(&packed.text)).unwrap_or_default()
    }

    fn expanded(&self, text: &str) -> String {
        let mut whole = String::new();
        self.expand(text, self.parts.len(), &mut whole);
        whole
    }

    /// Appends `text` to `whole`. Expands references to parts before line `limit`; the limit prevents cycles.
    fn expand(&self, mut text: &str, limit: usize, whole: &mut String) {
        while let Some((literal, rest)) = text.split_once('\u{1}') {
            whole.push_str(literal);
            let (number, rest) = rest.split_once(';').unwrap_or_default();
            let number: usize = number.parse().unwrap_or(limit);
            if number < limit
                && let Some(part) = self.parts.get(number)
            {
                self.expand(part, number, whole);
            }
            text = rest;
        }
        whole.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_match_recorded_ones() {
        let mut count = 0;
        for (name, etag) in LIBRARY.etags("") {
            count += 1;
            assert_eq!(super::super::etag(LIBRARY.text(name).as_bytes()), etag, "{name}");
        }
        assert!(count > 50, "{count}");
    }
}
