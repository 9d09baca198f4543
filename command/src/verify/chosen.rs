//! How `--check` and `--skip` name checks, in `admit verify` and in `admit lint`.

use harness::verify::Check;

/// One `--skip`.
#[derive(Clone, Debug)]
pub(crate) struct Skip {
    pub(crate) check: &'static Check,
    pub(crate) reason: String,
}

impl Skip {
    /// `ID=REASON`, where `known_check` knows the id.
    ///
    /// # Errors
    /// What was expected.
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

/// The one of `all` with this id, in any case; `what` they are called together.
///
/// # Errors
/// There is none: the ids that there are.
pub(crate) fn find(
    id: &str,
    what: &str,
    all: impl Iterator<Item = &'static Check> + Clone,
) -> Result<&'static Check, String> {
    all.clone().find(|check| check.id.eq_ignore_ascii_case(id.trim())).ok_or_else(|| {
        let ids: Vec<&str> = all.map(|check| check.id).collect();
        format!("there is no {what} `{id}`; there are {}", ids.join(", "))
    })
}
