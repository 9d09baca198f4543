//! `admit fakes`.

use crate::{ExitCode, Failure};

/// Serves webhooks that misbehave on demand.
#[derive(Debug, clap::Args)]
pub(crate) struct Fakes {}

impl Fakes {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        Err(Failure::unsupported("not written yet"))
    }
}
