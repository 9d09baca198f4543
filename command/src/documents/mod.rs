//! Reads Kubernetes objects from files, directories, or standard input.
//!
//! A file contains one or many objects or lists, in YAML or JSON.

mod source;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::vec;

use serde_json::Value;

use self::source::Source;
pub(crate) use self::source::{yaml_message, yaml_options};
use crate::{Failure, screen, similar_file};

/// An object and its location.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// The location of the object.
    pub(crate) place: DocumentLocation,
    /// The object: a JSON object with `apiVersion` and `kind`.
    pub(crate) object: Value,
}

/// The location of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentLocation {
    /// The file name as given, or `STDIN`, as in kubectl.
    pub(crate) file: String,
    /// The line on which the object's document begins, starting with 1.
    pub(crate) line: u64,
}

/// Formats the location as `pod.yaml:1`.
impl fmt::Display for DocumentLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl DocumentLocation {
    /// Creates a usage failure for the object at this location.
    pub(crate) fn failure(&self, message: impl fmt::Display) -> Failure {
        Failure::usage(format!("{self}: {message}"))
    }
}

/// Reads all objects from files, from directories, and from standard input for `-`.
///
/// In a directory, files named `*.yaml`, `*.yml`, and `*.json` are read at any depth, sorted by name, except hidden
/// files and `node_modules`. Documents in these files that are not Kubernetes objects are skipped and counted.
///
/// The items of a list are separate objects.
///
/// # Errors
/// Returns a usage failure with the file and line of the first error, or with a file that does not contain objects.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    let skipped = SkippedDocuments::default();
    for input in all_files(paths)? {
        let before = documents.len();
        for document in Documents::open(&input, &skipped) {
            documents.push(document?);
        }
        if documents.len() == before && !input.is_in_folder {
            return Err(Failure::usage(format!("{}: it does not contain an object", name(&input.path))));
        }
    }
    skipped.report();
    require_objects(paths, documents.len())?;
    Ok(documents)
}

/// Reads all objects as [`read`] does, without blocking the handling of signals while a file is a pipe without data.
///
/// # Errors
/// Returns the same errors as [`read`].
pub(crate) async fn read_in_background(paths: Vec<PathBuf>) -> Result<Vec<Document>, Failure> {
    let reading = tokio::task::spawn_blocking(move || read(&paths));
    reading.await.map_err(|error| Failure::environment(error.to_string()))?
}

/// A file with its text and its objects.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) text: String,
    /// The objects in the file.
    pub(crate) documents: Vec<Document>,
}

/// Reads all objects, grouped by file, with the text of each file.
///
/// # Errors
/// Returns the same errors as [`read`].
pub(crate) fn read_texts(paths: &[PathBuf]) -> Result<Vec<TextFile>, Failure> {
    let mut files = Vec::new();
    let skipped = SkippedDocuments::default();
    for input in all_files(paths)? {
        let file = name(&input.path);
        let bytes = output::read(&input.path).map_err(|error| Failure::usage(format!("{file}: {error}")))?;
        let text = text(bytes, &file)?;
        let skips = input.is_in_folder.then(|| skipped.clone());
        files.push(TextFile { documents: parsed(text.clone(), &file, skips)?, text });
    }
    skipped.report();
    require_objects(paths, files.iter().map(|file| file.documents.len()).sum())?;
    Ok(files)
}

/// Parses the objects in `text`; messages refer to the text as `file`.
///
/// # Errors
/// Returns the same errors as [`read`].
pub(crate) fn of_text(text: String, file: &str) -> Result<Vec<Document>, Failure> {
    parsed(text, file, None)
}

fn parsed(text: String, file: &str, skipped: Option<SkippedDocuments>) -> Result<Vec<Document>, Failure> {
    let wrong = |what: &dyn fmt::Display| Failure::usage(format!("{file}: {what}"));
    let source = Source::of_text(text, Path::new(file)).map_err(|error| wrong(&error))?;
    let may_be_empty = skipped.is_some();
    let reading = Documents {
        file: file.to_owned(),
        source: Some(source),
        rest: Vec::new().into_iter(),
        failure: None,
        skipped,
    };
    let documents: Vec<Document> = reading.collect::<Result<_, _>>()?;
    if documents.is_empty() && !may_be_empty {
        Err(wrong(&"it does not contain an object"))
    } else {
        Ok(documents)
    }
}

