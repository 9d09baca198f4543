//! Files of fakes: their text, which goes into the cluster, and what it means, which says what else goes there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use certs::Name;
use fake_webhooks::{FakesFile, Plan, RemoteAccess};

use crate::{Failure, documents};

/// Files of fakes.
#[derive(Debug, clap::Args)]
pub(crate) struct FileArguments {
    /// A file of fakes; `-` reads standard input. May be given several times
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// A file of fakes as it is written, and as it is understood.
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
        let files = self.files.iter().map(|path| SourceFile::read(path)).collect::<Result<Vec<_>, _>>()?;
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
    fn read(path: &Path) -> Result<Self, Failure> {
        let is_stdin = path.as_os_str() == "-";
        let shown = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let bytes = output::read(path).map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
        let text = documents::text(bytes, &shown)?;
        let file = Self::parse(text, &shown)?;
        if file.parsed.webhooks.is_empty() {
            return Err(Failure::usage(format!("{shown}: `webhooks` is empty: expected at least one")));
        }
        Ok(file)
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
