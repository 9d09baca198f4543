//! Defines the errors of the servers of the conformance suite.

use admit_command::exit_code::Failure;

use crate::transport::SendError;

/// The reason why a server cannot be started or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The test environment cannot start the server.
    #[error("{0}")]
    ClusterFixture(Failure),
    /// A fake webhook cannot be started.
    #[error("a fake cannot start: {0}")]
    Fake(#[from] fake_webhooks::StartError),
    /// The file that configures the plugins cannot be written.
    #[error("the configuration of the plugins cannot be written: {0}")]
    Configuration(#[from] std::io::Error),
    /// Certificates cannot be created.
    #[error("no certificates: {0}")]
    Certificates(#[from] certs::Error),
    /// A request cannot be sent.
    #[error("the server cannot be asked: {0}")]
    Unreachable(#[from] kube::Error),
    /// The server does not answer a request.
    #[error(transparent)]
    NotSent(#[from] SendError),
    /// The server rejected a request of the suite itself.
    #[error("{what}: {answer}")]
    Refused {
        /// A description of the request.
        what: String,
        /// The server's answer.
        answer: String,
    },
}

impl ServerError {
    /// Returns the error of a kube-apiserver that exited because of its launch settings.
    pub(crate) fn refusal(&self) -> Option<String> {
        let Self::ClusterFixture(failure) = self else { return None };
        let said = failure.to_string();
        REFUSALS.iter().any(|what| said.contains(what)).then_some(said)
    }
}

/// The prefixes of the errors that kube-apiserver reports when it exits because of an invalid file.
const REFUSALS: [&str; 3] =
    ["failed to initialize admission", "failed to apply admission", "loading audit policy file"];
