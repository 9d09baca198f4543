//! `admit run` and `admit steps`: feature files against a target.

pub(crate) mod narration;

use crate::{ExitCode, Failure};

/// Runs feature files against a target.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {}

/// Prints every step with a line of help and an example.
#[derive(Debug, clap::Args)]
pub(crate) struct Steps {}

impl Run {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        Err(Failure::unsupported("not written yet"))
    }
}

impl Steps {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        Err(Failure::unsupported("not written yet"))
    }
}
