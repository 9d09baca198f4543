//! Stored custom resources that cannot be decoded because their conversion fails.
//!
//! Source: apiserver `pkg/storage/etcd3/corrupt_obj_deleter.go`.

use std::sync::Arc;

use kubernetes_admission::cluster_state::ConversionError;
use kubernetes_types::status::{Status, StatusCause, StatusDetails};
use serde_json::Value;

use super::create::conversion_failed;
use super::state::State;
use crate::apimachinery::metadata;
use crate::apimachinery::options::RequestOptions;
use crate::kinds::discovery::Resource;

/// The maximum number of decoding errors in a list.
///
/// Source: apiserver `pkg/storage/etcd3/corrupt_obj_deleter.go`, `maxCorruptObjErrsToAggregate`.
pub(crate) const MAX_ERRORS: usize = 100;

/// Returns the storage error for `object` if `error` is a conversion error; otherwise the Status for the client.
fn text(error: ConversionError, object: &Value, resource: &Resource) -> Result<String, Box<Status>> {
    if let ConversionError::Refused(text) = &error
        && resource.custom.is_some()
    {
        let revision = metadata::text(object, "resourceVersion");
        return Ok(format!("object not decodable revision={revision}: {text}"));
    }
    Err(conversion_failed(error))
}

fn corrupt(root: &str, object: &Value, resource: &Resource, text: &str) -> String {
    format!(
        "StorageError: corrupt object, Code: 7, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: {text}",
        key(root, object, resource)
    )
}

fn key(root: &str, object: &Value, resource: &Resource) -> String {
    let (namespace, name) = (metadata::text(object, "namespace"), metadata::text(object, "name"));
    let place = if namespace.is_empty() { String::new() } else { format!("/{namespace}") };
    format!("{root}/{}/{}{place}/{name}", resource.storage_group(), resource.gvr.resource)
}

/// Returns the error for a write that reads or has stored an object that cannot be decoded.
///
/// Rule: CNV-10.
pub(crate) fn of_write(error: ConversionError, object: &Value, resource: &Resource) -> Box<Status> {
    match text(error, object, resource) {
        Ok(text) => Box::new(Status::failure(500, "", text)),
        Err(status) => status,
    }
}

/// Returns the object from which an update starts. A dry run reports a failed conversion as a GET does.
///
/// # Errors
/// Returns the Status that the client receives.
///
/// Rule: CNV-10.
pub(crate) async fn read_for_update(
    state: &State,
    object: &Arc<Value>,
    resource: &Resource,
    options: &RequestOptions,
) -> Result<Arc<Value>, Box<Status>> {
    let answer = if options.dry_run { of_read } else { of_write };
    let read = state.in_version_of(object, resource).await;
    read.map_err(|error| answer(error, object, resource))
}

/// Returns the error for a GET or a DELETE of an object that cannot be decoded.
///
/// Rule: CNV-10.
pub(crate) fn of_read(error: ConversionError, object: &Value, resource: &Resource) -> Box<Status> {
    match text(error, object, resource) {
        Ok(text) => Box::new(Status::internal_error(&corrupt("", object, resource, &text))),
        Err(status) => status,
    }
}

/// The objects of a list that cannot be decoded.
#[derive(Debug, Default)]
pub(crate) struct UndecodableObjects {
    causes: Vec<StatusCause>,
}

impl UndecodableObjects {
    /// Adds an object that cannot be decoded. Too many such objects abort the list.
    ///
    /// # Errors
    /// Returns the Status that the client receives instead of a list.
    pub(crate) fn add(
        &mut self,
        error: ConversionError,
        object: &Value,
        resource: &Resource,
    ) -> Result<(), Box<Status>> {
        let text = text(error, object, resource)?;
        self.causes.push(StatusCause {
            reason: "UnexpectedServerResponse".to_owned(),
            field: key("/registry", object, resource),
            message: corrupt("/registry", object, resource, &text),
        });
        if self.causes.len() < MAX_ERRORS {
            return Ok(());
        }
        Err(self.status(resource))
    }

    /// Checks that all objects could be decoded.
    ///
    /// # Errors
    /// Returns the Status that the client receives instead of a list.
    ///
    /// Rule: CNV-10.
    pub(crate) fn finish(&mut self, resource: &Resource) -> Result<(), Box<Status>> {
        if self.causes.is_empty() { Ok(()) } else { Err(self.status(resource)) }
    }

    fn status(&mut self, resource: &Resource) -> Box<Status> {
        let mut causes = std::mem::take(&mut self.causes);
        let first = causes.first().map(|cause| cause.message.clone()).unwrap_or_default();
        let gvr = &resource.gvr;
        let what = gvr.group_resource();
        let mut message = format!("failed to read one or more {what} from the storage: {first}");
        if causes.len() > 1 {
            message = format!("{message} (and {} more)", causes.len() - 1);
        }
        if causes.len() >= MAX_ERRORS {
            causes.push(StatusCause {
                reason: "FieldValueTooMany".to_owned(),
                message: "too many errors, the list is truncated".to_owned(),
                ..StatusCause::default()
            });
        }
        let mut status = Status::failure(500, "StorageReadError", message);
        status.details = Some(StatusDetails {
            group: gvr.group.clone(),
            kind: gvr.resource.clone(),
            name: "list".to_owned(),
            causes,
            ..StatusDetails::default()
        });
        Box::new(status)
    }
}
