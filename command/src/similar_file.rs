//! Suggests the name of an existing file for a path that does not exist.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The minimum similarity of two names, from 0 to 1.
const SIMILAR: f64 = 0.6;

/// Returns `: did you mean PATH?` for the most similar name in the folder of `path`, or an empty string.
///
/// The result is empty unless `error` says that `path` does not exist. The suggestion can replace `path`.
pub(crate) fn suggestion(error: &io::Error, path: &Path) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        suggestion_in(path.parent().unwrap_or(Path::new("")), path)
    } else {
        String::new()
    }
}

/// Returns the suggestion for `path` if the files are in `folder`, which differs from the folder in `path`.
///
/// A path in a feature file is relative to that file.
pub(crate) fn suggestion_in(folder: &Path, path: &Path) -> String {
    nearest(folder, path).map(|nearest| format!(": did you mean {}?", nearest.display())).unwrap_or_default()
}

fn nearest(folder: &Path, path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.collect();
    // The path exists if it is a link to a missing file.
    if names.iter().any(|other| other == name) {
        return None;
    }
    let mut ranked: Vec<(f64, String)> = names
        .into_iter()
        .map(|other| (similarity(name, &other), other))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .collect();
    ranked.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.cmp(other)));
    ranked.into_iter().next().map(|(_, name)| path.with_file_name(name))
}

/// Returns the similarity of two file names.
///
/// If both names have the same extension, only the rest of the names is compared.
fn similarity(name: &str, other: &str) -> f64 {
    let (name, other) = (name.to_lowercase(), other.to_lowercase());
    let split = |name: &str| {
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        (stem.to_owned(), extension.to_owned())
    };
    let ((stem, extension), (other_stem, other_extension)) = (split(&name), split(&other));
    if name == other_stem {
        1.0
    } else if extension == other_extension {
        strsim::normalized_damerau_levenshtein(&stem, &other_stem)
    } else {
        strsim::normalized_damerau_levenshtein(&name, &other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_in_the_same_folder_is_suggested() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["policies.feature", "rules.feature", "webhook.yaml"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let suggested = |name: &str| suggestion_in(folder.path(), Path::new(name));
        assert_eq!(suggested("a/polcies.feature"), ": did you mean a/policies.feature?");
        assert_eq!(suggested("policies"), ": did you mean policies.feature?");
        assert_eq!(suggested("webhooks.yml"), ": did you mean webhook.yaml?");
        assert_eq!(suggested("other.json"), "");
        assert_eq!(suggested("missing.feature"), "");
        assert_eq!(suggested("rules.feature"), "");
        let missing = folder.path().join("policies.featur");
        let error = fs::read(&missing).unwrap_err();
        let expected = format!(": did you mean {}?", folder.path().join("policies.feature").display());
        assert_eq!(suggestion(&error, &missing), expected);
        assert_eq!(suggestion(&error, &folder.path().join("none/policies.feature")), "");
        assert_eq!(suggestion(&io::Error::from(io::ErrorKind::PermissionDenied), &missing), "");
    }
}
