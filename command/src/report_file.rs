//! Writes reports to files that are either complete or absent, and the summary of a GitHub workflow.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use output::{OutputFile, Readers};

use crate::{Failure, github};

/// A report file that gets its final path when it is complete.
#[derive(Debug)]
pub(crate) struct ReportFile {
    path: PathBuf,
    file: OutputFile,
}

/// The files to which a command writes its summary in Markdown.
#[derive(Debug)]
pub(crate) struct SummaryFile {
    /// The file of `--summary`.
    requested: Option<ReportFile>,
    /// The file to which a workflow step appends its summary; ignored with `--summary`.
    workflow: Option<PathBuf>,
}

impl ReportFile {
    /// Creates a temporary file next to `path`.
    ///
    /// Only its owner can read the file, because a report may contain objects.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        Self::create_for(path, Readers::Owner)
    }

    /// Creates a temporary file next to `path`, for a file without objects that others may read.
    pub(crate) fn create_shared(path: &Path) -> Result<Self, Failure> {
        Self::create_for(path, Readers::Umask)
    }

    fn create_for(path: &Path, readers: Readers) -> Result<Self, Failure> {
        let file = OutputFile::create(path, readers).map_err(|error| failed(path, &error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Creates a temporary file next to the path of an option, if the user passed the option.
    pub(crate) fn create_if_requested(path: Option<&Path>) -> Result<Option<Self>, Failure> {
        path.map(Self::create).transpose()
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

impl SummaryFile {
    /// Creates the file of `--summary`, if the user passed the option.
    pub(crate) fn create(path: Option<&Path>) -> Result<Self, Failure> {
        let requested = ReportFile::create_if_requested(path)?;
        Ok(Self { requested, workflow: github::summary_file() })
    }

    /// Writes the summary to the file of `--summary` or, if the option is not set, appends it to the workflow's
    /// summary, if any.
    pub(crate) fn write(self, summary: impl FnOnce() -> String) -> Result<(), Failure> {
        match (self.requested, self.workflow) {
            (Some(file), _) => file.write(&summary()),
            (None, Some(path)) => append(&path, &summary()),
            (None, None) => Ok(()),
        }
    }
}

/// Appends `text` to the file at `path`, so that the output of other workflow steps is kept.
fn append(path: &Path, text: &str) -> Result<(), Failure> {
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        Failure::environment(format!("cannot write $GITHUB_STEP_SUMMARY {}: {error}", path.display()))
    })
}
