//! Law: any feature and `--tags` expression selects scenarios or is rejected with a message that names the file.
//!
//! The input is a line with a tag expression, and then a feature.

use std::io::Write as _;

use super::with_text;

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    with_text(input, |text| {
        let (tags, feature) = text.split_once('\n').unwrap_or((text, ""));
        let file = tempfile::Builder::new().suffix(".feature").tempfile();
        let mut file = file.unwrap_or_else(|error| panic!("no temporary file: {error}"));
        file.write_all(feature.as_bytes()).unwrap_or_else(|error| panic!("no temporary file: {error}"));
        let tags = Some(tags).filter(|tags| !tags.is_empty());
        let name = file.path().display().to_string();
        if let Err(failure) = admit_command::testing::features(file.path(), tags) {
            let message = failure.to_string();
            assert!(message.contains(&name) || message.contains("tag expression"), "{message}");
        }
    });
}
