//! Formats JUnit reports as XML.

use quick_junit::Report;

use crate::Failure;

/// Returns the report as XML, without the characters that XML 1.0 does not allow.
pub(crate) fn document(report: &Report) -> Result<String, Failure> {
    let document = report
        .to_string()
        .map_err(|error| Failure::environment(format!("cannot write the JUnit report: {error}")))?;
    Ok(output::xml(&document).into_owned())
}
