//! Formats reports as JSON and YAML.

use crate::Failure;

/// The version of `admit lint`'s report and of its list of checks. It increases when a member is removed or changes its
/// meaning.
pub(crate) const LINT_VERSION: u32 = 1;

/// The version of `admit run`'s report. It increases when a member is removed or changes its meaning.
pub(crate) const RUN_VERSION: u32 = 1;

/// The `apiVersion` of the reports of `admit review` and `admit pull`.
pub(crate) const API_VERSION: &str = "admit.dev/v1alpha1";

/// Formats `value` as JSON that is safe to show on a terminal, with a trailing newline.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|document| output::json(&document).into_owned() + "\n")
        .map_err(|error| Failure::environment(format!("cannot write the report as JSON: {error}")))
}

/// Formats `value` as YAML that is safe to show on a terminal.
///
/// If a string requires escapes, returns JSON, which is valid YAML.
pub(crate) fn yaml(value: &impl serde::Serialize) -> Result<String, Failure> {
    let document = serde_saphyr::to_string(value)
        .map_err(|error| Failure::environment(format!("cannot write the report as YAML: {error}")))?;
    if output::json(&document) == document { Ok(document) } else { json(value) }
}
