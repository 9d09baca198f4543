//! Installs the package of a webhook from its registry into a cache, unless the cache contains it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::manifest::{GoPackage, Manifest, Package, Source};
use crate::helpers::machine;

/// The installed program of a webhook.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) program: PathBuf,
    /// The arguments that precede those of the webhook.
    pub(crate) arguments: Vec<OsString>,
    /// The environment variables that the program needs to find its files.
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// The directory with the files of the package, or with all installed packages.
    pub(crate) folder: PathBuf,
}

/// Returns whether webhooks should be installed, and the tools are available; otherwise skips the test.
pub(crate) fn has_tools(source: &Source) -> bool {
    if std::env::var_os("ADMIT_TEST_WEBHOOKS").is_none() {
        machine::skipped("ADMIT_TEST_WEBHOOKS is not set, and nothing is fetched and built unasked");
        return false;
    }
    match source {
        Source::Go(_) => machine::has_go(),
        Source::Pip(_) => machine::has_python(),
        Source::Npm(_) => machine::has_node(),
        Source::Maven(_) => machine::has_java(),
        Source::Cargo(_) => machine::has_cargo(),
    }
}

/// Returns the webhook from the cache, or installs it from its registry.
///
/// # Errors
/// Returns the error of the registry's client if it cannot fetch the package.
pub(crate) fn installed(manifest: &Manifest) -> Result<Installed, String> {
    let folder = cache().join(format!("{}-{}", manifest.name, manifest.from.version()));
    match &manifest.from {
        Source::Go(package) => from_go(manifest, package, folder),
        Source::Pip(package) => from_pip(manifest, package, folder),
        Source::Npm(package) => from_npm(manifest, package, &folder),
        Source::Maven(package) => from_maven(manifest, package, folder),
        Source::Cargo(package) => from_cargo(manifest, package, folder),
    }
}

/// Returns the directory that keeps webhooks between runs.
fn cache() -> PathBuf {
    let given = std::env::var_os("ADMIT_WEBHOOKS_CACHE").map(PathBuf::from);
    given.unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache/admit/webhooks")
    })
}

/// Builds the program in its own module, because `go install` would ignore the module's `replace` directives.
///
/// If these refer to directories that the published module lacks, `go.mod` in the webhook's directory pins the module
/// and its dependencies.
fn from_go(manifest: &Manifest, package: &GoPackage, program: PathBuf) -> Result<Installed, String> {
    let go = |folder: &Path| {
        let mut command = Command::new("go");
        command.current_dir(folder).env("CGO_ENABLED", "0").env("GOWORK", "off");
        command
    };
    let pins = manifest.folder().join("go.mod");
    let module = format!("{}@{}", package.module, package.version);
    let said = run(go(Path::new(".")).args(["mod", "download", "-json", &module]))?;
    let said: Value = serde_json::from_slice(&said).expect("go writes JSON");
    let folder = PathBuf::from(said["Dir"].as_str().expect("the module has a folder"));
    let main = if pins.exists() {
        assert_pinned(&pins, &format!("{}{}", package.module, package.version));
        manifest.folder()
    } else {
        folder.clone()
    };
    once(&program, |part| {
        let mut build = go(&main);
        build
            .args(["build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o"])
            .arg(part)
            .arg(&package.package);
        run(&mut build).expect("the module can be built");
        Ok(())
    })?;
    Ok(Installed { program, arguments: Vec::new(), environment: Vec::new(), folder })
}

/// Installs with pip. Every file must have one of the hashes in `requirements.txt`.
fn from_pip(manifest: &Manifest, package: &Package, folder: PathBuf) -> Result<Installed, String> {
    let requirements = manifest.folder().join("requirements.txt");
    assert_pinned(&requirements, &format!("{}=={}\\", package.package, package.version));
    once(&folder, |part| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary=:all:", "--target"]);
        run(pip.arg(part).arg("--requirement").arg(&requirements)).map(drop)
    })?;
    Ok(Installed {
        program: PathBuf::from("python3"),
        arguments: ["-m".into(), OsString::from(&package.package)].into(),
        environment: vec![("PYTHONPATH", folder.clone().into_os_string())],
        folder,
    })
}

