//! Kubernetes objects in files: YAML or JSON, many in one file, in lists, in folders, or from standard input.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_saphyr::Spanned;

use crate::Failure;

/// One object, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// Where it stands.
    pub(crate) place: Place,
    /// The object: a JSON object with `apiVersion` and `kind`.
    pub(crate) object: Value,
}

/// Where an object stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file as it was given, or `STDIN`, as kubectl calls it.
    pub(crate) file: String,
    /// The line on which its document begins, from 1.
    pub(crate) line: u64,
}

/// `pod.yaml:1`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Place {
    /// A failure of the object that stands here.
    pub(crate) fn failure(&self, message: impl fmt::Display) -> Failure {
        Failure::usage(format!("{self}: {message}"))
    }
}

/// The objects of files, folders with all that they hold (`*.yaml`, `*.yml`, `*.json`, by name), and `-`, which is
/// standard input. The items of a list count as objects of their own.
///
/// # Errors
/// A usage failure that names the file, and the line, of the first thing that cannot be read.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            let read = io::stdin().read_to_string(&mut text);
            read.map_err(|error| Failure::usage(format!("standard input: {error}")))?;
            documents.extend(parse(&text, "STDIN")?);
            continue;
        }
        for file in files(path)? {
            let text = fs::read_to_string(&file)
                .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
            documents.extend(parse(&text, &file.display().to_string())?);
        }
    }
    Ok(documents)
}

/// The files that `path` stands for: itself, or those of a folder.
///
/// # Errors
/// It cannot be read, or the folder holds none.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |what: &dyn fmt::Display| Failure::usage(format!("{}: {what}", path.display()));
    let mut files = Vec::new();
    find(path, &mut files).map_err(|error| wrong(&error))?;
    if files.is_empty() {
        return Err(wrong(&"no *.yaml, *.yml or *.json file in this folder"));
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
        // In the volume of a ConfigMap every file is a link to one in such a folder.
        //
        // Source: Kubernetes pkg/volume/util/atomic_writer.go
        if entry.file_name().as_encoded_bytes().starts_with(b"..") {
            continue;
        }
        let path = entry.path();
        let is_object =
            path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|it| end == *it));
        // A link to a folder is not followed: it may lead back here.
        if is_object || entry.file_type()?.is_dir() {
            find(&path, files)?;
        }
    }
    Ok(())
}

/// The objects of one file. `file` is how messages call it.
pub(crate) fn parse(text: &str, file: &str) -> Result<Vec<Document>, Failure> {
    let values = match json(text) {
        Some(values) => values,
        None => yaml(text, file)?,
    };
    let mut documents = Vec::new();
    for (line, value) in values {
        if !value.is_null() {
            collect(
                Document { place: Place { file: file.to_owned(), line }, object: value },
                &mut documents,
            )?;
        }
    }
    if documents.is_empty() {
        return Err(Failure::usage(format!("{file}: it holds no object")));
    }
    Ok(documents)
}

/// JSON documents one after another, which are no YAML; none if it is something else.
fn json(text: &str) -> Option<Vec<(u64, Value)>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut values = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter();
    loop {
        let before = text.get(stream.byte_offset()..)?;
        let blank = before.len() - before.trim_start().len();
        let line = 1 + text.get(..stream.byte_offset() + blank)?.matches('\n').count();
        match stream.next() {
            Some(value) => values.push((u64::try_from(line).unwrap_or(u64::MAX), value.ok()?)),
            None => return Some(values),
        }
    }
}

fn yaml(text: &str, file: &str) -> Result<Vec<(u64, Value)>, Failure> {
    let documents: Vec<Spanned<Value>> = serde_saphyr::from_multiple(text).map_err(|error| {
        let place = error.location().map_or(String::new(), |at| format!("{}:{}: ", at.line(), at.column()));
        let message = error.without_snippet().to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        Failure::usage(format!(
            "{file}:{place}{}this is not YAML: {message}",
            if place.is_empty() { " " } else { "" }
        ))
    })?;
    Ok(documents.into_iter().map(|document| (document.referenced.line(), document.value)).collect())
}

fn collect(document: Document, documents: &mut Vec<Document>) -> Result<(), Failure> {
    let Document { place, object } = document;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    if !object.is_object() {
        return Err(place.failure("expected an object with `apiVersion` and `kind`"));
    }
    for field in ["apiVersion", "kind"] {
        if text(field).is_empty() {
            return Err(place.failure(format!("the object has no `{field}`")));
        }
    }
    match object.get("items").and_then(Value::as_array) {
        Some(items) if text("kind").ends_with("List") => {
            for item in items {
                let mut item = item.clone();
                name_kind(&mut item, text("apiVersion"), text("kind"));
                collect(Document { place: place.clone(), object: item }, documents)?;
            }
        }
        _ => documents.push(Document { place, object }),
    }
    Ok(())
}

/// The items of a `PodList` are pods without saying so.
fn name_kind(item: &mut Value, api_version: &str, list_kind: &str) {
    let Some(members) = item.as_object_mut() else { return };
    let kind = list_kind.trim_end_matches("List");
    if !kind.is_empty() && !members.contains_key("kind") {
        members.insert("kind".to_owned(), kind.into());
        members.entry("apiVersion").or_insert_with(|| api_version.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u64, String)> {
        let documents = parse(text, "f").unwrap();
        documents
            .iter()
            .map(|document| (document.place.line, document.object["kind"].as_str().unwrap().to_owned()))
            .collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[(u64, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(line, kind)| (*line, (*kind).to_owned())).collect();
        assert_eq!(found(text), expected, "{text}");
    }

    #[track_caller]
    fn check_wrong(text: &str, expected: &str) {
        assert_eq!(parse(text, "f").unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_file_may_hold_many_documents() {
        check("apiVersion: v1\nkind: A\n", &[(1, "A")]);
        check(
            "---\napiVersion: v1\nkind: A\n---\n---\n# nothing\n---\napiVersion: v1\nkind: B\n",
            &[(2, "A"), (8, "B")],
        );
        check(
            "{\"apiVersion\": \"v1\", \"kind\": \"A\"}\n\n{\"apiVersion\": \"v1\",\n\"kind\": \"B\"}\n",
            &[(1, "A"), (3, "B")],
        );
        check("{apiVersion: v1, kind: A}", &[(1, "A")]);
    }

    #[test]
    fn the_items_of_lists_are_objects() {
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
    #[cfg(unix)]
    fn the_volume_of_a_config_map_holds_each_file_once() {
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
    fn what_is_no_object_is_named_with_its_line() {
        check_wrong("", "f: it holds no object");
        check_wrong("---\n", "f: it holds no object");
        check_wrong(
            "apiVersion: v1\nkind: A\n---\n- a\n",
            "f:4: expected an object with `apiVersion` and `kind`",
        );
        check_wrong("kind: A\n", "f:1: the object has no `apiVersion`");
        check_wrong("\napiVersion: v1\n", "f:2: the object has no `kind`");
        check_wrong(
            "{apiVersion: v1, kind: List, items: [{kind: A}]}",
            "f:1: the object has no `apiVersion`",
        );
    }

    #[test]
    fn what_cannot_be_read_is_named_with_line_and_column() {
        let failure = parse("apiVersion: v1\nkind: [\n", "f").unwrap_err().to_string();
        assert!(failure.starts_with("f:") && failure.contains("this is not YAML: "), "{failure}");
    }
}
