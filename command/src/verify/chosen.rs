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