/// Installs with npm. Every package must have the hash in `package-lock.json`.
///
/// Scripts of packages do not run. Peer dependencies are omitted, because only development needs them.
fn from_npm(manifest: &Manifest, package: &Package, folder: &Path) -> Result<Installed, String> {
    let pinned = format!("\"{}\":\"{}\"", package.package, package.version);
    assert_pinned(&manifest.folder().join("package.json"), &pinned);
    once(folder, |part| {
        fs::create_dir_all(part).expect("the folder can be made");
        for file in ["package.json", "package-lock.json"] {
            fs::copy(manifest.folder().join(file), part.join(file)).expect("the file can be copied");
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"])
            .current_dir(part);
        run(&mut npm).map(drop)
    })?;
    let modules = folder.join("node_modules");
    Ok(Installed {
        program: PathBuf::from("node"),
        arguments: Vec::new(),
        environment: vec![("NODE_PATH", modules.clone().into_os_string())],
        folder: modules,
    })
}

/// Installs with Maven. Maven does not support pinned hashes, but artifacts in Maven Central never change.
fn from_maven(manifest: &Manifest, package: &Package, folder: PathBuf) -> Result<Installed, String> {
    let pom = manifest.folder().join("pom.xml");
    let (_, artifact) = package.package.split_once(':').expect("an artifact is GROUP:ARTIFACT");
    assert_pinned(
        &pom,
        &format!("<artifactId>{artifact}</artifactId><version>{}</version>", package.version),
    );
    once(&folder, |part| {
        let mut maven = Command::new("mvn");
        maven.args(["--batch-mode", "--quiet", "--file"]).arg(&pom).arg(COPY_DEPENDENCIES);
        maven.arg("-DincludeScope=runtime").arg(format!("-DoutputDirectory={}", part.display()));
        run(&mut maven).map(drop)
    })?;
    let class_path = folder.join("*").into_os_string();
    Ok(Installed {
        program: PathBuf::from("java"),
        arguments: vec!["-cp".into(), class_path],
        environment: Vec::new(),
        folder,
    })
}

/// Builds with Cargo. Every crate must have the hash in `Cargo.lock`. Intermediate build files are deleted.
fn from_cargo(manifest: &Manifest, package: &Package, folder: PathBuf) -> Result<Installed, String> {
    let Package { package, version } = package;
    let pins = manifest.folder();
    assert_pinned(&pins.join("Cargo.toml"), &format!("{package}={{version=\"={version}\""));
    once(&folder, |part| {
        let built = tempfile::tempdir().expect("a folder");
        let cargo = |command: &str| {
            let mut cargo = Command::new("cargo");
            cargo.current_dir(&pins).args([command, "--locked"]);
            cargo
        };
        run(&mut cargo("fetch"))?;
        let mut install = cargo("install");
        install.args(["--offline", "--debug", "--no-track", "--path", "."]);
        install.arg("--root").arg(part).arg("--target-dir").arg(built.path());
        run(&mut install).expect("the program can be built");
        Ok(())
    })?;
    let program = folder.join("bin/webhook");
    Ok(Installed { program, arguments: Vec::new(), environment: Vec::new(), folder })
}

/// The goal that copies an artifact and its dependencies into a directory.
const COPY_DEPENDENCIES: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// Runs `install` to create `path`, unless it exists. The path appears only when it is complete.
fn once(path: &Path, install: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    println!("installing {}", path.display());
    fs::create_dir_all(path.parent().expect("the cache is a folder")).expect("the cache can be made");
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    // The file or directory may remain from an earlier run.
    let _ = fs::remove_file(&part);
    let _ = fs::remove_dir_all(&part);
    install(&part)?;
    fs::rename(part, path).expect("it can be renamed");
    Ok(())
}

/// Asserts that the file contains the installed version.
fn assert_pinned(file: &Path, pinned: &str) {
    let text = fs::read_to_string(file).expect("the file is there");
    let without_spaces: String = text.split_whitespace().collect();
    assert!(without_spaces.contains(pinned), "{} does not say {pinned}", file.display());
}

fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    Err(format!("{}: {}", command.get_program().display(), said.concat()))
}
