//! Defines the errors that prevent a test server from starting.

use std::path::PathBuf;

use crate::envtest::EnvtestError;

/// The reason why a test server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name of a Service is not in the format `NAMESPACE/NAME`.
    #[error("invalid Service `{0}`: must be NAMESPACE/NAME")]
    ServiceName(String),
    /// etcd and kube-apiserver did not start.
    #[error(transparent)]
    Envtest(#[from] EnvtestError),
    /// A webhook cannot be served.
    #[error("{service}: cannot listen on 127.0.0.1: {error}")]
    Listen {
        /// The Service of the webhook, as `NAMESPACE/NAME`.
        service: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The certificate of a webhook could not be created.
    #[error("no certificate: {0}")]
    Certificate(String),
    /// A manifest cannot be read, or the server rejects an object.
    #[error("{}: {message}", file.display())]
    Manifest {
        /// The path of the manifest.
        file: PathBuf,
        /// The reason why the manifest cannot be read or the object cannot be created.
        message: String,
    },
    /// The server could not be prepared for the test.
    #[error("{0}")]
    Setup(String),
}
