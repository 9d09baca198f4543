//! Raises the limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit.
///
/// Each connection needs a file descriptor, and the soft limit of many systems is 1,024. If the system rejects the
/// change, listeners accept fewer connections.
///
/// Source: Go's os/rlimit.go, which does this in every program.
pub fn raise_open_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _: rustix::io::Result<()> = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
