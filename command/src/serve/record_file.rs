//! The folder of `--record`: a file for each server, with a line for each request that could change something.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::server::RequestObserver;
use jiff::Timestamp;

use super::line_file::LineFile;
use super::log::Log;
use crate::{Failure, review};

/// Whether requests are recorded, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordFlags {
    /// Record each request that could change something, its outcome and what each webhook did, for `admit review
    /// --record`. Each server creates its own file in this folder, readable by its owner only
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Keep the values of Secrets and the tokens in the record, which are masked otherwise
    #[arg(long, requires = "record")]
    show_secrets: bool,
}

/// The environment variables by which the kube-apiserver of `admit assets` has the same flags.
const DIR: &str = "ADMIT_RECORD";
const SHOW_SECRETS: &str = "ADMIT_RECORD_SHOW_SECRETS";

impl RecordFlags {
    /// What the environment says.
    ///
    /// # Errors
    /// A variable has a value that it cannot have.
    pub(crate) fn of_environment() -> Result<Self, Failure> {
        let record = std::env::var_os(DIR).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let show_secrets = is_on(SHOW_SECRETS)?;
        Ok(Self { record, show_secrets })
    }

    /// The file, if there is to be one.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn open(&self, log: Log) -> Result<Option<RecordFile>, Failure> {
        self.record.as_deref().map(|folder| RecordFile::open(folder, self.show_secrets, log)).transpose()
    }
}

/// Whether an environment variable is `true` or `1`; unset, empty, `false` and `0` mean no.
///
/// # Errors
/// It has another value.
pub(crate) fn is_on(variable: &str) -> Result<bool, Failure> {
    match std::env::var(variable).as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("" | "0" | "false") => Ok(false),
        Ok("1" | "true") => Ok(true),
        Ok(other) => Err(Failure::usage(format!("{variable}={other}: expected true or false"))),
        Err(error) => Err(Failure::usage(format!("{variable}: {error}"))),
    }
}

/// The record of one server.
#[derive(Clone, Debug)]
pub(crate) struct RecordFile {
    lines: LineFile,
    shows_secrets: bool,
}

impl RecordFile {
    /// Makes a file that has the time and the process in its name, and the folder if it is not there.
    fn open(folder: &Path, shows_secrets: bool, log: Log) -> Result<Self, Failure> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
            Failure::environment(format!("--record: cannot make the folder {}: {error}", folder.display()))
        })?;
        let started = Timestamp::now().strftime("%Y%m%dT%H%M%S.%6fZ");
        let path = folder.join(format!("{started}-{}.{}", std::process::id(), review::RECORD_EXTENSION));
        Ok(Self { lines: LineFile::open("record", &path, log)?, shows_secrets })
    }

    /// Writes each request at once, before it is answered.
    pub(crate) fn observer(&self) -> RequestObserver {
        let Self { lines, shows_secrets } = self.clone();
        Arc::new(move |request| lines.write(&review::record_line(request, shows_secrets)))
    }

    /// Whether every request was written.
    ///
    /// # Errors
    /// One was not.
    pub(crate) fn is_whole(&self) -> Result<(), Failure> {
        self.lines.is_whole("requests")
    }
}
