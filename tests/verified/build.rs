//! Builds a program from a Go module, once, into a cache.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::manifest::{GoPackage, Manifest};

/// A program, and the module that it comes from.
pub(crate) struct Built {
    pub(crate) program: PathBuf,
    /// The module's files.
    pub(crate) module: PathBuf,
}

/// The webhook's program; none, and a reason is printed, if it is not asked for or there is no Go.
pub(crate) fn built(manifest: &Manifest) -> Option<Built> {
    if std::env::var_os("ADMIT_TEST_WEBHOOKS").is_none() {
        println!("skipped: ADMIT_TEST_WEBHOOKS is not set, and nothing is fetched and built unasked");
        return None;
    }
    if let Err(error) = Command::new("go").arg("version").output() {
        println!("skipped: go cannot be run: {error}");
        return None;
    }
    let module = download(&manifest.go);
    let program = cache().join(format!("{}-{}", manifest.name, manifest.go.version));
    if !program.exists() {
        println!("building {} {}", manifest.go.module, manifest.go.version);
        build(&manifest.go, &module, &program);
    }
    Some(Built { program, module })
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
