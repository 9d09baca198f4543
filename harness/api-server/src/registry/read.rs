//! Handles GET requests for objects and collections.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use http::StatusCode;
use kubernetes_admission::cluster_state::ConversionError;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::json;
use tokio::time::timeout;

use super::list_options::{Continue, ListOptions, ListVersion};
use super::request::ObjectRequest;
use super::selectors::Selection;
use super::state::State;
use super::undecodable::{self, UndecodableObjects};
use crate::apimachinery::options::truth;
use crate::apimachinery::query::Query;
use crate::apimachinery::{metadata, time_limit};
use crate::kinds::core::service::reading as service_reading;
use crate::kinds::discovery::Resource;
use crate::kinds::scale;
use crate::registry::answer::Answer;
use crate::registry::resource_versions;
use crate::storage::list::{Item, List};
use crate::storage::{EncodedObject, HistoryExpired, Snapshot, StoredObject, place, prefix};

/// The number of objects in a list that webhooks convert concurrently.
const CONCURRENT_CONVERSIONS: usize = 16;

/// The time limit of a read. A read waits only for conversion webhooks.
///
/// Source: apiserver pkg/server/config.go, `RequestTimeout`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Handles a GET of one object.
///
/// Rule: KND-18.
pub(crate) async fn get(request: &ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    timeout(REQUEST_TIMEOUT, get_one(request)).await.unwrap_or_else(|_elapsed| Err(time_limit::exceeded()))
}

async fn get_one(request: &ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let target = &request.target;
    let resource = &target.resource;
    let state = &request.registry.state;
    if truth(&request.query, "export") == Some(true) {
        // Source: apiserver pkg/endpoints/handlers/get.go, `GetResource`.
        let message = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(Box::new(Status::bad_request(message.to_owned())));
    }
    check_supported(resource, &target.name)?;
    let version = request.query.first("resourceVersion").unwrap_or_default();
    resource_versions::wait_for_get(&state.storage, version, resource).await?;
    let Some(stored) = state.storage.stored_at(&target.key(&target.name)) else {
        return Err(Box::new(Status::not_found(&resource.gvr.group, &resource.gvr.resource, &target.name)));
    };
    // Source: kubernetes pkg/registry/core/pod/storage/storage.go, `EphemeralContainersREST` and `ResizeREST`.
    let is_whole =
        ["", "status", "approval", "ephemeralcontainers", "resize"].contains(&target.subresource.as_str());
    if is_whole && State::is_served_as_stored(&stored, resource) {
        return Ok(Answer::Stored(StatusCode::OK, stored));
    }
    let stored = stored.object();
    let object = state.in_version_of(&stored, resource).await;
    let object = object.map_err(|error| undecodable::of_read(error, &stored, resource))?;
    match target.subresource.as_str() {
        _ if is_whole => Ok(Answer::ok(object)),
        "scale" => Ok(Answer::ok(Arc::new(scale::read(&object, resource)?))),
        other => {
            let what = format!("reading {}/{other}", resource.gvr.resource);
            Err(Box::new(Status::unsupported(&Unsupported { what })))
        }
    }
}

