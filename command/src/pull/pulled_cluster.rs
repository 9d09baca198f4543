//! Reads a directory of `admit pull`, for commands that work with the files instead of the cluster.

use std::fmt::Write as _;
use std::path::Path;

use harness::KUBERNETES_VERSION;
use output::lines;
use serde::{Deserialize, Serialize};

use super::folder::{MARKER, Marker};
use super::report::{Origin, Unread, unread_items};
use crate::Failure;
use crate::diagnostic::several;

/// The cluster in a directory of `admit pull`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PulledCluster {
    /// The directory, as specified by the user.
    directory: String,
    #[serde(flatten)]
    origin: Origin,
    /// What could not be read.
    unread: Vec<Unread>,
}

impl PulledCluster {
    /// Reads the marker in the directory of `option`, such as `--cluster`.
    ///
    /// # Errors
    /// Returns a usage failure if the directory is not from a complete `admit pull`.
    pub(crate) fn open(option: &str, path: &Path) -> Result<Self, Failure> {
        let directory = path.display().to_string();
        let wrong = |what: &str| Failure::usage(format!("{option} {directory}: {what}"));
        if !path.is_dir() {
            let what = if path.exists() { "is not a directory" } else { "does not exist" };
            return Err(wrong(&format!("{what}: run `admit pull --out DIR`, and pass DIR")));
        }
        let file = path.join(MARKER);
        if !file.exists() {
            return Err(wrong(&format!(
                "does not contain {MARKER}: run `admit pull --out DIR`, and pass DIR"
            )));
        }
        let Marker { origin, interrupted, unread, .. } = Marker::read(&file)?;
        if interrupted {
            return Err(wrong(&format!(
                "{MARKER} says that `admit pull` was interrupted: run `admit pull --out {directory}` again"
            )));
        }
        Ok(Self { directory, origin, unread })
    }

    /// Returns whether everything could be read.
    pub(crate) fn is_complete(&self) -> bool {
        self.unread.is_empty()
    }

    /// Returns whether `namespace` and its objects were read. An empty namespace stands for cluster-scoped objects.
    pub(crate) fn covers(&self, namespace: &str) -> bool {
        let namespaces = &self.origin.namespaces;
        let is_unread =
            |item: &Unread| item.resource == "namespaces" && (item.name.is_empty() || item.name == namespace);
        namespace.is_empty()
            || (namespaces.is_empty() || namespaces.iter().any(|own| own == namespace))
                && !self.unread.iter().any(is_unread)
    }

    /// Returns notes about what could not be read, and about a version that admit does not implement.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Self { directory, origin, unread } = self;
        let mut notes = Vec::new();
        let version = &origin.server_version;
        if minor(version) != minor(KUBERNETES_VERSION) {
            let own = minor(KUBERNETES_VERSION).unwrap_or(KUBERNETES_VERSION);
            notes.push(format!(
                "note: {directory} is from Kubernetes {version}, and admit implements {own}: defaults, validation, and \
                 admission plugins can differ"
            ));
        }
        if !unread.is_empty() {
            let mut text = format!(
                "warning: {directory} is incomplete: `admit pull` could not read {}",
                several(unread.len(), "item")
            );
            let _ = write!(text, "\n{}", unread_items(unread));
            notes.push(lines(text.trim_end()).into_owned());
        }
        notes
    }
}

/// Returns the major and minor version, such as `1.37`.
fn minor(version: &str) -> Option<&str> {
    let version = version.trim_start_matches('v');
    let (end, _) = version.match_indices('.').nth(1)?;
    version.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minor_version_does_not_contain_the_patch() {
        for (version, expected) in [
            ("v1.37.1", Some("1.37")),
            ("v1.33.2-eks-1a2b", Some("1.33")),
            ("v1.37.1+admit", Some("1.37")),
            ("1", None),
        ] {
            assert_eq!(minor(version), expected, "{version}");
        }
    }
}
