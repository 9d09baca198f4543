//! Computes `metadata.managedFields` after a write.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::conflict::Conflicts;
use crate::filter::Filter;
use crate::last_applied;
use crate::managed::{self, Managed, Manager, Operation, Time, VersionedSet};
use crate::set::Set;
use crate::typed::{Duplicates, validate};
use crate::updater::{Failure, Force, Updater};
use crate::versions::{Versioned, Versions};

/// The maximum number of managers that own fields through updates.
///
/// Source: apimachinery pkg/util/managedfields/internal/fieldmanager.go, `DefaultMaxUpdateManagers`.
const DEFAULT_MAX_UPDATE_MANAGERS: usize = 10;

/// The manager that takes over the fields of the oldest managers beyond the limit.
///
/// Source: apimachinery pkg/util/managedfields/internal/capmanagers.go.
const OLD_UPDATES_MANAGER_NAME: &str = "ancient-changes";

/// The manager that owns the fields that existed before the first apply.
///
/// Source: apimachinery pkg/util/managedfields/internal/skipnonapplied.go.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The fields that managers never own.
///
/// Source: apimachinery pkg/util/managedfields/internal/stripmeta.go.
static STRIPPED: LazyLock<Set> = LazyLock::new(|| {
    Set::from_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Maintains the managedFields of objects of one kind.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers make it")]
pub struct FieldManager<'a, V> {
    /// The versions of the kind.
    pub versions: &'a V,
    /// The version of the requests and of all passed and returned objects, such as `apps/v1`.
    pub api_version: &'a str,
    /// The kind of the objects.
    pub kind: &'a str,
    /// The subresource of the write; an empty string for the object itself.
    pub subresource: &'a str,
    /// The fields that a request can set, by version; in a version that is not in the map, a request can set all
    /// fields.
    pub reset_fields: &'a BTreeMap<String, Filter>,
}

/// The manager of a write, and its time.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers make it")]
pub struct Writer<'a> {
    /// The `fieldManager`; an empty name becomes `unknown`.
    pub manager: &'a str,
    /// The time in UTC with a precision of seconds: `2026-01-02T03:04:05Z`.
    pub now: &'a str,
}

impl Writer<'_> {
    fn time(&self) -> Time {
        Time { text: self.now.to_owned(), is_now: true }
    }
}

/// An object with its new `metadata.managedFields`. The field is omitted if no manager owns a field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Written {
    /// The object with its new managedFields.
    pub object: Value,
    /// Whether an entry has the time of the current write.
    ///
    /// That time keeps its fractions of a second until the object is encoded as JSON.
    pub is_timed: bool,
}

/// The reason why an object cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each is another answer to the client")]
pub enum Error {
    /// The response is a Bad Request with this message.
    BadRequest(String),
    /// The response is a Conflict, because other managers own fields that the write would change.
    Conflicts(Conflicts),
    /// The response is an Internal Server Error with this message.
    Internal(String),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Conflicts(conflicts) => Self::Conflicts(conflicts),
            Failure::Other(message) => Self::Internal(message),
        }
    }
}

/// Returns `metadata.managedFields`, or null if the field is absent.
fn entries(object: &Value) -> &Value {
    object.get("metadata").and_then(|metadata| metadata.get("managedFields")).unwrap_or(&Value::Null)
}

/// Sets `metadata.managedFields`, or removes the field if `entries` is `None`.
pub(crate) fn set_entries(object: &mut Value, entries: Option<Value>) {
    let Some(members) = object.as_object_mut() else { return };
    if entries.is_none() && !members.get("metadata").is_some_and(Value::is_object) {
        return;
    }
    let metadata = members.entry("metadata").or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = Map::new().into();
    }
    let Some(metadata) = metadata.as_object_mut() else { return };
    match entries {
        Some(entries) => metadata.insert("managedFields".to_owned(), entries),
        None => metadata.remove("managedFields"),
    };
}

fn without_entries(object: &Value) -> Value {
    let mut object = object.clone();
    set_entries(&mut object, None);
    object
}

/// The object and the owners of fields after a write; the object is `None` if an apply did not change it.
struct Change {
    object: Option<Value>,
    managed: Managed,
}

