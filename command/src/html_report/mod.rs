//! `admit report`, and the HTML files of `--html`.
//!
//! [`document`] reads the JSON reports of other commands. [`page`] puts them into one HTML file: a [`summary`] that is
//! readable without JavaScript, the reports themselves, and the scripts and styles that show them. The sources of the
//! scripts and styles are in the top-level folder `report`. [`LivePage`] is the same page without data: it shows the
//! requests of a running `admit serve`.

mod arguments;
mod document;
mod markup;
mod page;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use arguments::ReportCommand;
pub(crate) use page::LivePage;

use std::path::Path;

use crate::Failure;
use crate::report_file::ReportFile;

/// The file for `--html`. It is created before the command does its work.
#[derive(Debug)]
pub(crate) struct HtmlFile(ReportFile);

impl HtmlFile {
    /// Creates the file if `path` is given, so that an unwritable path is reported immediately.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub(crate) fn create(path: Option<&Path>) -> Result<Option<Self>, Failure> {
        Ok(ReportFile::create_if_requested(path)?.map(Self))
    }

    /// Writes the report of `command`; `json` is the same report in the format of `-o json`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn write(self, command: &str, json: &str) -> Result<(), Failure> {
        self.0.write(&page::page(&document::parse(command, json.as_bytes())?)?)
    }
}
