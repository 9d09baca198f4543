//! Splits a file into documents as it is read, so that memory does not grow with the file.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use serde::Deserialize as _;
use serde_json::Value;
use serde_saphyr::Spanned;

/// A document, and the line on which it begins in its file, starting from 1.
pub(super) type Located = (u64, Value);

/// A file that is read document by document, until the first error.
pub(super) struct Source {
    format: Format,
    lines: Lines<Box<dyn BufRead + Send>>,
    /// Warnings about the documents that have been read, each with its location.
    warnings: Vec<String>,
}

enum Format {
    /// YAML documents, separated by lines of three dashes.
    Yaml,
    /// Concatenated JSON documents.
    Json,
}

/// The reason why the next document cannot be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// The location, such as `12` or `12:3`: the line and, if known, the column, both starting from 1.
    ///
    /// `None` if the file itself cannot be read.
    place: Option<String>,
    what: String,
}

/// The maximum size of a document in bytes.
///
/// This is far more than a server accepts, but a list of many objects may be this long.
const MAX_DOCUMENT: u64 = 256 << 20;
const TOO_LONG: &str = "this document has more than 256 MiB: split it";

/// Formats the error so that it can follow a file name, such as `:12:3: invalid YAML: …`.
impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, ":{place}: {}", self.what),
            None => write!(f, ": {}", self.what),
        }
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self { place: None, what: error.to_string() }
    }
}

/// Returns whether a file may be JSON. A `*.yaml` or `*.yml` file is YAML even if it starts with a brace.
fn may_be_json(path: &Path) -> bool {
    !path.extension().is_some_and(|end| end == "yaml" || end == "yml")
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Self::new(BufReader::new(io::stdin()), true);
        }
        Self::new(BufReader::new(File::open(path)?), may_be_json(path))
    }

    /// Creates a source for `text`, the content of the file at `path`.
    pub(super) fn of_text(text: String, path: &Path) -> io::Result<Self> {
        Self::new(Cursor::new(text), may_be_json(path))
    }

    fn new(mut reader: impl BufRead + Send + 'static, may_be_json: bool) -> io::Result<Self> {
        let mut head = Vec::new();
        let format =
            if may_be_json && begins_as_json(&mut reader, &mut head)? { Format::Json } else { Format::Yaml };
        let lines = Lines::<Box<dyn BufRead + Send>>::new(Box::new(Cursor::new(head).chain(reader)), 1);
        Ok(Self { format, lines, warnings: Vec::new() })
    }

    /// Returns the warnings since the last call, such as `12:3: duplicate key "a"`.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Reads the next document, or several documents that only parsing can separate. Returns `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the file or the document cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Vec<Located>>, Unreadable> {
        if matches!(self.format, Format::Json) {
            match self.lines.skip_blanks()? {
                None => return Ok(None),
                Some(b'{') => return self.lines.json().map(|document| Some(vec![document])),
                Some(_) => self.format = Format::Yaml,
            }
        }
        let Some((first, text)) = self.lines.until_dashes()? else { return Ok(None) };
        match json(&text, first) {
            Some(documents) => Ok(Some(documents)),
            None => yaml(&text, first, &mut self.warnings).map(Some),
        }
    }
}

/// A reader that counts lines.
struct Lines<R> {
    reader: R,
    /// The current line, starting from 1.
    line: u64,
    /// The maximum size of a document, in bytes.
    limit: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(reader: R, line: u64) -> Self {
        Self { reader, line, limit: MAX_DOCUMENT }
    }

    /// Skips whitespace and returns the next byte without consuming it.
    fn skip_blanks(&mut self) -> io::Result<Option<u8>> {
        loop {
            let Some(byte) = self.reader.fill_buf()?.first().copied() else { return Ok(None) };
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.line += u64::from(byte == b'\n');
            self.reader.consume(1);
        }
    }

    /// Reads the JSON object that starts at the current position, up to its closing brace.
    fn json(&mut self) -> Result<Located, Unreadable> {
        let first = self.line;
        let limit = self.limit;
        let mut document = (&mut *self).take(limit);
        let value = Value::deserialize(&mut serde_json::Deserializer::from_reader(&mut document));
        let is_too_long = document.limit() == 0;
        let value = value.map_err(|error| Unreadable {
            place: Some(self.line.to_string()),
            what: if is_too_long {
                TOO_LONG.to_owned()
            } else {
                format!("invalid JSON: {}", without_place(&error.to_string()))
            },
        })?;
        Ok((first, value))
    }

