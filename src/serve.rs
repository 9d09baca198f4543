//! `admit serve`.

use crate::{ExitCode, Failure};

/// Serves an API server that calls webhooks as kube-apiserver does.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {}

impl Serve {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        Err(Failure::unsupported("not written yet"))
    }
}
