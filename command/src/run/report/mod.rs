//! Writes the reports of a run.

mod json;
mod junit;
mod markdown;

use std::path::Path;

use super::record::Record;
use crate::Failure;
use crate::html_report::HtmlFile;
use crate::report_file::{ReportFile, SummaryFile};
use crate::target::TargetKind;

/// The reports that the user requested.
///
/// Their files are created before the first scenario runs, so that an unwritable path is reported immediately. They are
/// renamed to their final paths when the run has ended.
#[derive(Debug)]
pub(crate) struct Reports {
    junit: Option<ReportFile>,
    json: Option<ReportFile>,
    summary: SummaryFile,
    html: Option<HtmlFile>,
}

/// The facts that a report contains in addition to the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    /// The target of the scenarios.
    pub(crate) target: TargetKind,
    /// The number of audit checks that were skipped because the target does not provide an audit log.
    pub(crate) unchecked_audits: usize,
    /// The warnings about the whole run.
    pub(crate) warnings: &'a [String],
}

impl Reports {
    /// Creates a temporary file next to each requested report.
    pub(crate) fn create(
        junit: Option<&Path>,
        json: Option<&Path>,
        summary: Option<&Path>,
        html: Option<&Path>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            junit: ReportFile::create_if_requested(junit)?,
            json: ReportFile::create_if_requested(json)?,
            summary: SummaryFile::create(summary)?,
            html: HtmlFile::create(html)?,
        })
    }

    /// Writes all reports and renames them to their final paths.
    pub(crate) fn write(self, record: &Record, circumstances: Circumstances<'_>) -> Result<(), Failure> {
        if let Some(report) = self.junit {
            report.write(&junit::document(record)?)?;
        }
        if self.json.is_some() || self.html.is_some() {
            let document = json::document(record, circumstances);
            if let Some(report) = self.json {
                report.write(&document)?;
            }
            if let Some(report) = self.html {
                report.write("admit run", &document)?;
            }
        }
        self.summary.write(|| markdown::summary(record))
    }
}

/// Returns the JUnit report, the JSON report, and the summary in Markdown.
#[cfg(test)]
pub(super) fn documents(
    record: &Record,
    circumstances: Circumstances<'_>,
) -> Result<(String, String, String), Failure> {
    Ok((junit::document(record)?, json::document(record, circumstances), markdown::summary(record)))
}
