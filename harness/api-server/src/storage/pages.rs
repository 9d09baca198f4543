//! Paged reads of collections.

use std::sync::Arc;

use super::{Change, StoredObject};

/// The position of a client that reads a collection in pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PagePosition<'a> {
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    /// The namespace; empty for all namespaces.
    pub(crate) namespace: &'a str,
    /// The [`place`](super::place) of the last object; `None` at the beginning.
    pub(crate) after: Option<&'a str>,
    /// The `resourceVersion` of the position.
    pub(crate) version: u64,
}

/// The next page of a collection.
#[derive(Debug)]
pub(crate) enum Page {
    /// The changes since the `resourceVersion`, both before and after the position.
    Changes(Vec<Change>),
    /// Objects, each with its [`place`](super::place); empty at the end.
    Objects(Vec<(String, Arc<StoredObject>)>),
}

/// The objects of a collection to list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot<'a> {
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    /// The namespace; empty for all namespaces.
    pub(crate) namespace: &'a str,
    /// The `resourceVersion`; the latest if `None`. It must not be in the future.
    pub(crate) version: Option<u64>,
    /// The [`place`](super::place) of the first object; the start of the namespace if `None`.
    pub(crate) from: Option<&'a str>,
    /// The maximum number of objects; unlimited if `None`.
    pub(crate) limit: Option<usize>,
}

/// The objects that a [`Snapshot`] selects.
#[derive(Debug)]
pub(crate) struct SnapshotPage {
    pub(crate) objects: Vec<Arc<StoredObject>>,
    /// The [`place`](super::place) of the last object; `None` if the page is empty.
    pub(crate) last: Option<String>,
    /// The number of objects after this page.
    pub(crate) behind: usize,
    /// The `resourceVersion` of the snapshot.
    pub(crate) version: u64,
}
