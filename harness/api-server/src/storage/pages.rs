//! How collections are read in pieces.

use std::sync::Arc;

use super::{Change, StoredObject};

/// The position of a client that reads a collection in pieces.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Walk<'a> {
    pub(in super::super) group: &'a str,
    pub(in super::super) resource: &'a str,
    /// Empty for all namespaces.
    pub(in super::super) namespace: &'a str,
    /// The [`place`](super::place) of the last object; none at the beginning.
    pub(in super::super) after: Option<&'a str>,
    /// The `resourceVersion` at which that was.
    pub(in super::super) version: u64,
}

/// The next piece of a collection.
#[derive(Debug)]
pub(in super::super) enum Page {
    /// What has changed meanwhile, before as behind where they have come to.
    Changes(Vec<Change>),
    /// Objects, each with its [`place`](super::place); none at the end.
    Objects(Vec<(String, Arc<StoredObject>)>),
}

/// Which objects of a collection are listed.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Snapshot<'a> {
    pub(in super::super) group: &'a str,
    pub(in super::super) resource: &'a str,
    /// Empty for all namespaces.
    pub(in super::super) namespace: &'a str,
    /// The `resourceVersion`, which is not one that is yet to come; the latest if there is none.
    pub(in super::super) version: Option<u64>,
    /// The [`place`](super::place) of the first object; that of the first of the namespace if there is none.
    pub(in super::super) from: Option<&'a str>,
    /// At most so many.
    pub(in super::super) limit: Option<usize>,
}

/// Objects of a [`Snapshot`].
#[derive(Debug)]
pub(in super::super) struct SnapshotPage {
    pub(in super::super) objects: Vec<Arc<StoredObject>>,
    /// The [`place`](super::place) of the last of them.
    pub(in super::super) last: Option<String>,
    /// How many objects come after them.
    pub(in super::super) behind: usize,
    /// The `resourceVersion` at which these are all.
    pub(in super::super) version: u64,
}
