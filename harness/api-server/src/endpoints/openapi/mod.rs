//! Serves the OpenAPI documents: the v3 documents, their index, and the v2 document.

mod custom;
mod library;
mod ordered;
mod pattern;
mod protobuf;
mod response;
mod schema;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use kubernetes_types::status::Unsupported;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha512};

pub(crate) use self::response::{Path, answer};

use self::custom::ResourceDocuments;
use self::library::LIBRARY;

/// The OpenAPI version of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    V2,
    V3,
}

/// A document and its `ETag` without quotes. Clones share their bytes.
#[derive(Clone, Debug)]
struct Document {
    etag: Arc<str>,
    text: Bytes,
    compressed: Arc<OnceLock<Bytes>>,
    protobuf: Arc<OnceLock<Option<Document>>>,
}

impl Document {
    fn new(etag: String, text: Bytes) -> Self {
        Self { etag: etag.into(), text, compressed: Arc::default(), protobuf: Arc::default() }
    }

    /// Creates a document and computes its `ETag`.
    fn from_text(text: String) -> Self {
        Self::new(etag(text.as_bytes()), text.into())
    }

    /// Returns a v2 document as protobuf with the same `ETag`; `None` if the text is not valid JSON.
    fn as_protobuf(&self) -> Option<Self> {
        let encode = || {
            let bytes = protobuf::encoded(&self.text).ok()?;
            Some(Self {
                text: bytes.into(),
                compressed: Arc::default(),
                protobuf: Arc::default(),
                ..self.clone()
            })
        };
        self.protobuf.get_or_init(encode).clone()
    }

    /// Returns the gzip-compressed text.
    fn compressed(&self) -> Bytes {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            // Writing to memory cannot fail.
            let _ = encoder.write_all(&self.text);
            encoder.finish().unwrap_or_default().into()
        };
        self.compressed.get_or_init(compress).clone()
    }
}

/// Computes the `ETag` of a document.
///
/// Source: kube-openapi `pkg/handler3/handler.go`, `computeETag`.
pub(crate) fn etag(text: &[u8]) -> String {
    Sha512::digest(text).iter().fold(String::new(), |mut etag, byte| {
        let _ = write!(etag, "{byte:02X}");
        etag
    })
}

/// The documents built from one set of custom resource definitions.
#[derive(Debug, Default)]
struct BuiltDocuments {
    definitions: Vec<Arc<Value>>,
    /// The v3 documents by group version, such as `apis/example.com/v1`.
    documents: BTreeMap<String, Document>,
    v2: Option<Document>,
    /// The total size of the documents in bytes.
    size: usize,
}

impl BuiltDocuments {
    /// Adds the size of a document to the total.
    ///
    /// # Errors
    /// Returns an error if the total exceeds [`MAX_DOCUMENT_BYTES`].
    fn take(&mut self, document: &Document) -> Result<(), Unsupported> {
        let size = self.size + document.text.len();
        if size > MAX_DOCUMENT_BYTES {
            let what =
                format!("OpenAPI documents of custom resources above {} MiB", MAX_DOCUMENT_BYTES >> 20);
            return Err(Unsupported { what });
        }
        self.size = size;
        Ok(())
    }
}

/// The maximum total size, in bytes, of the cached documents of custom resources.
const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// The OpenAPI documents of a server, built on request and cached until custom resource definitions change.
#[derive(Debug, Default)]
pub(crate) struct OpenApi {
    made: Mutex<BuiltDocuments>,
}

impl OpenApi {
    /// Returns the v3 index: the path of each document with its `ETag`.
    ///
    /// Rule: OAPI-01.
    ///
    /// # Errors
    /// Returns an error if the documents of custom resources are too large.
    fn index(&self, definitions: &[Arc<Value>]) -> Result<String, Unsupported> {
        let mut etags: BTreeMap<String, String> =
            LIBRARY.etags("v3/").map(|(name, etag)| (name.to_owned(), etag.to_owned())).collect();
        let custom: BTreeSet<String> = definitions.iter().flat_map(|it| custom::group_versions(it)).collect();
        for name in custom {
            let known =
                self.current(definitions, |made| made.documents.get(&name).map(|it| Arc::clone(&it.etag)));
            let etag = match known {
                Some(etag) => Some(etag),
                None => self.document(&name, definitions)?.map(|document| document.etag),
            };
            if let Some(etag) = etag {
                etags.entry(name).or_insert_with(|| etag.to_string());
            }
        }
        let entries: BTreeMap<&String, Value> = etags
            .iter()
            .map(|(name, etag)| (name, serde_json::json!({"serverRelativeURL": url(name, etag)})))
            .collect();
        Ok(serde_json::json!({"paths": entries}).to_string())
    }