/// Rejects reads of `ComponentStatus` objects. For these reads, kube-apiserver queries other components.
///
/// The other components are a scheduler, a controller manager, and etcd.
///
/// Source: kubernetes pkg/registry/core/componentstatus/rest.go; `pkg/registry/core/rest/storage_core.go`,
/// `serversToValidate`.
///
/// # Errors
/// Returns 501 for the status of one of these components, or 404 for any other name.
fn check_supported(resource: &Resource, name: &str) -> Result<(), Box<Status>> {
    if resource.gvr.group_resource() != "componentstatuses" {
        return Ok(());
    }
    if ["", "scheduler", "controller-manager", "etcd-0"].contains(&name) {
        let what = "component statuses".to_owned();
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    Err(Box::new(Status::not_found("", "componentstatus", name)))
}

/// Handles a GET of a collection.
pub(crate) async fn list(request: &ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    Ok(Answer::List(selected(request).await?))
}

/// Returns whether the query requests a watch instead of a list.
pub(crate) fn is_watch(query: &Query) -> bool {
    truth(query, "watch") == Some(true)
}

/// Returns the page that the path and the query select, in the version in the path.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `ListPredicate`; pkg/storage/cacher/cacher.go, `GetList`.
/// Rule: LST-01, LST-02.
pub(crate) async fn selected(request: &ObjectRequest<'_>) -> Result<List, Box<Status>> {
    timeout(REQUEST_TIMEOUT, page(request)).await.unwrap_or_else(|_elapsed| Err(time_limit::exceeded()))
}

async fn page(request: &ObjectRequest<'_>) -> Result<List, Box<Status>> {
    let target = &request.target;
    let resource = &target.resource;
    let storage = &request.registry.state.storage;
    check_supported(resource, "")?;
    let (options, selection) = ListOptions::parse(&request.query, resource)?;
    let namespace = match selection.namespace() {
        Some(only) if target.namespace.is_empty() && resource.namespaced && options.token.is_empty() => only,
        _ => &target.namespace,
    };
    let has_key = options.token.is_empty() && resource.namespaced != namespace.is_empty();
    let name = selection.name().filter(|_| has_key);
    let wanted = options.requested_page(resource, name.is_some())?;
    resource_versions::wait_for_list(storage, wanted.at, resource, name.is_some()).await?;
    // A token refers to a position within the namespace of this request.
    let from = wanted.start.map(|start| format!("{}{start}", prefix(namespace)));
    let from = from.or_else(|| name.map(|name| place(namespace, name)));
    let is_everything = selection.is_everything();
    let page = storage.snapshot(&Snapshot {
        group: resource.storage_group(),
        resource: &resource.gvr.resource,
        namespace,
        version: match wanted.at {
            ListVersion::Exact(version) => Some(version),
            ListVersion::Latest | ListVersion::NotOlderThan(_) => None,
        },
        from: from.as_deref(),
        limit: if name.is_some() { Some(1) } else { wanted.limit.filter(|_| is_everything) },
    });
    let page = page.map_err(|HistoryExpired { .. }| {
        expired(from.as_deref().filter(|_| !options.token.is_empty()), namespace)
    })?;
    let mut list = List {
        api_version: resource.kind.api_version(),
        kind: resource.list_kind.clone(),
        resource_version: page.version.to_string(),
        token: String::new(),
        remaining: None,
        items: Vec::new(),
        typed_items: resource.custom.is_some(),
    };
    let mut end = page.last;
    let mut has_more = name.is_none() && page.behind > 0;
    list.remaining = Some(page.behind).filter(|_| has_more && is_everything);
    let chosen =
        select_page(request, &selection, page.objects, wanted.limit.filter(|_| name.is_none())).await?;
    list.items = chosen.items;
    if let Some(cut) = chosen.cut {
        (end, has_more) = (Some(cut), true);
    }
    if let Some(end) = end.filter(|_| has_more) {
        let start = end.strip_prefix(&prefix(namespace)).unwrap_or(&end);
        let slash = if resource_versions::is_cached(resource) { "/" } else { "" };
        list.token =
            Continue::encode(&format!("{slash}{start}\0"), i64::try_from(page.version).unwrap_or(i64::MAX));
    }
    Ok(list)
}

/// The selected objects of a page.
struct SelectedPage {
    items: Vec<Item>,
    /// The position of the last object if the page is full and more objects follow.
    cut: Option<String>,
}

/// Collects objects up to a limit.
struct PageBuilder<'a> {
    resource: &'a Resource,
    limit: Option<usize>,
    /// The number of objects to select from.
    count: usize,
    unreadable: UndecodableObjects,
    chosen: SelectedPage,
}

