//! Writes and reads the comment at the beginning of a baseline.

/// The beginning of the comment at the beginning of a baseline; the name of the subcommand follows.
const HEAD: &str = "# Findings of admit ";

/// Returns the subcommand that wrote a baseline, or `None` if the comment at its beginning is missing or edited.
pub(super) fn writer(text: &str) -> Option<&str> {
    let name = text.lines().next()?.strip_prefix(HEAD)?.split(' ').next()?;
    ["verify", "lint"].contains(&name).then_some(name)
}

/// Returns the comment at the beginning of a baseline.
pub(super) fn new(name: &str) -> String {
    format!(
        "{HEAD}{name} that are accepted, each for a reason: `admit {name} --baseline FILE` fails only for others.\n\
         # `admit {name} --write-baseline FILE` writes this file again, and keeps the reasons.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unchanged_comment_names_the_command() {
        assert_eq!(writer(&new("lint")), Some("lint"));
        assert_eq!(writer("# Findings of admit we accept\n"), None);
        assert_eq!(writer(""), None);
    }
}
