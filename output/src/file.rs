//! Writes files for the user of a command.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::append;

/// The users who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "its owner, or whom the umask allows")]
pub enum Readers {
    /// Only the owner of the file may read it (mode 0600).
    Owner,
    /// All users to whom the umask grants access may read the file.
    Umask,
}

/// The prefix of the names of temporary files.
const PREFIX: &str = ".admit-";

/// The age at which an unlocked temporary file is removed. A newer file may not be locked yet.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// A file that gets its final name only when it is complete.
///
/// The temporary file is created together with this value, so an invalid path is reported immediately.
///
/// A regular file, or a symbolic link to one, is replaced. A device, a FIFO, and an open descriptor such as
/// `/dev/stdout` are written in place.
#[derive(Debug)]
pub struct OutputFile(Destination);

#[derive(Debug)]
enum Destination {
    /// The temporary file, and the path to which it is renamed.
    Beside(NamedTempFile, PathBuf),
    /// The open device, FIFO, or descriptor at the path.
    There(File),
}

impl OutputFile {
    /// Creates a temporary file next to `path`, or opens a device, FIFO, or descriptor at `path`.
    ///
    /// # Errors
    /// Returns an error if `path` is a folder or is not writable, or if a FIFO does not have a reader.
    pub fn create(path: &Path, readers: Readers) -> io::Result<Self> {
        if is_in_place(path)? {
            return Ok(Self(Destination::There(append::open(
                OpenOptions::new().write(true).append(true),
                path,
            )?)));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mode = match readers {
            Readers::Owner => 0o600,
            Readers::Umask => 0o666,
        };
        let file = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder)?;
        // The lock shows other processes that the file is in use. Some file systems do not support it.
        drop(file.as_file().try_lock());
        remove_abandoned(folder);
        Ok(Self(Destination::Beside(file, path.to_owned())))
    }

    /// Writes `text` and renames the file to its final path.
    ///
    /// # Errors
    /// Returns an error if `text` could not be written completely. In this case, the previous file at the path is
    /// unchanged.
    pub fn write(mut self, text: &[u8]) -> io::Result<()> {
        self.fill(text)?;
        self.publish()
    }

    /// Writes `text` without renaming the file. Call [`publish`](Self::publish) when all files of a set are complete.
    ///
    /// # Errors
    /// Returns an error if `text` could not be written completely.
    pub fn fill(&mut self, text: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Destination::Beside(file, _) => {
                file.write_all(text)?;
                file.as_file().sync_all()
            }
            Destination::There(file) => file.write_all(text),
        }
    }

    /// Renames the file to its final path.
    ///
    /// # Errors
    /// Returns an error if the file cannot be renamed.
    pub fn publish(self) -> io::Result<()> {
        match self.0 {
            Destination::Beside(file, path) => Ok(file.persist(path).map(drop)?),
            Destination::There(_) => Ok(()),
        }
    }
}

/// Removes temporary files in `folder` whose processes were killed. Ignores errors.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_temporary = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_temporary && is_abandoned(&path).unwrap_or(false) {
            drop(fs::remove_file(path));
        }
    }
}

/// Returns whether the file is old and is not locked by a process.
fn is_abandoned(path: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(path)?;
    let age = SystemTime::now().duration_since(found.modified()?).unwrap_or_default();
    Ok(found.is_file() && age > ABANDONED_AFTER && File::open(path)?.try_lock().is_ok())
}

/// Writes `text` to `path` as [`OutputFile`] does.
///
/// # Errors
/// Returns an error if `text` could not be written completely.
pub fn write(path: &Path, text: &[u8], readers: Readers) -> io::Result<()> {
    OutputFile::create(path, readers)?.write(text)
}

/// Returns whether the file at `path` must be written in place, not replaced.
fn is_in_place(path: &Path) -> io::Result<bool> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        // A dangling link is replaced.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if found.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    Ok(!found.is_file() || is_descriptor(path))
}

