//! Files of fakes: their text, which goes into the cluster, and what it means, which says what else goes there.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::PathBuf;

use fake_webhooks::{FakeEntry, FakesFile};

use crate::Failure;

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
    /// How messages call it.
    pub(crate) shown: String,
    /// What is written in it.
    pub(crate) text: String,
    /// What that means.
    pub(crate) parsed: FakesFile,
}

/// One webhook of a file, and where in the pod it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    /// The name of the configuration that it stands in.
    pub(crate) configuration: &'a str,
    /// What the file says of it.
    pub(crate) entry: &'a FakeEntry,
    /// The port at which it listens.
    pub(crate) port: u16,
}

impl FileArguments {
    /// Reads and understands the files.
    ///
    /// # Errors
    /// A file cannot be read or understood, or two files have the same name for their configurations.
    pub(crate) fn read(&self) -> Result<Vec<SourceFile>, Failure> {
        let files = self.files.iter().map(SourceFile::read).collect::<Result<Vec<_>, _>>()?;
        let mut names = BTreeSet::new();
        match files.iter().find(|file| !names.insert(&file.parsed.name)) {
            None => Ok(files),
            Some(file) => Err(Failure::usage(format!(
                "{}: another file has configurations named `{}` too: give one of them another `name`",
                file.shown, file.parsed.name
            ))),
        }
    }
}

impl SourceFile {
    fn read(path: &PathBuf) -> Result<Self, Failure> {
        let is_stdin = path.as_os_str() == "-";
        let shown = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let read = || {
            if !is_stdin {
                return std::fs::read_to_string(path);
            }
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        };
        let text = read().map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
        let parsed = FakesFile::parse(&text, &shown).map_err(Failure::usage)?;
        Ok(Self { shown, text, parsed })
    }
}

/// The webhooks of `files` in their order, from `first_port` on.
pub(crate) fn place(files: &[SourceFile], first_port: u16) -> Vec<Placed<'_>> {
    let mut placed = Vec::new();
    let mut next = first_port;
    for file in files {
        let mut ports = Vec::new();
        for entry in &file.parsed.webhooks {
            let known = ports.iter().find(|(certificate, _)| *certificate == entry.certificate);
            let port = known.map_or(next, |(_, port)| *port);
            if known.is_none() {
                ports.push((entry.certificate, next));
                next += 1;
            }
            placed.push(Placed { configuration: &file.parsed.name, entry, port });
        }
    }
    placed
}
