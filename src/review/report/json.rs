//! Reports for programs.

use serde::Serialize;

use super::{API_VERSION, Report};

/// Several reports.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: &'a [Report],
}

/// One report, or of several a list.
///
/// # Errors
/// A value cannot be written as JSON.
pub(in crate::review) fn json(reports: &[Report]) -> serde_json::Result<String> {
    let mut text = match reports {
        [report] => serde_json::to_string_pretty(report)?,
        items => {
            let list = List { api_version: API_VERSION, kind: "AdmissionReportList", items };
            serde_json::to_string_pretty(&list)?
        }
    };
    text.push('\n');
    Ok(text)
}

/// One document each.
///
/// # Errors
/// A value cannot be written as YAML.
pub(in crate::review) fn yaml(reports: &[Report]) -> Result<String, serde_saphyr::ser_error::Error> {
    serde_saphyr::to_string_multiple(reports)
}
