//! Formats reports as JSON and YAML.

use serde::Serialize;

use super::{API_VERSION, LIST_KIND, Report};
use crate::Failure;

/// An `AdmissionReportList`: the JSON format of several reports.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: &'a [Report],
}

/// Formats a single report as a JSON object, or several reports as a list.
///
/// # Errors
/// Returns an error if a value cannot be serialized as JSON.
pub(crate) fn json(reports: &[Report]) -> serde_json::Result<String> {
    let mut text = match reports {
        [report] => serde_json::to_string_pretty(report)?,
        items => {
            let list = List { api_version: API_VERSION, kind: LIST_KIND, items };
            serde_json::to_string_pretty(&list)?
        }
    };
    text.push('\n');
    Ok(output::json(&text).into_owned())
}

/// Formats reports as JSON one after the other, so that at most one is in memory.
#[derive(Debug)]
pub(crate) struct Stream {
    is_list: bool,
    count: usize,
}

impl Stream {
    /// Creates a stream for a single report, or for a list if `is_list` is set.
    pub(crate) fn new(is_list: bool) -> Self {
        Self { is_list, count: 0 }
    }

    /// Returns the text of the next report, including the separator from the previous report.
    ///
    /// # Errors
    /// Returns an error if a value cannot be serialized as JSON.
    pub(crate) fn item(&mut self, report: &Report) -> serde_json::Result<String> {
        let before = self.before();
        let text = serde_json::to_string_pretty(report)?;
        let text = output::json(&text);
        Ok(if self.is_list {
            format!("{before}    {}", text.replace('\n', "\n    "))
        } else {
            format!("{text}\n")
        })
    }

    /// Returns the text after the last report. It closes the list.
    pub(crate) fn end(&mut self) -> String {
        match (self.is_list, self.count) {
            (false, _) => String::new(),
            (true, 0) => format!("{}  ]\n}}\n", self.before()),
            (true, _) => "\n  ]\n}\n".to_owned(),
        }
    }

    fn before(&mut self) -> String {
        self.count += 1;
        if self.count > 1 {
            return ",\n".to_owned();
        }
        format!("{{\n  \"apiVersion\": \"{API_VERSION}\",\n  \"kind\": \"{LIST_KIND}\",\n  \"items\": [\n")
    }
}

/// Formats a report as a YAML document that starts with `---`.
///
/// # Errors
/// Returns an error if a value cannot be serialized as YAML.
pub(crate) fn yaml_document(report: &Report) -> Result<String, Failure> {
    Ok(format!("---\n{}", crate::machine_readable::yaml(report)?))
}

/// Formats each report as a YAML document.
///
/// # Errors
/// Returns an error if a value cannot be serialized as YAML.
pub(crate) fn yaml(reports: &[Report]) -> Result<String, Failure> {
    let text = serde_saphyr::to_string_multiple(reports).map_err(Failure::environment)?;
    // Only JSON can escape every character that controls a terminal, and JSON is valid YAML.
    if output::json(&text) == text { Ok(text) } else { reports.iter().map(yaml_document).collect() }
}