/// Returns an error if the files at `paths` do not contain a Kubernetes object.
fn require_objects(paths: &[PathBuf], count: usize) -> Result<(), Failure> {
    if count > 0 || paths.is_empty() {
        return Ok(());
    }
    let paths: Vec<String> = paths.iter().map(|path| name(path)).collect();
    Err(Failure::usage(format!("{}: no Kubernetes objects in these files", paths.join(", "))))
}

/// The skipped documents, which are not Kubernetes objects: the location of the first, and their number.
#[derive(Clone, Debug, Default)]
struct SkippedDocuments(Arc<Mutex<Option<(DocumentLocation, usize)>>>);

impl SkippedDocuments {
    fn add(&self, place: DocumentLocation) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((place, 0)).1 += 1;
    }

    fn message(&self) -> Option<String> {
        let skipped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        skipped.as_ref().map(|(first, count)| match count {
            1 => format!("skipped {first}: it is not a Kubernetes object"),
            _ => format!("skipped {count} documents that are not Kubernetes objects, such as {first}"),
        })
    }

    /// Prints the number of skipped documents.
    fn report(&self) {
        if let Some(message) = self.message() {
            screen::status!("{message}");
        }
    }
}

/// Reads the objects as they are consumed, so that memory does not grow with the files.
///
/// A file may be empty. After an error, iteration continues with the next file.
///
/// # Errors
/// Returns an error immediately if a path does not exist.
pub(crate) fn stream(
    paths: &[PathBuf],
) -> Result<impl Iterator<Item = Result<Document, Failure>> + Send + use<>, Failure> {
    let skipped = SkippedDocuments::default();
    let total = skipped.clone();
    let end = std::iter::from_fn(move || {
        total.report();
        None
    });
    let files = all_files(paths)?.into_iter();
    let documents = files.flat_map(move |input| Documents::open(&input, &skipped));
    Ok(documents.chain(end).fuse())
}

/// Converts the content of a file to a string; messages refer to the file as `shown`.
///
/// # Errors
/// Returns a usage failure with the first line that is not UTF-8.
pub(crate) fn text(bytes: Vec<u8>, shown: impl fmt::Display) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        let line = valid.filter(|byte| **byte == b'\n').count() + 1;
        Failure::usage(format!("{shown}:{line}: this is not UTF-8 text"))
    })
}

/// Returns the name of a file for messages; `STDIN` for standard input, as in kubectl.
pub(crate) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "STDIN".to_owned() } else { path.display().to_string() }
}

/// A file to read.
struct Input {
    path: PathBuf,
    /// Whether the file was found in a directory, where documents that are not Kubernetes objects are skipped.
    is_in_folder: bool,
}

/// Returns the files to read for `paths`, including `-` for standard input.
fn all_files(paths: &[PathBuf]) -> Result<Vec<Input>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            all.push(Input { path: path.clone(), is_in_folder: false });
        } else {
            let is_in_folder = path.is_dir();
            all.extend(files(path)?.into_iter().map(|path| Input { path, is_in_folder }));
        }
    }
    Ok(all)
}

/// Returns the files for `path`: the file itself, or all files in a directory.
///
/// # Errors
/// Returns an error if the path cannot be read, or the directory does not contain manifests.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |path: &Path, what: &dyn fmt::Display| Failure::usage(format!("{}: {what}", path.display()));
    let mut files = Vec::new();
    find(path, &mut files).map_err(|(path, error)| {
        let suggestion = similar_file::suggestion(&error, &path);
        wrong(&path, &format!("{error}{suggestion}"))
    })?;
    if files.is_empty() {
        return Err(wrong(path, &"no *.yaml, *.yml, or *.json file in this directory"));
    }
    Ok(files)
}

/// Adds the file at `path`, or the manifests in the directory at `path`, to `files`.
///
/// # Errors
/// Returns the path that cannot be read, which may be in the directory, and the error.
fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
    let wrong = |error: io::Error| (path.to_owned(), error);
    if !fs::metadata(path).map_err(wrong)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(wrong)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        // Hidden files do not belong to manifests. In the volume of a ConfigMap, every file is a link into a hidden
        // directory.
        //
        // Source: Kubernetes pkg/volume/util/atomic_writer.go
        if entry.file_name().as_encoded_bytes().starts_with(b".") || entry.file_name() == "node_modules" {
            continue;
        }
        let path = entry.path();
        let is_object =
            path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|it| end == *it));
        // Links to directories are not followed: they may form cycles.
        let is_folder = || entry.file_type().map(|kind| kind.is_dir()).map_err(wrong);
        if is_object || is_folder()? {
            find(&path, files)?;
        }
    }
    Ok(())
}

