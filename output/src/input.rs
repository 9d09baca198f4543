//! Reads the input of commands, with a size limit because a device may never end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The maximum size of a file that is read into memory, in bytes.
pub const MAX_FILE: u64 = 64 << 20;

/// The time between two checks of [`read`] whether a process has opened a FIFO to write.
const WRITER_CHECK: Duration = Duration::from_millis(100);

/// The time for which [`read`] waits for the first writer of a FIFO, and [`read_for_server`] for the next bytes of a pipe.
const PIPE_WAIT: Duration = Duration::from_secs(30);

/// Returns the content of a file, or of standard input for `-`.
///
/// Waits for at most 30 seconds until a process opens a FIFO to write, and then, as for other pipes and standard input, until
/// the writer is done.
///
/// # Errors
/// Returns an error if the file cannot be read or has more than [`MAX_FILE`] bytes, or if no process writes to it.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        return read_within(Pipe { file: &file, wait: None }, MAX_FILE);
    }
    read_pipe(path, None)
}

/// Returns the content of a file that a server reads, or of standard input for `-`.
///
/// Unlike [`read`], this function does not wait for a process that opens a FIFO to write. It waits at most 30 seconds for
/// the next bytes of a pipe, such as that of a process substitution in a shell. A signal ends the wait.
///
/// # Errors
/// Returns an error if the file cannot be read or has more than [`MAX_FILE`] bytes, or if no process writes to it.
pub fn read_for_server(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        return read(path);
    }
    read_pipe(path, Some(PIPE_WAIT))
}

/// Reads a file that may be a pipe; waits for the next bytes for the time `wait`.
fn read_pipe(path: &Path, wait: Option<Duration>) -> io::Result<Vec<u8>> {
    let file = crate::append::open_without_waiting(OpenOptions::new().read(true), path)?;
    let is_fifo = file.metadata()?.file_type().is_fifo();
    // A process may open a FIFO to write later. Until then, the end of the file is read.
    let checks = if wait.is_none() { PIPE_WAIT.as_millis() / WRITER_CHECK.as_millis() } else { 0 };
    for check in 0..=checks {
        if check > 0 {
            wait_for_input(&file, Some(WRITER_CHECK))?;
        }
        let bytes = read_within(Pipe { file: &file, wait }, MAX_FILE)?;
        if !bytes.is_empty() || !is_fifo {
            return Ok(bytes);
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "no process writes to this FIFO"))
}

/// A file that was opened without waiting and may not have data yet.
struct Pipe<'a> {
    file: &'a File,
    /// The maximum time to wait for the next bytes.
    wait: Option<Duration>,
}

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if !wait_for_input(self.file, self.wait)? {
                let what = format!("no data within {} seconds", self.wait.unwrap_or_default().as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
        }
    }
}

/// Waits until `file` has input or its writer is done; returns false after the time `wait`.
fn wait_for_input(file: &File, wait: Option<Duration>) -> io::Result<bool> {
    let limit = wait.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(file, PollFlags::IN)], limit.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        // `read_to_end` repeats a read that returns `Interrupted`.
        Err(rustix::io::Errno::INTR) => Err(io::Error::other("stopped by a signal")),
        Err(error) => Err(error.into()),
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

    #[test]
    fn a_server_does_not_wait_for_a_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(read_for_server(&path).unwrap_err().to_string(), "no process writes to this FIFO");
        // The second process opens the FIFO to write, and writes when the server has opened it.
        let writer = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, "content").unwrap()
        });
        let content = loop {
            if let Ok(content) = read_for_server(&path) {
                break content;
            }
            std::thread::yield_now();
        };
        assert_eq!(content, b"content");
        writer.join().unwrap();
        assert_eq!(read_for_server(Path::new("/dev/null")).unwrap(), b"");
    }

    #[test]
    fn a_command_waits_for_the_first_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || read(&path)
        });
        // Opening the FIFO to write waits for the reader.
        std::fs::write(path, "content").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"content");
    }

    #[test]
    fn a_silent_pipe_times_out() {
        let (reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(reader));
        rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::NONBLOCK).unwrap();
        let error = read_within(Pipe { file: &file, wait: Some(Duration::ZERO) }, MAX_FILE).unwrap_err();
        assert_eq!(error.to_string(), "no data within 0 seconds");
        drop(writer);
    }

    #[cfg(unix)]
    #[test]
    fn endless_device_is_rejected() {
        for read in [read, read_for_server] {
            assert_eq!(read(Path::new("/dev/zero")).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        }
    }
}
