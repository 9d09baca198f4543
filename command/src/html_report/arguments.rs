//! Parses the command line of `admit report`.

use std::path::PathBuf;

use super::{document, page};
use crate::report_file::ReportFile;
use crate::{ExitCode, Failure};

/// Render JSON reports as an HTML page.
///
/// Reads the output of `admit run --json`, `admit review -o json`, `admit verify -o json`, and `admit lint -o json`,
/// and the records of `admit serve --record`. The page is a single self-contained file that does not load any other
/// resources. To get a page without a JSON report, pass --html to these commands.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportCommand {
    /// Read reports from these files, or - for standard input. A file may contain several reports
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write the page to this file
    #[arg(long, value_name = "FILE", required = true)]
    html: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  admit review -f pod.yaml -c webhooks/ -o json --show-reviews > review.json
  admit report review.json --html review.html
  admit report run.json verify.json lint.json --html report.html
  admit report records/*.jsonl --html records.html

Exit status:
    0  the page was written
    2  the command line or a report is invalid
    3  the page cannot be written";

impl ReportCommand {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let html = ReportFile::create(&self.html)?;
        let mut documents = Vec::new();
        for path in &self.files {
            let name = if path.as_os_str() == "-" { "STDIN".to_owned() } else { path.display().to_string() };
            let bytes = output::read(path).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
            documents.extend(document::parse(&name, &bytes)?);
        }
        html.write(&page::page(&documents)?)?;
        Ok(ExitCode::Ok)
    }
}