impl<V: Versions> FieldManager<'_, V> {
    /// Returns the object that a create, an update, or a patch stores.
    ///
    /// `new` is the object to store; `live` is the stored object, or `None` for a create.
    ///
    /// The request may set managedFields itself, except through a subresource: invalid entries are ignored, and `[]` or
    /// `[{}]` removes all entries. If no manager owns any field of the stored object, an update does not add its
    /// manager as an owner; only an apply does.
    ///
    /// # Errors
    /// Returns [`Error::Internal`] if an object does not match its type or cannot be converted.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/fieldmanager.go, `Update`; skipnonapplied.go, `Update`.
    pub fn update(&self, live: Option<&Value>, mut new: Value, by: &Writer<'_>) -> Result<Written, Error> {
        let is_timed = self.update_in_place(live, &mut new, by)?;
        Ok(Written { object: new, is_timed })
    }

    /// Returns the object that a write stores, as [`Self::update`] does, but keeps the live object's managedFields on
    /// an error.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/fieldmanager.go, `UpdateNoErrors`.
    pub fn update_no_errors(&self, live: Option<&Value>, mut new: Value, by: &Writer<'_>) -> Written {
        let is_timed = self.update_in_place(live, &mut new, by).unwrap_or_else(|_error| {
            set_entries(&mut new, live.map(entries).filter(|entries| !entries.is_null()).cloned());
            false
        });
        Written { object: new, is_timed }
    }

    /// Sets the managedFields of `new`, or removes them on an error.
    ///
    /// Returns whether an entry has the time of this write.
    fn update_in_place(&self, live: Option<&Value>, new: &mut Value, by: &Writer<'_>) -> Result<bool, Error> {
        let live = &*self.live_or_empty(live);
        let managed = self.managed_before(live, new);
        set_entries(new, None);
        let has_uid = live
            .get("metadata")
            .and_then(|metadata| metadata.get("uid"))
            .is_some_and(|uid| uid.as_str().is_some_and(|uid| !uid.is_empty()));
        if managed.fields.is_empty() && has_uid {
            return Ok(false);
        }
        let shared = Rc::new(std::mem::take(new));
        let managed = self.updated(&Rc::new(without_entries(live)), &shared, managed, by);
        *new = Rc::unwrap_or_clone(shared);
        let managed = managed?;
        set_entries(new, managed.encode());
        Ok(managed.is_timed())
    }

    fn live_or_empty<'a>(&self, live: Option<&'a Value>) -> Cow<'a, Value> {
        live.map_or_else(|| Cow::Owned(self.versions.empty(self.api_version)), Cow::Borrowed)
    }

    /// Returns the owners before an update, from the managedFields of the stored object or of the request.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/fieldmanager.go, `decodeLiveOrNew`.
    fn managed_before(&self, live: &Value, new: &Value) -> Managed {
        let of_live = || Managed::decode(entries(live)).unwrap_or_default();
        if !self.subresource.is_empty() {
            return of_live();
        }
        if managed::is_reset(entries(new)) {
            return Managed::default();
        }
        match Managed::decode(entries(new)) {
            Ok(managed) if !managed.fields.is_empty() => managed,
            Ok(_) | Err(_) => of_live(),
        }
    }

    /// Returns the owners of fields after an update.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/{structuredmerge,stripmeta,managedfieldsupdater,
    /// buildmanagerinfo,capmanagers}.go, `Update`.
    fn updated(
        &self,
        live: &Rc<Value>,
        new: &Rc<Value>,
        managed: Managed,
        by: &Writer<'_>,
    ) -> Result<Managed, Error> {
        let what = "failed to convert new object";
        let new_typed = self.typed(Rc::clone(new), Duplicates::Allowed).map_err(|error| {
            Error::Internal(format!("{what} ({}) to smd typed: {error}", self.name_of(new)))
        })?;
        let what = "failed to convert live object";
        let live_typed = self.typed(Rc::clone(live), Duplicates::Allowed).map_err(|error| {
            Error::Internal(format!("{what} ({}) to smd typed: {error}", self.name_of(live)))
        })?;
        let Managed { fields, mut times } = managed;
        let (mut fields, set) =
            self.updater().update(&live_typed, &new_typed, &fields).map_err(|failure| match failure {
                Failure::Conflicts(conflicts) => Error::Conflicts(conflicts),
                Failure::Other(error) => Error::Internal(format!(
                    "failed to update ManagedFields ({}): {error}",
                    self.name_of(new)
                )),
            })?;
        let set = set.difference(&STRIPPED);
        if !set.is_empty() {
            let owner = self.manager(by.manager, Operation::Update);
            let api_version = self.api_version.to_owned();
            let set = fields.get(&owner).map_or_else(|| set.clone(), |before| set.union(&before.set));
            times.insert(owner.clone(), by.time());
            fields.insert(owner, VersionedSet { set, api_version, operation: Operation::Update });
        }
        let mut managed = Managed { fields, times };
        cap(&mut managed);
        Ok(managed)
    }

    /// Returns the object that an apply stores.
    ///
    /// `applied` is the request's object as sent: with `apiVersion` and `kind`, without defaults. `live` is the stored
    /// object, or `None` for a create.
    ///
    /// Defaults are not set in new parts of the object. A struct, list, or map that becomes empty is null in the
    /// returned object; Go types treat null as absent.
    ///
    /// # Errors
    /// Returns an [`Error`] if the apply is rejected.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/fieldmanager.go, `Apply`; versioncheck.go,
    /// lastappliedupdater.go and managedfieldsupdater.go, `Apply`.
    pub fn apply(
        &self,
        live: Option<&Value>,
        applied: &Value,
        by: &Writer<'_>,
        force: bool,
    ) -> Result<Written, Error> {
        let live = &*self.live_or_empty(live);
        let managed = Managed::decode(entries(live))
            .map_err(|error| Error::Internal(format!("failed to decode managed fields: {error}")))?;
        let text = |name: &str| applied.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("apiVersion") != self.api_version || text("kind") != self.kind {
            let kind = group_version_kind(text("apiVersion"), text("kind"));
            return Err(Error::BadRequest(format!("invalid object type: {kind}")));
        }
        let force = if force { Force::Yes } else { Force::No };
        let live = Rc::new(without_entries(live));
        let change = match self.applied(&live, applied, managed.clone(), by, force) {
            Err(Error::Conflicts(conflicts)) if by.manager == last_applied::KUBECTL => {
                // Fields from client-side apply already belong to kubectl.
                match self.last_applied(&live) {
                    Some(owned) => match conflicts.except(&owned) {
                        Some(conflicts) => Err(Error::Conflicts(conflicts)),
                        None => self.applied(&live, applied, managed, by, Force::Yes),
                    },
                    None => Err(Error::Conflicts(conflicts)),
                }
            }
            change => change,
        }?;
        let mut object = change.object.unwrap_or_else(|| Rc::unwrap_or_clone(live));
        if by.manager == last_applied::KUBECTL {
            last_applied::refresh(&mut object, applied);
        }
        set_entries(&mut object, change.managed.encode());
        Ok(Written { object, is_timed: change.managed.is_timed() })
    }

    /// Returns the object and the owners of fields after an apply.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/{skipnonapplied,managedfieldsupdater,stripmeta,
    /// structuredmerge}.go, `Apply`.
    fn applied(
        &self,
        live: &Rc<Value>,
        applied: &Value,
        mut managed: Managed,
        by: &Writer<'_>,
        force: Force,
    ) -> Result<Change, Error> {
        if managed.fields.is_empty() {
            let empty = Rc::new(self.versions.empty(self.api_version));
            let before = Writer { manager: BEFORE_FIRST_APPLY, now: by.now };
            managed = self.updated(&empty, live, managed, &before).map_err(|error| match error {
                Error::Internal(error) => {
                    Error::Internal(format!("failed to create manager for existing fields: {error}"))
                }
                error @ (Error::BadRequest(_) | Error::Conflicts(_)) => error,
            })?;
        }
        if entries(applied).is_array() {
            return Err(Error::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        let applied_typed = self.typed(Rc::new(applied.clone()), Duplicates::Refused).map_err(|error| {
            let name = self.name_of(applied);
            Error::Internal(format!("failed to create typed patch object ({name}): {error}"))
        })?;
        let live_typed = self.typed(Rc::clone(live), Duplicates::Allowed).map_err(|error| {
            Error::Internal(format!("failed to create typed live object ({}): {error}", self.name_of(live)))
        })?;
        let owner = self.manager(by.manager, Operation::Apply);
        let Managed { fields, mut times } = managed;
        let (object, mut owners) =
            self.updater().apply(&live_typed, &applied_typed, &fields, &owner, force)?;
        if let Some(owned) = owners.get_mut(&owner) {
            owned.set = owned.set.difference(&STRIPPED);
            if owned.set.is_empty() {
                owners.remove(&owner);
            }
        }
        if object.is_some() {
            times.insert(owner, by.time());
        }
        let object = object.map(|object| Rc::unwrap_or_clone(object.object));
        Ok(Change { object, managed: Managed { fields: owners, times } })
    }

    /// Returns the unchanged fields from client-side `kubectl apply`, or `None` if the annotation is missing or
    /// invalid.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/lastappliedmanager.go, `allowedConflictsFromLastApplied`.
    fn last_applied(&self, live: &Rc<Value>) -> Option<Set> {
        let last: Value = serde_json::from_str(last_applied::annotation(live)?).ok()?;
        let text = |name: &str| last.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("apiVersion") != self.api_version || text("kind").is_empty() {
            return None;
        }
        let live = self.typed(Rc::clone(live), Duplicates::Refused).ok()?;
        let last = self.typed(Rc::new(last), Duplicates::Refused).ok()?;
        let changes = crate::typed::compare(&last.object, &live.object, last.of).ok()?;
        let owned = last.field_set().difference(&changes.modified).difference(&changes.added);
        Some(owned.difference(&changes.removed))
    }

    fn updater(&self) -> Updater<'_, V> {
        Updater { versions: self.versions, filters: self.reset_fields }
    }

    fn typed(&self, object: Rc<Value>, duplicates: Duplicates) -> Result<Versioned<V::Schema>, String> {
        let typed =
            Versioned::new(self.versions, object, self.api_version).map_err(|error| error.to_string())?;
        validate(&typed.object, typed.of, duplicates).map_err(|errors| errors.to_string())?;
        Ok(typed)
    }

    /// Creates a manager for a request; an empty name becomes `unknown`.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/buildmanagerinfo.go, `buildManagerInfo`.
    fn manager(&self, name: &str, operation: Operation) -> Manager {
        let name = if name.is_empty() { "unknown" } else { name };
        Manager::new(name, operation, self.api_version, self.subresource)
    }

    /// Returns the object's namespace and name as errors show them.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/structuredmerge.go, `objectGVKNN`.
    fn name_of(&self, object: &Value) -> String {
        let text = |name: &str| {
            object
                .get("metadata")
                .and_then(|metadata| metadata.get(name))
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let kind = group_version_kind(self.api_version, self.kind);
        format!("{}/{}; {kind}", text("namespace"), text("name"))
    }
}

/// Formats a group, version, and kind as errors show them: `apps/v1, Kind=Deployment`.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionKind.String`.
fn group_version_kind(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={kind}")
}

/// Moves the fields of the oldest updaters beyond the limit to one manager for each version.
///
/// Source: apimachinery pkg/util/managedfields/internal/capmanagers.go, `capUpdateManagers`.
fn cap(managed: &mut Managed) {
    let is_updater = |(_, owned): &(&Manager, &VersionedSet)| owned.operation == Operation::Update;
    let mut updaters: Vec<Manager> =
        managed.fields.iter().filter(is_updater).map(|(manager, _)| manager.clone()).collect();
    let mut count = updaters.len();
    if count <= DEFAULT_MAX_UPDATE_MANAGERS {
        return;
    }
    updaters.sort_by_cached_key(|manager| (managed.time(manager).to_owned(), manager.clone()));
    let mut firsts: BTreeMap<String, Manager> = BTreeMap::new();
    for manager in updaters {
        if count <= DEFAULT_MAX_UPDATE_MANAGERS {
            return;
        }
        let Some(owned) = managed.fields.get(&manager).cloned() else { continue };
        let Some(first) = firsts.get(&owned.api_version) else {
            firsts.insert(owned.api_version, manager);
            continue;
        };
        let ancient = Manager::new(OLD_UPDATES_MANAGER_NAME, Operation::Update, &owned.api_version, "");
        if !managed.fields.contains_key(&ancient)
            && let Some(first) = managed.fields.remove(first)
        {
            managed.fields.insert(ancient.clone(), first);
        }
        managed.fields.remove(&manager);
        managed.fields.entry(ancient.clone()).and_modify(|all| all.set = all.set.union(&owned.set));
        count -= 1;
        match managed.times.get(&manager).cloned() {
            Some(time) => managed.times.insert(ancient, time),
            None => managed.times.remove(&ancient),
        };
    }
}

/// Restores the old timestamps in the entries of `new` if only timestamps changed, so that the write is a no-op.
///
/// `same` compares the rest of the objects: as values of their Go types, or strictly for objects without a Go type.
///
/// Source: apiserver pkg/endpoints/handlers/fieldmanager/equality.go, `IgnoreManagedFieldsTimestampsTransformer`.
pub fn restore_times(old: &Value, new: &mut Value, same: impl FnOnce(&Value, &Value) -> bool) {
    let (before, after) = (entries(old), entries(new));
    if before == after || !same_but_for_times(before, after) {
        return;
    }
    if same(&without_entries(old), &without_entries(new)) {
        let entries = before.clone();
        set_entries(new, Some(entries));
    }
}

/// Returns whether the entries of `before` and `after` are equal except for their timestamps.
fn same_but_for_times(before: &Value, after: &Value) -> bool {
    let timeless = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(members) = entry.as_object_mut() {
            members.remove("time");
        }
        entry
    };
    let (Some(before), Some(after)) = (before.as_array(), after.as_array()) else { return false };
    before.len() == after.len()
        && before.iter().zip(after).all(|(one, other)| timeless(one) == timeless(other))
}
