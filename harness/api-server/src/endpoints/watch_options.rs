//! Parses the options of a watch from the query of a request.

use std::time::Duration;

use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use crate::apimachinery::options;
use crate::apimachinery::query::Query;
use crate::kinds::discovery::Resource;
use crate::registry::resource_versions;
use crate::registry::selectors::{Selection, Selectors};

/// The default lifetime of a watch.
///
/// Source: kube-apiserver's `--min-request-timeout`. kube-apiserver multiplies it by a random factor from 1 to 2.
pub(crate) const DEFAULT_LIFETIME: Duration = Duration::from_secs(30 * 60);

/// The events with which a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Starts with an event for each existing object once this `resourceVersion` is reached.
    WithObjects { not_older_than: u64 },
    /// Starts with the writes after this `resourceVersion`.
    After(u64),
}

/// The options of a watch request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatchOptions {
    pub(crate) start: Start,
    pub(crate) bookmarks: bool,
    /// The lifetime of the watch; `None` if the watch ends immediately.
    pub(crate) lifetime: Option<Duration>,
}

/// Parses the options and selectors of a watch of `resource`.
///
/// Reports errors in upstream's order: parses the `resourceVersion` last.
///
/// Source: apimachinery pkg/apis/meta/internalversion/validation/validation.go, `validateWatchOptions`, and
/// pkg/apis/meta/internalversion/defaults.go, `SetListOptionsDefaults`; apiserver pkg/endpoints/handlers/get.go,
/// `ListResource`.
pub(crate) fn parse(
    query: &Query,
    resource: &Resource,
    now: u64,
) -> Result<(WatchOptions, Selection), Box<Status>> {
    let text = |field| query.first(field).unwrap_or_default();
    let version = text("resourceVersion");
    let wants_objects = options::truth(query, "sendInitialEvents");
    let (seconds, _) = options::timeout_and_limit(query)?;
    let selectors = Selectors::parse(query)?;
    let errors = check(wants_objects.is_some(), text("resourceVersionMatch"), text("continue"));
    if !errors.is_empty() {
        return Err(Box::new(Status::invalid("meta.k8s.io", "ListOptions", "", &errors)));
    }
    let selection = selectors.for_resource(resource)?;
    let wrong = |why| Box::new(Status::failure(500, "", why));
    let number = if version.is_empty() { 0 } else { resource_versions::parse(version).map_err(wrong)? };
    let start = match (number, wants_objects) {
        (not_older_than, Some(true)) | (not_older_than @ 0, None) => Start::WithObjects { not_older_than },
        (0, Some(false)) => Start::After(now),
        (version, Some(false) | None) => Start::After(version),
    };
    let bookmarks = options::truth(query, "allowWatchBookmarks") == Some(true);
    Ok((WatchOptions { start, bookmarks, lifetime: lifetime(seconds) }, selection))
}

/// Returns the lifetime of a watch with this `timeoutSeconds`; `None` if the duration is negative.
///
/// Go counts nanoseconds in a 64-bit integer, which may overflow and become negative.
///
/// Source: apiserver pkg/endpoints/handlers/get.go, `ListResource`: `time.Duration(*opts.TimeoutSeconds) * time.Second`.
fn lifetime(seconds: i64) -> Option<Duration> {
    match seconds.wrapping_mul(1_000_000_000) {
        0 => Some(DEFAULT_LIFETIME),
        nanoseconds => u64::try_from(nanoseconds).ok().map(Duration::from_nanos),
    }
}

fn check(says_objects: bool, version_match: &str, token: &str) -> Vec<FieldError> {
    let field = "resourceVersionMatch";
    let forbidden = |why: &str| FieldError::forbidden(field, why);
    let mut errors = Vec::new();
    if says_objects && version_match != "NotOlderThan" {
        errors.push(forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
    }
    if version_match.is_empty() {
        return errors;
    }
    if !says_objects {
        errors.push(forbidden(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ));
    }
    if version_match != "NotOlderThan" {
        errors.push(FieldError::not_supported(field, Value::from(version_match), "\"NotOlderThan\""));
    }
    if !token.is_empty() {
        errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_timeout_overflow_wraps_around() {
        assert_eq!(lifetime(0), Some(DEFAULT_LIFETIME));
        assert_eq!(lifetime(5), Some(Duration::from_secs(5)));
        assert_eq!(lifetime(-1), None);
        assert_eq!(lifetime(9_223_372_036), Some(Duration::from_secs(9_223_372_036)));
        assert_eq!(lifetime(9_223_372_037), None);
        assert_eq!(lifetime(18_446_744_074), Some(Duration::from_nanos(290_448_384)));
        assert_eq!(lifetime(i64::MAX), None);
        assert_eq!(lifetime(i64::MIN), Some(DEFAULT_LIFETIME));
    }
}
