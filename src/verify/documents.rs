//! Reads the objects of a corpus one after another, so that the memory does not grow with the files.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::vec;

use serde_json::Value;

use crate::{Failure, documents};

/// The objects in `paths`: files, folders with all that they hold, and `-` for standard input. A document is read when
/// its turn comes; the items of a list are objects of their own.
///
/// # Errors
/// A path that cannot be read, at once; a document that is none, when its turn comes.
pub(crate) fn documents(
    paths: &[PathBuf],
) -> Result<impl Iterator<Item = Result<Value, Failure>> + Send + use<>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            files.push(path.clone());
            continue;
        }
        files.extend(documents::files(path)?);
    }
    Ok(files.into_iter().flat_map(|file| match Documents::open(&file) {
        Ok(documents) => Box::new(documents) as Box<dyn Iterator<Item = _> + Send>,
        Err(error) => Box::new(std::iter::once(Err(failure(&file, &error)))),
    }))
}

fn failure(path: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{}: {what}", path.display()))
}

type Reader = Box<dyn BufRead + Send>;

/// The objects of one file.
struct Documents {
    name: String,
    format: Format,
    /// What is left of the latest document.
    objects: vec::IntoIter<documents::Document>,
}

enum Format {
    /// Between lines of three dashes.
    Yaml { reader: Reader, line: usize },
    /// One after another.
    Json(serde_json::StreamDeserializer<'static, serde_json::de::IoRead<Reader>, Value>),
    /// Nothing more is read, after an error.
    Broken,
}

impl Documents {
    fn open(path: &Path) -> io::Result<Self> {
        let (name, reader): (String, Reader) = if path.as_os_str() == "-" {
            ("STDIN".to_owned(), Box::new(BufReader::new(io::stdin())))
        } else {
            (path.display().to_string(), Box::new(BufReader::new(File::open(path)?)))
        };
        let (is_json, reader) = begins_as_json(reader)?;
        // A YAML file may well begin with a brace.
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        let format = if is_json && !is_yaml {
            Format::Json(serde_json::Deserializer::from_reader(reader).into_iter())
        } else {
            Format::Yaml { reader, line: 0 }
        };
        Ok(Self { name, format, objects: Vec::new().into_iter() })
    }

    /// The objects of the next document; none at the end.
    fn document(&mut self) -> Option<Result<Vec<documents::Document>, Failure>> {
        match &mut self.format {
            Format::Broken => None,
            Format::Json(stream) => {
                let value = stream.next()?;
                let text = value.map(|value| value.to_string());
                let text = text.map_err(|error| Failure::usage(format!("{}: {error}", self.name)));
                Some(text.and_then(|text| documents::parse(&text, &self.name)))
            }
            Format::Yaml { reader, line } => match next_yaml(reader, line) {
                Ok(None) => None,
                Ok(Some((first, text))) => {
                    let place = format!("{}, in the document that begins on line {first}", self.name);
                    Some(documents::parse(&text, &place))
                }
                Err(error) => Some(Err(Failure::usage(format!("{}: {error}", self.name)))),
            },
        }
    }
}

impl Iterator for Documents {
    type Item = Result<Value, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(document) = self.objects.next() {
                return Some(Ok(document.object));
            }
            match self.document()? {
                Ok(objects) => self.objects = objects.into_iter(),
                Err(failure) => {
                    self.format = Format::Broken;
                    return Some(Err(failure));
                }
            }
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
        let is_mark = next.strip_prefix("---").is_some_and(|rest| rest.trim_start().is_empty());
        if !is_end && !is_mark {
            text.push_str(&next);
            continue;
        }
        let is_comment = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
        if !text.lines().all(is_comment) {
            return Ok(Some((first, text)));
        }
        if is_end {
            return Ok(None);
        }
        text.clear();
        first = *line + 1;
    }
}

/// Whether the first character that is no space opens a JSON object.
fn begins_as_json(mut reader: Reader) -> io::Result<(bool, Reader)> {
    let mut read = Vec::new();
    loop {
        let mut byte = [0];
        if reader.read(&mut byte)? == 0 {
            return Ok((false, Box::new(io::Cursor::new(read))));
        }
        read.push(byte[0]);
        if !byte[0].is_ascii_whitespace() {
            return Ok((byte[0] == b'{', Box::new(io::Cursor::new(read).chain(reader))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Vec<Result<String, String>> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let prefix = format!("{}/", folder.path().display());
        documents(&[folder.path().to_owned()])
            .unwrap()
            .map(|object| match object {
                Ok(object) => Ok(object["metadata"]["name"].as_str().unwrap_or_default().to_owned()),
                Err(failure) => Err(failure.to_string().replace(&prefix, "")),
            })
            .collect()
    }

    #[test]
    fn documents_are_separated_by_three_dashes() {
        let text = "# first\n---\napiVersion: v1\nkind: A\nmetadata: {name: a}\n--- \n\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n";
        assert_eq!(read(&[("a.yaml", text)]), [Ok("a".to_owned()), Ok("b".to_owned())]);
    }

    #[test]
    fn yaml_may_be_written_as_json() {
        let text = "{apiVersion: v1, kind: A, metadata: {name: a}}\n---\n{\"apiVersion\": \"v1\", \"kind\": \"B\", \"metadata\": {\"name\": \"b\"}}\n";
        assert_eq!(read(&[("a.yaml", text)]), [Ok("a".to_owned()), Ok("b".to_owned())]);
    }

    #[test]
    fn json_may_come_in_lines_and_lists_are_opened() {
        let lines = "\n{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"B\",\"metadata\":{\"name\":\"b\"}}]}";
        let names = read(&[("a.json", lines), ("b.txt", "ignored")]);
        assert_eq!(names, [Ok("a".to_owned()), Ok("b".to_owned())]);
    }

    #[test]
    fn what_cannot_be_read_ends_its_file_and_names_its_place() {
        let found = read(&[
            ("a.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nkind: [\n"),
            ("b.yaml", "a: b\n---\napiVersion: v1\nkind: A\n"),
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], Ok("a".to_owned()));
        let error = found[1].as_ref().unwrap_err();
        assert!(error.starts_with("a.yaml, in the document that begins on line 5:"), "{error}");
        let error = found[2].as_ref().unwrap_err();
        assert!(error.ends_with("the object has no `apiVersion`"), "{error}");
    }

    #[test]
    fn a_path_that_is_not_there_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(documents(&[folder.path().to_owned()]).is_err());
        assert!(documents(&[folder.path().join("x.yaml")]).is_err());
    }
}