/// An iterator over the objects in one file.
struct Documents {
    file: String,
    /// The unread part of the file; `None` at the end of the file, and after an error.
    source: Option<Source>,
    /// The objects that have been read but not yet returned.
    rest: vec::IntoIter<Document>,
    failure: Option<Failure>,
    /// Receives the documents that are not Kubernetes objects; if `None`, they are errors.
    skipped: Option<SkippedDocuments>,
}

impl Documents {
    /// Opens a file. If opening fails, the error is the only item.
    fn open(input: &Input, skipped: &SkippedDocuments) -> Self {
        let file = name(&input.path);
        let (source, failure) = match Source::open(&input.path) {
            Ok(source) => (Some(source), None),
            Err(error) => (None, Some(Failure::usage(format!("{file}: {error}")))),
        };
        let skipped = input.is_in_folder.then(|| skipped.clone());
        Self { file, source, rest: Vec::new().into_iter(), failure, skipped }
    }

    /// Reads the next objects of the file; returns `None` at the end of the file.
    fn more(&mut self) -> Result<Option<Vec<Document>>, Failure> {
        let Some(source) = &mut self.source else { return Ok(None) };
        let read = source.next().map_err(|error| Failure::usage(format!("{}{error}", self.file)))?;
        for warning in source.take_warnings() {
            screen::status!("warning: {}:{warning}", self.file);
        }
        let Some(values) = read else { return Ok(None) };
        let mut documents = Vec::new();
        for (line, object) in values {
            if !object.is_null() {
                let place = DocumentLocation { file: self.file.clone(), line };
                if let Some(skipped) = self.skipped.as_ref().filter(|_| !is_kubernetes_object(&object)) {
                    skipped.add(place);
                    continue;
                }
                collect(Document { place, object }, &mut documents)?;
            }
        }
        Ok(Some(documents))
    }
}

impl Iterator for Documents {
    type Item = Result<Document, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(failure) = self.failure.take() {
            return Some(Err(failure));
        }
        loop {
            if let Some(document) = self.rest.next() {
                return Some(Ok(document));
            }
            match self.more() {
                Ok(Some(documents)) => self.rest = documents.into_iter(),
                Ok(None) => return None,
                Err(failure) => {
                    self.source = None;
                    return Some(Err(failure));
                }
            }
        }
    }
}

/// Returns whether a document has `apiVersion` and `kind`.
pub(crate) fn is_kubernetes_object(document: &Value) -> bool {
    let has = |field: &str| document.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    has("apiVersion") && has("kind")
}

fn collect(document: Document, documents: &mut Vec<Document>) -> Result<(), Failure> {
    let Document { place, mut object } = document;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    if !object.is_object() {
        return Err(place.failure("expected an object with `apiVersion` and `kind`"));
    }
    for field in ["apiVersion", "kind"] {
        if text(field).is_empty() {
            return Err(place.failure(format!("the object has no `{field}`")));
        }
    }
    match take_items(&mut object) {
        Some(items) => {
            for object in items {
                collect(Document { place: place.clone(), object }, documents)?;
            }
        }
        None => documents.push(Document { place, object }),
    }
    Ok(())
}

/// Takes the items out of a List or of a list of one kind; returns `None` for other objects.
///
/// `kubectl get -o yaml` writes a List.
///
/// The items of a typed list such as `PodList` lack a `kind`; this function adds it.
pub(crate) fn take_items(list: &mut Value) -> Option<Vec<Value>> {
    let text = |field: &str| list.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").strip_suffix("List")?.to_owned());
    let mut items = std::mem::take(list.get_mut("items")?.as_array_mut()?);
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        if !kind.is_empty() && !item.contains_key("kind") {
            item.insert("kind".to_owned(), kind.as_str().into());
            item.entry("apiVersion").or_insert_with(|| api_version.as_str().into());
        }
    }
    Some(items)
}

#[cfg(test)]
mod tests;