    /// Reads the text up to the next line of three dashes, and returns it with the number of its first line.
    ///
    /// Text with only comments and directives belongs to the next document.
    fn until_dashes(&mut self) -> Result<Option<(u64, String)>, Unreadable> {
        let first = self.line;
        let mut text = String::new();
        let mut holds_something = false;
        loop {
            let start = text.len();
            if start as u64 >= self.limit {
                return Err(Unreadable { place: Some(first.to_string()), what: TOO_LONG.to_owned() });
            }
            let read = (&mut self.reader).take(self.limit).read_line(&mut text).map_err(|error| {
                if error.kind() != io::ErrorKind::InvalidData {
                    return error.into();
                }
                Unreadable { place: Some(self.line.to_string()), what: "this is not UTF-8 text".to_owned() }
            })?;
            if read == 0 {
                return Ok(holds_something.then_some((first, text)));
            }
            self.line += 1;
            let line = text.get(start..).unwrap_or_default();
            if line.strip_prefix("---").is_some_and(|rest| rest.trim().is_empty()) {
                if holds_something {
                    text.truncate(start);
                    return Ok(Some((first, text)));
                }
            } else {
                holds_something |= !line.trim().is_empty() && !line.trim_start().starts_with(['#', '%']);
            }
        }
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.line += buffer.iter().take(count).map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        Ok(count)
    }
}

