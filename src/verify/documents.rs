//! Reads Kubernetes objects from files, folders and standard input, one after another.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Failure;

/// An object with the place where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// The object: never a list.
    pub(crate) object: Value,
    /// `FILE:LINE`.
    pub(crate) place: String,
}

/// The objects in `paths`: files, folders with all `.yaml`, `.yml` and `.json` files that they hold, and `-` for
/// standard input. Each is read when its turn comes, so that the memory does not grow with the files.
///
/// # Errors
/// A path that cannot be read, at once; a document that is none, when its turn comes.
pub(crate) fn documents(
    paths: &[PathBuf],
) -> Result<impl Iterator<Item = Result<Document, Failure>> + Send + use<>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        find(path, &mut files)?;
    }
    Ok(files.into_iter().flat_map(|file| match Documents::open(&file) {
        Ok(documents) => Box::new(documents) as Box<dyn Iterator<Item = _> + Send>,
        Err(failure) => Box::new(std::iter::once(Err(failure))),
    }))
}

fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable = |error: io::Error| Failure::usage(format!("{}: {error}", path.display()));
    if path == Path::new("-") {
        files.push(path.to_owned());
        return Ok(());
    }
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(unreadable)?;
    entries.sort();
    let before = files.len();
    for entry in entries {
        let is_document = entry
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known));
        // A link to a folder is not followed: it may lead back here.
        let is_folder = fs::symlink_metadata(&entry).map_err(unreadable)?.is_dir();
        if is_folder || is_document {
            find(&entry, files)?;
        }
    }
    if files.len() == before {
        return Err(Failure::usage(format!(
            "{}: no .yaml, .yml or .json file in this folder",
            path.display()
        )));
    }
    Ok(())
}

type Reader = Box<dyn BufRead + Send>;

/// The documents of one file.
struct Documents {
    name: String,
    format: Format,
    /// What is left of a list.
    items: std::vec::IntoIter<Value>,
    place: String,
}

enum Format {
    Yaml {
        reader: Reader,
        line: usize,
    },
    Json(serde_json::StreamDeserializer<'static, serde_json::de::IoRead<Reader>, Value>),
    /// After an error nothing more is read.
    Broken,
}

impl Documents {
    fn open(path: &Path) -> Result<Self, Failure> {
        let (name, reader): (String, Reader) = if path == Path::new("-") {
            ("standard input".to_owned(), Box::new(BufReader::new(io::stdin())))
        } else {
            let file =
                File::open(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            (path.display().to_string(), Box::new(BufReader::new(file)))
        };
        let (is_json, reader) =
            begins_as_json(reader).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        let format = if is_json {
            Format::Json(serde_json::Deserializer::from_reader(reader).into_iter())
        } else {
            Format::Yaml { reader, line: 0 }
        };
        Ok(Self { name, format, items: Vec::new().into_iter(), place: String::new() })
    }

    /// The next document, whatever it is.
    fn document(&mut self) -> Option<Result<Value, Failure>> {
        let read = match &mut self.format {
            Format::Broken => return None,
            Format::Json(stream) => {
                self.place.clone_from(&self.name);
                stream.next()?.map_err(|error| format!("{}: {error}", self.name))
            }
            Format::Yaml { reader, line } => match next_yaml(reader, line) {
                Ok(None) => return None,
                Ok(Some((first, text))) => {
                    self.place = format!("{}:{first}", self.name);
                    serde_saphyr::from_str(&text)
                        .map_err(|error| format!("{} (the document that begins there): {error}", self.place))
                }
                Err(error) => Err(format!("{}: {error}", self.name)),
            },
        };
        if read.is_err() {
            self.format = Format::Broken;
        }
        Some(read.map_err(Failure::usage))
    }
}

impl Iterator for Documents {
    type Item = Result<Document, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(object) = self.items.next() {
                return Some(Ok(Document { object, place: self.place.clone() }));
            }
            let mut object = match self.document()? {
                Ok(object) => object,
                Err(failure) => return Some(Err(failure)),
            };
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
            if object.is_null() {
                continue;
            }
            if kind.ends_with("List") && object.get("items").is_some_and(Value::is_array) {
                let Value::Array(items) = object["items"].take() else { continue };
                self.items = items.into_iter();
                continue;
            }
            if kind.is_empty() || object.get("apiVersion").and_then(Value::as_str).is_none() {
                self.format = Format::Broken;
                let message =
                    format!("{}: not a Kubernetes object: it needs apiVersion and kind", self.place);
                return Some(Err(Failure::usage(message)));
            }
            return Some(Ok(Document { object, place: self.place.clone() }));
        }
    }
}

