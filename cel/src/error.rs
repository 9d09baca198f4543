//! Evaluation errors.

use crate::regexp::RegexpError;

/// The reason why an evaluation failed.
///
/// `Display` writes the text that kube-apiserver shows after `resulted in error: `, except for [`Error::Unsupported`],
/// which kube-apiserver does not return.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the expression language. Most operations propagate it.
    #[error("{0}")]
    Language(String),
    /// A panic in kube-apiserver's code. It ends the evaluation.
    #[error("internal error: {0}")]
    Panic(String),
    /// An operation that this crate does not support, but that kube-apiserver performs as long as it has enough memory.
    /// The error ends the evaluation.
    #[error("not supported: {0}")]
    Unsupported(String),
}

impl Error {
    /// Creates an error of the expression language. Most operations propagate it.
    pub fn new(text: impl Into<String>) -> Self {
        Self::Language(text.into())
    }

    /// Creates the error for arguments without a matching overload.
    pub fn no_such_overload() -> Self {
        Self::new("no such overload")
    }
}

impl From<RegexpError> for Error {
    fn from(error: RegexpError) -> Self {
        match error {
            RegexpError::Invalid(_) => Self::new(error.to_string()),
            RegexpError::TooLarge(_) => Self::Unsupported(error.to_string()),
        }
    }
}
