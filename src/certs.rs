//! `admit certs`.

use crate::{ExitCode, Failure};

/// Makes a certificate for a webhook.
#[derive(Debug, clap::Args)]
pub(crate) struct Certs {}

impl Certs {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        Err(Failure::unsupported("not written yet"))
    }
}