/// The next YAML document that is not empty, with the number of its first line.
fn next_yaml(reader: &mut Reader, line: &mut usize) -> io::Result<Option<(usize, String)>> {
    let mut text = String::new();
    let mut first = *line + 1;
    let mut next = String::new();
    loop {
        next.clear();
        let is_end = reader.read_line(&mut next)? == 0;
        *line += usize::from(!is_end);
        let is_mark = next.starts_with("---") && next[3..].trim_start().is_empty();
        if is_end || is_mark {
            let is_empty =
                text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
            if !is_empty {
                return Ok(Some((first, text)));
            }
            if is_end {
                return Ok(None);
            }
            text.clear();
            first = *line + 1;
        } else {
            text.push_str(&next);
        }
    }
}

/// Whether the first character that is no space opens a JSON object.
fn begins_as_json(mut reader: Reader) -> io::Result<(bool, Reader)> {
    let mut spaces = Vec::new();
    loop {
        let mut byte = [0];
        if reader.read(&mut byte)? == 0 {
            return Ok((false, Box::new(io::Cursor::new(spaces))));
        }
        spaces.push(byte[0]);
        if !byte[0].is_ascii_whitespace() {
            let is_json = byte[0] == b'{';
            return Ok((is_json, Box::new(io::Cursor::new(spaces).chain(reader))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Vec<Result<(String, String), String>> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let prefix = format!("{}/", folder.path().display());
        documents(&[folder.path().to_owned()])
            .unwrap()
            .map(|document| match document {
                Ok(document) => {
                    let name = document.object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                    Ok((name, document.place.replace(&prefix, "")))
                }
                Err(failure) => Err(failure.to_string().replace(&prefix, "")),
            })
            .collect()
    }

    fn names(files: &[(&str, &str)]) -> Vec<String> {
        read(files).into_iter().map(|document| document.unwrap().0).collect()
    }

    #[test]
    fn documents_are_separated_by_three_dashes() {
        let text = "# first\n---\napiVersion: v1\nkind: A\nmetadata: {name: a}\n--- \n\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n";
        let read = read(&[("a.yaml", text)]);
        let expected = [("a", "a.yaml:3"), ("b", "a.yaml:9")];
        assert_eq!(read, expected.map(|(name, place)| Ok((name.to_owned(), place.to_owned()))));
    }

    #[test]
    fn json_may_come_in_lines_and_lists_are_opened() {
        let lines = "\n{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"B\",\"metadata\":{\"name\":\"b\"}}]}";
        assert_eq!(names(&[("a.json", lines), ("b.txt", "ignored")]), ["a", "b"]);
    }

    #[test]
    fn what_cannot_be_read_names_its_place() {
        let found = read(&[("a.yaml", "apiVersion: v1\nkind: A\n---\nkind: [\n"), ("b.yaml", "a: b\n")]);
        let errors: Vec<&String> = found.iter().filter_map(|read| read.as_ref().err()).collect();
        assert!(errors[0].starts_with("a.yaml:4 (the document that begins there): "), "{errors:?}");
        assert_eq!(errors[1], "b.yaml:1: not a Kubernetes object: it needs apiVersion and kind");
    }

    #[test]
    fn a_folder_without_documents_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let failure = documents(&[folder.path().to_owned()]).err().unwrap();
        assert!(failure.to_string().ends_with("no .yaml, .yml or .json file in this folder"), "{failure}");
        assert!(documents(&[PathBuf::from("/nowhere/x.yaml")]).is_err());
    }
}
