//! Defines the reasons why a run ends early.

use crate::server_error::ServerError;
use crate::transport::SendError;

/// The reason why a run ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The case cannot be parsed.
    #[error(transparent)]
    Case(#[from] Box<serde_saphyr::Error>),
    /// The server rejects a request that the suite requires.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A request has no audit event.
    #[error("request {0} has no audit event")]
    NoAuditEvent(usize),
    /// The run was stopped. Contains the reason.
    #[error("the run ended: {0}")]
    Ended(String),
}

impl From<fake_webhooks::StartError> for RunError {
    fn from(error: fake_webhooks::StartError) -> Self {
        Self::Server(error.into())
    }
}

impl From<SendError> for RunError {
    fn from(error: SendError) -> Self {
        Self::Server(error.into())
    }
}
