//! Reads Kubernetes objects from files, directories, or standard input.
//!
//! A file contains one or many objects or lists, in YAML or JSON.

mod source;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::vec;

use serde_json::Value;

use self::source::Source;
use crate::Failure;

/// An object and its location.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// The location.
    pub(crate) place: Place,
    /// The object: a JSON object with `apiVersion` and `kind`.
    pub(crate) object: Value,
}

/// The location of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file name as given, or `STDIN`, as in kubectl.
    pub(crate) file: String,
    /// The line on which the object's document begins, starting with 1.
    pub(crate) line: u64,
}

/// Formats the location as `pod.yaml:1`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Place {
    /// Creates a usage failure for the object at this location.
    pub(crate) fn failure(&self, message: impl fmt::Display) -> Failure {
        Failure::usage(format!("{self}: {message}"))
    }
}

/// Reads all objects from files, from directories, and from standard input for `-`.
///
/// In a directory, files named `*.yaml`, `*.yml`, and `*.json` are read at any depth, sorted by name.
///
/// The items of a list are separate objects.
///
/// # Errors
/// A usage failure with the file and line of the first error; also for a file without objects.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    for path in all_files(paths)? {
        let before = documents.len();
        for document in Documents::open(&path) {
            documents.push(document?);
        }
        if documents.len() == before {
            return Err(Failure::usage(format!("{}: it does not contain an object", name(&path))));
        }
    }
    Ok(documents)
}

/// A completely read file.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// The text of the file.
    pub(crate) text: String,
    /// The objects in the file.
    pub(crate) documents: Vec<Document>,
}

/// Reads all objects, grouped by file, with the text of each file.
///
/// # Errors
/// The errors of [`read`].
pub(crate) fn read_texts(paths: &[PathBuf]) -> Result<Vec<TextFile>, Failure> {
    let mut files = Vec::new();
    for path in all_files(paths)? {
        let file = name(&path);
        let bytes = output::read(&path).map_err(|error| Failure::usage(format!("{file}: {error}")))?;
        let text = text(bytes, &file)?;
        files.push(TextFile { documents: of_text(text.clone(), &file)?, text });
    }
    Ok(files)
}

/// Reads the objects in `text`, whose file name in messages is `file`.
///
/// # Errors
/// The errors of [`read`].
pub(crate) fn of_text(text: String, file: &str) -> Result<Vec<Document>, Failure> {
    let wrong = |what: &dyn fmt::Display| Failure::usage(format!("{file}: {what}"));
    let source = Source::of_text(text, Path::new(file)).map_err(|error| wrong(&error))?;
    let reading = Documents {
        file: file.to_owned(),
        source: Some(source),
        rest: Vec::new().into_iter(),
        failure: None,
    };
    let documents: Vec<Document> = reading.collect::<Result<_, _>>()?;
    if documents.is_empty() { Err(wrong(&"it does not contain an object")) } else { Ok(documents) }
}

/// Reads the objects as they are consumed, so that memory does not grow with the files.
///
/// A file may be empty; after an error, the next file follows.
///
/// # Errors
/// A path that does not exist, immediately.
pub(crate) fn stream(
    paths: &[PathBuf],
) -> Result<impl Iterator<Item = Result<Document, Failure>> + Send + use<>, Failure> {
    Ok(all_files(paths)?.into_iter().flat_map(|path| Documents::open(&path)))
}

/// Converts the content of a file to text; `shown` is its name in messages.
///
/// # Errors
/// A usage failure with the first line that is not UTF-8.
pub(crate) fn text(bytes: Vec<u8>, shown: impl fmt::Display) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        let line = valid.filter(|byte| **byte == b'\n').count() + 1;
        Failure::usage(format!("{shown}:{line}: this is not UTF-8 text"))
    })
}

/// Returns the name of a file in messages; `STDIN` for standard input, as in kubectl.
pub(crate) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "STDIN".to_owned() } else { path.display().to_string() }
}

/// Returns the files in `paths`, including `-`.
fn all_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            all.push(path.clone());
        } else {
            all.extend(files(path)?);
        }
    }
    Ok(all)
}

/// Returns the files for `path`: the file itself, or all files in a directory.
///
/// # Errors
/// The path cannot be read, or the directory does not contain manifests.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |what: &dyn fmt::Display| Failure::usage(format!("{}: {what}", path.display()));
    let mut files = Vec::new();
    find(path, &mut files).map_err(|error| wrong(&error))?;
    if files.is_empty() {
        return Err(wrong(&"no *.yaml, *.yml, or *.json file in this directory"));
    }
    Ok(files)
}

fn find(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        // In the volume of a ConfigMap, every file is a link into such a directory.
        //
        // Source: Kubernetes pkg/volume/util/atomic_writer.go
        if entry.file_name().as_encoded_bytes().starts_with(b"..") {
            continue;
        }
        let path = entry.path();
        let is_object =
            path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|it| end == *it));
        // Links to directories are not followed: they may form cycles.
        if is_object || entry.file_type()?.is_dir() {
            find(&path, files)?;
        }
    }
    Ok(())
}

/// Reads the objects of one file.
struct Documents {
    file: String,
    /// The unread part of the file; `None` at the end of the file, and after an error.
    source: Option<Source>,
    /// The remaining documents that have been read.
    rest: vec::IntoIter<Document>,
    failure: Option<Failure>,
}

