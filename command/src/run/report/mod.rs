//! The reports for programs: files that are there whole or not at all.

mod json;
mod junit;

use std::io;
use std::path::{Path, PathBuf};

use output::{OutputFile, Readers};

use super::record::Record;
use crate::Failure;
use crate::target::TargetKind;

/// The reports that were asked for. Their files are made before the first scenario runs, so that a path that cannot be
/// written is known at once, and take their names when the run has ended.
#[derive(Debug)]
pub(crate) struct Reports {
    junit: Option<ReportFile>,
    json: Option<ReportFile>,
}

/// What a report says beside the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// What the scenarios ran against.
    pub(crate) target: TargetKind,
    /// How many audit checks were not made, because the target shows no audit log.
    pub(crate) unchecked_audits: usize,
}

/// A report that takes its name when it is whole.
#[derive(Debug)]
pub(crate) struct ReportFile {
    path: PathBuf,
    file: OutputFile,
}

impl Reports {
    /// Makes the files beside those that were asked for.
    pub(crate) fn create(junit: Option<&Path>, json: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self {
            junit: junit.map(|path| ReportFile::create(path, Readers::Owner)).transpose()?,
            json: json.map(|path| ReportFile::create(path, Readers::Owner)).transpose()?,
        })
    }

    /// Writes every report and gives it its name.
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

/// Returns the reports as JUnit and as JSON.
#[cfg(test)]
pub(super) fn documents(record: &Record, circumstances: Circumstances) -> Result<(String, String), Failure> {
    Ok((junit::document(record)?, json::document(record, circumstances)))
}

impl ReportFile {
    /// Makes the file beside `path`. A report may hold objects: unless it is one that others shall read, it is its owner's
    /// alone.
    pub(crate) fn create(path: &Path, readers: Readers) -> Result<Self, Failure> {
        let file = OutputFile::create(path, readers).map_err(|error| failed(path, &error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the report and gives it its name.
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
