//! Reads the directories that the configuration of the webhook plugins specifies in `staticManifestsDir`.

mod watch;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use harness::config::Phase;
use harness::manifests::{self, ManifestError, ManifestFile, Manifests, StaticManifests};
use harness::quoting::{quote, system_error};

pub(crate) use self::watch::{Change, Watch};
use crate::Failure;

/// The manifest directory of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    /// The phase of the plugin.
    phase: Phase,
    /// The absolute path, as written in the plugin's configuration.
    path: String,
}

/// The content of the plugins' manifest directories at startup.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loaded {
    /// The configured directories.
    pub(crate) folders: Vec<Folder>,
    /// The manifests in the directories.
    pub(crate) manifests: StaticManifests,
}

impl Loaded {
    /// Loads the manifest directory of a plugin; does nothing if `path` is empty.
    ///
    /// Rule: LOAD-14.
    ///
    /// # Errors
    /// Returns kube-apiserver's startup error, or an error for a feature that admit does not support.
    pub(crate) fn load(&mut self, phase: Phase, path: &str) -> Result<(), ManifestError> {
        if path.is_empty() {
            return Ok(());
        }
        let folder = Folder { phase, path: path.to_owned() };
        let found = folder.load().map_err(|error| match error {
            ManifestError::Invalid(text) => {
                let path = quote(path);
                ManifestError::Invalid(format!("failed to load static webhook manifests from {path}: {text}"))
            }
            ManifestError::Unsupported(_) => error,
        })?;
        match phase {
            Phase::Mutating => self.manifests.mutating = Some(found),
            Phase::Validating => self.manifests.validating = Some(found),
        }
        self.folders.push(folder);
        Ok(())
    }

    /// Returns the configurations of the mutating plugin, followed by those of the validating plugin.
    pub(crate) fn configurations(&self) -> impl Iterator<Item = &serde_json::Value> {
        let StaticManifests { mutating, validating } = &self.manifests;
        let all = mutating.iter().chain(validating).flat_map(|manifests| &manifests.configurations);
        all.map(|configuration| &**configuration)
    }
}

/// Checks that `path` can be a manifest directory.
///
/// # Errors
/// Returns kube-apiserver's startup error.
///
/// Source: apiserver pkg/admission/plugin/manifest/validation.go, `ValidateStaticManifestsDir`.
/// Rule: LOAD-10, NEW-04.
pub(crate) fn check(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Ok(());
    }
    let wrong = |what: String| Err(format!("staticManifestsDir: Invalid value: {}: {what}", quote(path)));
    if !path.starts_with('/') {
        return wrong("must be an absolute file path".to_owned());
    }
    match fs::metadata(path) {
        Err(error) => wrong(format!("unable to read: stat {path}: {}", system_error(&error))),
        Ok(metadata) if !metadata.is_dir() => wrong("must be a directory".to_owned()),
        Ok(_) => Ok(()),
    }
}

impl Folder {
    /// Loads the current content of the directory.
    ///
    /// # Errors
    /// Returns an error with kube-apiserver's message if a file cannot be read or is invalid.
    fn load(&self) -> Result<Manifests, ManifestError> {
        let files = self.files().map_err(ManifestError::Invalid)?;
        manifests::load(self.phase, &files)
    }

    /// Reads the manifests in the directory, sorted by name; subdirectories are ignored.
    ///
    /// Source: apiserver pkg/admission/plugin/manifest/loader.go, `LoadFiles`.
    fn files(&self) -> Result<Vec<ManifestFile>, String> {
        let folder = Path::new(&self.path);
        let unreadable = |error: &io::Error| {
            let path = &self.path;
            format!("failed to read manifest directory {}: open {path}: {}", quote(path), system_error(error))
        };
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut entries = entries.map_err(|error| unreadable(&error))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let mut files = Vec::new();
        for entry in entries {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder || !manifests::is_manifest(&entry.file_name().to_string_lossy()) {
                continue;
            }
            // Normalized for messages, without empty components.
            let path: PathBuf = folder.join(entry.file_name()).components().collect();
            let path = path.display().to_string();
            let bytes = output::read_regular(&entry.path()).map_err(|error| {
                let did = if error.kind() == io::ErrorKind::IsADirectory { "read" } else { "open" };
                format!("failed to read file {}: {did} {path}: {}", quote(&path), system_error(&error))
            })?;
            files.push(ManifestFile { path, bytes });
        }
        Ok(files)
    }

    /// Returns the name of the plugin that the directory belongs to.
    fn plugin(&self) -> &'static str {
        match self.phase {
            Phase::Mutating => crate::admission_plugins::MUTATING,
            Phase::Validating => crate::admission_plugins::VALIDATING,
        }
    }
}

impl From<(String, ManifestError)> for Failure {
    /// Converts the location and the error of a manifest to a failure at startup.
    fn from((place, error): (String, ManifestError)) -> Self {
        let message = format!("{place}: {error}");
        match error {
            ManifestError::Unsupported(_) => Self::unsupported(message),
            ManifestError::Invalid(_) => Self::usage(message),
        }
    }
}
