//! Checks every input in `fuzz/corpus` against its law, including inputs that once broke the law.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use tests::laws;

/// The maximum total size, in bytes, of the inputs for one law. It is small because people also read the inputs.
const MAX_BYTES: u64 = 64 * 1024;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut trials = Vec::new();
    for law in laws::ALL {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder.join(law.name))? {
            files.push(entry?.path());
        }
        files.sort();
        trials.push(small(law.name, &files)?);
        for file in files {
            let input = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            trials.push(Trial::test(format!("{}/{input}", law.name), move || replay(law.name, &file)));
        }
    }
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        trials.push(Trial::test(format!("{name} is the corpus of a law"), move || {
            let is_known = laws::ALL.iter().any(|law| law.name == name);
            if is_known { Ok(()) } else { Err(Failed::from("no law has this name")) }
        }));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn small(law: &str, files: &[PathBuf]) -> std::io::Result<Trial> {
    let mut bytes = 0;
    for file in files {
        bytes += fs::metadata(file)?.len();
    }
    let count = files.len();
    Ok(Trial::test(format!("the corpus of {law} is small, and not empty"), move || {
        if count > 0 && bytes <= MAX_BYTES {
            Ok(())
        } else {
            Err(format!("{count} files, {bytes} bytes").into())
        }
    }))
}

/// Checks a law with an input. The harness reports a panic as a failure of the trial.
fn replay(law: &str, file: &Path) -> Result<(), Failed> {
    laws::check(law, &fs::read(file)?);
    Ok(())
}
