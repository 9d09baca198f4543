//! Writes the files of a pull: all files are complete before the first one is replaced.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use output::Readers;
use serde::{Deserialize, Serialize};

use super::report::{Changes, Origin, Unread};
use crate::machine_readable::API_VERSION;
use crate::{Failure, machine_readable};

/// The file that describes a pull. Commands that read manifests ignore hidden files.
pub(super) const MARKER: &str = ".admit-pull.yaml";
/// The directory of the files until all of them are complete.
const STAGING: &str = ".admit-pull.tmp";
const KIND: &str = "Pull";
/// The version of the marker and of the names of files. It increases when an older admit could misread a directory.
const FORMAT: u32 = 1;

/// The content of the marker.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Marker {
    api_version: String,
    kind: String,
    format: u32,
    #[serde(flatten)]
    pub(super) origin: Origin,
    /// Whether a pull was interrupted while it replaced files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) interrupted: bool,
    /// What could not be read.
    pub(super) unread: Vec<Unread>,
    /// The files that the pull wrote, relative to the directory.
    files: BTreeSet<String>,
}

impl Marker {
    /// Reads the marker in this file.
    ///
    /// # Errors
    /// Returns a usage failure if the file cannot be read or is invalid.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let invalid = |what: &dyn Display| Failure::usage(format!("{}: {what}", file.display()));
        let text = fs::read_to_string(file).map_err(|error| invalid(&error))?;
        let marker: Self = serde_saphyr::from_str(&text).map_err(|error| {
            invalid(&format!(
                "invalid marker of `admit pull`: {}; pull into a new directory",
                error.without_snippet()
            ))
        })?;
        if marker.format != FORMAT {
            return Err(invalid(&format!(
                "unsupported format {}: this version of admit supports {FORMAT}; pull into a new directory",
                marker.format
            )));
        }
        // Only files below these directories are ever removed.
        let is_own = |path: &String| {
            let mut parts = Path::new(path).components();
            let first = parts.next();
            let is_top = [Component::Normal("cluster".as_ref()), Component::Normal("namespaces".as_ref())]
                .into_iter()
                .any(|top| first == Some(top));
            is_top && parts.all(|part| matches!(part, Component::Normal(_)))
        };
        match marker.files.iter().find(|path| !is_own(path)) {
            Some(path) => {
                Err(invalid(&format!("invalid file {path:?}: expected a path below cluster or namespaces")))
            }
            None => Ok(marker),
        }
    }
}

/// The directory of a pull.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The files of the previous pull.
    previous: BTreeSet<String>,
    staged: BTreeSet<String>,
}