impl PageBuilder<'_> {
    /// Adds an item unless it is `None`. Returns whether more items can be added.
    ///
    /// # Errors
    /// Returns the Status that the client receives instead of a list.
    fn take(
        &mut self,
        index: usize,
        stored: &StoredObject,
        item: Result<Option<Item>, ConversionError>,
    ) -> Result<bool, Box<Status>> {
        match item {
            Ok(None) => return Ok(true),
            Ok(Some(item)) => self.chosen.items.push(item),
            Err(error) => {
                self.unreadable.add(error, &stored.object(), self.resource)?;
                return Ok(true);
            }
        }
        let is_full = self.limit.is_some_and(|limit| self.chosen.items.len() >= limit);
        if is_full && index + 1 < self.count {
            let object = stored.object();
            let of = |field| metadata::text(&object, field);
            self.chosen.cut = Some(place(of("namespace"), of("name")));
        }
        Ok(!is_full)
    }

    /// Returns the collected objects, or an error if an object could not be decoded.
    ///
    /// # Errors
    /// Returns the Status that the client receives instead of a list.
    fn finish(mut self) -> Result<SelectedPage, Box<Status>> {
        self.unreadable.finish(self.resource)?;
        Ok(self.chosen)
    }
}

/// Converts stored objects and selects at most `limit` of them.
///
/// Drops each decoded object when it is encoded, so that only the encoded objects are all in memory at once.
async fn select_page(
    request: &ObjectRequest<'_>,
    selection: &Selection,
    stored: Vec<Arc<StoredObject>>,
    limit: Option<usize>,
) -> Result<SelectedPage, Box<Status>> {
    let resource = &*request.target.resource;
    let state = &request.registry.state;
    let chosen = SelectedPage { items: Vec::new(), cut: None };
    let mut choice = PageBuilder {
        resource,
        limit,
        count: stored.len(),
        unreadable: UndecodableObjects::default(),
        chosen,
    };
    let is_meant = |stored: &StoredObject| selection.matches(stored, state, resource);
    if !State::may_ask_webhook(resource) {
        for (index, stored) in stored.into_iter().enumerate().filter(|(_, stored)| is_meant(stored)) {
            let item = if State::is_served_as_stored(&stored, resource) {
                Ok(Item::Stored(Arc::clone(&stored)))
            } else {
                let converted = state.in_version_of_at_once(&stored.object(), resource);
                converted.map(|object| {
                    Item::Converted(EncodedObject::new(&service_reading::read(object, resource)))
                })
            };
            if !choice.take(index, &stored, item.map(Some))? {
                break;
            }
        }
        return choice.finish();
    }
    // A webhook may change labels, so objects that it converts are selected after the conversion.
    let is_late = |stored: &StoredObject| State::asks_webhook_of_stored(stored, resource);
    let meant = stored.into_iter().enumerate().filter(|(_, stored)| is_late(stored) || is_meant(stored));
    let converted = meant.map(|(index, stored)| async move {
        let converted = state.in_version_of(&stored.object(), resource).await;
        let picked = converted.map(|object| {
            let is_picked = !is_late(&stored) || selection.matches_converted(&object);
            is_picked.then(|| Item::Converted(EncodedObject::new(&object)))
        });
        (index, stored, picked)
    });
    let mut converted = futures::stream::iter(converted).buffered(CONCURRENT_CONVERSIONS);
    while let Some((index, stored, item)) = converted.next().await {
        if !choice.take(index, &stored, item)? {
            break;
        }
    }
    choice.finish()
}

/// Builds the 410 for a `resourceVersion` whose changes are no longer available.
///
/// For a continue token, the error contains a new token that continues with the current state.
///
/// Source: apiserver pkg/storage/etcd3/errors.go, `interpretListError` and `handleCompactedErrorForPaging`.
/// Rule: LST-08.
fn expired(from: Option<&str>, namespace: &str) -> Box<Status> {
    let Some(from) = from else {
        let message = "The resourceVersion for the provided list is too old.";
        return Box::new(Status::failure(410, "Expired", message));
    };
    let start = from.strip_prefix(&prefix(namespace)).unwrap_or(from);
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                   list without the continue parameter, or use the continue token in this response to retrieve the \
                   remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
                   that were created, modified, or deleted between the time the first chunk was returned and now may show \
                   up in the list.";
    let metadata = json!({"continue": Continue::encode(start, -1)});
    Box::new(Status { metadata, ..Status::failure(410, "Expired", message) })
}