    /// Returns the v3 document of a group version such as `apis/apps/v1`; `None` if the group version is not served.
    ///
    /// # Errors
    /// Returns an error if the documents of custom resources are too large.
    fn document(&self, name: &str, definitions: &[Arc<Value>]) -> Result<Option<Document>, Unsupported> {
        if let Some(document) = LIBRARY.document(&format!("v3/{name}")) {
            return Ok(Some(document));
        }
        if let Some(document) = self.current(definitions, |made| made.documents.get(name).cloned()) {
            return Ok(Some(document));
        }
        let serve = |it: &&Arc<Value>| custom::group_versions(it).any(|served| served == name);
        if !definitions.iter().any(|it| serve(&it)) {
            return Ok(None);
        }
        let document = Document::from_text(custom::document(name, definitions.iter().filter(serve)));
        self.current(definitions, |made| {
            made.take(&document)?;
            made.documents.insert(name.to_owned(), document.clone());
            Ok(Some(document))
        })
    }

    /// Returns the v2 document.
    ///
    /// Rule: OAPI-06.
    ///
    /// # Errors
    /// Returns an error if the documents of custom resources are too large.
    fn v2(&self, definitions: &[Arc<Value>]) -> Result<Option<Document>, Unsupported> {
        let own = LIBRARY.document("v2");
        if definitions.is_empty() {
            return Ok(own);
        }
        if let Some(document) = self.current(definitions, |made| made.v2.clone()) {
            return Ok(Some(document));
        }
        let Some(text) = own.and_then(|own| merged(&own.text, definitions).ok()) else { return Ok(None) };
        let document = Document::from_text(text);
        self.current(definitions, |made| {
            made.take(&document)?;
            made.v2 = Some(document.clone());
            Ok(Some(document))
        })
    }

    /// Calls `work` with the cached documents of `definitions`. First drops cached documents of other definitions.
    fn current<T>(&self, definitions: &[Arc<Value>], work: impl FnOnce(&mut BuiltDocuments) -> T) -> T {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = made.definitions.len() == definitions.len()
            && made.definitions.iter().zip(definitions).all(|(one, other)| Arc::ptr_eq(one, other));
        if !is_same {
            *made = BuiltDocuments { definitions: definitions.to_vec(), ..BuiltDocuments::default() };
        }
        work(&mut made)
    }
}

/// Returns the URL of a document with its `ETag`.
///
/// Source: kube-openapi `pkg/handler3/handler.go`, `constructServerRelativeURL`.
fn url(name: &str, etag: &str) -> String {
    format!("/openapi/v3/{name}?hash={etag}")
}

/// The members of a v2 document, in document order.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Swagger<'a> {
    #[serde(borrow, rename = "swagger")]
    version: &'a RawValue,
    #[serde(borrow)]
    info: &'a RawValue,
    #[serde(borrow)]
    paths: BTreeMap<String, &'a RawValue>,
    #[serde(borrow)]
    definitions: BTreeMap<String, &'a RawValue>,
    #[serde(borrow)]
    parameters: &'a RawValue,
    #[serde(borrow)]
    security_definitions: &'a RawValue,
    #[serde(borrow)]
    security: &'a RawValue,
}

/// Returns the v2 document with the paths and schemas of definitions. Built-in paths and schemas take precedence.
fn merged(own: &[u8], definitions: &[Arc<Value>]) -> serde_json::Result<String> {
    let own: Swagger<'_> = serde_json::from_slice(own)?;
    let mut described = ResourceDocuments::default();
    for definition in definitions {
        described.add(definition, Format::V2, |_| true);
    }
    let merge = |custom: BTreeMap<String, String>, own: &BTreeMap<String, &RawValue>| {
        let mut all = custom;
        all.extend(own.iter().map(|(name, value)| (name.clone(), value.get().to_owned())));
        all
    };
    let mut text = String::new();
    let mut members = schema::Members::new(&mut text);
    members.add("swagger", own.version.get());
    members.add("info", own.info.get());
    custom::write(&merge(described.paths, &own.paths), members.begin("paths"));
    custom::write(&merge(described.schemas, &own.definitions), members.begin("definitions"));
    members.add("parameters", own.parameters.get());
    members.add("securityDefinitions", own.security_definitions.get());
    members.add("security", own.security.get());
    members.end();
    Ok(text)
}