/// Returns whether the text begins with a JSON object, not with YAML in braces. In JSON, the first name is quoted.
///
/// Appends the consumed bytes to `head`.
fn begins_as_json(reader: &mut impl BufRead, head: &mut Vec<u8>) -> io::Result<bool> {
    let mut expected = b"{\"".iter();
    for byte in reader.bytes() {
        let byte = byte?;
        head.push(byte);
        if byte.is_ascii_whitespace() {
            continue;
        }
        if expected.next() != Some(&byte) {
            return Ok(false);
        }
        if expected.as_slice().is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Parses concatenated JSON objects, which are not valid YAML; returns `None` for other text.
fn json(text: &str, first: u64) -> Option<Vec<Located>> {
    let mut lines = Lines::new(text.as_bytes(), first);
    let mut documents = Vec::new();
    while let Some(byte) = lines.skip_blanks().ok()? {
        if byte != b'{' {
            return None;
        }
        documents.push(lines.json().ok()?);
    }
    Some(documents)
}

/// The error for a document that exceeds a limit of the YAML parser.
///
/// The limits protect against small files that expand in memory.
const TOO_LARGE: &str = "this YAML document is too large: it may have 250,000 values, 64 MiB of text, 64 levels, and few \
                         aliases for each anchor; larger objects can be given as JSON";

/// Returns the options of kubectl's parser, in which `0644` is an octal number.
pub(crate) fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! { legacy_octal_numbers: true }
}

/// Parses YAML; as in kubectl, the last value of a duplicate key is used, with a warning.
fn yaml(text: &str, first: u64, warnings: &mut Vec<String>) -> Result<Vec<Located>, Unreadable> {
    let line = |line: u64| first + line.saturating_sub(1);
    let parsed = serde_saphyr::from_multiple_with_options(text, yaml_options()).or_else(|error| {
        let serde_saphyr::Error::DuplicateMappingKey { key, location } = error.without_snippet() else {
            return Err(error);
        };
        let key = key.as_deref().map_or_else(String::new, |key| format!(" {key:?}"));
        let (at, column) = (line(location.line()), location.column());
        warnings.push(format!(
            "{at}:{column}: duplicate key{key}: kubectl uses the last value, and so does admit"
        ));
        let mut options = yaml_options();
        options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::LastWins;
        serde_saphyr::from_multiple_with_options(text, options)
    });
    let documents: Vec<Spanned<Value>> = parsed.map_err(|error| {
        let place = match error.location() {
            Some(at) => format!("{}:{}", line(at.line()), at.column()),
            None => first.to_string(),
        };
        let error = error.without_snippet();
        let what = if is_too_large(error) {
            TOO_LARGE.to_owned()
        } else {
            let hint = if text.contains("{{") {
                "; this looks like a Helm template, render it first: helm template RELEASE CHART"
            } else {
                ""
            };
            format!("invalid YAML: {}{hint}", without_place(&error.to_string()))
        };
        Unreadable { place: Some(place), what }
    })?;
    Ok(documents.into_iter().map(|document| (line(document.referenced.line()), document.value)).collect())
}

fn is_too_large(error: &serde_saphyr::Error) -> bool {
    matches!(error.without_snippet(), serde_saphyr::Error::Budget { .. })
}

/// Returns the message of a YAML error, or an explanation if the document exceeds a limit of the parser.
pub(crate) fn yaml_message(error: &serde_saphyr::Error) -> String {
    if is_too_large(error) { TOO_LARGE.to_owned() } else { error.to_string() }
}

/// Returns a library's message without its position, because it is relative to the start of the document.
fn without_place(message: &str) -> &str {
    message.split(" at line ").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first line and the kind of each document, followed by the error, if any.
    fn found(text: &str, may_be_json: bool) -> Vec<(u64, String)> {
        let mut source = Source::new(Cursor::new(text.to_owned()), may_be_json).unwrap();
        let mut found = Vec::new();
        loop {
            match source.next() {
                Ok(None) => return found,
                Ok(Some(documents)) => {
                    let kind = |value: &Value| value["kind"].as_str().unwrap_or("-").to_owned();
                    found.extend(documents.iter().map(|(line, value)| (*line, kind(value))));
                }
                Err(error) => {
                    found.push((0, error.to_string()));
                    return found;
                }
            }
        }
    }

    #[test]
    fn a_leading_zero_makes_an_octal_number() {
        for text in ["mode: 0600\n", "mode: 1\nmode: 0600\n"] {
            let mut source = Source::new(Cursor::new(text.to_owned()), true).unwrap();
            let documents = source.next().unwrap().unwrap();
            let modes: Vec<&Value> = documents.iter().map(|(_, document)| &document["mode"]).collect();
            assert_eq!(modes, [0o600], "{text}");
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &[(u64, &str)]) {
        for may_be_json in [true, false] {
            let found = found(text, may_be_json);
            let found: Vec<_> = found.iter().map(|(line, kind)| (*line, kind.as_str())).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn yaml_documents_are_separated_by_three_dashes() {
        check("kind: A\n", &[(1, "A")]);
        check("---\nkind: A\n---\n---\n# nothing\n---\nkind: B\n", &[(2, "A"), (7, "B")]);
        check("# first\n---\nkind: A\n--- \n\n---\nkind: B", &[(3, "A"), (7, "B")]);
        check("%YAML 1.2\n---\nkind: A\n---\nkind: B\n", &[(3, "A"), (5, "B")]);
        check("kind: A\n--- {kind: B}\n--- # more\nkind: C\n", &[(1, "A"), (2, "B"), (4, "C")]);
        check("", &[]);
        check("---\n# nothing\n", &[]);
    }

    #[test]
    fn json_documents_may_be_concatenated() {
        check("{\"kind\": \"A\"}\n\n{\"kind\":\n\"B\"} {\"kind\": \"C\"}\n", &[(1, "A"), (3, "B"), (4, "C")]);
    }

    #[test]
    fn a_file_may_contain_yaml_and_json() {
        check("{kind: A}\n---\n{\"kind\": \"B\"}\n", &[(1, "A"), (3, "B")]);
        check("{\"kind\": \"A\"}\n---\nkind: B\n", &[(1, "A"), (3, "B")]);
    }

    #[test]
    fn text_that_is_not_utf_8_is_named_with_its_line() {
        let mut source = Source::new(Cursor::new(b"kind: A\n---\nkind: \xff\n".to_vec()), true).unwrap();
        assert!(source.next().unwrap().is_some());
        assert_eq!(source.next().unwrap_err().to_string(), ":3: this is not UTF-8 text");
    }

    #[test]
    fn a_document_that_is_too_large_is_rejected_with_an_explanation() {
        let error = found(&format!("kind: A\n---\na: [{}]\n", "1,".repeat(260_000)), true).pop().unwrap().1;
        assert!(error.starts_with(":3"), "{error}");
        assert!(error.ends_with(TOO_LARGE), "{error}");
    }

    #[test]
    fn an_endless_document_is_rejected() {
        for begin in ["a: b", "a\n: b\n", "{\"a\": \"b"] {
            let text = Cursor::new(begin).chain(BufReader::new(io::repeat(b'a')));
            let mut source = Source::new(text, true).unwrap();
            source.lines.limit = 1000;
            assert_eq!(source.next().unwrap_err().to_string(), format!(":1: {TOO_LONG}"));
        }
    }

    #[test]
    fn syntax_errors_are_reported_with_their_location() {
        let error = |text: &str| found(text, true).pop().unwrap().1;
        assert!(error("kind: A\n---\na: 1\nkind: [\n").starts_with(":4:7: invalid YAML: "));
        assert_eq!(error("{\"kind\": \"A\"}\n{\"kind\":\nA}\n"), ":3: invalid JSON: expected value");
    }
}
