//! Files that grow.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens `path` to append to it, and makes it if there is none. A regular file can be read by its owner alone from then
/// on, also if others could read it before.
///
/// # Errors
/// It cannot be opened or belongs to somebody else; a FIFO has no reader.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let file = open(OpenOptions::new().append(true).create(true).mode(0o600), path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(metadata.permissions().mode() & 0o700))?;
    }
    Ok(file)
}

/// Opens a file without waiting for the reader of a FIFO.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = options.custom_flags(flags).open(path).map_err(|error| {
        let is_fifo = || std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
        if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) && is_fifo() {
            io::Error::new(error.kind(), "no process reads this FIFO")
        } else {
            error
        }
    })?;
    // What is written later waits for a reader that is slow.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags & !OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_others_could_read_they_can_read_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        open_to_append(&path).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_device_keeps_its_mode() {
        let before = std::fs::metadata("/dev/null").unwrap().permissions();
        open_to_append(Path::new("/dev/null")).unwrap();
        assert_eq!(std::fs::metadata("/dev/null").unwrap().permissions(), before);
    }
}
