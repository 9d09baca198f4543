//! Parses the `resourceVersion` parameter and waits for future versions.

use std::time::Duration;

use kubernetes_types::status::{Status, StatusCause, StatusDetails};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::list_options::ListVersion;
use crate::kinds::discovery::Resource;
use crate::storage::{Storage, StorageEvent};

/// The maximum time that a read waits for a future `resourceVersion`.
///
/// Source: apiserver `pkg/storage/cacher/watch_cache.go`, `blockTimeout`.
pub(crate) const BLOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// The `Retry-After` in seconds for a `resourceVersion` in the future.
///
/// Source: apiserver `pkg/storage/cacher/watch_cache.go`, `resourceVersionTooHighRetrySeconds`.
const RESOURCE_VERSION_TOO_HIGH_RETRY_SECONDS: i32 = 1;

/// Returns whether kube-apiserver serves the objects from its watch cache. It does not use the cache for Events.
///
/// Source: kubernetes `pkg/kubeapiserver/default_storage_factory_builder.go`, `DefaultWatchCacheSizes`.
pub(crate) fn is_cached(resource: &Resource) -> bool {
    !["events", "events.events.k8s.io"].contains(&resource.gvr.group_resource().as_str())
}

/// Parses a `resourceVersion`. The error is the reason why it is invalid.
///
/// Source: apiserver `pkg/storage/api_object_versioner.go`, `ParseResourceVersion`.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_not_a_number| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        let text = Value::from(text);
        format!("resourceVersion: Invalid value: {text}: strconv.ParseUint: parsing {text}: {why}")
    })
}

/// Waits until the storage is recent enough to answer a GET of an object.
///
/// # Errors
/// Returns 400 or 500 for an invalid version, or 504 if the version is not reached in time.
///
/// Source: apiserver pkg/storage/cacher/delegator.go, `Get`; pkg/storage/etcd3/store.go, `Get`.
/// Rule: LST-06.
pub(crate) async fn wait_for_get(
    storage: &Storage,
    version: &str,
    resource: &Resource,
) -> Result<(), Box<Status>> {
    if version.is_empty() {
        return Ok(());
    }
    if is_cached(resource) {
        let version = parse(version).map_err(|why| Status::failure(500, "", why))?;
        return wait(storage, version, Instant::now() + BLOCK_TIMEOUT).await;
    }
    let version =
        parse(version).map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
    check(storage, version)
}

/// Waits until the storage is recent enough to answer a list.
///
/// `is_single` means that the query selects a single object.
///
/// # Errors
/// Returns 504 if the version is not reached in time.
///
/// Source: apiserver pkg/storage/cacher/cacher.go, `ShouldDelegateExactRV`.
/// Rule: LST-06.
pub(crate) async fn wait_for_list(
    storage: &Storage,
    at: ListVersion,
    resource: &Resource,
    is_single: bool,
) -> Result<(), Box<Status>> {
    match at {
        ListVersion::Latest => Ok(()),
        ListVersion::NotOlderThan(version) if is_cached(resource) => {
            wait(storage, version, Instant::now() + BLOCK_TIMEOUT).await
        }
        ListVersion::Exact(version) if is_cached(resource) && !is_single => {
            wait(storage, version, Instant::now() + BLOCK_TIMEOUT).await
        }
        ListVersion::NotOlderThan(version) | ListVersion::Exact(version) => check(storage, version),
    }
}

/// Waits until the storage has reached a version.
///
/// # Errors
/// Returns 504 if the version is not reached in time.
pub(crate) async fn wait(storage: &Storage, version: u64, until: Instant) -> Result<(), Box<Status>> {
    let mut notifications = storage.subscribe();
    loop {
        let is_closed = *notifications.borrow_and_update() == StorageEvent::Closed;
        let current = storage.resource_version();
        if version <= current {
            return Ok(());
        }
        if is_closed || !matches!(timeout_at(until, notifications.changed()).await, Ok(Ok(()))) {
            return Err(too_large(version, current, RESOURCE_VERSION_TOO_HIGH_RETRY_SECONDS));
        }
    }
}

fn check(storage: &Storage, version: u64) -> Result<(), Box<Status>> {
    let current = storage.resource_version();
    if version <= current { Ok(()) } else { Err(too_large(version, current, 0)) }
}

/// Builds the 504 for a version in the future.
///
/// Source: apiserver pkg/storage/errors.go, `NewTooLargeResourceVersionError`.
pub(crate) fn too_large(wanted: u64, current: u64, retry_after_seconds: i32) -> Box<Status> {
    let mut status = Status::timeout(&format!("Too large resource version: {wanted}, current: {current}"));
    status.details = Some(StatusDetails {
        causes: vec![StatusCause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            ..StatusCause::default()
        }],
        retry_after_seconds,
        ..StatusDetails::default()
    });
    Box::new(status)
}
