//! Writes and reads the comment at the beginning of a baseline.

/// The beginning of the comment at the beginning of a baseline; the name of the subcommand follows.
const HEAD: &str = "# Findings of admit ";

/// Returns the subcommand that wrote a baseline, or `None` if the comment at its beginning is missing.
pub(super) fn writer(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix(HEAD)?.split(' ').next()
}

/// Returns the comment at the beginning of a baseline.
pub(super) fn new(name: &str) -> String {
    format!(
        "{HEAD}{name} that are accepted, each for a reason: `admit {name} --baseline FILE` fails only for others.\n\
         # `admit {name} --write-baseline FILE` writes this file again, and keeps the reasons.\n"
    )
}