impl Documents {
    /// Opens a file. If opening fails, the error is the only item.
    fn open(path: &Path) -> Self {
        let file = name(path);
        let (source, failure) = match Source::open(path) {
            Ok(source) => (Some(source), None),
            Err(error) => (None, Some(Failure::usage(format!("{file}: {error}")))),
        };
        Self { file, source, rest: Vec::new().into_iter(), failure }
    }

    /// Reads the next objects of the file; returns `None` at the end of the file.
    fn more(&mut self) -> Result<Option<Vec<Document>>, Failure> {
        let Some(source) = &mut self.source else { return Ok(None) };
        let read = source.next().map_err(|error| Failure::usage(format!("{}{error}", self.file)))?;
        let Some(values) = read else { return Ok(None) };
        let mut documents = Vec::new();
        for (line, object) in values {
            if !object.is_null() {
                let place = Place { file: self.file.clone(), line };
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
/// The items of a `PodList` do not contain their `kind`, which is added.
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
mod tests {
    use super::*;

    /// Runs `reading` on a directory with these files. In messages and locations, the path of the directory is removed.
    fn in_folder<T>(files: &[(&str, &str)], reading: impl FnOnce(&[PathBuf]) -> T) -> (T, String) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let prefix = format!("{}/", folder.path().display());
        (reading(&[folder.path().to_owned()]), prefix)
    }

    #[track_caller]
    fn check(text: &str, expected: &[(u64, &str)]) {
        let (documents, _) = in_folder(&[("f.yaml", text)], read);
        let documents = documents.unwrap();
        let found: Vec<_> = documents
            .iter()
            .map(|document| (document.place.line, document.object["kind"].as_str().unwrap()))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[track_caller]
    fn check_wrong(text: &str, expected: &str) {
        let (documents, prefix) = in_folder(&[("f.yaml", text)], read);
        assert_eq!(documents.unwrap_err().to_string().replace(&prefix, ""), expected);
    }

    /// Returns the names of the objects, and the errors.
    fn streamed(files: &[(&str, &str)]) -> Vec<String> {
        let reading = |paths: &[PathBuf]| stream(paths).unwrap().collect::<Vec<_>>();
        let (found, prefix) = in_folder(files, reading);
        found
            .into_iter()
            .map(|found| match found {
                Ok(document) => document.object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                Err(failure) => failure.to_string().replace(&prefix, ""),
            })
            .collect()
    }

    #[test]
    #[cfg(unix)]
    fn each_file_in_a_config_map_volume_is_read_once() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("..2026_11_21")).unwrap();
        fs::write(path("..2026_11_21/a.yaml"), "{apiVersion: v1, kind: A}").unwrap();
        symlink("..2026_11_21", path("..data")).unwrap();
        symlink("..data/a.yaml", path("a.yaml")).unwrap();
        assert_eq!(files(folder.path()).unwrap(), [path("a.yaml")]);
    }

    #[test]
    fn text_that_is_not_utf_8_is_named_with_its_line() {
        assert_eq!(text(b"a\nb".to_vec(), "f").unwrap(), "a\nb");
        assert_eq!(
            text(b"a\nb\n\xff\n".to_vec(), "f").unwrap_err().to_string(),
            "f:3: this is not UTF-8 text"
        );
    }

    #[test]
    fn list_items_are_separate_objects() {
        check(
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A}\n- {apiVersion: v1, kind: B}\n",
            &[(1, "A"), (1, "B")],
        );
        check(
            "{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}}, {kind: Other, apiVersion: v1}]}",
            &[(1, "Pod"), (1, "Other")],
        );
    }

    #[test]
    fn a_document_that_is_not_an_object_is_reported_with_its_line() {
        check_wrong("", "f.yaml: it does not contain an object");
        check_wrong("---\n", "f.yaml: it does not contain an object");
        check_wrong(
            "apiVersion: v1\nkind: A\n---\n- a\n",
            "f.yaml:4: expected an object with `apiVersion` and `kind`",
        );
        check_wrong("kind: A\n", "f.yaml:1: the object has no `apiVersion`");
        check_wrong("\napiVersion: v1\n", "f.yaml:2: the object has no `kind`");
        check_wrong(
            "{apiVersion: v1, kind: List, items: [{kind: A}]}",
            "f.yaml:1: the object has no `apiVersion`",
        );
    }

    #[test]
    fn json_lines_are_read_and_other_files_in_a_directory_are_ignored() {
        let lines = "\n{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"B\",\"metadata\":{\"name\":\"b\"}}]}";
        assert_eq!(streamed(&[("a.json", lines), ("b.txt", "ignored")]), ["a", "b"]);
    }

    #[test]
    fn an_error_ends_its_file_and_names_its_location() {
        let found = streamed(&[
            ("a.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nkind: [\n---\nkind: C\n"),
            ("b.yaml", "a: b\n---\napiVersion: v1\nkind: A\n"),
            ("c.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: c}\n"),
        ]);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(found[0], "a");
        assert!(found[1].starts_with("a.yaml:5:7: invalid YAML: "), "{}", found[1]);
        assert_eq!(found[2], "b.yaml:1: the object has no `apiVersion`");
        assert_eq!(found[3], "c");
    }

    #[test]
    fn a_missing_path_is_reported_immediately() {
        let folder = tempfile::tempdir().unwrap();
        assert!(stream(&[folder.path().to_owned()]).is_err());
        assert!(stream(&[folder.path().join("x.yaml")]).is_err());
    }
}