/// Returns whether `path` refers to an open file descriptor.
///
/// `/dev/stdout` may refer to a regular file, which must not be replaced.
///
/// Source: proc(5), `/proc/self/fd`; `/dev/stdout` and `/dev/fd` are links there.
fn is_descriptor(path: &Path) -> bool {
    let is_in_proc = |path: &Path| path.starts_with("/proc");
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    fs::read_link(path).is_ok_and(|there| is_in_proc(&there))
        || folder.is_some_and(|folder| is_in_proc(&folder))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_takes_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let file = OutputFile::create(&path, Readers::Owner).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        file.write(b"after").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("after", 0o600));
        drop(OutputFile::create(&path, Readers::Owner).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing stays beside it");
        let shared = folder.path().join("shared");
        write(&shared, b"", Readers::Umask).unwrap();
        let usual = folder.path().join("usual");
        fs::write(&usual, "").unwrap();
        assert_eq!(mode(&shared), mode(&usual));
    }

    #[test]
    fn temporary_file_of_a_killed_process_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - ABANDONED_AFTER * 2;
        let temporary = |name: &str, modified: Option<SystemTime>| {
            let path = folder.path().join(name);
            let file = File::create(&path).unwrap();
            if let Some(modified) = modified {
                file.set_modified(modified).unwrap();
            }
            (path, file)
        };
        let (abandoned, _) = temporary(".admit-abandoned", Some(old));
        let (recent, _) = temporary(".admit-recent", None);
        let (locked, held) = temporary(".admit-locked", Some(old));
        held.lock().unwrap();
        let (other, _) = temporary("other", Some(old));
        write(&folder.path().join("report"), b"text", Readers::Owner).unwrap();
        assert!(!abandoned.exists());
        assert!(recent.exists() && locked.exists() && other.exists());
    }

    #[test]
    fn link_is_replaced_and_its_target_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (there, link) = (folder.path().join("there"), folder.path().join("link"));
        fs::write(&there, "before").unwrap();
        symlink(&there, &link).unwrap();
        write(&link, b"after", Readers::Owner).unwrap();
        assert_eq!(fs::read_to_string(&there).unwrap(), "before");
        assert_eq!(fs::read_to_string(&link).unwrap(), "after");
    }

    #[test]
    fn devices_are_not_replaced() {
        // The test uses a link, so that it cannot damage files of the machine.
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("null");
        symlink("/dev/null", &link).unwrap();
        write(&link, b"text", Readers::Owner).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        symlink("/dev/full", folder.path().join("full")).unwrap();
        let error = write(&folder.path().join("full"), b"text", Readers::Owner).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn an_open_descriptor_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let open = File::create(&path).unwrap();
        let descriptor = {
            use std::os::fd::AsRawFd as _;
            open.as_raw_fd()
        };
        write(Path::new(&format!("/dev/fd/{descriptor}")), b"one", Readers::Owner).unwrap();
        write(Path::new(&format!("/proc/self/fd/{descriptor}")), b"two", Readers::Owner).unwrap();
        let link = folder.path().join("stdout");
        symlink(format!("/proc/self/fd/{descriptor}"), &link).unwrap();
        write(&link, b"three", Readers::Owner).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "onetwothree");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn fifo_is_written_if_it_has_a_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let error = write(&path, b"text", Readers::Owner).unwrap_err();
        assert_eq!(error.to_string(), "no process reads this FIFO");
        // The text exceeds the capacity of a pipe, so the writer must wait.
        let text = vec![b'x'; 1 << 18];
        let reader = {
            let path = path.clone();
            std::thread::spawn(move || fs::read(path).unwrap())
        };
        let file = loop {
            match OutputFile::create(&path, Readers::Owner) {
                Ok(file) => break file,
                Err(_) => std::thread::yield_now(),
            }
        };
        file.write(&text).unwrap();
        assert_eq!(reader.join().unwrap(), text);
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    }

    #[test]
    fn directory_is_not_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = OutputFile::create(folder.path(), Readers::Owner).unwrap_err();
        assert_eq!(error.to_string(), "it is a directory");
    }
}
