//! Reads the input of commands, with a size limit because a device may never end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The maximum size of a file that is read into memory, in bytes.
pub const MAX_FILE: u64 = 64 << 20;

/// Returns the content of a file, or of standard input for `-`.
///
/// # Errors
/// Returns an error if the file cannot be read or has more than [`MAX_FILE`] bytes.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        read_within(io::stdin(), MAX_FILE)
    } else {
        read_within(File::open(path)?, MAX_FILE)
    }
}

/// Returns the content of a regular file that a configuration names.
///
/// Unlike [`read`], this function never waits: for a FIFO or a device, it returns an error of the kind
/// [`io::ErrorKind::Unsupported`].
///
/// # Errors
///
/// Returns an error if the file cannot be read, is not a regular file, or has more than [`MAX_FILE`] bytes.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let file = crate::append::open(OpenOptions::new().read(true), path)?;
    let metadata = file.metadata()?;
    // Reading a folder fails immediately with the operating system's error.
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "not a regular file"));
    }
    read_within(file, MAX_FILE)
}

fn read_within(reader: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {} MiB", MAX_FILE >> 20),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_behind_the_limit() {
        let read = |size: u64| read_within(io::repeat(b'a').take(size), 10).map(|bytes| bytes.len());
        assert_eq!(read(10).unwrap(), 10);
        assert_eq!(read(11).unwrap_err().to_string(), "larger than 64 MiB");
        assert_eq!(read(u64::MAX).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_read_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, file) = (folder.path().join("fifo"), folder.path().join("file"));
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        std::fs::write(&file, "content").unwrap();
        assert_eq!(read_regular(&file).unwrap(), b"content");
        for path in [fifo.as_path(), Path::new("/dev/zero")] {
            assert_eq!(
                read_regular(path).unwrap_err().to_string(),
                "not a regular file",
                "{}",
                path.display()
            );
        }
        assert_eq!(read_regular(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[cfg(unix)]
    #[test]
    fn endless_device_is_rejected() {
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
