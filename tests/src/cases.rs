//! The cases of this repository on disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A case on disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CaseFile {
    /// `<concept>/<behavior>`.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
}

impl CaseFile {
    /// What a person wrote.
    pub fn path(&self) -> PathBuf {
        self.folder.join("case.yaml")
    }

    /// What a server did.
    pub fn recording(&self) -> PathBuf {
        self.folder.join("apiserver.yaml")
    }

    /// What admit does, where that is a known difference.
    pub fn own_answer(&self) -> PathBuf {
        self.folder.join("admit.yaml")
    }
}

/// The folder of the cases.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Every case below `folder` whose name matches `glob`, in order.
///
/// # Errors
/// The folder cannot be read.
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

/// Whether `name` matches `glob`, in which `*` stands for any text.
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
