//! Parses the values of `--check` and `--skip` for `admit verify` and `admit lint`.

use harness::verify::Check;

/// The value of `--skip`: a check and the reason for skipping it.
#[derive(Clone, Debug)]
pub(crate) struct Skip {
    pub(crate) check: &'static Check,
    pub(crate) reason: String,
}

impl Skip {
    /// Parses `ID=REASON`; `known_check` finds the check by its ID.
    ///
    /// # Errors
    /// Returns a description of the expected format.
    pub(crate) fn parse(
        text: &str,
        known_check: fn(&str) -> Result<&'static Check, String>,
    ) -> Result<Self, String> {
        let (id, reason) = text.split_once('=').unwrap_or((text, ""));
        if reason.trim().is_empty() {
            return Err("expected ID=REASON: the report shows the reason".to_owned());
        }
        Ok(Self { check: known_check(id)?, reason: reason.trim().to_owned() })
    }
}

/// Returns the check in `all` with this ID, ignoring case; errors call the checks `what`.
///
/// # Errors
/// Returns an error that lists the known IDs if no check has this ID.
pub(crate) fn find(
    id: &str,
    what: &str,
    all: impl Iterator<Item = &'static Check> + Clone,
) -> Result<&'static Check, String> {
    all.clone().find(|check| check.id.eq_ignore_ascii_case(id.trim())).ok_or_else(|| {
        let ids: Vec<&str> = all.map(|check| check.id).collect();
        format!("unknown {what} `{id}`: must be one of {}", ids.join(", "))
    })
}
