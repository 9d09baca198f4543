//! Reports for programs.

use serde::Serialize;

use super::{API_VERSION, Report};
use crate::Failure;

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
    Ok(output::json(&text).into_owned())
}

/// Reports that are written one after the other: no more than one is in memory.
#[derive(Debug)]
pub(in crate::review) struct Stream {
    is_list: bool,
    count: usize,
}

impl Stream {
    /// Of one report, or of a list.
    pub(in crate::review) fn new(is_list: bool) -> Self {
        Self { is_list, count: 0 }
    }

    /// The text of the next report, with what stands before it.
    ///
    /// # Errors
    /// A value cannot be written as JSON.
    pub(in crate::review) fn item(&mut self, report: &Report) -> serde_json::Result<String> {
        let before = self.before();
        let text = serde_json::to_string_pretty(report)?;
        let text = output::json(&text);
        Ok(if self.is_list {
            format!("{before}    {}", text.replace('\n', "\n    "))
        } else {
            format!("{text}\n")
        })
    }

    /// What stands after the last report.
    pub(in crate::review) fn end(&mut self) -> String {
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
        format!(
            "{{\n  \"apiVersion\": \"{API_VERSION}\",\n  \"kind\": \"AdmissionReportList\",\n  \"items\": [\n"
        )
    }
}

/// One document of several.
///
/// # Errors
/// A value cannot be written as YAML.
pub(in crate::review) fn yaml_document(report: &Report) -> Result<String, Failure> {
    Ok(format!("---\n{}", crate::verify::output::yaml(report)?))
}

/// One document each.
///
/// # Errors
/// A value cannot be written as YAML.
pub(in crate::review) fn yaml(reports: &[Report]) -> Result<String, Failure> {
    let text = serde_saphyr::to_string_multiple(reports).map_err(Failure::environment)?;
    // Only JSON can escape everything that can control a terminal, and JSON is YAML.
    if output::json(&text) == text { Ok(text) } else { reports.iter().map(yaml_document).collect() }
}
