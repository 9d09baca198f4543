//! Decodes and encodes `metadata.managedFields`: which manager owns which fields.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use go_std::quote::quote;
use serde_json::{Map, Value};

use crate::go::{self, Escapes, Exponents};
use crate::set::Set;

/// The operation through which a manager became the owner of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "upstream refuses others")]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any write other than server-side apply.
    Update,
}

impl Operation {
    /// Returns the value of the field `operation`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// A field manager: the identity of an entry of managedFields. Managers are sorted as upstream sorts them.
#[derive(Clone, Debug)]
pub struct Manager {
    name: Arc<str>,
    operation: Operation,
    api_version: Arc<str>,
    subresource: Arc<str>,
    /// The manager's identifier. Upstream sorts managers by their identifiers.
    identifier: Arc<str>,
}

impl Manager {
    pub(crate) fn new(name: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        Self {
            name: name.into(),
            operation,
            api_version: api_version.into(),
            subresource: subresource.into(),
            identifier: identifier(name, operation, api_version, subresource).into(),
        }
    }

    /// Returns the manager's name: the `fieldManager` of its requests.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the operation through which the manager became the owner of fields.
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns the version of the manager's requests.
    ///
    /// The version is empty for [`Operation::Apply`], because one entry contains the fields of all versions.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Returns the subresource, or an empty string for the object itself.
    pub fn subresource(&self) -> &str {
        &self.subresource
    }
}

/// Returns the JSON text that upstream uses as the identifier of a manager.
///
/// Source: apimachinery pkg/util/managedfields/internal/managedfields.go, `BuildManagerIdentifier`.
fn identifier(name: &str, operation: Operation, api_version: &str, subresource: &str) -> String {
    let mut text = String::from("{");
    for (member, value) in [
        ("manager", name),
        ("operation", operation.as_str()),
        ("apiVersion", api_version),
        ("subresource", subresource),
    ] {
        if value.is_empty() {
            continue;
        }
        if text.len() > 1 {
            text.push(',');
        }
        text.push('"');
        text.push_str(member);
        text.push_str("\":");
        go::write_json_text(&mut text, value, Escapes::Html, Exponents::Json);
    }
    text.push('}');
    text
}

impl Ord for Manager {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identifier.cmp(&other.identifier)
    }
}

impl PartialOrd for Manager {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Manager {
    fn eq(&self, other: &Self) -> bool {
        self.identifier == other.identifier
    }
}

impl Eq for Manager {}

/// The fields that a manager owns, in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionedSet {
    pub(crate) set: Set,
    pub(crate) api_version: String,
    pub(crate) operation: Operation,
}

impl VersionedSet {
    /// Returns `set` with the version of this set.
    pub(crate) fn with(&self, set: Set) -> Self {
        Self { set, api_version: self.api_version.clone(), operation: self.operation }
    }
}

/// The fields that each manager owns.
pub(crate) type Fields = BTreeMap<Manager, VersionedSet>;

/// The last time at which a manager became the owner of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    /// The time in UTC with a precision of seconds, as the server formats it.
    pub(crate) text: String,
    /// Whether this is the time of the current write.
    pub(crate) is_now: bool,
}

/// The fields that each manager owns, with the time of each manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    pub(crate) fields: Fields,
    /// The time of each manager. A manager without fields can have a time; a manager without a time is not in the map.
    pub(crate) times: BTreeMap<Manager, Time>,
}

/// The time that sorts managers without a time before all other managers.
const EPOCH: &str = "1970-01-01T00:00:00Z";

impl Managed {
    pub(crate) fn time(&self, manager: &Manager) -> &str {
        self.times.get(manager).map_or(EPOCH, |time| &time.text)
    }

    /// Returns whether an entry has the time of the current write.
    pub(crate) fn is_timed(&self) -> bool {
        self.fields.keys().any(|manager| self.times.get(manager).is_some_and(|time| time.is_now))
    }

