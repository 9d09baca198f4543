//! Opens and truncates files to which commands append.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// The maximum length, in bytes, of an incomplete line at the end of a file.
const MAX_LINE: u64 = 64 << 20;

/// Opens `path` for appending, and creates the file if it does not exist.
///
/// If the file is a regular file, only the owner can read it afterward, even if other users could read it before.
///
/// # Errors
/// Returns an error if the file cannot be opened or belongs to another user, or if a FIFO does not have a reader.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let file = open(OpenOptions::new().append(true).create(true).mode(0o600), path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(metadata.permissions().mode() & 0o700))?;
    }
    Ok(file)
}

/// Truncates a regular file after its last line break, to remove a line that a killed process did not complete.
///
/// Returns the number of removed bytes. Other files are not changed.
///
/// # Errors
///
/// Returns an error if the file cannot be read or truncated, or if its last 64 MiB do not contain a line break.
pub fn truncate_to_last_line(file: &File, path: &Path) -> io::Result<u64> {
    const BLOCK: u64 = 64 << 10;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(0);
    }
    let mut reader = File::open(path)?;
    let mut block = Vec::new();
    let mut end = metadata.len();
    let whole = loop {
        let start = end.saturating_sub(BLOCK);
        block.clear();
        reader.seek(SeekFrom::Start(start))?;
        (&mut reader).take(end - start).read_to_end(&mut block)?;
        match block.iter().rposition(|byte| *byte == b'\n') {
            Some(position) => break start + position as u64 + 1,
            None if start == 0 => break 0,
            None if metadata.len() - start >= MAX_LINE => {
                let what = format!("its last {} MiB do not contain a line break", MAX_LINE >> 20);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            None => end = start,
        }
    };
    if whole < metadata.len() {
        file.set_len(whole)?;
    }
    Ok(metadata.len() - whole)
}

/// Opens a file. If it is a FIFO, does not wait for a reader.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = open_without_waiting(options, path)?;
    // Later writes wait for a slow reader.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags & !OFlags::NONBLOCK)?;
    Ok(file)
}

/// Opens a file in nonblocking mode: opening, reading, and writing never wait.
pub(crate) fn open_without_waiting(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    options.custom_flags(flags).open(path).map_err(|error| {
        let is_fifo = || std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
        if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) && is_fifo() {
            io::Error::new(error.kind(), "no process reads this FIFO")
        } else {
            error
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    #[track_caller]
    fn check_truncation(content: &str, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, content).unwrap();
        let file = open_to_append(&path).unwrap();
        let cut_off = truncate_to_last_line(&file, &path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(cut_off, (content.len() - expected.len()) as u64);
    }

    #[test]
    fn half_a_line_is_cut_off() {
        check_truncation("", "");
        check_truncation("one\n", "one\n");
        check_truncation("one\ntw", "one\n");
        check_truncation("on", "");
        let long = "x".repeat(200_000);
        check_truncation(&format!("one\n{long}"), "one\n");
        check_truncation(&long, "");
    }

    use super::*;

    #[test]
    fn long_file_without_a_line_break_is_not_searched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = open_to_append(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        let error = truncate_to_last_line(&file, &path).unwrap_err();
        assert_eq!(error.to_string(), "its last 64 MiB do not contain a line break");
        assert_eq!(file.metadata().unwrap().len(), 1 << 40);
    }

    #[test]
    fn written_file_is_no_longer_readable_by_others() {
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
