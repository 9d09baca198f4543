//! Computes the owners of fields after a write.
//!
//! Source: structured-merge-diff merge/update.go.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::conflict::Conflicts;
use crate::filter::Filter;
use crate::managed::{Fields, Manager, Operation, VersionedSet};
use crate::set::Set;
use crate::typed::{Comparison, compare, merge, reconcile};
use crate::value;
use crate::versions::{ConversionError, Versioned, Versions};

/// The reason why a computation failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Conflicts(Conflicts),
    /// Any failure other than a conflict.
    Other(String),
}

impl Failure {
    fn new(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Other(format!("{what}: {error}"))
    }

    fn within(self, what: &str) -> Self {
        match self {
            Self::Conflicts(_) => self,
            Self::Other(error) => Self::new(what, error),
        }
    }
}

impl From<ConversionError> for Failure {
    fn from(error: ConversionError) -> Self {
        Self::Other(error.to_string())
    }
}

/// The parameters that are the same for all writes of a kind.
pub(crate) struct Updater<'a, V> {
    pub(crate) versions: &'a V,
    /// The fields that a request can set, by version.
    pub(crate) filters: &'a BTreeMap<String, Filter>,
}

/// Returns the object, or `None` if its version no longer exists.
fn known<T>(result: Result<T, ConversionError>, what: &str) -> Result<Option<T>, Failure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(ConversionError::UnknownVersion(_)) => Ok(None),
        Err(error @ ConversionError::Failed(_)) => Err(Failure::new(what, error)),
    }
}

type Object<V> = Versioned<<V as Versions>::Schema>;

