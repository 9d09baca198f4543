//! Paged reads of collections.

use std::sync::Arc;

use super::{Change, StoredObject};

/// The position of a client that reads a collection in pages.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct PagePosition<'a> {
    pub(in super::super) group: &'a str,
    pub(in super::super) resource: &'a str,
    /// The namespace; empty for all namespaces.
    pub(in super::super) namespace: &'a str,
    /// The [`place`](super::place) of the last object; `None` at the beginning.
    pub(in super::super) after: Option<&'a str>,
    /// The `resourceVersion` of the position.
    pub(in super::super) version: u64,
}

/// The next page of a collection.
#[derive(Debug)]
pub(in super::super) enum Page {
    /// The changes since the `resourceVersion`, both before and after the position.
    Changes(Vec<Change>),
    /// Objects, each with its [`place`](super::place); empty at the end.
    Objects(Vec<(String, Arc<StoredObject>)>),
}

/// The objects of a collection to list.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Snapshot<'a> {
    pub(in super::super) group: &'a str,
    pub(in super::super) resource: &'a str,
    /// The namespace; empty for all namespaces.
    pub(in super::super) namespace: &'a str,
    /// The `resourceVersion`, which must not be in the future; the latest if `None`.
    pub(in super::super) version: Option<u64>,
    /// The [`place`](super::place) of the first object; the start of the namespace if `None`.
    pub(in super::super) from: Option<&'a str>,
    /// The maximum number of objects; unlimited if `None`.
    pub(in super::super) limit: Option<usize>,
}

/// The objects that a [`Snapshot`] selects.
#[derive(Debug)]
pub(in super::super) struct SnapshotPage {
    pub(in super::super) objects: Vec<Arc<StoredObject>>,
    /// The [`place`](super::place) of the last object; `None` if the page is empty.
    pub(in super::super) last: Option<String>,
    /// The number of objects after this page.
    pub(in super::super) behind: usize,
    /// The `resourceVersion` of the snapshot.
    pub(in super::super) version: u64,
}
