//! Law: `admit review` prints a report for any input, or reports which file is invalid.
//!
//! The input is a line with options, and then four files, separated by `---`: the objects, `--old`, `--with`, and the
//! configurations. Empty files are not passed. If the configurations are empty, `CONFIGURATIONS` is used. A file may be
//! an object as in [`documents`].

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{documents, runtime, with_text};

/// The default configurations: one that matches nothing, one with match conditions, and one that is unreachable.
const CONFIGURATIONS: &str = include_str!("configurations.yaml");

/// Checks the law for one input.
///
/// # Panics
/// Panics if the law does not hold.
pub(super) fn check(input: &[u8]) {
    with_text(input, |text| {
        let Some((options, files)) = text.split_once('\n') else { return };
        // Options that refer to another file, or another host, are not part of the input.
        let named = ["--service", "--fakes", "-c", "-f", "--with", "--old", "--filename", "--configurations"];
        if options.split(' ').any(|word| named.iter().any(|name| word.starts_with(name))) {
            return;
        }
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"));
        let [objects, old, existing, configurations] = documents::parts(files);
        let mut arguments: Vec<String> =
            options.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        add(&mut arguments, folder.path(), "-f", &objects);
        add(&mut arguments, folder.path(), "--old", &old);
        add(&mut arguments, folder.path(), "--with", &existing);
        let configurations = if configurations.trim().is_empty() { CONFIGURATIONS } else { &configurations };
        add(&mut arguments, folder.path(), "-c", configurations);
        match runtime::block_on(admit_command::testing::review(&arguments)) {
            Ok(text) => check_text(&arguments, &text),
            Err(failure) => assert!(!failure.to_string().is_empty()),
        }
    });
}

/// Writes a file and adds an option for it, unless the content is empty.
fn add(arguments: &mut Vec<String>, folder: &Path, option: &str, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    let text = documents::object(text).map_or_else(|| text.to_owned(), |object| object.to_string());
    let path = folder.join(format!("{}.yaml", option.trim_start_matches('-')));
    fs::write(&path, text).unwrap_or_else(|error| panic!("no temporary file: {error}"));
    arguments.extend([option.to_owned(), path.display().to_string()]);
}

fn check_text(arguments: &[String], text: &str) {
    assert!(!text.is_empty(), "{arguments:?} prints nothing");
    if arguments.iter().any(|argument| argument == "-ojson") {
        assert!(serde_json::from_str::<Value>(text).is_ok(), "this is no JSON: {text}");
    }
}
