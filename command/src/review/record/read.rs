//! Reads a record line by line.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::documents::DocumentLocation;
use crate::request_report::{Report, line::EXTENSION};

/// The maximum length of a line in bytes. A report contains the request, of at most 3 MiB, in several forms.
const MAX_LINE: u64 = 512 << 20;

/// An iterator over the requests in a record. The requests are numbered from 1.
#[derive(Debug)]
pub(super) struct Requests {
    files: std::vec::IntoIter<PathBuf>,
    open: Option<Lines>,
    number: usize,
    /// The locations of incomplete lines.
    pub(super) torn: Vec<DocumentLocation>,
}

#[derive(Debug)]
struct Lines {
    reader: BufReader<File>,
    place: DocumentLocation,
}

impl Requests {
    /// Opens one file, or all files of a folder in the order in which their servers started.
    ///
    /// # Errors
    /// Returns an error if there is no record or it cannot be read.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let failure =
            |why: &dyn std::fmt::Display| Failure::usage(format!("--record {}: {why}", path.display()));
        let files = if fs::metadata(path).map_err(|error| failure(&error))?.is_dir() {
            let mut files = Vec::new();
            for entry in fs::read_dir(path).map_err(|error| failure(&error))? {
                let file = entry.map_err(|error| failure(&error))?.path();
                if file.extension().is_none_or(|extension| extension != EXTENSION) {
                    continue;
                }
                // Opening a FIFO waits for its writer.
                if !fs::metadata(&file).map_err(|error| failure(&error))?.is_file() {
                    let name = file.file_name().unwrap_or_default().display();
                    return Err(failure(&format!("{name} is not a regular file")));
                }
                files.push(file);
            }
            files.sort();
            if files.is_empty() {
                return Err(failure(&"no *.jsonl file in this directory"));
            }
            files
        } else {
            vec![path.to_owned()]
        };
        Ok(Self { files: files.into_iter(), open: None, number: 0, torn: Vec::new() })
    }

    fn read(&mut self) -> Result<Option<Report>, Failure> {
        loop {
            let Some(lines) = &mut self.open else {
                let Some(path) = self.files.next() else { return Ok(None) };
                let file = path.display().to_string();
                let open = File::open(&path).map_err(|error| Failure::usage(format!("{file}: {error}")))?;
                self.open =
                    Some(Lines { reader: BufReader::new(open), place: DocumentLocation { file, line: 0 } });
                continue;
            };
            match lines.read()? {
                Line::Whole(line) => {
                    self.number += 1;
                    return Report::of_line(&line, &lines.place, self.number).map(Some);
                }
                Line::Torn => self.torn.push(lines.place.clone()),
                Line::None => {}
            }
            self.open = None;
        }
    }
}

impl Iterator for Requests {
    type Item = Result<Report, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

enum Line {
    Whole(Vec<u8>),
    /// An incomplete line at the end of the file: it does not have a line ending.
    Torn,
    None,
}

impl Lines {
    fn read(&mut self) -> Result<Line, Failure> {
        let mut line = Vec::new();
        self.place.line += 1;
        let read = (&mut self.reader).take(MAX_LINE).read_until(b'\n', &mut line);
        read.map_err(|error| self.place.failure(error))?;
        if line.ends_with(b"\n") {
            return Ok(Line::Whole(line));
        }
        match line.len() as u64 {
            0 => Ok(Line::None),
            MAX_LINE.. => Err(self.place.failure("not a record: the line is larger than 512 MiB")),
            _ => Ok(Line::Torn),
        }
    }
}
