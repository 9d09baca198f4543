//! Converts objects to Tables. kubectl prints the rows and columns of a Table.
//!
//! The columns of built-in kinds are in `columns.json`. `harness/tools/columns.sh` writes this file. The cells are pure
//! functions of an object and the time. Rows are created while they are written, so they are never all in memory.
//!
//! Source: apiserver pkg/endpoints/handlers/response.go, `asTable`; kubernetes pkg/printers/storage/storage.go.

pub(crate) mod scale;

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::at;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::{Status, Unsupported};
use kubernetes_types::weight::exceeds;
use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::{Value, json};

use crate::apimachinery::limits::LARGE_BYTES;
use crate::apimachinery::metadata;
use crate::apimachinery::metadata::METADATA_KIND;
use crate::apimachinery::query::Query;
use crate::kinds::common::cells;
use crate::kinds::common::columns::COLUMNS;
use crate::kinds::common::custom_columns::CustomColumns;
use crate::kinds::discovery::Resource;
use crate::kinds::kind::Kind;
use crate::kinds::table;
use crate::storage::list::Item;

/// The requested form of Tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableOptions {
    /// `meta.k8s.io/v1` or `meta.k8s.io/v1beta1`.
    pub(crate) api_version: &'static str,
    pub(crate) include: Include,
    /// Whether the Table contains column definitions.
    pub(crate) has_headers: bool,
}

/// The part of the object that a row contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    /// The metadata, as a `PartialObjectMetadata`.
    #[default]
    Metadata,
    Object,
    None,
}

impl TableOptions {
    pub(crate) const fn new(api_version: &'static str) -> Self {
        Self { api_version, include: Include::Metadata, has_headers: true }
    }

    /// Returns the options with the query parameters applied.
    ///
    /// Source: apimachinery pkg/apis/meta/v1beta1/validation/validation.go, `ValidateTableOptions`.
    /// Rule: TBL-03.
    ///
    /// # Errors
    /// Returns 400 for an invalid `includeObject`.
    pub(crate) fn with_query(self, query: &Query) -> Result<Self, Box<Status>> {
        let include = match query.first("includeObject").unwrap_or_default() {
            "" | "Metadata" => Include::Metadata,
            "Object" => Include::Object,
            "None" => Include::None,
            other => {
                return Err(Box::new(Status::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                     'Object', 'None', or empty",
                    quote(other)
                ))));
            }
        };
        Ok(Self { include, ..self })
    }
}

/// The columns and cells of the rows of a resource.
#[derive(Clone, Debug)]
enum Rows {
    BuiltIn {
        columns: &'static Value,
        cells: cells::Cells,
        kind: &'static Kind,
    },
    /// The name and the creation time, for a kind that has only the default columns.
    Default {
        columns: &'static Value,
    },
    Custom(Arc<CustomColumns>),
}

/// Returns whether a resource or a subresource has a Table.
///
/// Source: kubernetes pkg/registry: the storages that implement `TableConvertor`; apiserver
/// pkg/endpoints/handlers/rest.go, `AllowsMediaTypeTransform`.
/// Rule: TBL-04.
pub(crate) fn has_table(resource: &Resource, subresource: &str) -> bool {
    match subresource {
        "" => resource.verbs.iter().any(|verb| verb == "get"),
        "scale" => true,
        "status" => resource.custom.is_some() || table::of(resource).has_status_table,
        _ => false,
    }
}

impl Rows {
    fn for_resource(resource: &Resource, subresource: &str) -> Result<Self, Unsupported> {
        if let Some(custom) = &resource.custom {
            let columns =
                if subresource == "scale" { custom.scale_columns.clone() } else { custom.columns.clone() };
            return columns.map(Self::Custom);
        }
        let columns = |kind: &str| COLUMNS.get(kind).unwrap_or(&Value::Null);
        if subresource == "scale" {
            let (columns, cells) = (columns("Scale"), scale::cells);
            return Ok(Self::BuiltIn { columns, cells, kind: &Kind::PLAIN });
        }
        let kind = table::of(resource);
        if kind.has_default_columns {
            return Ok(Self::Default { columns: columns("default") });
        }
        let what = || Unsupported { what: format!("Tables of {}", resource.gvr.group_resource()) };
        let cells = kind.cells.ok_or_else(what)?;
        let columns = kind.columns.map_or_else(|| columns(&resource.kind.kind), |columns| columns());
        Ok(Self::BuiltIn { columns, cells, kind })
    }

    fn columns(&self) -> &Value {
        match self {
            Self::BuiltIn { columns, .. } | Self::Default { columns } => columns,
            Self::Custom(custom) => custom.definitions(),
        }
    }
}

/// A Table of objects.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    options: TableOptions,
    rows: Rows,
    /// The `ListMeta` of the Table.
    metadata: Value,
    objects: Objects,
    now: Timestamp,
    default_class: String,
}

/// The objects of the rows.
#[derive(Clone, Debug)]
enum Objects {
    One(Arc<Value>),
    /// A list. Each object is decoded when its row is written.
    List(Vec<Item>),
}

impl Table {
    /// Returns the Table of one object.
    ///
    /// Rule: TBL-01.
    ///
    /// # Errors
    /// Returns 501 for a kind without columns.
    pub(crate) fn of_object(
        object: Arc<Value>,
        resource: &Resource,
        subresource: &str,
        options: TableOptions,
        now: Timestamp,
    ) -> Result<Self, Box<Status>> {
        let version = metadata::text(&object, "resourceVersion");
        let metadata = if version.is_empty() { json!({}) } else { json!({"resourceVersion": version}) };
        let rows = Rows::for_resource(resource, subresource);
        let rows = rows.map_err(|unsupported| Box::new(Status::unsupported(&unsupported)))?;
        let default_class = String::new();
        Ok(Self { options, rows, metadata, objects: Objects::One(object), now, default_class })
    }

