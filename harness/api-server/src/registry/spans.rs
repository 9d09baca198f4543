//! Records events in the span of a request.

use kubernetes_types::status::Status;
use tracing::info;

/// Records an event for a storage write of a creation or an update.
///
/// Source: apiserver `pkg/endpoints/handlers/{create,update}.go`.
pub(crate) fn wrote<T>(body_bytes: usize, written: &Result<T, Box<Status>>) {
    match written {
        Ok(_) => info!(len = body_bytes, "Write to database call succeeded"),
        Err(status) => info!(len = body_bytes, err = status.message, "Write to database call failed"),
    }
}