impl Folder {
    /// Checks that the directory is new, empty, or from a previous pull. Nothing is written.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let mut folder = Self { path: path.to_owned(), previous: BTreeSet::new(), staged: BTreeSet::new() };
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(folder),
            Err(error) => return Err(folder.wrong(&error)),
        };
        let entries: Result<Vec<_>, io::Error> = entries.map(|entry| Ok(entry?.file_name())).collect();
        let entries = entries.map_err(|error| folder.wrong(&error))?;
        if entries.iter().any(|name| name == MARKER) {
            folder.previous = Marker::read(&path.join(MARKER))?.files;
        } else if entries.iter().any(|name| !name.as_encoded_bytes().starts_with(b".")) {
            return Err(folder.wrong(
                &"the directory contains files and is not from `admit pull`: pass a new or empty directory",
            ));
        }
        Ok(folder)
    }

    fn wrong(&self, what: &dyn Display) -> Failure {
        Failure::usage(format!("--out {}: {what}", self.path.display()))
    }

    /// Returns an error about writing the file at `path`, relative to the directory.
    fn unwritable(&self, path: &str, error: &io::Error) -> Failure {
        Failure::environment(format!("cannot write {}: {error}", self.path.join(path).display()))
    }

    /// Creates the directory, and removes what an interrupted pull left.
    pub(super) fn prepare(&self) -> Result<(), Failure> {
        let staging = self.path.join(STAGING);
        fs::create_dir_all(&self.path).map_err(|error| self.wrong(&error))?;
        match fs::remove_dir_all(&staging) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(self.unwritable(STAGING, &error)),
            Ok(()) | Err(_) => {}
        }
        fs::create_dir(&staging).map_err(|error| self.unwritable(STAGING, &error))
    }

    /// Writes a file to the staging directory. Returns whether it is new: policies may have the same params.
    pub(super) fn stage(&mut self, path: String, text: &str) -> Result<bool, Failure> {
        let file = self.path.join(STAGING).join(&path);
        let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, text));
        written.map_err(|error| self.unwritable(&path, &error))?;
        Ok(self.staged.insert(path))
    }

    /// Returns whether the pull has a file at this path.
    pub(super) fn is_staged(&self, path: &str) -> bool {
        self.staged.contains(path)
    }

    /// Moves the staged files to the directory and removes the files of objects that no longer exist.
    pub(super) fn publish(&self, origin: &Origin, unread: &[Unread]) -> Result<Changes, Failure> {
        let mut changes = Changes::default();
        let mut moved = Vec::new();
        for path in &self.staged {
            self.check_parents(path)?;
            let (new, target) = (self.path.join(STAGING).join(path), self.path.join(path));
            let old = match fs::symlink_metadata(&target) {
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(self.unwritable(path, &error)),
                Ok(_) if !self.previous.contains(path) => {
                    let what = "the file exists and was not written by `admit pull`: move it";
                    return Err(Failure::usage(format!("{}: {what}", target.display())));
                }
                Ok(_) => Some(fs::read(&target).map_err(|error| self.unwritable(path, &error))?),
            };
            let text = fs::read(&new).map_err(|error| self.unwritable(path, &error))?;
            match old {
                None => changes.added += 1,
                Some(old) if old == text => {
                    changes.unchanged += 1;
                    continue;
                }
                Some(_) => changes.changed += 1,
            }
            moved.push((path, new, target));
        }
        let stale: Vec<&String> = self.previous.difference(&self.staged).collect();
        let marker = |interrupted: bool, files: BTreeSet<String>| Marker {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            format: FORMAT,
            origin: origin.clone(),
            interrupted,
            unread: unread.to_vec(),
            files,
        };
        if !moved.is_empty() || !stale.is_empty() {
            // If this process is killed, the next pull knows all files.
            self.write_marker(&marker(true, self.previous.union(&self.staged).cloned().collect()))?;
        }
        for (path, new, target) in moved {
            let made = target.parent().map_or(Ok(()), fs::create_dir_all);
            made.and_then(|()| fs::rename(new, &target)).map_err(|error| self.unwritable(path, &error))?;
        }
        for path in stale {
            self.check_parents(path)?;
            match fs::remove_file(self.path.join(path)) {
                Ok(()) => changes.removed += 1,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(self.unwritable(path, &error)),
            }
            self.remove_empty_parents(path);
        }
        self.write_marker(&marker(false, self.staged.clone()))?;
        Ok(changes)
    }

    fn write_marker(&self, marker: &Marker) -> Result<(), Failure> {
        let file = self.path.join(MARKER);
        let text = machine_readable::yaml(marker)?;
        if fs::read_to_string(&file).is_ok_and(|old| old == text) {
            return Ok(());
        }
        output::write(&file, text.as_bytes(), Readers::Umask).map_err(|error| self.unwritable(MARKER, &error))
    }

    /// Rejects links in the path: files outside of the directory must not change.
    fn check_parents(&self, path: &str) -> Result<(), Failure> {
        for parent in Path::new(path).ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            let parent = self.path.join(parent);
            if fs::symlink_metadata(&parent).is_ok_and(|found| !found.is_dir()) {
                let what = "expected a directory: move the file or link";
                return Err(Failure::usage(format!("{}: {what}", parent.display())));
            }
        }
        Ok(())
    }

    fn remove_empty_parents(&self, path: &str) {
        for parent in Path::new(path).ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            // A directory with other files remains.
            if fs::remove_dir(self.path.join(parent)).is_err() {
                return;
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The next pull removes it otherwise.
        drop(fs::remove_dir_all(self.path.join(STAGING)));
    }
}
