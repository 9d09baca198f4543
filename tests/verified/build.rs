//! Builds a program from a Go module, once, into a cache.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::machine;
use crate::manifest::{GoPackage, Manifest};

/// A program, and the module that it comes from.
pub(crate) struct Built {
    pub(crate) program: PathBuf,
    /// The module's files.
    pub(crate) module: PathBuf,
}

/// Whether programs are to be built, and there is Go; otherwise the test is skipped.
pub(crate) fn can_build() -> bool {
    if std::env::var_os("ADMIT_TEST_WEBHOOKS").is_none() {
        machine::skipped("ADMIT_TEST_WEBHOOKS is not set, and nothing is fetched and built unasked");
        return false;
    }
    machine::has_go()
}

/// The webhook's program.
pub(crate) fn built(manifest: &Manifest) -> Built {
    let module = download(&manifest.go);
    let program = cache().join(format!("{}-{}", manifest.name, manifest.go.version));
    if !program.exists() {
        println!("building {} {}", manifest.go.module, manifest.go.version);
        build(&manifest.go, &module, &program);
    }
    Built { program, module }
}

/// Where programs stay from one run to the next.
fn cache() -> PathBuf {
    let given = std::env::var_os("ADMIT_WEBHOOKS_CACHE").map(PathBuf::from);
    given.unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache/admit/webhooks")
    })
}

/// The folder of a module's files.
fn download(package: &GoPackage) -> PathBuf {
    let module = format!("{}@{}", package.module, package.version);
    let output = go(Path::new("."), ["mod", "download", "-json", &module]);
    let said: Value = serde_json::from_slice(&output).expect("go writes JSON");
    PathBuf::from(said["Dir"].as_str().expect("the module has a folder"))
}

/// `go install` would not obey the module's own replacements: it is built as its main module.
fn build(package: &GoPackage, module: &Path, program: &Path) {
    fs::create_dir_all(program.parent().expect("the cache is a folder")).expect("the cache can be made");
    let part = program.with_extension("part");
    let flags = ["build", "-trimpath", "-ldflags=-s -w", "-o"].map(OsStr::new);
    go(module, flags.into_iter().chain([part.as_os_str(), OsStr::new(&package.package)]));
    fs::rename(part, program).expect("the program can be renamed");
}

fn go<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Vec<u8> {
    let output = Command::new("go")
        .args(arguments)
        .current_dir(folder)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .output()
        .expect("go can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
    output.stdout
}
