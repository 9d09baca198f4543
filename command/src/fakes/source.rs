//! Reads fakes files, and keeps their text so that it can be deployed to a cluster.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use certs::Name;
use fake_webhooks::{FakesFile, Plan, RemoteAccess};

use super::stand_ins;
use crate::{Failure, documents};

/// The options for fakes files.
#[derive(Debug, clap::Args)]
pub(crate) struct FileArguments {
    /// Read fakes from this file, or - for standard input; can be repeated. A manifest with webhook configurations is
    /// replaced by fakes that allow every request
    #[arg(short, long = "filename", alias = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// A fakes file, or a file that is generated from a manifest, with its parsed contents.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    pub(crate) text: String,
    /// The fakes file in `text`, parsed.
    pub(super) parsed: FakesFile,
}

/// Fakes files and the ports of their webhooks in a pod.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) files: Vec<SourceFile>,
    /// The webhooks of the files and their ports.
    pub(crate) plan: Plan,
}

impl FileArguments {
    /// Reads the files and assigns their webhooks to ports from `listen`; callers use the name `host`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is invalid, or the files conflict.
    pub(crate) fn read(&self, listen: SocketAddr, host: &str) -> Result<Source, Failure> {
        let mut files = Vec::new();
        for path in &self.files {
            files.extend(SourceFile::read(path)?);
        }
        Source::place(files, listen, host)
    }
}

impl Source {
    /// Assigns the webhooks of `files` to ports from `listen`; callers use the name `host`.
    ///
    /// # Errors
    /// Returns an error if the files conflict.
    pub(crate) fn place(files: Vec<SourceFile>, listen: SocketAddr, host: &str) -> Result<Self, Failure> {
        let host: Name = host.parse().map_err(Failure::usage)?;
        let placed: Vec<FakesFile> = files
            .iter()
            .map(|file| FakesFile {
                listen,
                host: Some(host.clone()),
                remote_access: RemoteAccess::Allowed,
                ..file.parsed.clone()
            })
            .collect();
        let plan = Plan::new(&placed).map_err(Failure::usage)?;
        Ok(Self { files, plan })
    }
}

impl SourceFile {
    /// Reads a fakes file or a manifest with webhook configurations; `-` is standard input.
    ///
    /// # Errors
    /// Returns a usage failure if the file cannot be read, is invalid, or does not contain webhooks.
    pub(super) fn read(path: &Path) -> Result<Vec<Self>, Failure> {
        let is_stdin = path.as_os_str() == "-";
        let shown = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let bytes =
            output::read_for_server(path).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
        let files = Self::all(documents::text(bytes, &shown)?, &shown)?;
        if files.iter().all(|file| file.parsed.webhooks.is_empty()) {
            return Err(Failure::usage(format!("{shown}: `webhooks` is empty: must contain at least one")));
        }
        Ok(files)
    }

    /// Parses a fakes file, or generates fakes files for the webhook configurations in a manifest.
    ///
    /// # Errors
    /// Returns the first error with its location.
    fn all(text: String, shown: &str) -> Result<Vec<Self>, Failure> {
        if !stand_ins::is_manifest(&text) {
            return Ok(vec![Self::parse(text, shown)?]);
        }
        let files = stand_ins::from_manifest(text, shown)?;
        files.iter().map(|file| Self::parse(file.to_string(), shown)).collect()
    }

    /// Parses a fakes file; `shown` is its name in messages.
    ///
    /// # Errors
    /// Returns the first error with its location.
    pub(crate) fn parse(text: String, shown: &str) -> Result<Self, Failure> {
        let parsed = FakesFile::parse(&text, shown).map_err(Failure::usage)?;
        Ok(Self { text, parsed })
    }
}

/// Parses a fakes file or a manifest with webhook configurations.
///
/// # Errors
/// Returns the first error with its location.
pub(super) fn understand(text: &str, shown: &str) -> Result<Vec<FakesFile>, Failure> {
    Ok(SourceFile::all(text.to_owned(), shown)?.into_iter().map(|file| file.parsed).collect())
}
