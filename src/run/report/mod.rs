//! The reports for programs: files that are there whole or not at all.

mod json;
mod junit;

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

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
    file: NamedTempFile,
}

impl Reports {
    /// Makes the files beside those that were asked for.
    pub(crate) fn create(junit: Option<&Path>, json: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self {
            junit: junit.map(ReportFile::create).transpose()?,
            json: json.map(ReportFile::create).transpose()?,
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

impl ReportFile {
    /// Makes the file beside `path`.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        if path.is_dir() {
            return Err(Failure::usage(format!(
                "cannot write the report {}: it is a folder",
                path.display()
            )));
        }
        // The mode is cut by the umask, as for any file that a command writes.
        let file = tempfile::Builder::new()
            .prefix(".admit-report-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| failed(path, &error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the report and gives it its name.
    pub(crate) fn write(mut self, text: &str) -> Result<(), Failure> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush());
        written.map_err(|error| failed(&self.path, &error))?;
        self.file.persist(&self.path).map_err(|error| failed(&self.path, &error.error))?;
        Ok(())
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("cannot write the report {}: {error}", path.display()))
}
