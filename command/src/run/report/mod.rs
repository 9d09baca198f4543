//! Writes the reports for programs to files that are either complete or absent.

mod json;
mod junit;

use std::io;
use std::path::{Path, PathBuf};

use output::{OutputFile, Readers};

use super::record::Record;
use crate::Failure;
use crate::target::TargetKind;

/// The reports that the user requested.
///
/// Their files are created before the first scenario runs, so that an unwritable path is reported immediately. They are
/// renamed to their final paths when the run has ended.
#[derive(Debug)]
pub(crate) struct Reports {
    junit: Option<ReportFile>,
    json: Option<ReportFile>,
}

/// The facts that a report contains in addition to the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// The target of the scenarios.
    pub(crate) target: TargetKind,
    /// The number of audit checks that were skipped because the target does not provide an audit log.
    pub(crate) unchecked_audits: usize,
}

/// A report file that gets its final path when it is complete.
#[derive(Debug)]
pub(crate) struct ReportFile {
    path: PathBuf,
    file: OutputFile,
}

impl Reports {
    /// Creates a temporary file next to each requested report.
    pub(crate) fn create(junit: Option<&Path>, json: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self {
            junit: junit.map(|path| ReportFile::create(path, Readers::Owner)).transpose()?,
            json: json.map(|path| ReportFile::create(path, Readers::Owner)).transpose()?,
        })
    }

    /// Writes all reports and renames them to their final paths.
    pub(crate) fn write(self, record: &Record, circumstances: Circumstances) -> Result<(), Failure> {
        if let Some(report) = self.junit {
            report.write(&junit::document(record)?)?;
        }
        if let Some(report) = self.json {
            report.write(&json::document(record, circumstances))?;
        }
        Ok(())
    }
}

/// Returns the JUnit report and the JSON report.
#[cfg(test)]
pub(super) fn documents(record: &Record, circumstances: Circumstances) -> Result<(String, String), Failure> {
    Ok((junit::document(record)?, json::document(record, circumstances)))
}

impl ReportFile {
    /// Creates a temporary file next to `path`.
    ///
    /// Only its owner can read the file unless the report is meant to be shared, because a report may contain objects.
    pub(crate) fn create(path: &Path, readers: Readers) -> Result<Self, Failure> {
        let file = OutputFile::create(path, readers).map_err(|error| failed(path, &error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the report and renames it to its final path.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        self.file.write(text.as_bytes()).map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write the report {}: {error}", path.display());
    if error.kind() == io::ErrorKind::IsADirectory {
        Failure::usage(message)
    } else {
        Failure::environment(message)
    }
}
