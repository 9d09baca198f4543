//! `admit assets`: creates a directory that replaces the binaries of envtest, and runs the programs in that directory.

mod etcd;
mod flags;
mod kube_apiserver;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{ExitCode, Failure, screen};

/// Create a directory that replaces the binaries of envtest, and print its path.
///
/// The directory contains links named kube-apiserver and etcd to this command, which acts as the program that it is
/// invoked as, and a link to kubectl if kubectl is on PATH. To run an envtest suite on admit, set KUBEBUILDER_ASSETS to
/// the directory.
#[derive(Debug, clap::Args)]
pub(crate) struct Assets {
    /// Write to this directory; by default admit/assets in the user's cache directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// A program that admit can run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    KubeApiserver,
    Etcd,
}

impl Program {
    /// Returns the program for `name`, the first word of a command line, or `None` for other names.
    pub(crate) fn from_name(name: &OsStr) -> Option<Self> {
        match Path::new(name).file_name()?.to_str()? {
            "kube-apiserver" => Some(Self::KubeApiserver),
            "etcd" => Some(Self::Etcd),
            _ => None,
        }
    }

    /// Runs the program with the remaining arguments of the command line.
    pub(crate) fn run(self, arguments: impl Iterator<Item = String>) -> std::process::ExitCode {
        match self {
            Self::KubeApiserver => kube_apiserver::main(arguments),
            Self::Etcd => etcd::main(arguments),
        }
    }
}

impl Assets {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let folder = match self.dir {
            Some(folder) => folder,
            None => default_folder()?,
        };
        let program = std::env::current_exe()
            .map_err(|error| Failure::environment(format!("cannot find this command: {error}")))?;
        let kubectl = std::env::var_os("PATH").and_then(|path| find("kubectl", &path));
        let folder = fill(&folder, &program, kubectl.as_deref())?;
        screen::print(&format!("{}\n", folder.display()))?;
        Ok(ExitCode::Ok)
    }
}

/// Returns the default directory for the links, in the user's cache directory.
///
/// Source: the XDG Base Directory Specification.
fn default_folder() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| {
        let folder = std::env::var_os(name).map(PathBuf::from);
        folder.filter(|folder| folder.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let advice = "no cache directory: set HOME or XDG_CACHE_HOME, or choose a directory with --dir";
    Ok(cache.ok_or_else(|| Failure::usage(advice))?.join("admit/assets"))
}

/// Prints `text` and returns the exit status of the program.
fn printed(text: &str) -> std::process::ExitCode {
    finish(screen::print(text).map(|()| ExitCode::Ok))
}

/// Reports the failure of a program, if any, and returns the program's exit status.
///
/// The status is 1 for every error, as in the upstream programs, except 5 for unsupported features.
fn finish(served: Result<ExitCode, Failure>) -> std::process::ExitCode {
    let failure = match served {
        Ok(code) => return code.into(),
        Err(failure) => failure,
    };
    screen::report(&failure);
    if failure.code == ExitCode::Unsupported { failure.code.into() } else { std::process::ExitCode::FAILURE }
}

/// Creates a directory and its parents; only their owner can write to them, regardless of the umask.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)
}

/// Creates the directory and its links, and returns the absolute path of the directory. Correct links are kept.
fn fill(folder: &Path, program: &Path, kubectl: Option<&Path>) -> Result<PathBuf, Failure> {
    let failure = |why: &dyn std::fmt::Display| {
        Failure::environment(format!("cannot create the directory {}: {why}", folder.display()))
    };
    create_folder(folder).map_err(|error| failure(&error))?;
    let folder = fs::canonicalize(folder).map_err(|error| failure(&error))?;
    for (name, target) in [("kube-apiserver", Some(program)), ("etcd", Some(program)), ("kubectl", kubectl)] {
        let Some(target) = target else { continue };
        link(target, &folder.join(name)).map_err(|error| {
            Failure::environment(format!("cannot link {}: {error}", folder.join(name).display()))
        })?;
    }
    Ok(folder)
}

/// Links `path` to `target` atomically, so that a test suite that starts at the same time always finds it.
fn link(target: &Path, path: &Path) -> std::io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_symlink() => {
            let why = "it exists and is not a link; choose another directory with --dir";
            return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, why));
        }
        Ok(_) if fs::read_link(path)? == target => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    symlink(target, &beside)?;
    fs::rename(&beside, path).inspect_err(|_error| {
        // Remove the temporary link, which could not be renamed.
        let _: std::io::Result<()> = fs::remove_file(&beside);
    })
}

/// Finds a program in `path` that succeeds with the arguments `version --client`.
fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(
        |file| {
            let asked = Command::new(file).args(["version", "--client"]).output();
            asked.is_ok_and(|output| output.status.success())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_name_selects_the_program() {
        for (name, expected) in [
            ("kube-apiserver", Some(Program::KubeApiserver)),
            ("/x/y/kube-apiserver", Some(Program::KubeApiserver)),
            ("./etcd", Some(Program::Etcd)),
            ("admit", None),
            ("/x/etcd/admit", None),
            ("", None),
        ] {
            assert_eq!(Program::from_name(OsStr::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn the_directory_is_created_once_and_repaired() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a/b");
        let linked = |name: &str| fs::read_link(folder.join(name)).unwrap();
        for program in ["/one/admit", "/one/admit", "/two/admit"] {
            let made = fill(&folder, Path::new(program), Some(Path::new("/bin/kubectl"))).unwrap();
            assert_eq!(made, fs::canonicalize(&folder).unwrap());
            assert_eq!((linked("kube-apiserver"), linked("etcd")), (program.into(), program.into()));
            assert_eq!(linked("kubectl"), Path::new("/bin/kubectl"));
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
        }
    }

    #[test]
    fn real_binaries_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("etcd"), "real").unwrap();
        let failure = fill(folder.path(), Path::new("/one/admit"), None).unwrap_err().to_string();
        assert!(
            failure.ends_with("it exists and is not a link; choose another directory with --dir"),
            "{failure}"
        );
        assert_eq!(fs::read_to_string(folder.path().join("etcd")).unwrap(), "real");
    }
}