impl<V: Versions> Updater<'_, V> {
    /// Returns the owners after `new` replaces `live`, both in the same version, and the changed fields.
    ///
    /// Managers lose the fields that changed.
    pub(crate) fn update(
        &self,
        live: &Object<V>,
        new: &Object<V>,
        managers: &Fields,
    ) -> Result<(Fields, Set), Failure> {
        let managers = self.reconciled(live, managers)?;
        let (managers, changes) = self.after(live, new, managers, None, Force::Yes)?;
        let set = changes.modified.union(&changes.added);
        Ok((managers, self.filtered(set, &new.api_version)))
    }

    /// Merges `applied` into `live`, both in the same version, and returns the object and the owners.
    ///
    /// The returned object is `None` if the apply does not change the object.
    pub(crate) fn apply(
        &self,
        live: &Object<V>,
        applied: &Object<V>,
        managers: &Fields,
        by: &Manager,
        force: Force,
    ) -> Result<(Option<Object<V>>, Fields), Failure> {
        let mut managers = self.reconciled(live, managers)?;
        let merged = merge(&live.object, &applied.object, live.of)
            .map_err(|errors| Failure::new("failed to merge config", errors))?;
        let set = self.filtered(applied.field_set(), &applied.api_version);
        let owned = VersionedSet {
            set,
            api_version: applied.api_version.as_ref().to_owned(),
            operation: Operation::Apply,
        };
        let last = managers.insert(by.clone(), owned);
        let pruned = self
            .pruned(live.with(merged), &managers, last.as_ref(), &applied.api_version)
            .map_err(|failure| failure.within("failed to prune fields"))?;
        let (managers, _) = self.after(live, &pruned, managers, Some(by), force)?;
        let is_same = value::equal(&live.object, &pruned.object);
        Ok(((!is_same).then_some(pruned), managers))
    }

    fn filtered(&self, fields: Set, api_version: &str) -> Set {
        match self.filters.get(api_version) {
            Some(filter) => filter.apply(&fields),
            None => fields,
        }
    }

    fn compared(&self, old: &Object<V>, new: &Object<V>) -> Result<Comparison, Failure> {
        let comparison = compare(&old.object, &new.object, old.of)
            .map_err(|errors| Failure::new("failed to compare objects", errors))?;
        Ok(Comparison {
            removed: self.filtered(comparison.removed, &old.api_version),
            modified: self.filtered(comparison.modified, &old.api_version),
            added: self.filtered(comparison.added, &old.api_version),
        })
    }

    /// Removes changed and deleted fields from all managers except `by`, and returns the managers and the changes.
    fn after(
        &self,
        live: &Object<V>,
        new: &Object<V>,
        mut managers: Fields,
        by: Option<&Manager>,
        force: Force,
    ) -> Result<(Fields, Comparison), Failure> {
        let changes = self.compared(live, new)?;
        let mut versions = BTreeMap::from([(
            live.api_version.as_ref().to_owned(),
            Some(LostFields::from_comparison(&changes)),
        )]);
        let mut conflicts = BTreeMap::new();
        let mut obsolete = Vec::new();
        let mut rest = BTreeMap::new();
        for (manager, owned) in managers.iter().filter(|(manager, _)| Some(*manager) != by) {
            let changes = match versions.entry(owned.api_version.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let changes = self.compared_in(live, new, &owned.api_version)?;
                    unknown.insert(changes.as_ref().map(LostFields::from_comparison))
                }
            };
            let Some(changes) = changes else {
                obsolete.push(manager.clone());
                continue;
            };
            let taken = owned.set.intersection(&changes.changed);
            let left = owned.set.difference(&taken).difference(&changes.removed);
            rest.insert(manager.clone(), left);
            if !taken.is_empty() {
                conflicts.insert(manager.clone(), taken);
            }
        }
        if force == Force::No && !conflicts.is_empty() {
            return Err(Failure::Conflicts(Conflicts::new(conflicts)));
        }
        for manager in obsolete {
            managers.remove(&manager);
        }
        for (manager, left) in rest {
            managers.entry(manager).and_modify(|owned| owned.set = left);
        }
        managers.retain(|_, owned| !owned.set.is_empty());
        Ok((managers, changes))
    }

    /// Compares the objects in another version; returns `None` if that version does not exist.
    fn compared_in(
        &self,
        live: &Object<V>,
        new: &Object<V>,
        api_version: &str,
    ) -> Result<Option<Comparison>, Failure> {
        let live = known(live.convert(self.versions, api_version), "failed to convert old object")?;
        let Some(live) = live else { return Ok(None) };
        let new = known(new.convert(self.versions, api_version), "failed to convert new object")?;
        let Some(new) = new else { return Ok(None) };
        self.compared(&live, &new).map(Some)
    }

    /// Updates the field sets of managers to the current schema, and drops managers of versions that no longer exist.
    fn reconciled(&self, live: &Object<V>, managers: &Fields) -> Result<Fields, Failure> {
        let mut types = BTreeMap::new();
        let mut reconciled = Fields::new();
        for (manager, owned) in managers {
            let of = match types.entry(owned.api_version.as_str()) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => {
                    let converted = match live.convert(self.versions, &owned.api_version) {
                        Err(ConversionError::UnknownVersion(_)) => None,
                        converted => Some(converted?.of),
                    };
                    *unknown.insert(converted)
                }
            };
            let Some(of) = of else { continue };
            let today = reconcile(&owned.set, of);
            reconciled.insert(manager.clone(), today.map_or_else(|| owned.clone(), |set| owned.with(set)));
        }
        Ok(reconciled)
    }

    /// Returns `merged` without the fields that the manager applied last time but not this time.
    ///
    /// Fields that another manager owns are kept.
    fn pruned(
        &self,
        merged: Object<V>,
        managers: &Fields,
        last: Option<&VersionedSet>,
        api_version: &str,
    ) -> Result<Object<V>, Failure> {
        let Some(last) = last.filter(|last| !last.set.is_empty()) else { return Ok(merged) };
        let what = "failed to convert merged object to last applied version";
        let Some(merged_then) = known(merged.convert(self.versions, &last.api_version), what)? else {
            return Ok(merged);
        };
        let pruned = merged_then.without(&merged_then.with_named_fields(&last.set));
        let pruned = self
            .with_owned(&merged_then, pruned, managers)
            .map_err(|failure| failure.within("failed add back owned items"))?;
        let pruned = self
            .with_dangling(&merged_then, &pruned, last)
            .map_err(|failure| failure.within("failed add back dangling items"))?;
        Ok(pruned.convert(self.versions, api_version)?)
    }

    /// Returns `pruned` with the fields of `merged` that any manager owns.
    fn with_owned(
        &self,
        merged: &Object<V>,
        mut pruned: Object<V>,
        managers: &Fields,
    ) -> Result<Object<V>, Failure> {
        let mut by_version: BTreeMap<&str, Set> = BTreeMap::new();
        for owned in managers.values() {
            let all = by_version.entry(&owned.api_version).or_default();
            *all = all.union(&owned.set);
        }
        let mut merged = merged.clone();
        // Start with the version of the objects: converting to other versions may require pruned fields.
        let first = merged.api_version.as_ref().to_owned();
        let first = by_version.remove_entry(first.as_str());
        for (version, managed) in first.into_iter().chain(by_version) {
            let what = format!("failed to convert merged object at version {version}");
            let Some(merged_then) = known(merged.convert(self.versions, version), &what)? else { continue };
            merged = merged_then;
            let what = format!("failed to convert pruned object at version {version}");
            let Some(pruned_then) = known(pruned.convert(self.versions, version), &what)? else { continue };
            let kept = pruned_then.with_named_fields(&pruned_then.field_set());
            let kept = kept.union(&merged.with_named_fields(&managed));
            let all = merged.with_named_fields(&merged.field_set());
            pruned = merged.without(&all.difference(&kept));
        }
        Ok(pruned)
    }

    /// Returns `merged` without the fields of the manager's last set that are not in `pruned`.
    fn with_dangling(
        &self,
        merged: &Object<V>,
        pruned: &Object<V>,
        last: &VersionedSet,
    ) -> Result<Object<V>, Failure> {
        let what = "failed to convert pruned object to last applied version";
        let Some(pruned) = known(pruned.convert(self.versions, &last.api_version), what)? else {
            return Ok(merged.clone());
        };
        let kept = merged.with_named_fields(&pruned.field_set());
        let all = merged.with_named_fields(&merged.field_set());
        let last = merged.with_named_fields(&last.set);
        Ok(merged.without(&all.difference(&kept).intersection(&last)))
    }
}

/// The fields that other managers lose in one version.
struct LostFields {
    /// The fields whose values changed.
    changed: Set,
    /// The fields that were removed from the object.
    removed: Set,
}

impl LostFields {
    fn from_comparison(changes: &Comparison) -> Self {
        Self { changed: changes.modified.union(&changes.added), removed: changes.removed.clone() }
    }
}

/// Whether an apply takes fields from other managers despite conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    Yes,
    No,
}