    /// Decodes `metadata.managedFields`; `entries` is null if the field is absent.
    ///
    /// # Errors
    /// Returns kube-apiserver's error if an entry is invalid.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/managedfields.go, `DecodeManagedFields`.
    pub(crate) fn decode(entries: &Value) -> Result<Self, String> {
        let mut decoded = Self::default();
        for (index, entry) in entries.as_array().into_iter().flatten().enumerate() {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".to_owned()),
            };
            if text("apiVersion").is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
                other => {
                    return Err(format!(
                        "invalid fieldsType {} in managed fields entry {index}",
                        quote(other)
                    ));
                }
            }
            let set = match entry.get("fieldsV1") {
                None | Some(Value::Null) => Ok(Set::new()),
                Some(fields) => Set::from_value(fields),
            };
            let set = set.map_err(|error| {
                format!("error decoding versioned set from {}: error decoding set: {error}", shown(entry))
            })?;
            let api_version = text("apiVersion").to_owned();
            let manager = Manager::new(text("manager"), operation, &api_version, text("subresource"));
            decoded.times.remove(&manager);
            if let Some(time) = entry.get("time").and_then(Value::as_str) {
                decoded.times.insert(manager.clone(), Time { text: time.to_owned(), is_now: false });
            }
            decoded.fields.insert(manager, VersionedSet { set, api_version, operation });
        }
        Ok(decoded)
    }

    /// Encodes `metadata.managedFields` with sorted entries; returns `None` if no manager owns a field.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/managedfields.go, `encodeManagedFields`.
    pub(crate) fn encode(&self) -> Option<Value> {
        let mut entries: Vec<_> = self.fields.iter().collect();
        entries.sort_by(|(manager, owned), (other, others)| {
            let operations = owned.operation.cmp(&others.operation);
            operations
                .then_with(|| self.time(manager).cmp(self.time(other)))
                .then_with(|| manager.name.cmp(&other.name))
                .then_with(|| owned.api_version.cmp(&others.api_version))
                .then_with(|| manager.subresource.cmp(&other.subresource))
        });
        let entry = |(manager, owned): (&Manager, &VersionedSet)| {
            let mut entry = Map::new();
            for (name, value) in [
                ("manager", manager.name()),
                ("operation", owned.operation.as_str()),
                ("apiVersion", &owned.api_version),
                ("time", self.times.get(manager).map_or("", |time| &time.text)),
                ("fieldsType", "FieldsV1"),
                ("subresource", &manager.subresource),
            ] {
                if !value.is_empty() {
                    entry.insert(name.to_owned(), value.into());
                }
            }
            entry.insert("fieldsV1".to_owned(), owned.set.to_value());
            Value::Object(entry)
        };
        (!entries.is_empty()).then(|| entries.into_iter().map(entry).collect())
    }
}

/// Validates `metadata.managedFields` after mutating admission; `entries` is null if the field is absent.
///
/// # Errors
/// Returns kube-apiserver's error if an entry cannot be decoded.
///
/// Source: apimachinery pkg/util/managedfields/fieldmanager.go, `ValidateManagedFields`.
pub fn validate_entries(entries: &Value) -> Result<(), String> {
    Managed::decode(entries).map(|_managed| ())
}

/// Returns whether `entries` request that managedFields be removed: `[]` or `[{}]`.
///
/// Source: apimachinery pkg/util/managedfields/internal/fieldmanager.go, `isResetManagedFields`.
pub(crate) fn is_reset(entries: &Value) -> bool {
    match entries.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([entry]) => entry.as_object().is_some_and(|members| {
            members.values().all(|value| value.is_null() || value.as_str().is_some_and(str::is_empty))
        }),
        Some(_) | None => false,
    }
}

/// Formats an entry as Go prints the `ManagedFieldsEntry` struct.
fn shown(entry: &Value) -> String {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let time = entry
        .get("time")
        .and_then(Value::as_str)
        .map_or_else(|| "<nil>".to_owned(), |time| time.replace('T', " ").replace('Z', " +0000 UTC"));
    let fields = entry.get("fieldsV1").map(Value::to_string).unwrap_or_default();
    format!(
        "{{{} {} {} {time} {} {fields} {}}}",
        text("manager"),
        text("operation"),
        text("apiVersion"),
        text("fieldsType"),
        text("subresource"),
    )
}
