//! Finds the case files in this repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The number of times that a case runs again if it cannot be run or the servers disagree.
///
/// kube-apiserver itself answers some requests at random. For example, it names one of several undeclared fields of an
/// apply, a different one each time.
pub const MAX_RETRIES: usize = 5;

/// A case directory on disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CaseFile {
    /// The name of the case: `<concept>/<behavior>`.
    pub name: String,
    /// The directory of the case.
    pub folder: PathBuf,
}

impl CaseFile {
    /// Returns the path of the handwritten case file.
    pub fn path(&self) -> PathBuf {
        self.folder.join("case.yaml")
    }

    /// Returns the path of the recording of a real server.
    pub fn recording(&self) -> PathBuf {
        self.folder.join("apiserver.yaml")
    }

    /// Returns the path of admit's recorded answer. The file exists if there is a known difference.
    pub fn own_answer(&self) -> PathBuf {
        self.folder.join("admit.yaml")
    }
}

/// Returns the directory that contains all cases.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Returns every case below `folder` whose name matches `glob`, in order.
///
/// # Errors
/// Returns an error if the directory cannot be read.
pub fn find(folder: &Path, glob: &str) -> io::Result<Vec<CaseFile>> {
    let mut found = Vec::new();
    for concept in folders(folder)? {
        for behavior in folders(&concept)? {
            let name = behavior.strip_prefix(folder).map(|name| name.display().to_string());
            if let Ok(name) = name
                && matches(glob, &name)
                && behavior.join("case.yaml").is_file()
            {
                found.push(CaseFile { name, folder: behavior });
            }
        }
    }
    found.sort();
    Ok(found)
}

fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns whether `name` matches `glob`, where `*` matches any sequence of characters.
pub fn matches(glob: &str, name: &str) -> bool {
    match glob.split_once('*') {
        None => glob == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(index, _)| index)
                .chain([rest.len()])
                .filter_map(|at| rest.get(at..))
                .any(|rest| matches(after, rest))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (glob, name, expected) in [
            ("a/b", "a/b", true),
            ("a/*", "a/b", true),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(glob, name), expected, "{glob} {name}");
        }
    }
}