    /// Returns the Table of a list.
    ///
    /// Rule: TBL-01.
    ///
    /// # Errors
    /// Returns 501 for a kind without columns.
    pub(crate) fn of_list(
        items: Vec<Item>,
        metadata: Value,
        resource: &Resource,
        options: TableOptions,
        now: Timestamp,
    ) -> Result<Self, Box<Status>> {
        let rows = Rows::for_resource(resource, "");
        let rows = rows.map_err(|unsupported| Box::new(Status::unsupported(&unsupported)))?;
        let default_class = match rows {
            Rows::BuiltIn { kind, .. } => kind.default_in_list.map_or_else(String::new, |default| {
                default(&items.iter().map(Item::object).collect::<Vec<_>>())
            }),
            Rows::Default { .. } | Rows::Custom(_) => String::new(),
        };
        Ok(Self { options, rows, metadata, objects: Objects::List(items), now, default_class })
    }

    /// Returns whether the Table takes long to encode.
    pub(crate) fn is_large(&self) -> bool {
        match &self.objects {
            Objects::One(object) => exceeds(object, LARGE_BYTES),
            // A decoded object takes several times as much memory as its JSON.
            Objects::List(items) => {
                items.iter().map(|item| item.encoded().text().len()).sum::<usize>() > LARGE_BYTES / 8
            }
        }
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "Table")?;
        map.serialize_entry("apiVersion", self.options.api_version)?;
        map.serialize_entry("metadata", &self.metadata)?;
        map.serialize_entry("columnDefinitions", &self.options.has_headers.then(|| self.rows.columns()))?;
        // For an empty list, upstream returns `null` for some kinds and an empty list of rows for the others.
        let is_empty = matches!(&self.objects, Objects::List(items) if items.is_empty());
        let is_null_if_empty = match self.rows {
            Rows::Default { .. } => true,
            Rows::BuiltIn { kind, .. } => kind.is_definition,
            Rows::Custom(_) => false,
        };
        if is_empty && is_null_if_empty {
            map.serialize_entry("rows", &Value::Null)?;
        } else {
            map.serialize_entry("rows", &RowsOf(self))?;
        }
        map.end()
    }
}

struct RowsOf<'a>(&'a Table);

impl Serialize for RowsOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(None)?;
        match &self.0.objects {
            Objects::One(object) => rows.serialize_element(&Row { table: self.0, object })?,
            Objects::List(items) => {
                for item in items {
                    rows.serialize_element(&Row { table: self.0, object: &item.object() })?;
                }
            }
        }
        rows.end()
    }
}

struct Row<'a> {
    table: &'a Table,
    object: &'a Value,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { table, object } = *self;
        let context = cells::Context { now: table.now, default_class: &table.default_class };
        let mut map = serializer.serialize_map(None)?;
        let cells = match &table.rows {
            Rows::BuiltIn { cells, .. } => cells(object, &context),
            Rows::Default { .. } => cells::name_and_creation(object, &context),
            Rows::Custom(columns) => columns.cells(object, table.now),
        };
        map.serialize_entry("cells", &cells)?;
        if let Rows::BuiltIn { kind, .. } = table.rows
            && let Some(conditions) = (kind.row_conditions)(object)
        {
            map.serialize_entry("conditions", &conditions)?;
        }
        let ends_objects =
            kubernetes_types::json::at(object, &["metadata", "annotations", "k8s.io/initial-events-end"])
                == "true";
        match table.options.include {
            Include::Object => map.serialize_entry("object", object)?,
            Include::None if !ends_objects => map.serialize_entry("object", &Value::Null)?,
            Include::None | Include::Metadata => {
                map.serialize_entry(
                    "object",
                    &PartialMetadata { object, api_version: table.options.api_version },
                )?;
            }
        }
        map.end()
    }
}

/// Returns the metadata of an object in the internal version.
///
/// The internal version has fields instead of some annotations.
///
/// The server builds Tables and metadata-only objects from this metadata.
///
/// Source: kubernetes pkg/apis/apps/v1/conversion.go, pkg/apis/autoscaling/v1/conversion.go.
/// Rule: TBL-12.
pub(crate) fn internal_metadata(object: &Value) -> Cow<'_, Value> {
    let kind = GroupVersionKind::from_object(object);
    let annotations = table::of_kind(&kind).map_or(&[][..], |known| known.internal_annotations);
    let fields = Kind::on(annotations, &kind.version).unwrap_or_default();
    let metadata = at(object, &["metadata"]);
    let has_one = fields.iter().any(|field| !at(metadata, &["annotations", field]).is_null());
    if !has_one {
        return if metadata.is_null() { Cow::Owned(json!({})) } else { Cow::Borrowed(metadata) };
    }
    let mut metadata = metadata.clone();
    let is_empty =
        metadata.get_mut("annotations").and_then(Value::as_object_mut).is_some_and(|annotations| {
            annotations.retain(|key, _| !fields.contains(&key.as_str()));
            annotations.is_empty()
        });
    if is_empty && let Some(members) = metadata.as_object_mut() {
        members.remove("annotations");
    }
    Cow::Owned(metadata)
}

/// The metadata of an object. Rows contain it as a `PartialObjectMetadata`.
struct PartialMetadata<'a> {
    object: &'a Value,
    api_version: &'static str,
}

impl Serialize for PartialMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("kind", METADATA_KIND)?;
        map.serialize_entry("apiVersion", self.api_version)?;
        map.serialize_entry("metadata", &*internal_metadata(self.object))?;
        map.end()
    }
}
