//! Files of fakes: their text, which goes into the cluster, and what it means, which says what else goes there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use certs::Name;
use fake_webhooks::{FakesFile, Plan, RemoteAccess};

use super::stand_ins;
use crate::{Failure, documents};

/// Files of fakes.
#[derive(Debug, clap::Args)]
pub(crate) struct FileArguments {
    /// A file of fakes, or a manifest with webhook configurations, for which fakes stand in that allow everything; `-` reads
    /// standard input. May be given several times
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// A file of fakes as it is written, or as it is made of a manifest, and as it is understood.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// What is written in it.
    pub(crate) text: String,
    /// What that means.
    parsed: FakesFile,
}

/// Files of fakes, and where in a pod their webhooks are.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The files.
    pub(crate) files: Vec<SourceFile>,
    /// Which port serves which webhook.
    pub(crate) plan: Plan,
}

impl FileArguments {
    /// Reads the files, and places their webhooks at `listen`, where they are called by the name `host`.
    ///
    /// # Errors
    /// A file cannot be read or understood, or the files contradict each other.
    pub(crate) fn read(&self, listen: SocketAddr, host: &str) -> Result<Source, Failure> {
        let mut files = Vec::new();
        for path in &self.files {
            files.extend(SourceFile::read(path)?);
        }
        Source::place(files, listen, host)
    }
}

impl Source {
    /// Places the webhooks of `files` at `listen`, where they are called by the name `host`.
    ///
    /// # Errors
    /// The files contradict each other.
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
    fn read(path: &Path) -> Result<Vec<Self>, Failure> {
        let is_stdin = path.as_os_str() == "-";
        let shown = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let bytes = output::read(path).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
        let files = Self::all(documents::text(bytes, &shown)?, &shown)?;
        if files.iter().all(|file| file.parsed.webhooks.is_empty()) {
            return Err(Failure::usage(format!("{shown}: `webhooks` is empty: expected at least one")));
        }
        Ok(files)
    }

    /// The file of fakes that `text` is, or those of the webhook configurations in it, if it is a manifest.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    fn all(text: String, shown: &str) -> Result<Vec<Self>, Failure> {
        if !stand_ins::is_manifest(&text) {
            return Ok(vec![Self::parse(text, shown)?]);
        }
        let files = stand_ins::of_manifest(text, shown)?;
        files.iter().map(|file| Self::parse(file.to_string(), shown)).collect()
    }

    /// Understands `text`, which messages call `shown`.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub(crate) fn parse(text: String, shown: &str) -> Result<Self, Failure> {
        let parsed = FakesFile::parse(&text, shown).map_err(Failure::usage)?;
        Ok(Self { text, parsed })
    }
}

/// What a file means that has fakes or is a manifest with webhook configurations, for which fakes stand in.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub(crate) fn understand(text: &str, shown: &str) -> Result<Vec<FakesFile>, Failure> {
    Ok(SourceFile::all(text.to_owned(), shown)?.into_iter().map(|file| file.parsed).collect())
}
