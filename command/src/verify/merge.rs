//! `admit verify merge`: merges the reports of shards.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;

use harness::verify::merge;
use harness::verify::report::Report;

use super::output::Outputs;
use crate::{ExitCode, Failure};

/// Combine the reports of all shards into one.
///
/// Reads the reports that `admit verify --shard I/N -o json` printed. The output, the reports, and the exit status are
/// those of a run with the whole corpus.
#[derive(Debug, clap::Args)]
pub(super) struct Merge {
    /// Read JSON reports from these files, or - for standard input. A file may contain several reports
    #[arg(required = true, value_name = "REPORT")]
    reports: Vec<PathBuf>,

    #[command(flatten)]
    outputs: Outputs,
}

impl Merge {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let files = self.outputs.create()?;
        let mut reports = Vec::new();
        for path in &self.reports {
            let failed =
                |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
            let reader: Box<dyn Read> = if path.as_os_str() == "-" {
                Box::new(io::stdin())
            } else {
                Box::new(File::open(path).map_err(|error| failed(&error))?)
            };
            let before = reports.len();
            for report in serde_json::Deserializer::from_reader(BufReader::new(reader)).into_iter::<Report>()
            {
                reports.push(
                    report.map_err(|error| {
                        failed(&format!("not a report of `admit verify -o json`: {error}"))
                    })?,
                );
            }
            if reports.len() == before {
                return Err(failed(&"it does not contain a report"));
            }
        }
        let mut report = merge::merge(reports).map_err(Failure::usage)?;
        self.outputs.mask(&mut report);
        self.outputs.write(files, &mut report)
    }
}
