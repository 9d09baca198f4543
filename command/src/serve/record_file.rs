//! Writes the record of `--record`: one file per server, with a line for each request that could change something.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::line_file::LineFile;
use super::log::Log;
use crate::Failure;
use crate::request_report::{Report, line};

/// The options for recording requests.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordFlags {
    /// Record each request that could change something, with its outcome and the webhook calls, for `admit review
    /// --record`. Each server creates its own file in this directory, readable only by its owner
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Record the values of Secrets and tokens instead of masking them
    #[arg(long, requires = "record")]
    show_secrets: bool,
}

/// The environment variable that corresponds to `--record`, for the kube-apiserver of `admit assets`.
const DIR: &str = "ADMIT_RECORD";
const SHOW_SECRETS: &str = "ADMIT_RECORD_SHOW_SECRETS";

impl RecordFlags {
    /// Reads the flags from the environment.
    ///
    /// # Errors
    /// Returns an error if a variable has an invalid value.
    pub(crate) fn from_environment() -> Result<Self, Failure> {
        let record = std::env::var_os(DIR).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let show_secrets = is_on(SHOW_SECRETS)?;
        Ok(Self { record, show_secrets })
    }

    /// Opens the record file, if recording is enabled.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub(crate) fn open(&self, log: Log) -> Result<Option<RecordFile>, Failure> {
        self.record.as_deref().map(|folder| RecordFile::open(folder, self.show_secrets, log)).transpose()
    }
}

/// Returns whether an environment variable is `true` or `1`, rather than unset, empty, `false`, or `0`.
///
/// # Errors
/// Returns an error if the variable has any other value.
pub(crate) fn is_on(variable: &str) -> Result<bool, Failure> {
    match std::env::var(variable).as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("" | "0" | "false") => Ok(false),
        Ok("1" | "true") => Ok(true),
        Ok(other) => Err(Failure::usage(format!("{variable}={other}: expected true or false"))),
        Err(error) => Err(Failure::usage(format!("{variable}: {error}"))),
    }
}

/// The record of a server. The server writes each request to it.
#[derive(Clone, Debug)]
pub(crate) struct RecordFile {
    lines: LineFile,
    shows_secrets: bool,
}

impl RecordFile {
    /// Creates the record file and, if necessary, its directory. The file name contains the time and the process ID.
    fn open(folder: &Path, shows_secrets: bool, log: Log) -> Result<Self, Failure> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
            Failure::environment(format!(
                "--record: cannot create the directory {}: {error}",
                folder.display()
            ))
        })?;
        let started = Timestamp::now().strftime("%Y%m%dT%H%M%S.%6fZ");
        let path = folder.join(format!("{started}-{}.{}", std::process::id(), line::EXTENSION));
        Ok(Self { lines: LineFile::open("record", &path, log)?, shows_secrets })
    }

    /// Writes a request immediately, before the response is sent.
    pub(super) fn write(&self, report: Report) {
        self.lines.write(&line::line(report, self.shows_secrets));
    }

    /// Checks that every request was written.
    ///
    /// # Errors
    /// Returns an error if a request could not be written.
    pub(crate) fn check_complete(&self) -> Result<(), Failure> {
        self.lines.check_complete("requests")
    }
}
