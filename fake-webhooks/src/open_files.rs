//! How many files a process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one: each connection takes a file, and many systems start at 1,024 for
/// the sake of programs that use `select`. Where that is refused the limit stays as it was, and listeners accept fewer
/// connections.
///
/// Source: Go's os/rlimit.go, which does this in every program.
pub fn raise_open_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _: rustix::io::Result<()> = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
